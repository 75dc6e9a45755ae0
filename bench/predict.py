#!/usr/bin/env python3
"""Compares predictions of `feedrate advise --set` with runs of the changed workloads: prints a table of both and their differences, and exits 1
if a target is missed.

Each storage is emulated, or is a disk slowed by a blkio cgroup if that is permitted. Each prediction is made twice: from the original record,
which contains the emulation or the limit of the storage, and blind, from a record without them.
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
PIECES = "reader.transfer_size={}".format
RATE = "storage.throttle.bytes_per_second={}".format
LATENCY = "storage.throttle.latency_seconds={}".format
PLACES = "storage.throttle.concurrency={}".format
OPENS = "storage.delay.open_seconds={}".format
DECODE = "reader.preprocess_time={}".format

# Keys of an emulated storage, with the values of no emulation.
NOTHING = [RATE("null"), LATENCY(0), PLACES("null"), OPENS(0)]

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
            (PIECES("64KiB"),),
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
            (PIECES("64KiB"),),
            (LOADER("pytorch"),),
            (COMPUTE(0.06),),
            ("-n4",),
        ],
    ),
    "few at a time": (
        [LATENCY(0.04), PLACES(2), THREADS(4)],
        [
            ("storage.concurrency=2x", PLACES(4)),
            ("storage.concurrency=1", PLACES(1)),
            ("storage.latency=0.5x", LATENCY(0.02)),
            (THREADS(1),),
            (THREADS(8),),
            (COMPUTE(0.1),),
            ("-n2",),
        ],
    ),
    "expensive opens": (
        [OPENS(0.04), LATENCY(0.001), THREADS(2)],
        [
            ("storage.open_latency=0.5x", OPENS(0.02)),
            (THREADS(1),),
            (THREADS(3),),
            (THREADS(4),),
            (PIECES("64KiB"),),
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
    "of each a little": (
        [RATE(40e6), LATENCY(0.01), OPENS(0.01), DECODE(0.01), THREADS(2)],
        [
            ("storage.bandwidth=0.5x", RATE(20e6)),
            ("storage.latency=0.5x", LATENCY(0.005)),
            ("decode.time=0.5x", DECODE(0.005)),
            (THREADS(4),),
            (BATCH(1),),
            (PIECES("64KiB"),),
            ("-n2",),
            ("-n4",),
        ],
    ),
}

# Disks with a limited rate of bytes or requests, read past the page cache: runs of some ten seconds, as their rate is
# handed out in slices of a tenth.
ON_DISK = ["storage.storage_type=local_fs", "storage.engine=direct", PIECES("256KiB"), "dataset.num_files_train=480"]
DISK_CHANGES = [
    (THREADS(1),),
    (THREADS(8),),
    (COMPUTE(0.08),),
    (BATCH(8),),
    (PIECES("64KiB"),),
    (LOADER("pytorch"),),
    ("-n2",),
]
# Name: file of the cgroup, limit, then the baseline and its changes.
DISKS = {
    "slowed disk": ("read_bps_device", 13e6, [*ON_DISK, THREADS(4)], DISK_CHANGES),
    "disk of few requests": ("read_iops_device", 100, [*ON_DISK, THREADS(2)], DISK_CHANGES),
}

MEDIAN_MAX = 3.0
NEAR = 8.0
NEAR_SHARE_MIN = 0.9
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
        """A prediction; `None` if the record has no evidence for it."""
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

    def blind(self, run):
        """A copy of the run without facts about its storage."""
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
        """Limits the rate at which following runs read from the disk of the folder; false if that is impossible."""
        parent = Path("/sys/fs/cgroup/blkio")
        device = self.folder.stat().st_dev
        try:
            self.cgroup = parent / f"feedrate-predict-{os.getpid()}"
            self.cgroup.mkdir()
            limit = f"{os.major(device)}:{os.minor(device)} {int(rate)}"
            (self.cgroup / f"blkio.throttle.{file}").write_text(limit)
        except OSError as error:
            self.any_disk()
            print(f"left out: the kernel lets us slow no disk: {error}", file=sys.stderr)
            return False
        return True

    def any_disk(self):
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
                    rows += predicted(runs, name, *case)
            for name, (file, rate, *case) in DISKS.items():
                if (not arguments.only or name in arguments.only) and runs.slow_disk(file, rate):
                    rows += predicted(runs, name, *case)
                    runs.any_disk()
    finally:
        runs.any_disk()
        shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    met = [verdict(rows, 3, "as it is"), verdict(rows, 4, "blind")]
    sys.exit(0 if met[0] else 1)


def predicted(runs, name, baseline, changes):
    base = runs.run(baseline)
    blind = runs.blind(base["run_dir"])
    nothing = NOTHING if name in CASES else []
    rows = []
    for change in changes:
        predicted_change, real_change = change[0], change[-1]
        known = runs.predict(base["run_dir"], [predicted_change])
        unknown = runs.predict(blind, [*nothing, predicted_change])
        au = runs.run([*baseline, real_change])["au"]["all_steps_percent"]
        row = (name, predicted_change, au, known, unknown, base["au"]["all_steps_percent"])
        print(line(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def line(row):
    name, change, au, known, unknown, base = row
    cells = [name, f"`{change}`", f"{base:.1f} %", f"{au:.1f} %"]
    for prediction in (known, unknown):
        cells.append("unknown" if prediction is None else "{:.1f} % [{:.1f}, {:.1f}]".format(*prediction))
    return "| " + " | ".join(cells) + " |"


def table(rows):
    head = "| storage | change | before | really | predicted | predicted blind |\n|---|---|---|---|---|---|"
    return "\n".join([head, *map(line, rows)])


def verdict(rows, at, label):
    predicted = [(row[2], *row[at]) for row in rows if row[at] is not None]
    errors = [abs(au - estimate) for au, estimate, _, _ in predicted]
    covered = sum(low <= au <= high for au, _, low, high in predicted)
    median = statistics.median(errors)
    close_share = sum(error <= NEAR for error in errors) / len(errors)
    print(f"\n{label}: {len(predicted)} of {len(rows)} predicted; median error {median:.1f} points; {100 * close_share:.0f} % within {NEAR:.0f}; "
          f"the interval covers {covered} of {len(predicted)}")
    return median <= MEDIAN_MAX and close_share >= NEAR_SHARE_MIN and covered >= COVERED_SHARE_MIN * len(predicted)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each change (1)")
    parser.add_argument("--only", action="append", choices=[*CASES, *DISKS], help="this storage alone")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="where datasets are made")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


if __name__ == "__main__":
    main()
