#!/usr/bin/env python3
"""Compares steps on GPUs (`compute=cuda`) with waits: utilisation of accelerators, utilisation of GPUs as nvidia-smi reports it, compute times, and CPU time.

Needs a GPU, and `cargo build --release`. Prints a table without targets.
"""

import argparse
import statistics
import sys
from pathlib import Path

import harness
from harness import FEEDRATE, ROOT, median
from run import compute_ns

WORKLOAD = "warm_npy.yaml"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accelerators", type=int, default=1)
    parser.add_argument("--step", type=float, default=0.05, help="seconds of compute")
    parser.add_argument("--seconds", type=float, default=20.0, help="total compute time")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for the dataset (target/bench-data)")
    arguments = parser.parse_args()
    if not FEEDRATE.exists():
        sys.exit("error: there is no target/release/feedrate\n  hint: run `cargo build --release`")
    print("compute | AU all steps | step's compute: median, longest | CPU | GPU: utilisation, memory, power")
    for compute in ("sleep", "cuda"):
        print(" | ".join([compute, *measure(compute, arguments)]))


def measure(compute, arguments):
    """Runs a workload while nvidia-smi samples the GPUs, and returns the cells of its row."""
    folder = arguments.data / "warm_npy"
    steps_per_epoch = 16 // arguments.accelerators
    if steps_per_epoch == 0:
        sys.exit("error: the dataset has 16 batches\n  hint: use at most 16 accelerators")
    epochs = max(1, round(arguments.seconds / (arguments.step * steps_per_epoch)))
    keys = [f"compute={compute}", f"train.computation_time={arguments.step}", f"train.epochs={epochs}"]
    harness.warm(harness.dataset_files(harness.generate(WORKLOAD, folder), ".npy"))
    with harness.gpu_samples() as rows:
        summary, child = harness.feedrate_run(WORKLOAD, keys, arguments.accelerators, folder, arguments.data / "results")
    compute_ms = [ns / 1e6 for ns in compute_ns(summary["run_dir"])]
    doubts = ", ".join(doubt["name"] for doubt in summary["doubts"])
    return [
        f"{summary['au']['all_steps_percent']:.1f} %",
        f"{median(compute_ms):.3f} ms, {max(compute_ms):.3f} ms (configured: {arguments.step * 1e3:.3f} ms)",
        f"{child.cpu_s / child.wall_s:.2f} cores",
        "; ".join(gpu_text(index, rows) for index in sorted({row[0] for row in rows})),
        f"doubts: {doubts}",
    ]


def gpu_text(index, rows):
    figures = zip(*(row[1:] for row in rows if row[0] == index))
    utilisation, memory, power = map(statistics.mean, figures)
    return f"{index:.0f}: {utilisation:.0f} %, {memory:.0f} MiB, {power:.0f} W"


if __name__ == "__main__":
    main()
