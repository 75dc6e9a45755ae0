#!/usr/bin/env python3
"""What `feedrate run --trace` costs the reading of a run, beside the same run without: nanoseconds an operation, where operations
cost next to nothing (the null storage), and the share of the time at reads of 64 KiB from the page cache. One worker, no compute.

The two alternate. Exits 1 above 150 ns or 2 %. Run it on a quiet machine.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, run_child

MOST_NS, MOST_SHARE = 150, 0.02
# Some two million operations, and a hundred thousand.
NULL = ["null.yaml", "dataset.num_files_train=4096", "dataset.record_length_bytes=2MiB", "reader.transfer_size=4096"]
WARM = ["warm_npy.yaml", "reader.transfer_size=65536", "train.epochs=16"]


def measure(program, folder, words, trace):
    """Processor time of its epochs, which others on the machine hardly disturb, and operations."""
    run_dir, file = Path(folder, "run"), Path(folder, "t.pfw.gz")
    argv = [program, "run", WORKLOADS / words[0], *words[1:], "train.computation_time=0", "reader.read_threads=1"]
    argv += ["--data", Path(folder, "data"), "--run-dir", run_dir, "--json", "--quiet"]
    run_child(argv + (["--trace", file] if trace else []))
    record = json.loads((run_dir / "record.json").read_text())
    io = [own["io"] for epoch in record["epochs"] for own in epoch["accelerators"]]
    for path in sorted(run_dir.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    run_dir.rmdir()
    file.unlink(missing_ok=True)
    cpu_ns = sum(epoch["host"]["process_cpu_ns"] for epoch in record["epochs"])
    return cpu_ns, sum(own["opens"] + own["reads"] for own in io)


def rounds(program, folder, words, number):
    """Nanoseconds an operation without a trace and with one: the least of the rounds, which others disturbed least."""
    took = {False: [], True: []}
    measure(program, folder, words, False)
    for turn in range(number):
        for trace in (turn % 2 == 0, turn % 2 == 1):
            cpu_ns, operations = measure(program, folder, words, trace)
            took[trace].append(cpu_ns / operations)
    return min(took[False]), min(took[True])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=FEEDRATE)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        bare, traced = rounds(asked.program, folder, NULL, asked.rounds)
        bare_read, traced_read = rounds(asked.program, folder, WARM, asked.rounds)
    added, share = traced - bare, traced_read / bare_read - 1
    print(f"{added:.0f} ns an operation of {MOST_NS} allowed (one of nothing takes {bare:.0f} ns)")
    print(f"{share:.1%} at reads of 64 KiB of {MOST_SHARE:.0%} allowed (one takes {bare_read:,.0f} ns)")
    return int(added > MOST_NS or share > MOST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
