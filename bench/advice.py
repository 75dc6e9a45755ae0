#!/usr/bin/env python3
"""Compares the first advice of `feedrate advise` with the known remedies of emulated bottlenecks: prints a table and the share of correct advice,
and exits 1 below `--least`. Then runs `feedrate advise --try` for ten applications: the remedies that their analyses found must be among the
advice and help, and useless suggestions must be withdrawn.
"""

import argparse
import collections
import contextlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, run_child

COMPUTE_S = 0.04
SAMPLE_BYTES = 262144
# A storage without a page cache that could feed the run.
MEMORY = ["storage.storage_type=memory"]
ONE_THREAD = ["reader.read_threads=1"]
NOTHING = {None}
ON_STORAGE = {"storage", "striping", "engine", "stage", "read_threads", "transfer_size", "fewer_accelerators"}
BURN = "import os\nwhile True: os.getpid()"


@dataclass
class Case:
    """An emulated bottleneck, mild and severe, with its correct advice."""

    overrides: Callable[[int], list]
    right: set
    accelerators: int = 2
    wrong: frozenset = frozenset()
    burners: tuple = (0, 0)
    # Whether to run once before, so the page cache contains the files.
    is_warm: bool = False
    # Text that the evidence of the first advice must contain.
    named: str = None


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
    """Numbers as text, whose parsing takes longer than a step."""
    csv = ["dataset.format=csv", "dataset.num_files_train=12", f"train.computation_time={[0.008, 0.004][severity]}"]
    return [*MEMORY, *ONE_THREAD, *csv]


def small_requests(severity):
    return [*MEMORY, "reader.transfer_size=4096", f"storage.delay.read_seconds={[0.002, 0.005][severity]}"]


def amplification(severity):
    """Chunks of several samples, of which each read needs one."""
    samples = [16, 32][severity]
    hdf5 = ["dataset.format=hdf5", "dataset.compression=gzip", "dataset.num_samples_per_file=256"]
    hdf5 += ["dataset.num_files_train=1", "reader.batch_size=8"]
    shape = ["dataset.record_dims=[4,4096]", "dataset.record_element_type=uint8"]
    chunks = [f"dataset.hdf5.chunk_dims=[{samples},4,4096]", "reader.sample_shuffle=seed"]
    rate = 2 * 2 * 8 * 16384 / COMPUTE_S
    return [*MEMORY, *hdf5, *shape, *chunks, f"storage.throttle.bytes_per_second={rate}"]


def same_bytes(severity):
    """Storage that suffices for one accelerator, and all accelerators read the same bytes."""
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


def burnt_processors(_):
    """A workload of text, whose parsing needs about half of two processors, so it keeps up if no other program runs."""
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
    "all ranks the same bytes": Case(same_bytes, {"broadcast", "stage"}, accelerators=4),
    "checkpoint storm": Case(checkpoint_storm, {"asynchronous_checkpoints", "rank_local_checkpoints"}),
    "cache-fed": Case(small_cache, {"run_again"}, wrong=ON_STORAGE, is_warm=True),
    "one slow accelerator": Case(slow_accelerator, {"slow_accelerator"}, wrong=ON_STORAGE, named="accelerator"),
    "CPU burnt by others": Case(burnt_processors, {"other_processes"}, burners=(6, 12), named="process"),
    "fed": Case(fed, NOTHING),
}


@dataclass
class Application:
    """A reduced bundled workload on a storage that is too slow for it."""

    small: list
    found: set
    # Changes that its analysis suggested but that have no effect.
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
    first_advice, right, count = collections.defaultdict(list), 0, 0
    for _ in range(arguments.rounds):
        for name, case in wanted(CASES, arguments.only):
            for severity in range(2):
                names, is_right = judged(arguments, case, severity)
                first_advice[name].append(names[0] or "nothing")
                right, count = right + is_right, count + 1
                if not is_right:
                    severe = ["mild", "severe"][severity]
                    print(f"{name}, {severe}: {', '.join(map(str, names))}", file=sys.stderr)
    print(case_table(first_advice))
    share = right / max(count, 1)
    if count:
        print(f"\n{right} of {count} right, {100 * share:.1f} %")
    lines, is_found = applications(arguments)
    if lines:
        print("\n".join(["", "| application | advice | tried | suggested in vain |", "|---|---|---|---|", *lines]))
    sys.exit(0 if is_found and (not count or share >= arguments.least) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--least", type=float, default=0.9, help="the least share of labelled cases that is right (0.9)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each labelled case (3)")
    parser.add_argument("--budget", default="150s", help="time for the trials of an application (150s)")
    parser.add_argument("--only", help="cases and applications whose name has this")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="where datasets are made")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    arguments.binary, arguments.data = arguments.binary.resolve(), arguments.data.resolve() / "advice"
    return arguments


def wanted(rows, only):
    return [(name, row) for name, row in rows.items() if not only or only in name]


def judged(arguments, case, severity):
    """The names of the advice, and whether the first one is correct."""
    run_arguments = (arguments, WORKLOADS / "verdicts.yaml", case.overrides(severity), case.accelerators)
    try:
        if case.is_warm:
            with kept_run(*run_arguments):
                pass
        with burning(case.burners[severity]), kept_run(*run_arguments) as run:
            advice = advised(arguments, run)
    except Failed as error:
        return [f"failed: {error}"], False
    names = named(advice)
    is_named = case.named is None or bool(advice) and case.named in advice[0]["evidence"]
    return names, is_named and names[0] in case.right and not case.wrong.intersection(names)


@contextlib.contextmanager
def burning(count):
    """Processes that take all the CPU they get."""
    children = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


@contextlib.contextmanager
def scratch(arguments):
    """Overrides that write results and checkpoints into a temporary folder."""
    results, checkpoints = arguments.data / "results", arguments.data / "checkpoints"
    try:
        yield [f"++workload.checkpoint.checkpoint_folder={checkpoints}", "--results", results]
    finally:
        shutil.rmtree(results, ignore_errors=True)
        shutil.rmtree(checkpoints, ignore_errors=True)


@contextlib.contextmanager
def kept_run(arguments, workload, overrides, accelerators):
    """A run and its folder, which is removed afterwards."""
    with scratch(arguments) as words:
        run = run_child([arguments.binary, "run", workload, *overrides, *words, "-n", accelerators, "--data", arguments.data, "--quiet", "--json"])
        yield json.loads(run.stdout)["run_dir"]


def advised(arguments, run):
    return json.loads(run_child([arguments.binary, "advise", run, "--json"]).stdout)["advice"]


def named(advice):
    return [row["name"] for row in advice] or [None]


def case_table(first_advice):
    lines = ["| emulated | right | first advice |", "|---|---|---|"] if first_advice else []
    for name, firsts in first_advice.items():
        right = " or ".join(sorted(advice or "nothing" for advice in CASES[name].right))
        counts = ", ".join(f"{first} × {count}" for first, count in collections.Counter(firsts).items())
        lines.append(f"| {name} | {right} | {counts} |")
    return "\n".join(lines)


def applications(arguments):
    lines, are_right = [], True
    for name, application in wanted(APPLICATIONS, arguments.only):
        try:
            trials = tried(arguments, name, application)
        except Failed as error:
            trials = {"baseline": None, "advice": [{"name": f"failed: {error}", "overrides": []}]}
        rows = trials["advice"]
        useless = [row for row in rows if " ".join(row["overrides"]) in application.useless]
        advice = [row for row in rows if row["name"] not in ("asked", "combination")]
        found = [row for row in advice if row["name"] in application.found]
        # Advice without a key cannot be tried.
        helping = [row for row in found if row["overrides"]]
        are_right &= bool(application.found.intersection(named(advice)))
        are_right &= all(row["outcome"] == "helps" for row in helping)
        are_right &= all(row["outcome"] in ("no_effect", "hurts") for row in useless)
        cells = [name, ", ".join(key or "nothing" for key in named(advice))]
        cells += ["; ".join(outcome(trials["baseline"], row) for row in column) for column in (helping, useless)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines, are_right


def tried(arguments, name, application):
    """The result of `feedrate advise --try` for an application and its useless suggestions."""
    argv = [arguments.binary, "advise", name, *application.small, "-n", application.accelerators, "--data", arguments.data]
    argv += ["--try", "--budget", arguments.budget, "--quiet", "--json"]
    argv += [word for change in application.useless for word in ("--also", change)]
    with scratch(arguments) as words:
        # Exit code 4: something is not decided.
        return json.loads(run_child([*argv, *words], fine=(0, 4)).stdout)


def outcome(baseline, row):
    mean = row["tried"] and row["tried"]["mean_percent"]
    figures = f" ({baseline['mean_percent']:.3g} to {mean:.3g} %, n = {row['tried']['n']})" if mean else ""
    return f"`{' '.join(row['overrides'])}`: {row['outcome'].replace('_', ' ')}{figures}"


if __name__ == "__main__":
    main()
