"""The case of checkpoints in bench/run.py: how fast they are written."""

import mmap

import harness
from harness import Rate
from table import bytes_per_second, rate_row

RANKS = 2


def saving(settings):
    """Checkpoints of two ranks written, to the page cache and synced, against fio."""
    rank_bytes = (256 << 20) if settings.quick else (2 << 30)
    return [row for fsync in (False, True) for row in saving_with(fsync, rank_bytes, settings)]


def saving_with(fsync, rank_bytes, settings):
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
    how = "synced" if fsync else "not synced"
    what = f"checkpoint of {RANKS} × {rank_bytes >> 20} MiB written, {how}"
    return [rate_row(what, bytes_per_second(ours), bytes_per_second(fio), 0.9)]


def touch_memory(size):
    """A virtual machine gives memory that lay idle back to its host: whoever writes first would pay for having it again."""
    piece = bytes(1 << 20)
    with mmap.mmap(-1, size) as memory:
        for _ in range(size >> 20):
            memory.write(piece)


CASES = {"n": saving}
