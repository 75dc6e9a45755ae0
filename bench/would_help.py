#!/usr/bin/env python3
"""Applies the first change that `feedrate run` names in `Would help`, and compares the utilisation with the prediction: prints a row for each case
and a summary, and exits 1 if too few results are in the predicted interval, a promised target is missed, or a case without prediction is wrong.

Bottlenecks are emulated. A change of the storage is applied to the emulated storage. The result is the median of `--rounds` runs.
"""

import argparse
import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, busy_processes, median, run_child

READ_DELAY = "storage.delay.read_seconds"
OPEN_DELAY = "storage.delay.open_seconds"
LATENCY = "storage.throttle.latency_seconds"
RATE = "storage.throttle.bytes_per_second"
CONCURRENCY = "storage.throttle.concurrency"
DECODE = "reader.preprocess_time"
THREADS = "reader.read_threads"
STEP = "train.computation_time"
SLOW = "train.slow_accelerators"
CLIENT = "client.per_sample"
RECEIVE = "client.receive_per_batch"
TRANSFER = "reader.transfer_size"
FILES = "dataset.num_files_train"
SAMPLE_BYTES = "dataset.record_length_bytes"

# A proposed change of the storage or of decoding: the keys that emulate what it changes.
EMULATED = {
    "storage.latency": [LATENCY, READ_DELAY],
    "storage.open_latency": [OPEN_DELAY],
    "storage.bandwidth": [RATE],
    "storage.concurrency": [CONCURRENCY],
    "decode.time": [DECODE],
}
CHECKPOINTS = {
    "workflow.checkpoint": "true",
    "checkpoint.steps_between_checkpoints": 10,
    "checkpoint.type": "all_ranks",
}
# Text that takes about half of two processors to parse if a step takes 14 ms for each accelerator.
TEXT = {"dataset.format": "csv", FILES: 100}


@dataclass
class Case:
    """An emulated bottleneck."""

    name: str
    settings: dict
    accelerators: int = 1
    # Number of other processes that use as much CPU time as they get.
    busy_processes: int = 0


@dataclass
class Outcome:
    """The change that a run names, and the result of applying it."""

    before: str
    change: str = ""
    predicted: str = ""
    applied: str = ""
    # Whether the result is in the predicted interval; `None` without a prediction.
    in_interval: bool = None
    # What is wrong, in words.
    faults: list = field(default_factory=list)


CASES = [
    Case("opens, reads", {OPEN_DELAY: 0.015, READ_DELAY: 0.012, THREADS: 1}),
    Case("short opens, long reads", {OPEN_DELAY: 0.004, READ_DELAY: 0.03}),
    Case("long opens, short reads", {OPEN_DELAY: 0.03, READ_DELAY: 0.004}),
    Case("opens, bandwidth", {OPEN_DELAY: 0.012, RATE: 15e6}),
    Case("reads, bandwidth", {READ_DELAY: 0.02, RATE: 14e6}),
    Case("reads, decoding", {READ_DELAY: 0.02, DECODE: 0.012}),
    Case("opens, decoding", {OPEN_DELAY: 0.02, DECODE: 0.012}),
    Case("bandwidth, decoding", {RATE: 20e6, DECODE: 0.016}),
    Case("opens, reads, 2 accelerators", {OPEN_DELAY: 0.015, READ_DELAY: 0.012, THREADS: 1}, 2),
    Case("one read at a time", {CONCURRENCY: 1, READ_DELAY: 0.015}),
    Case("one read at a time, severe", {CONCURRENCY: 1, READ_DELAY: 0.03}),
    Case("two reads at a time, 4 workers", {CONCURRENCY: 2, LATENCY: 0.03, THREADS: 4}),
    Case("two reads at a time, 2 accelerators", {CONCURRENCY: 2, LATENCY: 0.015}, 2),
    Case("two small reads at a time", {CONCURRENCY: 2, LATENCY: 0.008, THREADS: 4, TRANSFER: 65536}),
    Case("bandwidth, mild", {RATE: 18e6}),
    Case("bandwidth, severe", {RATE: 9e6}),
    Case("bandwidth, 2 accelerators", {RATE: 21e6}, 2),
    Case("bandwidth, 4 accelerators", {RATE: 60e6}, 4),
    Case("reads, mild", {READ_DELAY: 0.028}),
    Case("reads, severe", {READ_DELAY: 0.06}),
    Case("reads, one worker", {READ_DELAY: 0.02, THREADS: 1}),
    Case("reads, 4 accelerators", {READ_DELAY: 0.03, THREADS: 1}, 4),
    Case("small reads", {LATENCY: 0.008, TRANSFER: 65536}),
    Case("small reads, severe", {LATENCY: 0.004, TRANSFER: 16384}),
    Case("opens, mild", {OPEN_DELAY: 0.028}),
    Case("opens, severe", {OPEN_DELAY: 0.06}),
    Case("opens, one worker", {OPEN_DELAY: 0.02, THREADS: 1}),
    Case("opens of tiny files", {OPEN_DELAY: 0.008, THREADS: 1, FILES: 640, SAMPLE_BYTES: 4096, "reader.batch_size": 16}),
    Case("decoding, mild", {DECODE: 0.015, THREADS: 1}),
    Case("decoding, severe", {DECODE: 0.03, THREADS: 1}),
    Case("decoding, all cores in use", {DECODE: 0.04}),
    Case("client, mild", {CLIENT: 0.012, THREADS: 1}),
    Case("client, severe", {CLIENT: 0.018, THREADS: 1}),
    Case("client and reads", {CLIENT: 0.006, READ_DELAY: 0.02, THREADS: 1}),
    Case("slow accelerator, mild", {SLOW: "{1: 1.5}"}, 2),
    Case("slow accelerator, severe", {SLOW: "{1: 3}"}, 2),
    Case("slow accelerator of 4, reads", {SLOW: "{3: 2}", READ_DELAY: 0.01, THREADS: 1}, 4),
    Case("checkpoints", {**CHECKPOINTS, "checkpoint.file_sizes": "[67108864, 67108864]"}),
    Case("checkpoints of 2 accelerators", {**CHECKPOINTS, "checkpoint.file_sizes": "[67108864, 67108864, 67108864]"}, 2),
    Case("busy cores, 2 accelerators", {**TEXT, STEP: 0.028}, 2, busy_processes=8),
    Case("busy cores, 4 accelerators", {**TEXT, STEP: 0.056}, 4, busy_processes=16),
]


def main():
    arguments = parse_arguments()
    outcomes = []
    print("| case | before | would help | predicted (%) | measured (%) | |", "|---|---|---|---|---|---|", sep="\n")
    for case in CASES:
        if arguments.only and arguments.only not in case.name:
            continue
        try:
            outcome = run_case(arguments, case)
        except Failed as error:
            outcome = Outcome("", faults=[f"failed: {error}"])
        outcomes.append(outcome)
        verdict = "; ".join(outcome.faults) or "right"
        print(f"| {case.name} | {outcome.before} | {outcome.change} | {outcome.predicted} | {outcome.applied} | {verdict} |", flush=True)
    predicted = [outcome for outcome in outcomes if outcome.in_interval is not None]
    inside = sum(outcome.in_interval for outcome in predicted)
    faults = sum(bool(outcome.faults) for outcome in outcomes)
    print(f"\n{inside} of {len(predicted)} results in the predicted interval; {len(outcomes)} cases, {faults} with other faults")
    sys.exit(0 if faults == 0 and inside >= arguments.least * len(predicted) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--least", type=float, default=0.9, help="minimum share of results in the predicted interval (0.9)")
    parser.add_argument("--rounds", type=int, default=3, help="runs with each change (3)")
    parser.add_argument("--only", help="part of the name of the cases to run")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets and results (target/bench-data)")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


def run_case(arguments, case):
    with busy_processes(case.busy_processes):
        answer = answer_of(arguments, case.settings, case.accelerators)
    outcome = Outcome(f"{answer['kind']}, {answer['verdict']}, {percent(answer['au_percent'])}")
    if case.busy_processes:
        if answer["unknown_because"] != "cpu-saturated":
            outcome.faults.append("not unknown: cpu-saturated")
        return outcome
    if not answer["helps"]:
        outcome.faults.append("nothing would help")
        return outcome
    advice = answer["helps"][0]
    settings, accelerators = applied(case, advice)
    answers = [answer_of(arguments, settings, accelerators) for _ in range(arguments.rounds)]
    outcome.change = " ".join([advice["name"] + ":", *advice["overrides"], *advice["changes"]])
    if advice["name"].endswith("checkpoints"):
        check_checkpoints(outcome, advice, answer, answers)
    else:
        check_utilisation(outcome, advice["prediction"], answers)
    return outcome


def check_utilisation(outcome, prediction, answers):
    """Compares the utilisation with the prediction, which must exist."""
    measured = median(answer["au_percent"] for answer in answers)
    outcome.applied = percent(measured)
    if prediction is None:
        outcome.faults.append("no prediction")
        return
    target = answers[0]["asked_percent"]
    low, high = prediction["interval"]
    outcome.predicted = f"{percent(prediction['au_percent'])} [{low:.1f}, {high:.1f}]"
    outcome.in_interval = low <= measured <= high
    if not outcome.in_interval:
        outcome.applied += " outside"
    if target <= prediction["au_percent"] and measured < target:
        outcome.faults.append(f"the target of {target:.0f} % is missed")


def check_checkpoints(outcome, advice, before, answers):
    """Utilisation excludes checkpoints, so the waits for them are compared: at least half of what the advice names must be saved."""
    wait_s = lambda answer: answer["time_budget"]["checkpoints_s"]
    measured_s = median(map(wait_s, answers))
    outcome.before += f", {wait_s(before):.1f} s of checkpoints"
    outcome.predicted = f"{advice['lost_s']:.1f} s less"
    outcome.applied = f"{wait_s(before) - measured_s:.1f} s less"
    if wait_s(before) - measured_s < advice["lost_s"] / 2:
        outcome.faults.append("the checkpoints take as long")


def applied(case, advice):
    """Returns the settings and the number of accelerators with the advised change."""
    settings, accelerators = dict(case.settings), case.accelerators
    for override in advice["overrides"]:
        key, value = override.split("=", 1)
        if key == "accelerators":
            accelerators = int(value)
        else:
            settings[key] = value
    for change in advice["changes"]:
        key, value = change.split("=", 1)
        if key == SLOW:
            del settings[SLOW]
            continue
        emulated = [name for name in EMULATED[key] if name in settings]
        if value.endswith("x"):
            for name in emulated:
                settings[name] *= float(value[:-1])
        else:
            for name in emulated:
                settings[name] = 0
            settings[(emulated or EMULATED[key])[0]] = float(value.removesuffix("B/s").removesuffix("s"))
    return settings, accelerators


def answer_of(arguments, settings, accelerators):
    """Runs the workload, and returns its answer."""
    data = arguments.data.resolve() / "would_help"
    overrides = [f"{key}={value}" for key, value in settings.items()]
    argv = [arguments.binary.resolve(), "run", WORKLOADS / "would_help.yaml", *overrides, f"checkpoint.checkpoint_folder={data / 'checkpoints'}"]
    argv += ["-n", accelerators, "--data", data, "--results", data / "results", "--json", "--quiet"]
    try:
        return json.loads(run_child(argv).stdout)["answer"]
    finally:
        shutil.rmtree(data, ignore_errors=True)


def percent(value):
    return "unknown" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main()
