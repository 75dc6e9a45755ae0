#!/usr/bin/env python3
"""Compares plain PyTorch loops with feedrate's emulation of them, on the same files and the same disk: prints both AUs of each cell, and exits 1 if a
target is missed.

`feedrate calibrate` calibrates the client of each cell right before, with the same number of workers if each has a core. Loop and
emulation alternate, and medians over rounds are compared. A blkio cgroup slows the disk, and its files are not in the page cache; if a cgroup is not
permitted, these cells are skipped with a message. If storage is the limit, a run with the ideal client is shown as well. Cells with more workers
than cores are reported separately.

With `--latency`, loop and emulation read from a FUSE file system without a cache on which each request takes 1, 4 or 15 ms, instead of the disk.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, warm

MB = 1_000_000
# Format: number of files, and the overrides for generating them.
DATASETS = {
    "npz": (768, ["dataset.record_length_bytes=524288"]),
    "hdf5": (768, ["dataset.record_length_bytes=1048576"]),
    "jpeg": (1024, ["dataset.record_length_bytes=480000", "dataset.record_element_type=uint8"]),
}
# Further formats of `--latency`.
LATENCY_DATASETS = {
    "npy": (768, ["dataset.record_length_bytes=524288"]),
    "png": (256, ["dataset.record_length_bytes=480000", "dataset.record_element_type=uint8"]),
}
# Samples per batch: duration of short and long steps in seconds. Each combination of format and workers uses one duration per batch size.
STEPS = {4: (0.004, 0.015), 32: (0.03, 0.08)}
WORKERS = (1, 2, 4)
RATES = (None, 150 * MB, 600 * MB)
# A slowed disk delivers its bytes in slices of 100 ms, which is a large share of a run of one second. If the disk is the limit, runs are longer by
# this factor.
SLOW_DISK_FACTOR = 2.5
CORES = len(os.sched_getaffinity(0))
MEDIAN_MAX = 2.0
CLOSE_MAX = 5.0
CLOSE_SHARE_MIN = 0.9


@dataclass(frozen=True)
class Cell:
    format: str
    batch: int
    workers: int
    rate: int | None
    step: float
    latency: float | None = None


# Cells of `--latency` in batches of 4: format, workers, latency of a request and duration of a step in seconds. Utilisation is between 20 and 80 %.
LATENCY_CELLS = [
    Cell(kind, 4, workers, None, step, latency)
    for kind, workers, latency, step in [
        ("npz", 1, 0.001, 0.04),
        ("npz", 2, 0.004, 0.08),
        ("npz", 4, 0.015, 0.15),
        ("npy", 1, 0.001, 0.04),
        ("npy", 2, 0.015, 0.1),
        ("jpeg", 1, 0.004, 0.1),
        ("jpeg", 2, 0.015, 0.1),
        ("hdf5", 1, 0.001, 0.06),
        ("hdf5", 4, 0.004, 0.06),
        ("png", 2, 0.004, 0.1),
    ]
]
# Approximate number of requests of at most 128 KiB for a sample. It determines only the number of steps.
REQUESTS = {"npz": 14, "npy": 8, "jpeg": 6, "hdf5": 20, "png": 18}


def cells(formats, rates):
    for number, kind in enumerate(formats):
        for index, workers in enumerate(WORKERS):
            for rate in rates:
                for is_long, batch in enumerate([4, 32] if (number + index) % 2 else [32, 4]):
                    yield Cell(kind, batch, workers, rate, STEPS[batch][is_long])


class Comparison:
    """Runs the PyTorch loop and the emulation of a cell, in one folder."""

    def __init__(self, arguments):
        self.binary, self.python = arguments.binary.resolve(), arguments.python.absolute()
        self.folder = arguments.data.resolve() / "fidelity"
        self.seconds = arguments.seconds
        self.cgroup = None
        self.clients = {}
        self.mounts = {}
        self.loops = subprocess.Popen(
            [self.python, "-W", "ignore", ROOT / "bench/torch_loop.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.versions = json.loads(self.loops.stdout.readline())

    def dataset_arguments(self, kind, latency=None):
        files, keys = {**DATASETS, **LATENCY_DATASETS}[kind]
        # Each format has a folder, so datasets are kept.
        return [f"dataset.format={kind}", f"dataset.num_files_train={files}", *keys, "--data", self.data_folder(kind, latency)]

    def data_folder(self, kind, latency=None):
        """The folder of a format, on a file system with a latency if one is given."""
        return (self.mount(latency) if latency else self.folder) / kind

    def mount(self, latency):
        """Starts the FUSE file system with a latency once, and returns its folder."""
        if latency not in self.mounts:
            mount = self.folder.with_name(f"fidelity-{1000 * latency:g}ms")
            mount.mkdir(parents=True, exist_ok=True)
            server = subprocess.Popen([self.python, ROOT / "bench/delayed.py", self.folder, mount, str(latency)])
            self.mounts[latency] = (mount, server)
            while not mount.is_mount():
                if server.poll() is not None:
                    sys.exit("error: no FUSE file system can be mounted\n  hint: `--latency` needs /dev/fuse, libfuse 2, and fusepy in the Python of `--python`")
                time.sleep(0.05)
        return self.mounts[latency][0]

    def prepare(self, kind):
        """Generates all datasets and syncs them before anything is timed."""
        (self.folder / kind).mkdir(parents=True, exist_ok=True)
        self.feedrate("generate", WORKLOADS / "fidelity.yaml", *self.dataset_arguments(kind))
        os.sync()
        self.files = sorted(path for path in (self.folder / kind).rglob("*") if path.parent.name == "train" and path.is_file())

    def client(self, cell):
        """The calibrated client, with the cell's number of workers if each has a core."""
        if cell not in self.clients:
            workers = min(cell.workers, CORES)
            calibration = self.feedrate(
                "calibrate", f"{ROOT / 'bench/torch_loop.py'}:make_dataset", "--batch", cell.batch, "--workers", workers,
                "--python", self.python, "--time", f"{8 * self.seconds}s",
                environment={"FIDELITY_FORMAT": cell.format, "FIDELITY_FOLDER": str(self.folder / cell.format)},
            )
            self.clients[cell] = calibration
            print(f"{cell.format}, batches of {cell.batch}, {workers} workers: {json.dumps(calibration['client'])}", file=sys.stderr, flush=True)
        return self.clients[cell]

    def batch_seconds(self, cell):
        """The client's time per batch, in seconds."""
        workers = min(cell.workers, CORES)
        return self.client(cell)["batch_cpu_seconds"][str(workers)] / workers

    def steps(self, cell):
        """Number of steps for the duration of a run, limited by the number of samples."""
        period = max(cell.step, self.batch_seconds(cell), self.disk_seconds(cell))
        seconds = self.seconds * (SLOW_DISK_FACTOR if self.storage_is_the_limit(cell) else 1)
        return max(4, min(len(self.files) // cell.batch, math.ceil(seconds / period)))

    def disk_seconds(self, cell):
        """The disk's time per batch, in seconds. With a latency, workers wait at the same time."""
        if cell.latency:
            return REQUESTS[cell.format] * cell.latency * cell.batch / cell.workers
        return sum(path.stat().st_size for path in self.files[: cell.batch]) / cell.rate if cell.rate else 0.0

    def storage_is_the_limit(self, cell):
        """Whether the disk takes longer for a batch than its step and the client's work."""
        return self.disk_seconds(cell) > max(cell.step, 1.5 * self.batch_seconds(cell))

    def run_loop(self, cell):
        self.prepare_disk(cell)
        request = {
            "format": cell.format, "folder": str(self.data_folder(cell.format, cell.latency)), "batch": cell.batch, "workers": cell.workers,
            "steps": self.steps(cell), "step_seconds": cell.step, "cgroup": str(self.cgroup) if self.cgroup else None,
        }
        self.loops.stdin.write(json.dumps(request) + "\n")
        self.loops.stdin.flush()
        return float(self.loops.stdout.readline())

    def run_emulation(self, cell, is_ideal):
        self.prepare_disk(cell)
        client = {} if is_ideal else self.client(cell)["client"]
        keys = [f"++workload.client.{key}={value!r}" for key, value in client.items() if value]
        keys += [f"reader.batch_size={cell.batch}", f"reader.read_threads={cell.workers}", f"train.computation_time={cell.step}"]
        keys += [f"train.total_training_steps={self.steps(cell)}"]
        summary = self.feedrate(
            "run", WORKLOADS / "fidelity.yaml", *self.dataset_arguments(cell.format, cell.latency), *keys, "--results", self.folder / "results", in_cgroup=True
        )
        return summary["au"]["all_steps_percent"]

    def prepare_disk(self, cell):
        """Fills the page cache, or removes the files from it and slows the disk."""
        if cell.rate is None:
            warm(self.files)
            self.restore_disk()
            return
        for path in self.files:
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.slow_disk(cell.rate)

    def slow_disk(self, rate):
        device = self.folder.stat().st_dev
        self.cgroup = Path(f"/sys/fs/cgroup/blkio/feedrate-fidelity-{os.getpid()}")
        self.cgroup.mkdir(exist_ok=True)
        (self.cgroup / "blkio.throttle.read_bps_device").write_text(f"{os.major(device)}:{os.minor(device)} {rate}")

    def restore_disk(self):
        if self.cgroup and self.cgroup.is_dir():
            self.cgroup.rmdir()
        self.cgroup = None

    def feedrate(self, *words, in_cgroup=False, environment=None):
        join = (lambda: (self.cgroup / "cgroup.procs").write_text(str(os.getpid()))) if in_cgroup and self.cgroup else None
        argv = [str(word) for word in [self.binary, *words, "--json"]]
        done = subprocess.run(argv, preexec_fn=join, env={**os.environ, **(environment or {})}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"`{' '.join(argv)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def close(self):
        self.restore_disk()
        self.loops.stdin.close()
        self.loops.wait()
        for mount, server in self.mounts.values():
            subprocess.run(["fusermount", "-u", mount], check=False)
            server.wait()
            mount.rmdir()
        shutil.rmtree(self.folder / "results", ignore_errors=True)


@dataclass
class Row:
    cell: Cell
    real: float
    emulated: float
    ideal: float | None

    def gap(self):
        return self.emulated - self.real

    def cell_text(self):
        ideal = "" if self.ideal is None else f" ({self.ideal:.1f})"
        return f"{self.real:.1f}→{self.emulated:.1f}{ideal}"


def table(rows):
    """Formats a table with a column for each disk, or for each latency."""
    disks = {rate: "warm" if rate is None else f"{rate // MB} MB/s" for rate in RATES}
    latencies = sorted({row.cell.latency for row in rows if row.cell.latency})
    disks = {latency: f"{1000 * latency:g} ms" for latency in latencies} or disks
    lines = ["| " + " | ".join(["format", "batch", "workers", "step (ms)", *disks.values()]) + " |", "|" + "---|" * (4 + len(disks))]
    combinations = {}
    for row in rows:
        cell = row.cell
        combinations.setdefault((cell.format, cell.batch, cell.workers, f"{1000 * cell.step:g}"), {})[cell.latency or cell.rate] = row.cell_text()
    for combination, texts in combinations.items():
        lines.append("| " + " | ".join([*map(str, combination), *(texts.get(rate, "") for rate in disks)]) + " |")
    return "\n".join(lines)


def measure(comparison, cell, rounds):
    # Calibrates first, since calibration leaves files in the page cache.
    comparison.client(cell)
    au_percent = [[], [], []]
    for _ in range(rounds):
        au_percent[0].append(comparison.run_loop(cell))
        au_percent[1].append(comparison.run_emulation(cell, False))
        if comparison.storage_is_the_limit(cell):
            au_percent[2].append(comparison.run_emulation(cell, True))
    return Row(cell, *(statistics.median(values) if values else None for values in au_percent))


def print_gaps(label, gaps):
    """Prints a summary line, and returns whether the targets are met."""
    if not gaps:
        print(f"{label}: no cell")
        return True
    gaps = [abs(gap) for gap in gaps]
    median, close_share = statistics.median(gaps), sum(gap <= CLOSE_MAX for gap in gaps) / len(gaps)
    print(f"{label}: {len(gaps)} cells; median gap {median:.1f} points of {MEDIAN_MAX:.0f}; {100 * close_share:.0f} % within {CLOSE_MAX:.0f}, of {100 * CLOSE_SHARE_MIN:.0f} %")
    return median <= MEDIAN_MAX and close_share >= CLOSE_SHARE_MIN


def main():
    arguments = parse_arguments()
    if arguments.latency:
        chosen = LATENCY_CELLS
    else:
        rates = [rate for rate in RATES if rate is None or can_slow()]
        chosen = [cell for cell in cells(DATASETS, rates) if not (arguments.quick and cell.rate == 600 * MB)]
    kinds = arguments.only or dict.fromkeys(cell.format for cell in chosen)
    comparison = Comparison(arguments)
    rows = []
    try:
        for kind in kinds:
            comparison.prepare(kind)
            for cell in chosen:
                if cell.format == kind:
                    rows.append(measure(comparison, cell, arguments.rounds))
                    print(cell, rows[-1].cell_text(), file=sys.stderr, flush=True)
    finally:
        comparison.close()
    # Workers that wait for latency need no core.
    crowded = [row for row in rows if CORES < row.cell.workers and not row.cell.latency]
    evaluated = [row for row in rows if row not in crowded]
    print("AU in percent: PyTorch→calibrated emulation (ideal client, where storage is the limit)\n")
    print(table(evaluated))
    if crowded:
        print(f"\nMore workers than the {CORES} cores:\n")
        print(table(crowded))
    print()
    print(f"torch {comparison.versions['torch']}, numpy {comparison.versions['numpy']}, Python {comparison.versions['python']}")
    met = print_gaps("calibrated client", [row.gap() for row in evaluated])
    ideal_met = print_gaps("ideal client, where storage is the limit", [row.ideal - row.real for row in evaluated if row.ideal is not None])
    # With a latency, the work of the loop's client is added to the waits of each worker.
    met &= ideal_met or arguments.latency
    print_gaps("calibrated client, more workers than cores", [row.gap() for row in crowded])
    sys.exit(0 if met else 1)


def can_slow():
    probe = Path(f"/sys/fs/cgroup/blkio/feedrate-fidelity-probe-{os.getpid()}")
    try:
        probe.mkdir()
        probe.rmdir()
        return True
    except OSError as error:
        print(f"skipped: the kernel does not permit limiting a disk: {error}", file=sys.stderr)
        return False


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="Python with torch, numpy, h5py and Pillow (this one)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of the loop and of the emulation per cell (3)")
    parser.add_argument("--seconds", type=float, default=1.0, help="approximate duration of a run (1.0)")
    parser.add_argument("--quick", action="store_true", help="one short round without 600 MB/s, as a smoke test")
    parser.add_argument("--latency", action="store_true", help="compare ten cells in which each request of the file system takes 1, 4 or 15 ms; needs fusepy")
    parser.add_argument("--only", action="append", choices=[*DATASETS, *LATENCY_DATASETS], help="only this format")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 0.5
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


if __name__ == "__main__":
    main()
