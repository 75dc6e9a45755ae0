#!/usr/bin/env python3
"""Measures the cost of `feedrate run --trace`, compared with the same run without it: nanoseconds per operation if operations cost almost nothing
(the null storage), and the share of the time for reads of 64 KiB from the page cache. One worker, no compute. Also prints the wall time of the
whole command with and without a trace; the difference outside of epochs is the time for formatting, compressing and writing, which happens
between epochs and at the end.

Both sides alternate. Exits 1 above 150 ns or 2 %. Run it on a quiet machine.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, run_child

MOST_NS, MOST_SHARE = 150, 0.02
# About two million operations, and a hundred thousand.
NULL = ["null.yaml", "dataset.num_files_train=4096", "dataset.record_length_bytes=2MiB", "reader.transfer_size=4096"]
WARM = ["warm_npy.yaml", "reader.transfer_size=65536", "train.epochs=16"]


@dataclass
class Cost:
    """Costs of a run: processor time of its epochs per operation, which other programs hardly disturb, and wall times."""

    cpu_ns: float
    wall_s: float
    outside_s: float


def measure(program, folder, words, trace):
    """Costs of a run, with or without a trace."""
    run_dir, file = Path(folder, "run"), Path(folder, "t.pfw.gz")
    argv = [program, "run", WORKLOADS / words[0], *words[1:], "train.computation_time=0", "reader.read_threads=1"]
    argv += ["--data", Path(folder, "data"), "--run-dir", run_dir, "--json", "--quiet"]
    child = run_child(argv + (["--trace", file] if trace else []))
    record = json.loads((run_dir / "record.json").read_text())
    io = [own["io"] for epoch in record["epochs"] for own in epoch["accelerators"]]
    for path in sorted(run_dir.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    run_dir.rmdir()
    file.unlink(missing_ok=True)
    cpu_ns = sum(epoch["host"]["process_cpu_ns"] for epoch in record["epochs"])
    blocks = [[block for own in epoch["accelerators"] for block in own["blocks"]] for epoch in record["epochs"]]
    epochs_ns = sum(max(block["end_ns"] for block in of) - min(block["start_ns"] for block in of) for of in blocks)
    operations = sum(own["opens"] + own["reads"] for own in io)
    return Cost(cpu_ns / operations, child.wall_s, child.wall_s - epochs_ns / 1e9)


def rounds(program, folder, words, number):
    """Costs without a trace and with one. Each figure is the minimum over rounds, which is disturbed least."""
    took = {False: [], True: []}
    measure(program, folder, words, False)
    for turn in range(number):
        for trace in (turn % 2 == 0, turn % 2 == 1):
            took[trace].append(astuple(measure(program, folder, words, trace)))
    return [Cost(*map(min, zip(*took[trace]))) for trace in (False, True)]


def print_overhead(label, bare, traced):
    """Prints wall times of the whole command."""
    written_s = traced.outside_s - bare.outside_s
    print(f"  {label}: {bare.wall_s:.2f} s without, {traced.wall_s:.2f} s with a trace, {written_s:.2f} s of it to write it between epochs and at the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=FEEDRATE)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        bare, traced = rounds(arguments.program, folder, NULL, arguments.rounds)
        bare_read, traced_read = rounds(arguments.program, folder, WARM, arguments.rounds)
    added, share = traced.cpu_ns - bare.cpu_ns, traced_read.cpu_ns / bare_read.cpu_ns - 1
    print(f"{added:.0f} ns an operation of {MOST_NS} allowed (one of nothing takes {bare.cpu_ns:.0f} ns)")
    print_overhead("the whole command", bare, traced)
    print(f"{share:.1%} at reads of 64 KiB of {MOST_SHARE:.0%} allowed (one takes {bare_read.cpu_ns:,.0f} ns)")
    print_overhead("the whole command", bare_read, traced_read)
    return int(added > MOST_NS or share > MOST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
