"""The checkpoint cases of bench/run.py: rates of writing and reading, and the share of writing that training hides."""

import mmap

import harness
from harness import Rate
from harness import median
from table import Row, bytes_per_second, checked_row, rate_row

RANKS = 2


def saving(settings):
    """Writing checkpoints of two ranks, to the page cache and with sync, compared with fio."""
    rank_bytes = (256 << 20) if settings.quick else (2 << 30)
    return [row for fsync in (False, True) for row in save_rows(fsync, rank_bytes, settings)]


def save_rows(fsync, rank_bytes, settings):
    folder, peer_folder = settings.data / "checkpoints", settings.data / "checkpoints_fio"
    keys = [
        "dataset.num_files_train=2",
        "workflow.checkpoint=true",
        "model.parallelism.zero_stage=3",
        f"model.model_size_bytes={rank_bytes}",
        f"checkpoint.checkpoint_folder={folder}",
        f"checkpoint.fsync={fsync}",
    ]
    ours, fio = [], []
    for _ in range(settings.rounds):
        harness.empty(folder)
        touch_memory(RANKS * rank_bytes)
        summary, child = harness.feedrate_run("null.yaml", keys, RANKS, settings.data / "null", settings.results)
        save = summary["checkpoint"]["save"]
        ours.append(Rate(save["bytes"] / save["duration_s"], child.cpu_s / (save["bytes"] / 1e9)))
        harness.empty(folder)
        harness.empty(peer_folder)
        touch_memory(RANKS * rank_bytes)
        fio.append(harness.fio_write(peer_folder, RANKS, rank_bytes, RANKS, block="4M", sync=fsync))
        harness.empty(peer_folder)
    mode = "synced" if fsync else "not synced"
    what = f"checkpoint of {RANKS} × {rank_bytes >> 20} MiB written, {mode}"
    return [rate_row(what, bytes_per_second(ours), bytes_per_second(fio), 0.9)]


def loading(settings):
    """Reading checkpoints of two ranks from the page cache with every byte checked, compared with fio and the checksum's time."""
    rank_bytes = (256 << 20) if settings.quick else (2 << 30)
    folder = settings.data / "checkpoints"
    keys = [
        "workflow.train=false",
        "workflow.checkpoint=true",
        "model.parallelism.zero_stage=3",
        f"model.model_size_bytes={rank_bytes}",
        f"checkpoint.checkpoint_folder={folder}",
    ]

    def run(writes, reads):
        counts = [f"checkpoint.num_checkpoints_write={writes}", f"checkpoint.num_checkpoints_read={reads}"]
        return harness.feedrate_run("null.yaml", keys + counts, RANKS, settings.data / "null", settings.results)[0]

    harness.empty(folder)
    run(1, 0)
    files = sorted(folder.glob("*/*.pt"))
    harness.warm(files)
    ours, fio, crc = [], [], []
    for _ in range(settings.rounds):
        load = run(0, 1)["checkpoint"]["load"]
        ours.append(load["bytes"] / load["duration_s"])
        fio.append(harness.fio_read(files, RANKS, min(2.0, settings.seconds), 4 << 20).bytes_per_second)
        crc.append(harness.crc_rate(RANKS, min(2.0, settings.seconds)))
    harness.empty(folder)
    what = f"checkpoint of {RANKS} × {rank_bytes >> 20} MiB read and checked, from the page cache"
    return [checked_row(what, ours, fio, crc, "fio", "CRC-32"), hidden_share(settings)]


def hidden_share(settings):
    """Share of a checkpoint written in the background that training does not wait for."""
    folder = settings.data / "checkpoints"
    keys = [
        "dataset.num_files_train=40",
        "train.computation_time=0.1",
        "workflow.checkpoint=true",
        f"model.model_size_bytes={128 << 20}",
        f"checkpoint.checkpoint_folder={folder}",
        "checkpoint.steps_between_checkpoints=20",
        "checkpoint.asynchronous=true",
    ]
    shares = []
    for _ in range(settings.rounds):
        harness.empty(folder)
        record = harness.feedrate_record("null.yaml", keys, 1, settings.data / "null", settings.results)
        # The end of the run waits for the last checkpoint in any case.
        first = record["epochs"][0]["checkpoints"][0]
        shares.append(100 * (1 - first["stall_ns"] / (first["end_ns"] - first["start_ns"])))
    harness.empty(folder)
    what = "checkpoint of 128 MiB during 2 s of steps: share hidden behind them"
    return Row(what, f"{median(shares):.1f} %", "", "", "≥90 %", median(shares) >= 90)


def touch_memory(size):
    """Touches memory, since a virtual machine returns idle memory to its host, and getting it back would slow down the first writer."""
    piece = bytes(1 << 20)
    with mmap.mmap(-1, size) as memory:
        for _ in range(size >> 20):
            memory.write(piece)


CASES = {"o": saving, "p": loading}
