#!/usr/bin/env python3
"""Measures the cost of `feedrate run --trace` against the same run without a trace: the CPU time per operation with the null storage, where
operations cost almost nothing, and the relative increase for reads of 64 KiB from the page cache. One worker, no compute. Also prints the wall time
of the whole command with and without a trace. A trace is formatted, compressed and written between epochs and at the end.

Runs with and without a trace alternate. Exits 1 if the cost exceeds 150 ns or 2 %. Use a quiet machine.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, run_child

NS_MAX, SHARE_MAX = 150, 0.02
# About two million operations, and a hundred thousand.
NULL = ["null.yaml", "dataset.num_files_train=4096", "dataset.record_length_bytes=2MiB", "reader.transfer_size=4096"]
WARM = ["warm_npy.yaml", "reader.transfer_size=65536", "train.epochs=16"]


@dataclass
class Cost:
    """Costs of a run: CPU time of its epochs per operation, wall time of the command, and wall time outside of epochs."""

    cpu_ns: float
    wall_s: float
    outside_s: float


def measure(program, folder, words, trace):
    """Measures a run with or without a trace."""
    run_dir, file = Path(folder, "run"), Path(folder, "t.pfw.gz")
    argv = [program, "run", WORKLOADS / words[0], *words[1:], "train.computation_time=0", "reader.read_threads=1"]
    argv += ["--data", Path(folder, "data"), "--run-dir", run_dir, "--json", "--quiet"]
    child = run_child(argv + (["--trace", file] if trace else []))
    record = json.loads((run_dir / "record.json").read_text())
    counters = [accelerator["io"] for epoch in record["epochs"] for accelerator in epoch["accelerators"]]
    for path in sorted(run_dir.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    run_dir.rmdir()
    file.unlink(missing_ok=True)
    cpu_ns = sum(epoch["host"]["process_cpu_ns"] for epoch in record["epochs"])
    blocks_by_epoch = [[block for accelerator in epoch["accelerators"] for block in accelerator["blocks"]] for epoch in record["epochs"]]
    epochs_ns = sum(max(block["end_ns"] for block in blocks) - min(block["start_ns"] for block in blocks) for blocks in blocks_by_epoch)
    operations = sum(io["opens"] + io["reads"] for io in counters)
    return Cost(cpu_ns / operations, child.wall_s, child.wall_s - epochs_ns / 1e9)


def measure_rounds(program, folder, words, number):
    """Measures runs without and with a trace. Returns the minimum of each cost over the rounds, which other programs disturb least."""
    costs = {False: [], True: []}
    measure(program, folder, words, False)
    for turn in range(number):
        for trace in (turn % 2 == 0, turn % 2 == 1):
            costs[trace].append(astuple(measure(program, folder, words, trace)))
    return [Cost(*map(min, zip(*costs[trace]))) for trace in (False, True)]


def print_overhead(label, bare, traced):
    """Prints wall times of the whole command."""
    written_s = traced.outside_s - bare.outside_s
    print(f"  {label}: {bare.wall_s:.2f} s without, {traced.wall_s:.2f} s with a trace, of which writing it takes {written_s:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=FEEDRATE)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        bare, traced = measure_rounds(arguments.program, folder, NULL, arguments.rounds)
        bare_read, traced_read = measure_rounds(arguments.program, folder, WARM, arguments.rounds)
    added, share = traced.cpu_ns - bare.cpu_ns, traced_read.cpu_ns / bare_read.cpu_ns - 1
    print(f"{added:.0f} ns per operation, {NS_MAX} allowed (without a trace, an operation takes {bare.cpu_ns:.0f} ns)")
    print_overhead("the whole command", bare, traced)
    print(f"{share:.1%} for reads of 64 KiB, {SHARE_MAX:.0%} allowed (without a trace, a read takes {bare_read.cpu_ns:,.0f} ns)")
    print_overhead("the whole command", bare_read, traced_read)
    return int(added > NS_MAX or share > SHARE_MAX)


if __name__ == "__main__":
    sys.exit(main())
