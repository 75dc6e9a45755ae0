#!/usr/bin/env python3
"""Compares answers with known causes: prints a confusion table and the share of correct answers, and exits 1 if the share is below `--least`.

Each cause is emulated mildly and severely, on 1, 2 and 8 accelerators where it applies. An answer consists of the verdict, the slow accelerator
and the largest part of the run outside of training. Needs a machine whose cores are idle.
"""

import argparse
import collections
import json
import shutil
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, busy_processes, run_child

COMPUTE_S = 0.04
STEPS = 25
# Share of the run in percent above which answers name a part.
NAMED_PERCENT_MIN = 2
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


def slow_accelerator_on_limited_storage(severity, accelerators):
    """Storage that could not feed the accelerators if all were fast, but all wait for the slow one, which needs less."""
    factor = [2, 3][severity]
    rate = 1.5 / factor * accelerators * SAMPLE_BYTES / COMPUTE_S
    return [*MEMORY, f"train.slow_accelerators={{{accelerators - 1}: {factor}}}",
            f"storage.throttle.bytes_per_second={rate}"]


def checkpoints(severity, _):
    """Fed accelerators, and checkpoints that take a part of the run."""
    return [*MEMORY, "workflow.checkpoint=True", f"model.model_size_bytes={[64, 256][severity] << 20}",
            f"checkpoint.steps_between_checkpoints={[STEPS, 5][severity]}"]


def evaluation(severity, _):
    """Fed accelerators, and an evaluation that takes a part of the run."""
    return [*MEMORY, "workflow.evaluation=True", f"dataset.num_files_eval={8 * [1, 4][severity]}", f"evaluation.eval_time={COMPUTE_S}"]


def busy_cores(_severity, _accelerators):
    """Text whose parsing keeps up on an idle machine (see `fed_when_idle`); other processes use all cores."""
    return [*MEMORY, "dataset.format=csv", "dataset.num_files_train=100"]


def small_cache(severity, _):
    """Files in the page cache, which delivers more than a device could."""
    return [f"train.computation_time={[COMPUTE_S, COMPUTE_S / 2][severity]}"]


def sufficient_storage(severity, _):
    return [*MEMORY, f"train.computation_time={[0.08, COMPUTE_S][severity]}"]


# Cause: the correct answer, and the minimum number of accelerators. `*` stands for the number of the last accelerator.
CASES = {
    slow_storage: ("storage-bound", 1),
    one_read_at_a_time: ("storage-bound", 1),
    delayed_reads: ("storage-bound", 1),
    delayed_opens: ("metadata-bound", 1),
    slow_decode: ("decode-bound", 1),
    slow_accelerator: ("barrier-bound by *", 2),
    slow_accelerator_on_limited_storage: ("barrier-bound by *", 2),
    slow_rank: ("barrier-bound", 2),
    small_cache: ("cache-fed", 1),
    sufficient_storage: ("compute-bound", 1),
    checkpoints: ("compute-bound, checkpoints", 1),
    evaluation: ("compute-bound, evaluation", 1),
    busy_cores: ("cpu-saturated", 1),
}
# Causes with processes that use all cores during the run: this many for each accelerator, which has two workers, mildly and severely.
BUSY = {busy_cores: [4, 8]}


def main():
    arguments = parse_arguments()
    counts = collections.Counter()
    for _ in range(arguments.rounds):
        for case, severity, accelerators in cells():
            if arguments.only and arguments.only not in case.__name__:
                continue
            name = f"{case.__name__}, {['mild', 'severe'][severity]}, {accelerators} accelerators"
            answer = run_case(arguments, case, severity, accelerators)
            counts[case, answer] += 1
            if answer != CASES[case][0]:
                print(f"{name}: {answer}", file=sys.stderr)
    correct = sum(count for (case, answer), count in counts.items() if answer == CASES[case][0])
    share = correct / max(counts.total(), 1)
    print(confusion_table(counts))
    print(f"\n{correct} of {counts.total()} correct, {100 * share:.1f} %")
    sys.exit(0 if share >= arguments.least else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--least", type=float, default=0.98, help="minimum share of correct answers (0.98)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each cell (3)")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    parser.add_argument("--only", metavar="NAME", help="only causes whose names contain this")
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
    if case in BUSY:
        argv.append(fed_when_idle(argv, accelerators))
    if case is checkpoints:
        argv.append(f"checkpoint.checkpoint_folder={data / 'results/checkpoints'}")
    launch = MPIRUN if case is slow_rank else []
    try:
        with busy_processes(BUSY.get(case, [0, 0])[severity] * accelerators):
            child = run_child([*launch, *argv])
    except Failed as error:
        return f"failed: {error}"
    finally:
        shutil.rmtree(data / "results", ignore_errors=True)
    return describe(json.loads(child.stdout), accelerators, shows_accelerator=case is not slow_rank)


def fed_when_idle(argv, accelerators):
    """Returns the setting of a compute time of 1.5 times what the loader takes for a step of one sample an accelerator on idle cores."""
    child = run_child([*argv, "train.computation_time=0.000001"])
    samples_per_second = json.loads(child.stdout)["throughput"]["samples_per_second"]["windowed"]
    return f"train.computation_time={1.5 * accelerators / samples_per_second}"


def describe(summary, accelerators, shows_accelerator):
    """Returns the verdict, with the slow accelerator and the largest part outside of training if the answer names them."""
    answer = summary["answer"]
    text = answer["verdict"]
    slow = answer["slow_accelerators"]
    if slow and shows_accelerator:
        text += " by *" if slow["slowest"] == accelerators - 1 else f" by {slow['slowest']}"
    budget = answer["time_budget"] or {"total_s": 0}
    parts = {part: budget.get(f"{part}_s", 0) for part in ["checkpoints", "evaluation"]}
    largest = max(parts, key=parts.get)
    if parts[largest] * 100 > NAMED_PERCENT_MIN * budget["total_s"]:
        text += f", {largest}"
    return text


def confusion_table(counts):
    answers = sorted({answer for _, answer in counts})
    lines = ["| emulated | " + " | ".join(answers) + " |", "|---|" + "---|" * len(answers)]
    for case in CASES:
        cells = [str(counts[case, answer] or "") for answer in answers]
        lines.append(f"| {case.__name__} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
