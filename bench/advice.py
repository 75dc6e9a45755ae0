#!/usr/bin/env python3
"""Compares the first advice of `feedrate advise` with the known remedies of emulated bottlenecks: prints a table and the share of correct advice,
and exits 1 if the share is below `--least`. Then runs `feedrate advise --try` for ten applications: their known remedies must be advised and must
help, and useless suggestions must be withdrawn.
"""

import argparse
import collections
import contextlib
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, busy_processes, run_child

COMPUTE_S = 0.04
SAMPLE_BYTES = 262144
# A storage without a page cache that could feed the run.
MEMORY = ["storage.storage_type=memory"]
ONE_THREAD = ["reader.read_threads=1"]
NOTHING = {None}
ON_STORAGE = {"storage", "striping", "engine", "stage", "read_threads", "transfer_size", "fewer_accelerators"}


@dataclass
class Case:
    """An emulated bottleneck, mild and severe, with its correct advice."""

    overrides: Callable[[int], list]
    correct: set
    accelerators: int = 2
    wrong: frozenset = frozenset()
    busy_processes: tuple = (0, 0)
    # Whether a first run fills the page cache with the files.
    is_warm: bool = False
    # Text that the evidence of the first advice must contain.
    evidence_word: str = None


def slow_disk(severity):
    """Storage that delivers a share of the needed rate."""
    rate = [0.7, 0.4][severity] * 2 * SAMPLE_BYTES / COMPUTE_S
    return [*MEMORY, f"storage.throttle.bytes_per_second={rate}"]


def latency(severity):
    return [*MEMORY, *ONE_THREAD, f"storage.delay.read_seconds={[0.06, 0.15][severity]}"]


def tiny_files(severity):
    tiny = ["dataset.num_files_train=200", "dataset.record_length_bytes=4096", "reader.batch_size=8"]
    return [*MEMORY, *ONE_THREAD, *tiny, f"storage.delay.open_seconds={[0.008, 0.02][severity]}"]


def slow_decode(severity):
    return [*MEMORY, *ONE_THREAD, f"reader.preprocess_time={[0.06, 0.15][severity]}"]


def text(severity):
    """Numbers as text. Parsing them takes longer than a step."""
    csv = ["dataset.format=csv", "dataset.num_files_train=12", f"train.computation_time={[0.008, 0.004][severity]}"]
    return [*MEMORY, *ONE_THREAD, *csv]


def small_requests(severity):
    return [*MEMORY, "reader.transfer_size=4096", f"storage.delay.read_seconds={[0.002, 0.005][severity]}"]


def amplification(severity):
    """Chunks of several samples; each read needs only one of these samples."""
    samples = [16, 32][severity]
    hdf5 = ["dataset.format=hdf5", "dataset.compression=gzip", "dataset.num_samples_per_file=256"]
    hdf5 += ["dataset.num_files_train=1", "reader.batch_size=8"]
    shape = ["dataset.record_dims=[4,4096]", "dataset.record_element_type=uint8"]
    chunks = [f"dataset.hdf5.chunk_dims=[{samples},4,4096]", "reader.sample_shuffle=seed"]
    rate = 2 * 2 * 8 * 16384 / COMPUTE_S
    return [*MEMORY, *hdf5, *shape, *chunks, f"storage.throttle.bytes_per_second={rate}"]


def same_bytes(severity):
    """Storage that is fast enough for one accelerator, while several accelerators read the same bytes."""
    hdf5 = ["dataset.format=hdf5", "dataset.num_samples_per_file=50", "dataset.num_files_train=1"]
    rate = [2.5, 1.3][severity] * SAMPLE_BYTES / COMPUTE_S
    throttle = f"storage.throttle.bytes_per_second={rate}"
    return [*MEMORY, *hdf5, "reader.file_access=same", throttle]


def checkpoint_storm(severity):
    files = ", ".join(["67108864"] * [1, 4][severity])
    saved = ["dataset.format=synthetic", "workflow.checkpoint=True", "checkpoint.type=all_ranks", "checkpoint.steps_between_checkpoints=5"]
    return [*saved, f"checkpoint.file_sizes=[{files}]", "checkpoint.fsync=true"]


def small_cache(severity):
    """Files in the page cache, which delivers more than a device could."""
    return [f"train.computation_time={[COMPUTE_S, COMPUTE_S / 2][severity]}"]


def slow_accelerator(severity):
    return [*MEMORY, f"train.slow_accelerators={{1: {[1.5, 3][severity]}}}"]


def busy_processors(_):
    """Text that takes about half of two processors to parse, so the run keeps up unless other programs use the processors."""
    return [*MEMORY, "dataset.format=csv", "dataset.num_files_train=100", "train.computation_time=0.012"]


def fed(severity):
    return [*MEMORY, f"train.computation_time={[0.08, COMPUTE_S][severity]}"]


# For each emulated bottleneck: the correct first advice, and advice that must not be given.
CASES = {
    "slow disk": Case(slow_disk, {"storage", "fewer_accelerators"}),
    "latency": Case(latency, {"read_threads", "transfer_size"}),
    "many tiny files": Case(tiny_files, {"shards"}),
    "slow decode": Case(slow_decode, {"decode_threads", "binary_format"}),
    "text": Case(text, {"binary_format", "decode_threads"}),
    "4 KiB requests": Case(small_requests, {"transfer_size"}),
    "amplification": Case(amplification, {"chunk_is_sample"}),
    "all ranks read the same bytes": Case(same_bytes, {"broadcast", "stage"}, accelerators=4),
    "checkpoint storm": Case(checkpoint_storm, {"asynchronous_checkpoints", "rank_local_checkpoints"}),
    "page cache serves reads": Case(small_cache, {"run_again"}, wrong=ON_STORAGE, is_warm=True),
    "one slow accelerator": Case(slow_accelerator, {"slow_accelerator"}, wrong=ON_STORAGE, evidence_word="accelerator"),
    "CPU used by other programs": Case(busy_processors, {"other_processes"}, busy_processes=(6, 12), evidence_word="process"),
    "none, the storage keeps up": Case(fed, NOTHING),
}


@dataclass
class Application:
    """A reduced bundled workload on a storage that is too slow for it."""

    small: list
    remedies: set
    # Suggested changes that have no effect.
    useless: tuple = ()
    accelerators: int = 2


LATENCY = "storage.delay.read_seconds="
APPLICATIONS = {
    "imagenet_cnn": Application(
        ["dataset.num_files_train=16", "dataset.num_samples_per_file=100", "reader.read_threads=1", "reader.batch_size=20",
         "train.computation_time=0.01", LATENCY + "0.004"],
        {"read_threads", "transfer_size"},
        ("reader.prefetch_size=16", "dataset.num_files_train=8 dataset.num_samples_per_file=200"),
    ),
    "cosmic_tagger": Application(
        ["dataset.num_samples_per_file=128", "reader.batch_size=8", "train.computation_time=0.3", LATENCY + "0.002"],
        {"chunk_is_sample", "broadcast"},
    ),
    "ffn": Application(
        ["dataset.num_samples_per_file=256", "train.computation_time=0.02", LATENCY + "0.03"],
        {"broadcast", "read_threads", "stage"},
    ),
    "climate_segmentation": Application(
        ["train.epochs=4", "train.computation_time=0.005", "checkpoint.checkpoint_after_epoch=4", LATENCY + "0.01"],
        {"whole_file"},
    ),
    "cosmoflow_io": Application(
        ["dataset.num_files_train=4", "dataset.num_samples_per_file=8", "train.computation_time=0.05", LATENCY + "0.004"],
        {"read_threads", "transfer_size"},
        ("reader.prefetch_size=8",),
    ),
    "candle_nt3": Application(
        ["dataset.num_samples_per_file=40", "reader.batch_size=4", "train.epochs=2", "train.computation_time=0.02"],
        {"binary_format"},
    ),
    "l2hmc": Application(
        ["dataset.num_samples_per_file=6400", "train.computation_time=0.04", "checkpoint.steps_between_checkpoints=10",
         "checkpoint.fsync=true"],
        {"asynchronous_checkpoints"},
    ),
    "bert_mrpc": Application(
        ["dataset.num_samples_per_file=1800", "train.computation_time=0.004", LATENCY + "0.004"],
        {"transfer_size"},
        accelerators=1,
    ),
    "mma_adsp": Application(
        [*MEMORY, "dataset.num_samples_per_file=640", "train.epochs=20", "train.computation_time=0.02"], NOTHING, accelerators=1
    ),
    "frnn": Application(
        ["dataset.num_files_train=64", "train.computation_time=0.02", LATENCY + "0.05"],
        {"read_threads"},
        ("reader.prefetch_size=8",),
    ),
}


def main():
    arguments = parse_arguments()
    first_advice, correct, count = collections.defaultdict(list), 0, 0
    for _ in range(arguments.rounds):
        for name, case in select(CASES, arguments.only):
            for severity in range(2):
                names, is_correct = judge(arguments, case, severity)
                first_advice[name].append(names[0] or "nothing")
                correct, count = correct + is_correct, count + 1
                if not is_correct:
                    severe = ["mild", "severe"][severity]
                    print(f"{name}, {severe}: {', '.join(map(str, names))}", file=sys.stderr)
    print(case_table(first_advice))
    share = correct / max(count, 1)
    if count:
        print(f"\n{correct} of {count} are correct.")
    lines, is_found = applications(arguments)
    if lines:
        print("\n".join(["", "| application | advice | tried: AU before→after (%) | useless suggestion |", "|---|---|---|---|", *lines]))
    sys.exit(0 if is_found and (not count or share >= arguments.least) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--least", type=float, default=0.9, help="minimum share of emulated bottlenecks with correct advice (0.9)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each emulated bottleneck (3)")
    parser.add_argument("--budget", default="150s", help="time for the trials of an application (150s)")
    parser.add_argument("--only", help="only bottlenecks and applications whose name contains this text")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    arguments.binary, arguments.data = arguments.binary.resolve(), arguments.data.resolve() / "advice"
    return arguments


def select(rows, only):
    return [(name, row) for name, row in rows.items() if not only or only in name]


def judge(arguments, case, severity):
    """Runs a case, and returns the names of its advice and whether the first of them is correct."""
    run_arguments = (arguments, WORKLOADS / "verdicts.yaml", case.overrides(severity), case.accelerators)
    try:
        if case.is_warm:
            with temporary_run(*run_arguments):
                pass
        with busy_processes(case.busy_processes[severity]), temporary_run(*run_arguments) as run:
            advice = get_advice(arguments, run)
    except Failed as error:
        return [f"failed: {error}"], False
    names = advice_names(advice)
    is_named = case.evidence_word is None or bool(advice) and case.evidence_word in advice[0]["evidence"]
    return names, is_named and names[0] in case.correct and not case.wrong.intersection(names)


@contextlib.contextmanager
def scratch(arguments):
    """Yields arguments that write results and checkpoints into temporary folders."""
    results, checkpoints = arguments.data / "results", arguments.data / "checkpoints"
    try:
        yield [f"++workload.checkpoint.checkpoint_folder={checkpoints}", "--results", results]
    finally:
        shutil.rmtree(results, ignore_errors=True)
        shutil.rmtree(checkpoints, ignore_errors=True)


@contextlib.contextmanager
def temporary_run(arguments, workload, overrides, accelerators):
    """Runs a workload and yields the folder of its results, which is removed afterwards."""
    with scratch(arguments) as words:
        run = run_child([arguments.binary, "run", workload, *overrides, *words, "-n", accelerators, "--data", arguments.data, "--quiet", "--json"])
        yield json.loads(run.stdout)["run_dir"]


def get_advice(arguments, run):
    return json.loads(run_child([arguments.binary, "advise", run, "--json"]).stdout)["advice"]


def advice_names(advice):
    return [row["name"] for row in advice] or [None]


def case_table(first_advice):
    lines = ["| emulated | correct advice | first advice |", "|---|---|---|"] if first_advice else []
    for name, firsts in first_advice.items():
        correct = " or ".join(sorted(advice or "nothing" for advice in CASES[name].correct))
        counts = ", ".join(f"{first} × {count}" for first, count in collections.Counter(firsts).items())
        lines.append(f"| {name} | {correct} | {counts} |")
    return "\n".join(lines)


def applications(arguments):
    lines, are_correct = [], True
    for name, application in select(APPLICATIONS, arguments.only):
        try:
            trials = try_application(arguments, name, application)
        except Failed as error:
            trials = {"baseline": None, "advice": [{"name": f"failed: {error}", "overrides": []}]}
        rows = trials["advice"]
        useless = [row for row in rows if " ".join(row["overrides"]) in application.useless]
        advice = [row for row in rows if row["name"] not in ("asked", "combination")]
        found = [row for row in advice if row["name"] in application.remedies]
        # Advice without a key cannot be tried.
        helping = [row for row in found if row["overrides"]]
        are_correct &= bool(application.remedies.intersection(advice_names(advice)))
        are_correct &= all(row["outcome"] == "helps" for row in helping)
        are_correct &= all(row["outcome"] in ("no_effect", "hurts") for row in useless)
        cells = [name, ", ".join(key or "nothing" for key in advice_names(advice))]
        cells += ["; ".join(outcome(trials["baseline"], row) for row in column) for column in (helping, useless)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines, are_correct


def try_application(arguments, name, application):
    """Returns the result of `feedrate advise --try` for an application and its useless suggestions."""
    argv = [arguments.binary, "advise", name, *application.small, "-n", application.accelerators, "--data", arguments.data]
    argv += ["--try", "--budget", arguments.budget, "--quiet", "--json"]
    argv += [word for change in application.useless for word in ("--also", change)]
    with scratch(arguments) as words:
        # Exit code 4 means that some change is undecided.
        return json.loads(run_child([*argv, *words], success_codes=(0, 4)).stdout)


def outcome(baseline, row):
    mean = row["tried"] and row["tried"]["mean_percent"]
    figures = f" ({baseline['mean_percent']:.3g}→{mean:.3g}, n={row['tried']['n']})" if mean else ""
    return f"`{' '.join(row['overrides'])}`: {row['outcome'].replace('_', ' ')}{figures}"


if __name__ == "__main__":
    main()
