"""Reads facts about this machine and the processes of a watched loop from /proc. None means unknown."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional

TICKS = os.sysconf("SC_CLK_TCK")


class Counters(NamedTuple):
    """Counters that are read once per epoch."""

    read_call_bytes: Optional[int]
    write_call_bytes: Optional[int]
    device_read_bytes: Optional[int]
    cpu_ns: Optional[int]
    busy_ticks: Optional[int]
    all_ticks: Optional[int]
    data_device_read_bytes: Optional[int]
    data_device_written_bytes: Optional[int]
    data_device_read_ns: Optional[int]
    own_cpu_ns: Optional[int]


def counters(device: Optional[str]) -> Counters:
    """Reads the counters of this process and its descendants, including the loader's workers.

    The kernel adds a child's counters to its parent once the parent has waited for it, so workers that have ended are included.
    """
    rchar = wchar = read = cpu = 0
    known = True
    for pid in _descendants(os.getpid()):
        io_counters = _io(pid)
        if io_counters is not None:
            rchar, wchar, read = rchar + io_counters["rchar"], wchar + io_counters["wchar"], read + io_counters["read_bytes"]
        # When a process ends, its counters move to its parent, which may have been read already. Then the sum is unknown.
        known = known and io_counters is not None
        cpu += _cpu_ticks(pid) or 0
    busy, ticks = _machine_ticks() or (None, None)
    bytes_of_tree = (rchar, wchar, read) if known else (None, None, None)
    return Counters(*bytes_of_tree, cpu * 1_000_000_000 // TICKS, busy, ticks, *_device_counters(device), time.process_time_ns())


def written_bytes() -> Optional[int]:
    """Returns the number of bytes that this process passed to write calls."""
    io_counters = _io(os.getpid())
    return io_counters and io_counters["wchar"]


def read_bytes() -> Optional[int]:
    """Returns the number of bytes that read calls of this process returned."""
    io_counters = _io(os.getpid())
    return io_counters and io_counters["rchar"]


def difference(after: Optional[int], before: Optional[int]) -> Optional[int]:
    """Returns the increase of a counter; None if unknown."""
    return after - before if after is not None and before is not None and before <= after else None


def process_start(pid: int) -> Optional[float]:
    """Returns the start time of a process, in seconds since 1970."""
    stat, boot = _stat(pid), _lines("/proc/stat")
    if stat is None or boot is None:
        return None
    return next(int(line.split()[1]) for line in boot if line.startswith("btime")) + int(stat[19]) / TICKS


def mount(path: "Optional[os.PathLike[str] | str]") -> Optional[dict[str, Any]]:
    """Describes the mount that contains a path."""
    lines = _lines("/proc/self/mountinfo") if path is not None else None
    if lines is None or path is None or not os.path.exists(path):
        return None
    real = os.path.realpath(path)
    found = None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        mount_fields = fields.split()
        point = mount_fields[4].replace("\\040", " ")
        inside = point == "/" or real == point or real.startswith(point + "/")
        if inside and (found is None or len(found["point"]) <= len(point)):
            kind, source, super_options = (rest.split() + ["", "", ""])[:3]
            found = {"point": point, "file_system": kind, "source": source, "options": mount_fields[5]}
            found.update(super_options=super_options, device=mount_fields[2])
    if found is not None:
        # Btrfs reports a device number of its own.
        if found["device"].startswith("0:") and found["source"].startswith("/dev/") and os.path.exists(found["source"]):
            number = os.stat(found["source"]).st_rdev
            found["device"] = f"{os.major(number)}:{os.minor(number)}"
        capacity = os.statvfs(real)
        found.update(free_bytes=capacity.f_bavail * capacity.f_frsize, total_bytes=capacity.f_blocks * capacity.f_frsize)
    return found


def system(data: "Optional[os.PathLike[str] | str]", results: Path) -> dict[str, Any]:
    """Describes the machine in the format of a record."""
    memory = [line.split(":", 1) for line in _lines("/proc/meminfo") or []]
    meminfo = [[key, value.strip()] for key, value in memory]
    total = next((int(value.split()[0]) * 1024 for key, value in meminfo if key == "MemTotal"), None)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
    return {
        "hostname": platform.node(),
        "components": [],
        "cpus": affinity,
        "cpus_online": os.cpu_count(),
        "memory_bytes": total,
        "processor": platform.machine(),
        "kernel": platform.release(),
        "cpuinfo": [],
        "meminfo": meminfo,
        "data_mount": mount(data),
        "results_mount": mount(results),
    }


def local_time() -> str:
    """Returns the local time in DLIO's format."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"


def _descendants(pid: int) -> Iterator[int]:
    yield pid
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        lines = _lines(f"/proc/{pid}/task/{task}/children") or []
        for child in " ".join(lines).split():
            yield from _descendants(int(child))


def _io(pid: int) -> Optional[dict[str, int]]:
    lines = _lines(f"/proc/{pid}/io")
    return {key: int(value) for key, value in (line.split(":") for line in lines)} if lines else None


def _stat(pid: int) -> Optional[list[str]]:
    """Returns the fields of a process's stat file after the name, starting with the state. The name may contain any character."""
    lines = _lines(f"/proc/{pid}/stat")
    return "".join(lines).rpartition(")")[2].split() if lines else None


def _cpu_ticks(pid: int) -> Optional[int]:
    """Returns the CPU ticks of a process and of the children that it has waited for."""
    stat = _stat(pid)
    return sum(map(int, stat[11:15])) if stat else None


def _machine_ticks() -> Optional[tuple[int, int]]:
    lines = _lines("/proc/stat")
    if not lines:
        return None
    ticks = [int(text) for text in lines[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _device_counters(device: Optional[str]) -> tuple[Optional[int], Optional[int], Optional[int]]:
    """Returns the bytes read from and written to a block device, and the sum of the times of its reads in nanoseconds."""
    lines = _lines(f"/sys/dev/block/{device}/stat") if device else None
    if not lines:
        return None, None, None
    # This file counts sectors of 512 bytes for every device, and milliseconds.
    fields = lines[0].split()
    return int(fields[2]) * 512, int(fields[6]) * 512, int(fields[3]) * 1_000_000


def _lines(path: str) -> Optional[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return None
