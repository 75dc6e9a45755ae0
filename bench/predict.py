#!/usr/bin/env python3
"""Compares predictions of `feedrate advise --set` with runs of the changed workloads: prints a table of both, and exits 1 if a target is
missed.

Most storages are emulated; two are a disk that a blkio cgroup limits, if that is permitted. Each prediction is made twice: from the original record,
which contains the emulated properties or the limit of the storage, and blind, from a record without them.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS

THREADS = "reader.read_threads={}".format
BATCH = "reader.batch_size={}".format
COMPUTE = "train.computation_time={}".format
LOADER = "reader.data_loader={}".format
PREFETCH = "reader.prefetch_size={}".format
TRANSFER = "reader.transfer_size={}".format
RATE = "storage.throttle.bytes_per_second={}".format
LATENCY = "storage.throttle.latency_seconds={}".format
CONCURRENCY = "storage.throttle.concurrency={}".format
OPEN_DELAY = "storage.delay.open_seconds={}".format
DECODE = "reader.preprocess_time={}".format

# Overrides that turn off the emulation of a storage.
NO_EMULATION = [RATE("null"), LATENCY(0), CONCURRENCY("null"), OPEN_DELAY(0)]

# Name: the baseline, then changes. A change has the predicted form, and the form that is run if that differs.
CASES = {
    "throttled": (
        [RATE(13e6), THREADS(4)],
        [
            ("storage.bandwidth=2x", RATE(26e6)),
            ("storage.bandwidth=4x", RATE(52e6)),
            (THREADS(1),),
            (THREADS(8),),
            (BATCH(8),),
            (COMPUTE(0.08),),
            (TRANSFER("64KiB"),),
            (LOADER("pytorch"),),
            ("-n2",),
        ],
    ),
    "latency": (
        [LATENCY(0.02), THREADS(2), COMPUTE(0.02)],
        [
            ("storage.latency=0.5x", LATENCY(0.01)),
            ("storage.latency=2x", LATENCY(0.04)),
            (THREADS(1),),
            (THREADS(3),),
            (THREADS(8),),
            (PREFETCH(16),),
            (TRANSFER("64KiB"),),
            (LOADER("pytorch"),),
            (COMPUTE(0.06),),
            ("-n4",),
        ],
    ),
    "few concurrent reads": (
        [LATENCY(0.04), CONCURRENCY(2), THREADS(4)],
        [
            ("storage.concurrency=2x", CONCURRENCY(4)),
            ("storage.concurrency=1", CONCURRENCY(1)),
            ("storage.latency=0.5x", LATENCY(0.02)),
            (THREADS(1),),
            (THREADS(8),),
            (COMPUTE(0.1),),
            ("-n2",),
        ],
    ),
    "expensive opens": (
        [OPEN_DELAY(0.04), LATENCY(0.001), THREADS(2)],
        [
            ("storage.open_latency=0.5x", OPEN_DELAY(0.02)),
            (THREADS(1),),
            (THREADS(3),),
            (THREADS(4),),
            (TRANSFER("64KiB"),),
            ("-n2",),
        ],
    ),
    "slow decode": (
        [DECODE(0.04), LATENCY(0.002), THREADS(2)],
        [
            ("decode.time=0.5x", DECODE(0.02)),
            ("decode.time=2x", DECODE(0.08)),
            (THREADS(1),),
            (THREADS(4),),
            (LOADER("dali"),),
            ("-n2",),
        ],
    ),
    "several small delays": (
        [RATE(40e6), LATENCY(0.01), OPEN_DELAY(0.01), DECODE(0.01), THREADS(2)],
        [
            ("storage.bandwidth=0.5x", RATE(20e6)),
            ("storage.latency=0.5x", LATENCY(0.005)),
            ("decode.time=0.5x", DECODE(0.005)),
            (THREADS(4),),
            (BATCH(1),),
            (TRANSFER("64KiB"),),
            ("-n2",),
            ("-n4",),
        ],
    ),
}

# Disks with a limited rate of bytes or requests, read without the page cache. Runs take about ten seconds, because the kernel grants the rate in
# slices of a tenth of a second.
ON_DISK = ["storage.storage_type=local_fs", "storage.engine=direct", TRANSFER("256KiB"), "dataset.num_files_train=480"]
DISK_CHANGES = [
    (THREADS(1),),
    (THREADS(8),),
    (COMPUTE(0.08),),
    (BATCH(8),),
    (TRANSFER("64KiB"),),
    (LOADER("pytorch"),),
    ("-n2",),
]
# Name: file of the cgroup, limit, then the baseline and its changes.
DISKS = {
    "slowed disk": ("read_bps_device", 13e6, [*ON_DISK, THREADS(4)], DISK_CHANGES),
    "disk with few requests": ("read_iops_device", 100, [*ON_DISK, THREADS(2)], DISK_CHANGES),
}

MEDIAN_MAX = 3.0
CLOSE_MAX = 8.0
CLOSE_SHARE_MIN = 0.9
COVERED_SHARE_MIN = 0.9


class Runs:
    """Runs of one binary, in one folder."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary.resolve(), folder.resolve()
        self.cgroup = None

    def run(self, overrides):
        """Runs a workload and returns its summary."""
        return self.feedrate("run", WORKLOADS / "predict.yaml", *overrides, "--data", self.folder / "data",
                             "--results", self.folder / "results", "--quiet")

    def predict(self, run, changes):
        """Returns a prediction; `None` if the record does not allow one."""
        try:
            row = self.feedrate("advise", run, "--set", *changes)["whatif"][0]
        except subprocess.CalledProcessError:
            return None
        return None if row["au_percent"] is None else (row["au_percent"], *row["interval"])

    def feedrate(self, *words):
        argv = [self.binary, *words, "--json"]
        join = self.cgroup and (lambda: (self.cgroup / "cgroup.procs").write_text(str(os.getpid())))
        done = subprocess.run([str(word) for word in argv], preexec_fn=join, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def copy_blind(self, run):
        """Copies the run without the facts about its storage, and returns the folder of the copy."""
        copy = self.folder / "blind"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy)
        record = json.loads((copy / "record.json").read_text())
        storage = record["plan"]["storage"]
        record["plan"]["storage"] = {
            "kind": storage["kind"], "engine": storage["engine"],
            "throttle_bytes_per_second": None, "throttle_latency_s": 0.0, "delay_s": 0.0,
        }
        (record["system"]["data_mount"] or {}).pop("read_limits", None)
        (copy / "record.json").write_text(json.dumps(record))
        return copy

    def slow_disk(self, file, rate):
        """Limits the rate at which later runs read from the disk of the folder. Returns False if that is impossible."""
        parent = Path("/sys/fs/cgroup/blkio")
        device = self.folder.stat().st_dev
        try:
            self.cgroup = parent / f"feedrate-predict-{os.getpid()}"
            self.cgroup.mkdir()
            limit = f"{os.major(device)}:{os.minor(device)} {int(rate)}"
            (self.cgroup / f"blkio.throttle.{file}").write_text(limit)
        except OSError as error:
            self.restore_disk()
            print(f"skipped: the kernel does not permit limiting a disk: {error}", file=sys.stderr)
            return False
        return True

    def restore_disk(self):
        if self.cgroup and self.cgroup.is_dir():
            self.cgroup.rmdir()
        self.cgroup = None


def main():
    arguments = parse_arguments()
    folder = arguments.data / "predict"
    folder.mkdir(parents=True, exist_ok=True)
    runs = Runs(arguments.binary, folder)
    rows = []
    try:
        for _ in range(arguments.rounds):
            for name, case in CASES.items():
                if not arguments.only or name in arguments.only:
                    rows += compare(runs, name, *case)
            for name, (file, rate, *case) in DISKS.items():
                if (not arguments.only or name in arguments.only) and runs.slow_disk(file, rate):
                    rows += compare(runs, name, *case)
                    runs.restore_disk()
    finally:
        runs.restore_disk()
        shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    met = [print_errors(rows, 3, "full record"), print_errors(rows, 4, "blind")]
    sys.exit(0 if met[0] else 1)


def compare(runs, name, baseline, changes):
    base = runs.run(baseline)
    blind = runs.copy_blind(base["run_dir"])
    no_emulation = NO_EMULATION if name in CASES else []
    rows = []
    for change in changes:
        predicted_change, real_change = change[0], change[-1]
        known = runs.predict(base["run_dir"], [predicted_change])
        unknown = runs.predict(blind, [*no_emulation, predicted_change])
        au = runs.run([*baseline, real_change])["au"]["all_steps_percent"]
        row = (name, predicted_change, au, known, unknown, base["au"]["all_steps_percent"])
        print(name, line(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def line(row):
    _, change, au, known, unknown, _ = row
    predictions = ["unknown" if values is None else "{:.1f} ({:.1f}–{:.1f})".format(*values) for values in (known, unknown)]
    return "| " + " | ".join([f"`{change}`", f"{au:.1f}", *predictions]) + " |"


def table(rows):
    """Formats a table of AUs in percent, with a heading row for each storage and its baseline."""
    lines, last_heading = ["| change | measured | predicted | predicted blind |", "|---|---|---|---|"], None
    for row in rows:
        heading = f"| **{row[0]}, {row[-1]:.1f} % before** | | | |"
        if heading != last_heading:
            lines.append(heading)
        lines.append(line(row))
        last_heading = heading
    return "\n".join(lines)


def print_errors(rows, column, label):
    """Prints a summary of the errors, and returns whether the targets are met."""
    predicted = [(row[2], *row[column]) for row in rows if row[column] is not None]
    errors = [abs(au - estimate) for au, estimate, _, _ in predicted]
    covered = sum(low <= au <= high for au, _, low, high in predicted)
    median = statistics.median(errors)
    close_share = sum(error <= CLOSE_MAX for error in errors) / len(errors)
    print(f"\n{label}: {len(predicted)} of {len(rows)} predicted; median error {median:.1f} points; {100 * close_share:.0f} % within {CLOSE_MAX:.0f}; "
          f"the interval covers {covered} of {len(predicted)}")
    return median <= MEDIAN_MAX and close_share >= CLOSE_SHARE_MIN and covered >= COVERED_SHARE_MIN * len(predicted)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each change (1)")
    parser.add_argument("--only", action="append", choices=[*CASES, *DISKS], help="only this storage")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


if __name__ == "__main__":
    main()
