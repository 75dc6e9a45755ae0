#!/usr/bin/env python3
"""Compares feedrate with its peers in one run: prints a table of ratios, and exits 1 if a target is missed.

feedrate and its peer alternate in rounds. A ratio is computed within a round, and the median over rounds is compared with the target.
See bench/README.md.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import checkpoints
import formats
import harness
from harness import FEEDRATE, ROOT, Failed, median
from table import (
    Row,
    Settings,
    as_markdown,
    bytes_per_second,
    checked_row,
    rate_row,
    ratio_row,
    ratio_text,
    workers_text,
    write_table,
)


def main():
    arguments = parse_arguments()
    quick = arguments.quick
    settings = Settings(1 if quick else 5, 0.5 if quick else 5.0, quick, arguments.data.resolve())
    if arguments.write and arguments.only != list(CASES):
        sys.exit("error: `--write` writes the whole table\n  hint: omit `--only`")
    if not FEEDRATE.exists():
        sys.exit("error: there is no target/release/feedrate\n  hint: run `cargo xtask bench`")
    settings.data.mkdir(parents=True, exist_ok=True)
    rows, failed = [], False
    for name in arguments.only:
        print(f"{name}: {CASES[name].__doc__.splitlines()[0]}", file=sys.stderr)
        try:
            rows += CASES[name](settings)
        except Failed as error:
            failed = True
            print(f"error: {name}: {error}", file=sys.stderr)
        shutil.rmtree(settings.results, ignore_errors=True)
    table = as_markdown(rows, settings)
    print(table)
    if arguments.write and not failed:
        write_table(table)
    sys.exit(1 if failed or not all(row.met is not False for row in rows) else 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=case_names, default=list(CASES), help=f"cases to run, from {','.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="one short round, as a smoke test")
    parser.add_argument("--write", action="store_true", help="write the table into bench/README.md")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    return parser.parse_args()


def case_names(text):
    names = text.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise argparse.ArgumentTypeError(f"`{unknown[0]}` is not one of {','.join(CASES)}")
    return names


def warm_large(settings):
    """Reading 8 MiB files from the page cache, compared with fio."""
    folders = {kind: settings.data / f"warm_{kind}" for kind in ("npy", "npz")}
    files = {}
    for kind, folder in folders.items():
        harness.generate(f"warm_{kind}.yaml", folder)
        files[kind] = harness.dataset_files(folder, f".{kind}")
        harness.warm(files[kind])
    return [row for workers in (1, 2) for row in warm_large_rows(workers, folders, files, settings)]


def warm_large_rows(workers, folders, files, settings):
    variants = {
        "npy": ("npy", []),
        "npz, check off": ("npz", ["reader.check_crc=False"]),
        "npz, check on": ("npz", ["reader.check_crc=True"]),
    }
    ours = {name: [] for name in variants}
    fio = {kind: [] for kind in files}
    crc = []
    run = {}
    for name, (kind, overrides) in variants.items():
        keys = [*overrides, f"reader.read_threads={workers}"]
        epochs = harness.epochs_for(
            settings.seconds, f"warm_{kind}.yaml", keys, folders[kind], settings.results
        )
        run[name] = (f"warm_{kind}.yaml", [*keys, f"train.epochs={epochs}"], folders[kind], settings.results)
    for _ in range(settings.rounds):
        for kind in files:
            fio[kind].append(harness.fio_read(files[kind], workers, settings.seconds, 1 << 20))
            for name, (own_kind, _) in variants.items():
                if own_kind == kind:
                    ours[name].append(harness.feedrate_rate(*run[name]))
        crc.append(harness.crc_rate(workers, min(2.0, settings.seconds)))
    label = workers_text(workers)
    rows = [
        rate_row(f"warm 8 MiB {name}, {label}", bytes_per_second(ours[name]), bytes_per_second(fio[kind]), 0.95)
        for name, (kind, _) in variants.items()
        if name != "npz, check on"
    ]
    checked = bytes_per_second(ours["npz, check on"])
    read = bytes_per_second(fio["npz"])
    rows.append(checked_row(f"warm 8 MiB npz, check on, {label}", checked, read, crc, "fio", "CRC-32"))
    costs = [run.cpu_s_per_gb / peer.cpu_s_per_gb for run, peer in zip(ours["npy"], fio["npy"])]
    rows.append(
        Row(
            f"CPU of warm 8 MiB npy, {label}",
            f"{median([run.cpu_s_per_gb for run in ours['npy']]):.3f} s/GB",
            f"fio: {median([peer.cpu_s_per_gb for peer in fio['npy']]):.3f} s/GB",
            ratio_text(costs),
            "≤1.10",
            median(costs) <= 1.1,
        )
    )
    return rows


def warm_small(settings):
    """Reading files of 114,660 bytes from the page cache, compared with fio reading whole files."""
    folder = settings.data / "small_npy"
    harness.generate("small_npy.yaml", folder)
    files = harness.dataset_files(folder, ".npy")
    harness.warm(files)
    file_bytes = files[0].stat().st_size
    rows = []
    for workers in (1, 2):
        keys = [f"reader.read_threads={workers}"]
        epochs = harness.epochs_for(settings.seconds, "small_npy.yaml", keys, folder, settings.results)
        ours, fio = [], []
        for _ in range(settings.rounds):
            fio.append(harness.fio_read(files, workers, settings.seconds, file_bytes, "sequential"))
            overrides = [*keys, f"train.epochs={epochs}"]
            ours.append(harness.feedrate_rate("small_npy.yaml", overrides, folder, settings.results))
        what = f"warm {file_bytes:,}-byte npy files, {workers_text(workers)}"
        rows.append(rate_row(what, bytes_per_second(ours), bytes_per_second(fio), 0.6))
    return rows


def generation(settings):
    """Writing and syncing npz files, compared with fio."""
    count = 32 if settings.quick else 512
    jobs = len(os.sched_getaffinity(0))
    keys = [f"dataset.num_files_train={count}"]
    ours, fio = harness.durable_writes("generate_npz.yaml", keys, ".npz", jobs, settings.rounds, settings.data)
    what = f"generate {count} npz of 8 MiB, {jobs} jobs, durable"
    return [rate_row(what, bytes_per_second(ours), bytes_per_second(fio), 0.8)]


def start_up(settings):
    """Duration of a command with two files of 1 KiB and one step."""
    folder = settings.data / "tiny"
    harness.generate("tiny.yaml", folder)
    runs = [
        harness.feedrate_run("tiny.yaml", [], 1, folder, settings.results)[1]
        for _ in range(3 if settings.quick else 25)
    ]
    wall_ms = median([run.wall_s for run in runs[1:]]) * 1e3
    rss_mib = max(run.peak_rss_bytes for run in runs) / 2**20
    floor = f"minimal program: {harness.rss_floor_bytes() / 2**20:.1f} MiB"
    return [
        Row("run of 2 files of 1 KiB, 1 step: wall", f"{wall_ms:.1f} ms", "", "", "≤50 ms", wall_ms <= 50),
        Row("the same run: peak memory", f"{rss_mib:.1f} MiB", floor, "", "≤20 MiB", rss_mib <= 20),
    ]


def compute_waits(settings):
    """Accuracy of emulated compute, with the null storage."""
    cores = len(os.sched_getaffinity(0))
    rows = []
    for compute_ms, accelerators, limit_us in ((1, 1, 10), (10, 1, 10), (1, 4 * cores, 100), (10, 4 * cores, 100)):
        steps = max(10, int(settings.seconds * 1000 / compute_ms))
        keys = [f"dataset.num_files_train={steps * accelerators}", f"train.computation_time={compute_ms / 1e3}"]
        overshoots, shares = [], []
        for _ in range(settings.rounds):
            summary, child = harness.feedrate_run("null.yaml", keys, accelerators, settings.data / "null", settings.results)
            durations_ns = compute_ns(summary["run_dir"])
            overshoots.append(median(durations_ns) / 1e3 - compute_ms * 1e3)
            shares.append(100 * steps * compute_ms / 1e3 / child.wall_s)
        accelerators_text = "1 accelerator" if accelerators == 1 else f"{accelerators} accelerators on {cores} cores"
        overshoot_us = median(overshoots)
        rows.append(
            Row(
                f"overshoot of a {compute_ms} ms wait, {accelerators_text}",
                f"{overshoot_us:.1f} µs",
                "",
                "",
                f"≤{limit_us} µs",
                overshoot_us <= limit_us,
            )
        )
        if compute_ms == 1 and accelerators == 1:
            share = median(shares)
            what = "steps × 1 ms ÷ wall of the process, null storage"
            rows.append(Row(what, f"{share:.1f} %", "", "", "≥97 %", share >= 97))
    return rows


def compute_ns(run_dir):
    """Returns the compute times of all steps of a run, over all accelerators and epochs."""
    record = json.loads((ROOT / run_dir / "record.json").read_text())
    return [
        ns
        for epoch in record["epochs"]
        for accelerator in epoch["accelerators"]
        for block in accelerator["blocks"]
        for ns in block["compute_ns"]
    ]


def many_accelerators(settings):
    """1000 accelerators in one process, with the null storage."""
    count, steps = (100, 5) if settings.quick else (1000, 60)

    def run(accelerators):
        keys = [f"dataset.num_files_train={steps * accelerators}", "train.computation_time=0.1"]
        return harness.feedrate_run("null.yaml", keys, accelerators, settings.data / "null", settings.results)

    single = run(1)[1].peak_rss_bytes
    runs = [run(count) for _ in range(settings.rounds)]
    au = median([summary["au"]["all_steps_percent"] for summary, _ in runs])
    each_kib = (median([child.peak_rss_bytes for _, child in runs]) - single) / (count - 1) / 1024
    cores = len(os.sched_getaffinity(0))
    return [
        Row(f"{count} accelerators on {cores} cores: AU of all steps", f"{au:.2f} %", "", "", "≥95 %", au >= 95),
        Row("the same run: memory of each accelerator, with its record", f"{each_kib:.0f} KiB", "", "", "≤200 KiB", each_kib <= 200),
    ]


def timeline(settings):
    """Cost of recording the timeline."""
    warm = settings.data / "warm_npy"
    harness.generate("warm_npy.yaml", warm)
    harness.warm(harness.dataset_files(warm, ".npy"))
    seconds = settings.seconds / 2
    steps = max(10, int(seconds * 1000))
    epochs = harness.epochs_for(seconds, "warm_npy.yaml", [], warm, settings.results)
    null_keys = [f"dataset.num_files_train={steps}", "train.computation_time=0.001"]
    idle_keys = [f"dataset.num_files_train={max(2, int(2 * seconds))}", "train.computation_time=0.5"]
    return [
        timeline_row("null storage, steps of 1 ms", "null.yaml", null_keys, settings.data / "null", settings),
        timeline_row("warm 8 MiB npy, 1 worker", "warm_npy.yaml", [f"train.epochs={epochs}"], warm, settings),
        timeline_cpu(idle_keys, settings),
    ]


def timeline_row(what, workload, keys, data, settings):
    rates = {True: [], False: []}
    # Runs vary by more than 1 %, so there are more rounds than in other cases, and each variant is first equally often.
    for turn in range(4 * settings.rounds):
        for kept in (True, False) if turn % 2 else (False, True):
            overrides = [*keys, f"output.timeline={kept}"]
            summary, _ = harness.feedrate_run(workload, overrides, 1, data, settings.results)
            rates[kept].append(summary["throughput"]["samples_per_second"]["whole"])
    ratios = [kept / without for kept, without in zip(rates[True], rates[False])]
    ours, peer = (f"{median(rates[kept]):.1f} samples/s" for kept in (True, False))
    return ratio_row(f"timeline kept: {what}", ours, f"without: {peer.removesuffix(' samples/s')}", ratios, 0.99)


def timeline_cpu(keys, settings):
    """Measures the CPU time of a run that only waits. Waking up and sampling take this time."""
    shares = []
    for _ in range(settings.rounds):
        record = harness.feedrate_record("null.yaml", keys, 1, settings.data / "null", settings.results)
        timeline = record["timeline"]
        shares.append(100 * sum(timeline["process_cpu_ns"]) / sum(timeline["duration_ns"]))
    share = median(shares)
    what = "timeline kept: CPU of a run that waits 0.5 s a step, of one core"
    return Row(what, f"{share:.2f} %", "", "", "≤1 %", share <= 1)


CASES = {
    "a": warm_large,
    "b": warm_small,
    "c": generation,
    "d": start_up,
    "e": compute_waits,
    "f": many_accelerators,
    "n": timeline,
    **formats.CASES,
    **checkpoints.CASES,
}


if __name__ == "__main__":
    main()
