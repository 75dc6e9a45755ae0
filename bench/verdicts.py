#!/usr/bin/env python3
"""Compares verdicts with known causes: prints a confusion table and the share of correct verdicts, and exits 1 if the share is below `--least`.

Each cause is emulated mildly and severely, on 1, 2 and 8 accelerators where it applies.
"""

import argparse
import collections
import json
import shutil
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, run_child

COMPUTE_S = 0.04
SAMPLE_BYTES = 262144
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2]
# A storage without a page cache that could feed the run.
MEMORY = ["storage.storage_type=memory"]


def slow_storage(severity, accelerators):
    """Storage that delivers a share of the needed rate."""
    rate = [0.7, 0.4][severity] * accelerators * SAMPLE_BYTES / COMPUTE_S
    return [*MEMORY, f"storage.throttle.bytes_per_second={rate}"]


def one_read_at_a_time(severity, accelerators):
    """Storage with one read at a time; each batch is one read."""
    seconds = [1.5, 3][severity] * COMPUTE_S / accelerators
    return [*MEMORY, "storage.throttle.concurrency=1", f"storage.delay.read_seconds={seconds}"]


def delayed_reads(severity, _):
    return [*MEMORY, f"storage.delay.read_seconds={[0.12, 0.3][severity]}"]


def delayed_opens(severity, _):
    return [*MEMORY, f"storage.delay.open_seconds={[0.12, 0.3][severity]}"]


def slow_decode(severity, _):
    return [*MEMORY, f"reader.preprocess_time={[0.12, 0.3][severity]}"]


def slow_accelerator(severity, accelerators):
    return [*MEMORY, f"train.slow_accelerators={{{accelerators - 1}: {[1.5, 3][severity]}}}"]


def slow_rank(severity, accelerators):
    """All accelerators of the second of two ranks are slow."""
    factors = ",".join(f"{accelerator}: {[1.5, 3][severity]}" for accelerator in range(accelerators // 2, accelerators))
    return [f"train.slow_accelerators={{{factors}}}"]


def small_cache(severity, _):
    """Files in the page cache, which delivers more than a device could."""
    return [f"train.computation_time={[COMPUTE_S, COMPUTE_S / 2][severity]}"]


def sufficient_storage(severity, _):
    return [*MEMORY, f"train.computation_time={[0.08, COMPUTE_S][severity]}"]


# Cause: the correct verdict, and the minimum number of accelerators.
CASES = {
    slow_storage: ("storage-bound", 1),
    one_read_at_a_time: ("storage-bound", 1),
    delayed_reads: ("storage-bound", 1),
    delayed_opens: ("metadata-bound", 1),
    slow_decode: ("decode-bound", 1),
    slow_accelerator: ("barrier-bound", 2),
    slow_rank: ("barrier-bound", 2),
    small_cache: ("cache-fed", 1),
    sufficient_storage: ("compute-bound", 1),
}


def main():
    arguments = parse_arguments()
    counts = collections.Counter()
    for _ in range(arguments.rounds):
        for case, severity, accelerators in cells():
            name = f"{case.__name__}, {['mild', 'severe'][severity]}, {accelerators} accelerators"
            verdict = run_case(arguments, case, severity, accelerators)
            counts[case, verdict] += 1
            if verdict != CASES[case][0]:
                print(f"{name}: {verdict}", file=sys.stderr)
    correct = sum(count for (case, verdict), count in counts.items() if verdict == CASES[case][0])
    share = correct / counts.total()
    print(confusion_table(counts))
    print(f"\n{correct} of {counts.total()} correct, {100 * share:.1f} %")
    sys.exit(0 if share >= arguments.least else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--least", type=float, default=0.95, help="minimum share of correct verdicts (0.95)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each cell (3)")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


def cells():
    for case, (_, accelerators_min) in CASES.items():
        for severity in range(2):
            for accelerators in [1, 2, 8]:
                if accelerators >= accelerators_min:
                    yield case, severity, accelerators


def run_case(arguments, case, severity, accelerators):
    data = arguments.data.resolve() / "verdicts"
    argv = [arguments.binary.resolve(), "run", WORKLOADS / "verdicts.yaml", *case(severity, accelerators)]
    argv += ["-n", accelerators, "--data", data, "--results", data / "results", "--json", "--quiet"]
    launch = MPIRUN if case is slow_rank else []
    try:
        child = run_child([*launch, *argv])
    except Failed as error:
        return f"failed: {error}"
    finally:
        shutil.rmtree(data / "results", ignore_errors=True)
    return json.loads(child.stdout)["verdict"]["name"]


def confusion_table(counts):
    verdicts = sorted({verdict for _, verdict in counts})
    lines = ["| emulated | " + " | ".join(verdicts) + " |", "|---|" + "---|" * len(verdicts)]
    for case in CASES:
        cells = [str(counts[case, verdict] or "") for verdict in verdicts]
        lines.append(f"| {case.__name__} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
