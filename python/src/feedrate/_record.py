"""Writes the record of a watched loop: a part for each rank, and `record.json` merged from all parts."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Optional

from . import _machine

PART = ".watch-rank-{}.json"


class Job(NamedTuple):
    """This process within a training job."""

    rank: int
    ranks: int
    folder: Path


def job(results: Path, name: str) -> Job:
    """Determines the rank, from torch.distributed or otherwise from the launcher, and the folder. All ranks find the same folder without communication."""
    rank, ranks = _ranks()
    now = time.strftime("%Y-%m-%d-%H-%M-%S")
    parent = results / re.sub(r"[^\w.+-]", "_", name)
    base = now if ranks == 1 else _job_name()
    for number in range(1, 10_000):
        folder = parent / (base if number == 1 else f"{base}-{number}")
        if ranks == 1:
            try:
                folder.mkdir(parents=True)
                return Job(rank, ranks, folder)
            except FileExistsError:
                continue
        folder.mkdir(parents=True, exist_ok=True)
        # An existing part of this rank, or a complete record, is from an earlier run of the same launcher.
        if not (folder / PART.format(rank)).exists() and not _is_complete(folder):
            return Job(rank, ranks, folder)
    raise FileExistsError(f"no folder is free below `{parent}`")


def _is_complete(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "record.json").read_text(encoding="utf-8"))["complete"])
    except (OSError, ValueError, KeyError):
        return False


def _ranks() -> tuple[int, int]:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    names = [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("RANK", "WORLD_SIZE")]
    if "SLURM_STEP_ID" in os.environ:
        # A batch script without srun has a rank, but is the only process.
        names.append(("SLURM_PROCID", "SLURM_NTASKS"))
    for rank, ranks in names:
        rank_text, size_text = os.environ.get(rank, ""), os.environ.get(ranks, "")
        if rank_text.isdigit() and size_text.isdigit() and int(rank_text) < int(size_text):
            return int(rank_text), int(size_text)
    return 0, 1


def _job_name() -> str:
    """Returns a name that all ranks of a job share and no other job has: the launcher's job id, or otherwise the launcher's start time."""
    variable = os.environ.get
    elastic = variable("TORCHELASTIC_RUN_ID", "none")
    names = [variable("FEEDRATE_JOB"), None if elastic == "none" else elastic, variable("PMIX_NAMESPACE"), variable("OMPI_MCA_ess_base_jobid")]
    if "SLURM_STEP_ID" in os.environ:
        names.insert(1, f"slurm-{variable('SLURM_JOB_ID')}-{variable('SLURM_STEP_ID')}")
    name = next(filter(None, names), None)
    if name is None:
        parent = os.getppid()
        started = time.localtime(_machine.process_start(parent) or 0)
        name = f"{time.strftime('%Y-%m-%d-%H-%M-%S', started)}-{parent}"
    restarts = variable("TORCHELASTIC_RESTART_COUNT", "0")
    return re.sub(r"[^\w.+-]", "_", name) + ("" if restarts == "0" else f"-restart-{restarts}")


def write(job: Job, part: dict[str, Any]) -> bool:
    """Writes the part of this rank, and the record merged from all existing parts. Returns whether the record is complete."""
    if job.ranks == 1:
        record = merge([part], 1)
        _replace(job.folder / "record.json", record)
        return bool(record["complete"])
    _replace(job.folder / PART.format(job.rank), part)
    with open(os.open(job.folder / ".watch-lock", os.O_RDWR | os.O_CREAT, 0o666), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _update_ended(lock.fileno(), job, bool(part["ended"])) and job.rank != 0 and not part["is_closed"]:
            # Rank 0 writes the record during a pass; the last rank that ends a pass completes it, and the first that begins another one reopens it.
            return False
        paths = [job.folder / PART.format(rank) for rank in range(job.ranks)]
        if not paths[job.rank].exists():
            return True
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
        record = merge(parts, job.ranks)
        _replace(job.folder / "record.json", record)
        # A part that is not closed may still grow.
        if record["complete"] and all(each["is_closed"] for each in parts):
            for path in paths:
                path.unlink()
    return bool(record["complete"])


def _update_ended(lock: int, job: Job, is_ended: bool) -> bool:
    """Stores in the locked file whether the last pass of this rank ended, and returns whether those of all ranks had or have ended.

    The file has a byte for each rank, since the parts of many ranks would take long to read. A damaged byte cannot make a record complete.
    """
    before = os.pread(lock, job.ranks, 0)
    os.pwrite(lock, b"1" if is_ended else b"0", job.rank)
    return b"1" * job.ranks in (before, os.pread(lock, job.ranks, 0))


def merge(parts: list[dict[str, Any]], ranks: int) -> dict[str, Any]:
    """Merges the existing parts into a record, in the order of ranks."""
    first = parts[0]
    hosts: list[dict[str, Any]] = []
    processes = []
    offsets = []
    for part in parts:
        names = [host["hostname"] for host in hosts]
        if part["system"]["hostname"] not in names:
            hosts.append(part["system"])
        node = [host["hostname"] for host in hosts].index(part["system"]["hostname"])
        # Processes of a machine share its monotonic clock; machines share only the wall clock.
        is_same_machine = part["system"]["hostname"] == first["system"]["hostname"]
        clock = "monotonic_ns" if is_same_machine else "wall_ns"
        offsets.append(part[clock] - first[clock])
        processes.append({"node": node, "id": part["process"], "accelerators": 1, "clock_offset_ns": 0, "clock_error_ns": 0})
    begin = min(offsets)
    offsets = [offset - begin for offset in offsets]
    count = max(len(part["epochs"]) for part in parts)
    epochs = [
        _epoch([(part["epochs"][index], offset, process["node"]) for part, offset, process in zip(parts, offsets, processes) if index < len(part["epochs"])], hosts)
        for index in range(count)
    ]
    unfinished = [str(rank) for rank in range(ranks) if rank not in {part["rank"] for part in parts if part["ended"]}]
    stopped = next((part["stopped_because"] for part in parts if part["stopped_because"]), None)
    if stopped is None and unfinished and len(unfinished) < ranks:
        stopped = f"rank {', '.join(unfinished)} did not finish or is still running"
    steps = max((len(block["load_ns"]) for part in parts for epoch in part["epochs"] for block in epoch["blocks"]), default=0)
    per_epoch = [sum(len(block["load_ns"]) for block in epoch["blocks"]) for part in parts for epoch in part["epochs"]]
    record = {
        "version": 1,
        "program": first["program"],
        "plan": _plan(first, ranks, count, max(per_epoch, default=steps)),
        "system": first["system"],
        "started": min(part["started"] for part in parts),
        "ended": max(part["ended"] for part in parts) if not unfinished else "",
        "complete": not unfinished and stopped is None,
        "stopped_because": stopped,
        "compute_spins": False,
        "simulated": False,
        "epochs": epochs,
        "doubts": [],
        "watched": _watched(parts),
    }
    if len(hosts) > 1:
        record["nodes"] = hosts
    if ranks > 1:
        record["processes"] = processes
    return record


def _watched(parts: list[dict[str, Any]]) -> dict[str, Any]:
    first = parts[0]
    synchronised = [part["synchronised"] for part in parts if part["synchronised"] is not None]
    # Ranks of a machine count the same device.
    devices = {(part["system"]["hostname"], index): epoch["device_read_ns"] for part in reversed(parts) for index, epoch in enumerate(part["epochs"])}
    epochs = [epoch for part in parts for epoch in part["epochs"]]

    def total(key: str) -> Optional[int]:
        return _sum([epoch[key] for epoch in epochs])

    return {
        "loader": first["loader"],
        "workers": first["workers"],
        "synchronised": all(synchronised) if synchronised else None,
        "closed": all(part["is_closed"] for part in parts),
        "read_call_bytes": total("read_call_bytes"),
        "device_read_ns": _sum(list(devices.values())),
        "loader_cpu_ns": total("loader_cpu_ns"),
        "loader_time_ns": total("loader_time_ns"),
    }


def _epoch(parts: list[tuple[dict[str, Any], int, int]], hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """Merges an epoch. `parts` has for each rank with this epoch its data, its clock offset and its machine."""
    accelerators, checkpoints = [], []
    for epoch, offset, _ in parts:
        blocks = [
            {
                "start_ns": block["start_ns"] + offset,
                "end_ns": block["end_ns"] + offset,
                "load_ns": block["load_ns"],
                "compute_ns": block["compute_ns"],
                "barrier_ns": [0] * len(block["load_ns"]),
                "read_bytes": [0] * len(block["load_ns"]),
            }
            for block in epoch["blocks"]
        ]
        accelerators.append({"blocks": blocks})
        for saved in epoch["checkpoints"]:
            checkpoints.append({**saved, "start_ns": saved["start_ns"] + offset, "end_ns": saved["end_ns"] + offset})
    machines = {node: epoch["host"] for epoch, _, node in reversed(parts)}
    rank_hosts = [epoch["host"] for epoch, _, _ in parts]
    cores = [hosts[node]["cpus_online"] for node in machines]
    busy = [host["cpu_busy_share"] for host in machines.values()]
    known = None not in busy and None not in cores
    host = {
        "process_device_read_bytes": _sum([rank_host["process_device_read_bytes"] for rank_host in rank_hosts]),
        "device_read_bytes": _sum([machine["device_read_bytes"] for machine in machines.values()]),
        "device_write_bytes": _sum([machine["device_write_bytes"] for machine in machines.values()]),
        "resident_sampled_share": 0.0,
        "process_cpu_ns": _sum([rank_host["process_cpu_ns"] for rank_host in rank_hosts]),
        "cpu_busy_share": sum(share * count for share, count in zip(busy, cores)) / sum(cores) if known else None,
    }
    first = parts[0][0]
    return {
        "number": first["number"],
        "start_ns": min(epoch["start_ns"] + offset for epoch, offset, _ in parts),
        "end_ns": max(epoch["end_ns"] + offset for epoch, offset, _ in parts),
        "started": min(epoch["started"] for epoch, _, _ in parts),
        "ended": max(epoch["ended"] for epoch, _, _ in parts),
        "accelerators": accelerators,
        "host": host,
        **({"nodes": [{**machines[node], "resident_sampled_share": 0.0} for node in sorted(machines)]} if len(machines) > 1 else {}),
        **({"checkpoints": checkpoints} if checkpoints else {}),
    }


def _sum(values: list[Optional[int]]) -> Optional[int]:
    """Returns the sum; None if any value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def _plan(part: dict[str, Any], ranks: int, epochs: int, steps: int) -> dict[str, Any]:
    """Returns a plan with the known values. Other values are 0 or empty; the record's key `watched` marks them as unknown."""
    return {
        "workload": part["name"],
        "model": part["name"],
        "framework": part["framework"],
        "accelerators": ranks,
        "dataset": {
            **dict.fromkeys(["files_train", "files_eval", "samples_per_file", "subfolders_train", "subfolders_eval", "content_seed"], 0),
            **dict.fromkeys(["format", "extension", "prefix"], ""),
            **{"record_bytes": 0.0, "record_stdev_bytes": 0.0, "record_dims": [], "element": "uint8"},
            "encoding": {
                **{"compression": "none", "compression_level": 0, "chunk_dims": [], "max_shape": []},
                **{"datasets_per_record": 1, "row_group_samples": 1},
            },
        },
        "storage": {"kind": "", "engine": "", "throttle_bytes_per_second": None, "throttle_latency_s": 0.0, "delay_s": 0.0},
        "loader": {
            **{"kind": part["kind"], "batch_size": part["batch"] or 0, "workers": part["workers"] or 0},
            **{"prefetch_size": 0, "batches_in_flight": part["in_flight"] or 0, "file_access": "multi", "split": "samples"},
            **{"group_accelerators": 1, "interleaved_files": 1, "held_batches": 0, "held_at_start": 0, "decode_threads": None},
            **{"in_memory": False, "preprocess": {"type": "none"}, "preprocess_seed": 0, "file_shuffle": "off"},
            **{"sample_shuffle": "off", "shuffles_in_buffer": False, "order_seed": 0, "seed_change_epoch": False},
            **{"piece_bytes": 0, "materialize": False, "verify": False, "check_crc": False, "decodes_members": False},
        },
        "train": {
            **{"epochs": epochs, "steps_per_epoch": steps, "total_steps": None, "compute_seed": 0, "cache": "as_is"},
            **{"compute": {"type": "constant", "mean": 0.0}, "barrier": "each_step"},
        },
        "metric": {"au_target_percent": 90.0, "exclude_start_steps": 1, "exclude_end_steps": 0},
        "timeline": False,
        "doubts": [],
    }


def _replace(path: Path, content: dict[str, Any]) -> None:
    part = path.with_name(f".{path.name.lstrip('.')}.{os.getpid()}-0.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(content, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
