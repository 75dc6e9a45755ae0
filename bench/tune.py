#!/usr/bin/env python3
"""The setting that `feedrate tune` finds, beside the best of all settings of the same keys, each of which is run: prints a table,
exits 1 where tune's is more than 2 % worse, or took more than a quarter of the runs.

The best of the exhaustive search and tune's setting are run again in turns before they are compared, so that no noise wins.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS

# The levels of `feedrate tune`; the workload's own come before them.
LEVELS = {
    "reader.read_threads": ["1", "2", "4", "8", "16", "32", "64"],
    "reader.prefetch_size": ["2", "4", "8"],
    "reader.transfer_size": ["256KiB", "1MiB", "4MiB"],
}
THREADS, PREFETCH, PIECES = LEVELS

# Name: the storage and the workload, and the keys that are tuned.
CASES = {
    "latency, small requests": (
        [f"{THREADS}=3", f"{PIECES}=64KiB", "storage.delay.read_seconds=0.01"],
        [THREADS, PIECES],
    ),
    "throttled, small requests": (
        [f"{THREADS}=3", f"{PIECES}=16KiB", "storage.throttle.bytes_per_second=60e6", "storage.throttle.latency_seconds=0.002"],
        [THREADS, PIECES],
    ),
    "expensive opens": (
        [f"{THREADS}=3", f"{PREFETCH}=1", "storage.delay.open_seconds=0.02", "storage.delay.read_seconds=0.002"],
        [THREADS, PREFETCH],
    ),
    "slow decode": (
        [f"{THREADS}=3", f"{PREFETCH}=1", "reader.preprocess_time=0.02", "storage.delay.read_seconds=0.002"],
        [THREADS, PREFETCH],
    ),
    "few at a time": (
        [f"{THREADS}=1", f"{PREFETCH}=1", "storage.throttle.concurrency=4", "storage.throttle.latency_seconds=0.02"],
        [THREADS, PREFETCH],
    ),
    "files of many samples": (
        [f"{THREADS}=1", f"{PIECES}=64KiB", "dataset.format=tfrecord", "dataset.num_files_train=12",
         "dataset.num_samples_per_file=20", "dataset.record_length_bytes=131072", "reader.data_loader=pytorch",
         "storage.delay.open_seconds=0.02", "storage.throttle.latency_seconds=0.003", "storage.throttle.bytes_per_second=60e6"],
        [THREADS, PIECES],
    ),
}

# Settings of the exhaustive search that are run again, and how often.
FINALISTS, ROUNDS = 3, 3
NEAR_SHARE = 0.02
RUNS_SHARE = 0.25


def main():
    arguments = parse_arguments()
    rows = []
    for name, (storage, keys) in CASES.items():
        if arguments.only and name != arguments.only:
            continue
        rows.append(compared(arguments, name, storage, keys))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    shutil.rmtree(arguments.data, ignore_errors=True)
    print("| storage | as it is | best of all | AU | runs | tune | AU | runs |\n|---|---|---|---|---|---|---|---|")
    print("\n".join(map(line, rows)))
    sys.exit(0 if all(is_met(row) for row in rows) else 1)


def compared(arguments, name, storage, keys):
    told = feedrate(arguments, "tune", [*storage, "--keys", ",".join(keys), "--budget", "10m"])
    levels = [[None, *LEVELS[key]] for key in keys]
    settings = [
        tuple(f"{key}={level}" for key, level in zip(keys, chosen) if level) for chosen in itertools.product(*levels)
    ]
    au = {setting: utilisation(arguments, storage, setting) for setting in settings}
    finalists = sorted(settings, key=au.get, reverse=True)[:FINALISTS]
    tuned = tuple(told["best"]["overrides"])
    again = {setting: [] for setting in [*finalists, tuned]}
    for _ in range(ROUNDS):
        for setting, values in again.items():
            values.append(utilisation(arguments, storage, setting))
    means = {setting: statistics.mean(values) for setting, values in again.items()}
    best = max(finalists, key=means.get)
    return name, au[()], (best, means[best], len(settings)), (tuned, means[tuned], told["runs"])


def utilisation(arguments, storage, setting):
    return feedrate(arguments, "run", [*storage, *setting])["au"]["all_steps_percent"]


def feedrate(arguments, command, words):
    argv = [arguments.binary, command, WORKLOADS / "predict.yaml", *words]
    argv += ["train.computation_time=0.02", "--data", arguments.data, "--results", arguments.data / "results", "--quiet", "--json"]
    try:
        done = subprocess.run([str(word) for word in argv], cwd=ROOT, capture_output=True, text=True)
        # A setting that is not certain is compared too.
        if done.returncode not in (0, 4):
            sys.exit(f"error: `{' '.join(map(str, argv))}` ended with {done.returncode}:\n{done.stderr}")
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(arguments.data / "results", ignore_errors=True)


def is_met(row):
    _, _, (_, best, settings), (_, tuned, runs) = row
    return best * (1 - NEAR_SHARE) <= tuned and runs <= RUNS_SHARE * settings


def line(row):
    name, own, best, tuned = row
    cells = [name, f"{own:.1f} %"]
    for setting, au, runs in (best, tuned):
        cells += [" ".join(f"`{one.split('.', 1)[1]}`" for one in setting) or "no change", f"{au:.1f} %", str(runs)]
    return "| " + " | ".join(cells) + " |"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--only", choices=CASES, help="this storage alone")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="where datasets are made")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    arguments.binary, arguments.data = arguments.binary.resolve(), arguments.data.resolve() / f"tune-{os.getpid()}"
    return arguments


if __name__ == "__main__":
    main()
