"""Watches a training loop: records how long each step waited for its batch and how long it computed, in a record that feedrate reads."""

from __future__ import annotations

import atexit
import os
import sys
from array import array
from contextlib import ContextDecorator
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns as clock
from time import thread_time_ns as thread_clock
from time import time_ns
from typing import Any, Callable, Iterator, Optional, Union

from . import _machine, _record

StrPath = Union[str, "os.PathLike[str]"]

FLUSH_NS = 30_000_000_000
"""Minimum time between writes of the record within an epoch. The record is also written at both ends of each epoch."""
WRITE_FREE_NS = 1_000_000_000
"""Total writing time that is always allowed. Beyond it, writing takes at most 1 % of the time, since a record grows with each epoch."""
TIMED_STEP_NS = 1_000_000
"""Length of a step from which the CPU time of the next load is measured, which takes some microseconds."""


class Watch:
    """An iterable that replaces `loader`; each pass over it is an epoch of the record."""

    def __init__(self, loader: Any, log: "_Log") -> None:
        self._loader = loader
        self._log = log

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        # A copy that is being unpickled has no loader yet.
        if name.startswith("__") or "_loader" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        log = self._log
        epoch = log.begin(self._loader)
        add_load, add_compute = epoch.load.append, epoch.compute.append
        synchronise = log.synchronise()
        batches: list[Any] = []
        steps = 0
        # Without workers, this thread loads.
        times_loads = not log.workers
        is_timed = times_loads
        thread_ns = 0
        requested = clock()
        epoch.start = requested
        ended = 0
        try:
            iterator = iter(self._loader)
            while True:
                if is_timed:
                    thread_ns = thread_clock()
                try:
                    batch = next(iterator)
                except StopIteration:
                    ended = clock()
                    break
                received = clock()
                if is_timed:
                    epoch.timed_load_ns += received - requested
                    epoch.timed_cpu_ns += thread_clock() - thread_ns
                if steps == 0:
                    log.inspect_batch(batch)
                    # The time for inspecting the batch is not part of the step.
                    inspection = clock() - received
                    received += inspection
                    epoch.start += inspection
                    requested += inspection
                # This function keeps no reference to the batch, so the batch is freed when the loop releases it.
                batches.append(batch)
                batch = None
                yield batches.pop()
                if synchronise is not None:
                    synchronise()
                now = clock()
                add_load(received - requested)
                if epoch.paused:
                    add_compute(now - received - epoch.paused)
                    epoch.end_block(now)
                else:
                    add_compute(now - received)
                is_timed = times_loads and TIMED_STEP_NS <= now - requested
                requested = now
                steps += 1
                if log.due < now:
                    requested = log.flush_within(epoch, now)
                if steps == 1:
                    # The GPU may have been initialised only in the first step.
                    synchronise = log.synchronise()
        finally:
            # A step that ended by `break` or an exception does not count.
            log.end(epoch, requested, ended or requested)

    def close(self) -> Path:
        """Completes the record before the process ends, and returns the folder of the record."""
        return self._log.close()


class _Epoch:
    """Times of one pass over the loader, on the process's clock until they are written."""

    def __init__(self, number: int, before: _machine.Counters, loader: Any) -> None:
        self.number = number
        self.loader = loader
        self.before = before
        self.started = _machine.local_time()
        self.load, self.compute = array("q"), array("q")
        # Loads whose CPU time in this thread was measured, and that time.
        self.timed_load_ns, self.timed_cpu_ns = 0, 0
        self.start = 0
        self.thread = get_ident()
        # For each block, the number of steps before its end, and the time until the next block.
        self.blocks: list[tuple[int, int]] = []
        self.paused = 0
        self.pending: list[tuple[str, int, int]] = []
        self.checkpoints: list[dict[str, Any]] = []

    def end_block(self, now: int) -> None:
        """Ends a block. Checkpoints within a step are recorded as if they followed the step."""
        self.blocks.append((len(self.compute), self.paused))
        start = now - self.paused
        for kind, length, count in self.pending:
            self.checkpoints.append(
                {"kind": kind, "start_ns": start, "end_ns": start + length, "bytes": count, "after_step": len(self.compute)}
            )
            start += length
        self.paused = 0
        self.pending = []

    def as_json(self, workers: Optional[int], origin: int, requested: int, ended: int, after: _machine.Counters) -> dict[str, Any]:
        load, compute = self.load.tolist(), self.compute.tolist()
        blocks, first, start = [], 0, self.start - origin
        for end, paused in [*self.blocks, (len(compute), 0)]:
            part = slice(first, end)
            length = sum(load[part]) + sum(compute[part])
            if first < end:
                blocks.append({"start_ns": start, "end_ns": start + length, "load_ns": load[part], "compute_ns": compute[part]})
            first, start = end, start + length + paused
        # After the last batch, a loader may take time to stop its workers. It belongs to the last block, so checkpoints in the last step follow it.
        stop_ns = max(ended - origin - start, 0)
        blocks[-1]["end_ns"] += stop_ns
        checkpoints = []
        for saved in self.checkpoints:
            shift = stop_ns - origin if saved["after_step"] == len(compute) else -origin
            checkpoints.append({**saved, "start_ns": saved["start_ns"] + shift, "end_ns": saved["end_ns"] + shift})
        before = self.before
        busy, ticks = (_machine.difference(a, b) for a, b in zip(after[4:6], before[4:6]))
        host = {
            "process_device_read_bytes": _machine.difference(after.device_read_bytes, before.device_read_bytes),
            "device_read_bytes": _machine.difference(after.data_device_read_bytes, before.data_device_read_bytes),
            "device_write_bytes": _machine.difference(after.data_device_written_bytes, before.data_device_written_bytes),
            "process_cpu_ns": _machine.difference(after.cpu_ns, before.cpu_ns),
            "cpu_busy_share": busy / ticks if busy is not None and ticks else None,
        }
        return {
            "number": self.number,
            "start_ns": self.start - origin,
            "end_ns": start + stop_ns,
            "started": self.started,
            "ended": _machine.local_time(),
            "blocks": blocks,
            "checkpoints": checkpoints,
            "host": host,
            "read_call_bytes": _machine.difference(after.read_call_bytes, before.read_call_bytes),
            "device_read_ns": _machine.difference(after.data_device_read_ns, before.data_device_read_ns),
            **self.loader_times(workers, sum(load), sum(compute), after),
        }

    def loader_times(self, workers: Optional[int], load: int, compute: int, after: _machine.Counters) -> dict[str, Optional[int]]:
        """Returns the CPU time of loading and the time that it had: of all workers during steps, or of this thread during loads."""
        if workers:
            tree = _machine.difference(after.cpu_ns, self.before.cpu_ns)
            own = _machine.difference(after.own_cpu_ns, self.before.own_cpu_ns)
            busy = max(tree - own, 0) if tree is not None and own is not None else None
            return {"loader_cpu_ns": busy, "loader_time_ns": workers * (load + compute)}
        # Loads that were not timed may have differed.
        is_known = load <= 2 * self.timed_load_ns
        return {"loader_cpu_ns": self.timed_cpu_ns if is_known else None, "loader_time_ns": self.timed_load_ns if is_known else None}


class _Log:
    """The record of all passes of one loop."""

    def __init__(self, name: str, results: Path, batch: Optional[int], data: Optional[StrPath], synchronises: bool) -> None:
        self.name = name
        self.results = results
        self.batch = batch
        self.data = data
        self.synchronises = synchronises
        self.job: Optional[_record.Job] = None
        self.process = os.getpid()
        self.origin = clock()
        self.origin_wall = time_ns()
        self.started = _machine.local_time()
        # The time when the last pass ended; empty during a pass.
        self.ended = ""
        self.is_closed = False
        self.stopped: Optional[str] = None
        self.synchronised: Optional[bool] = None
        self.loader = ""
        self.kind = ""
        self.workers: Optional[int] = None
        self.in_flight: Optional[int] = None
        self.epochs: list[dict[str, Any]] = []
        self.open: list[_Epoch] = []
        self.passes = 0
        self.due = 0
        self.spent = 0
        self.waiting: list[dict[str, Any]] = []
        self.system: dict[str, Any] = {}
        self.device: Optional[str] = None

    def begin(self, loader: Any) -> _Epoch:
        """Starts a pass. An incomplete record is written at once, unless one is there; it remains if the process is killed."""
        if self.job is None:
            self.job = _record.job(self.results, self.name)
            if self.data is None:
                # Datasets of torchvision name their folder.
                root = getattr(getattr(loader, "dataset", None), "root", None)
                self.data = root if isinstance(root, (str, os.PathLike)) and os.path.isdir(root) else None
            self.system = _machine.system(self.data, self.results)
            self.device = (self.system["data_mount"] or {}).get("device")
            self.inspect_loader(loader)
        is_ended = self.passes == 0 or bool(self.ended)
        self.ended, self.stopped, self.is_closed = "", None, False
        self.passes += 1
        if is_ended:
            self.write([])
        self.due = clock() + FLUSH_NS
        epoch = _Epoch(self.passes, _machine.counters(self.device), loader)
        self.open.append(epoch)
        return epoch

    def inspect_loader(self, loader: Any) -> None:
        """Collects facts from the loader's attributes."""
        loader_type = type(loader)
        # A callback passes only a name instead of a loader.
        self.loader = loader if isinstance(loader, str) else f"{loader_type.__module__}.{loader_type.__qualname__}"
        if self.batch is None:
            batch = getattr(loader, "batch_size", None)
            self.batch = batch if isinstance(batch, int) and batch > 0 else None
        if loader_type.__module__.startswith("torch."):
            self.kind = "pytorch"
            workers = getattr(loader, "num_workers", None)
            self.workers = workers if isinstance(workers, int) else None
            factor = getattr(loader, "prefetch_factor", None)
            self.in_flight = self.workers * factor if self.workers and isinstance(factor, int) else None
        elif loader_type.__module__.startswith("tensorflow."):
            self.kind = "tensorflow"

    def inspect_batch(self, batch: Any) -> None:
        """Takes the batch size from the first batch of an epoch."""
        if self.batch is None:
            try:
                self.batch = _sample_count(batch)
            except Exception:  # A batch may have any type; training must continue.
                self.batch = None

    def synchronise(self) -> Optional[Callable[[], Any]]:
        """Returns a function that waits for the GPU; None if no GPU is in use. It does not initialise the GPU."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return None
        self.synchronised = self.synchronises
        return cuda.synchronize if self.synchronises else None

    def flush_within(self, epoch: _Epoch, now: int) -> int:
        """Writes the record within an epoch. The time for writing is excluded from all steps."""
        self.write([epoch.as_json(self.workers, self.origin, now, now, _machine.counters(self.device))])
        after = clock()
        self.due = after + max(FLUSH_NS, 100 * (after - now))
        self.origin += after - now
        epoch.start += after - now
        for checkpoint in epoch.checkpoints:
            checkpoint["start_ns"] += after - now
            checkpoint["end_ns"] += after - now
        return after

    def end(self, epoch: _Epoch, requested: int, ended: int) -> None:
        if epoch.paused:
            # Checkpoints in an unfinished step follow the steps before it.
            epoch.end_block(requested + epoch.paused)
            ended = max(ended, requested + epoch.paused)
        self.open.remove(epoch)
        if os.getpid() != self.process or sys.is_finalizing():
            return
        if epoch.compute:
            entry = epoch.as_json(self.workers, self.origin, requested, ended, _machine.counters(self.device))
            entry["checkpoints"] = self.waiting + entry["checkpoints"]
            self.waiting = []
            self.epochs.append(entry)
            for number, epoch_entry in enumerate(self.epochs, 1):
                epoch_entry["number"] = number
        if self.spent < WRITE_FREE_NS + (clock() - self.origin) // 100:
            self.ended = "" if self.open else _machine.local_time()
            self.write([])

    def checkpoint(self, kind: str, start: int, end: int, count: Optional[int]) -> None:
        """Adds a checkpoint. A checkpoint of unknown size is not recorded.

        The time of a checkpoint within a step is excluded from compute. A checkpoint between epochs belongs to the previous epoch.
        """
        # A checkpoint in another thread delays no step.
        thread_epochs = [epoch for epoch in self.open if epoch.thread == get_ident()]
        for epoch in thread_epochs:
            epoch.paused += end - start
            if count is not None:
                epoch.pending.append((kind, end - start, count))
        if not self.open and count is not None:
            steps = sum(len(block["load_ns"]) for block in self.epochs[-1]["blocks"]) if self.epochs else 0
            entry = {"kind": kind, "start_ns": start - self.origin, "end_ns": end - self.origin, "bytes": count, "after_step": steps}
            (self.epochs[-1]["checkpoints"] if self.epochs else self.waiting).append(entry)

    def close(self) -> Path:
        if self.job is None:
            raise RuntimeError("nothing was watched: the loop has not started")
        if not self.is_closed:
            self.is_closed = True
            self.ended = self.ended or _machine.local_time()
            self.write([])
        return self.job.folder

    def write(self, more: list[dict[str, Any]]) -> None:
        """Writes the record. If that fails, prints a message and lets training continue."""
        assert self.job is not None
        if os.getpid() != self.process:
            return
        start = clock()
        try:
            _record.write(self.job, self.part(self.job.rank, more))
        except (OSError, ValueError) as error:  # The part of another rank may be damaged.
            sys.stderr.write(f"feedrate: cannot write the record in `{self.job.folder}`: {error}\n")
        self.spent += clock() - start

    def part(self, rank: int, more: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns what this process knows about the job, with `more` epochs that are in progress."""
        return {
            "program": f"feedrate.watch {_version()}",
            "rank": rank,
            "process": self.process,
            "name": self.name,
            "framework": self.kind,
            "kind": self.kind,
            "loader": self.loader,
            "workers": self.workers,
            "in_flight": self.in_flight,
            "batch": self.batch,
            "synchronised": self.synchronised,
            "system": self.system,
            "started": self.started,
            "ended": self.ended,
            "is_closed": self.is_closed,
            "stopped_because": self.stopped,
            "monotonic_ns": self.origin,
            "wall_ns": self.origin_wall,
            "epochs": self.epochs + more,
        }


class checkpoint(ContextDecorator):
    """Marks a checkpoint: `with feedrate.checkpoint(): torch.save(…)`, or as a decorator of a function. Its time is recorded and does not count as compute.

    Its size is the number of bytes that this process passed to write calls during the checkpoint, or with `kind="load"` the number that its read calls
    returned.
    """

    def __init__(self, kind: str = "save") -> None:
        if kind not in ("save", "load"):
            raise ValueError(f"`{kind}` is not a kind of checkpoint\n  hint: use `save` or `load`")
        self._kind = kind
        self._byte_counter = _machine.written_bytes if kind == "save" else _machine.read_bytes
        self._starts: list[tuple[int, Optional[int]]] = []

    def __enter__(self) -> "checkpoint":
        self._starts.append((clock(), self._byte_counter()))
        return self

    def __exit__(self, *_: Any) -> None:
        start, before = self._starts.pop()
        count = _machine.difference(self._byte_counter(), before)
        end = clock()
        logs = [log for log in _LOGS.values() if log.open] or list(_LOGS.values())[-1:]
        for log in logs:
            log.checkpoint(self._kind, start, end, count)


def watch(
    loader: Any,
    *,
    name: Optional[str] = None,
    results: StrPath = "results",
    batch: Optional[int] = None,
    data: Optional[StrPath] = None,
    synchronise: bool = True,
) -> Watch:
    """Watches a loop that iterates over the result instead of `loader`: `for batch in feedrate.watch(loader):`. Each pass is an epoch of the record.

    The record is stored in `results/NAME/…`, for `feedrate show`, `compare`, `analyze` and `report`. Loops at the same line of a script, or with
    the same `name`, share a record. `batch` is the number of samples in a batch, needed if neither the loader nor the first batch shows it. `data` is
    the folder of the dataset; its file system and device are then recorded. If a GPU is in use, each step waits for the GPU before its end is timed, unless
    `synchronise` is False. Several ranks of torch.distributed or a launcher write one record.
    """
    frame = sys._getframe(1)
    return Watch(loader, _log(name, (frame.f_code.co_filename, frame.f_lineno), results, batch, data, synchronise))


_LOGS: dict[Any, _Log] = {}


def _log(
    name: Optional[str], location: tuple[str, int], results: StrPath, batch: Optional[int], data: Optional[StrPath], synchronise: bool
) -> _Log:
    """Returns the log of a loop, and creates it for a loop that was not watched before."""
    key = (name, os.fspath(results)) if name else location
    log = _LOGS.get(key)
    # Loops in a forked process are separate from loops in its parent.
    if log is None or log.process != os.getpid():
        if not _LOGS:
            atexit.register(_finish)
            sys.excepthook = _recording_hook(sys.excepthook)
        if name is None:
            script = Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else location[0]).stem
            taken = sum(1 for other in _LOGS if isinstance(other[1], int))
            name = (script.strip("<>") or "watched") + (f"-{taken + 1}" if taken else "")
        log = _LOGS[key] = _Log(name, Path(results), batch, data, synchronise)
    log.batch, log.data = log.batch or batch, log.data or data
    return log


def _recording_hook(before: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an exception hook that stores why the script ended, and then calls the previous hook."""

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        why = "interrupted" if issubclass(kind, KeyboardInterrupt) else " ".join(f"{kind.__name__}: {error}".split())[:200]
        for log in _LOGS.values():
            log.stopped = log.stopped or why
        before(kind, error, trace)

    return hook


def _finish() -> None:
    for log in _LOGS.values():
        if log.job is None or log.is_closed or log.process != os.getpid():
            continue
        for epoch in list(log.open):
            # The exception's traceback still holds the iterator, so its last step is unfinished and does not count.
            last = epoch.start + sum(epoch.load) + sum(epoch.compute) + sum(paused for _, paused in epoch.blocks)
            log.end(epoch, last, last)
        folder = log.close()
        if log.job.rank == 0:
            sys.stderr.write(f"feedrate: {folder}\n")


def _sample_count(batch: Any) -> Optional[int]:
    """Returns the number of samples: the first dimension of a batch or of its first element. None if it is ambiguous."""
    if isinstance(batch, (list, tuple)) and batch:
        first, is_list = batch[0], isinstance(batch, list)
        if isinstance(first, (list, tuple)):
            # A list contains samples; a tuple may contain anything.
            return len(batch) if is_list else None
        shapes = [getattr(element, "shape", None) for element in batch]
        if is_list and len(batch) > 1 and shapes == shapes[:1] * len(batch):
            # The elements may be samples, or inputs and labels of a batch.
            return None
        batch = first
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = next(iter(batch.values()), None)
        if isinstance(batch, list):
            return len(batch)
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) and shape[0] is not None else None


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("feedrate")
    except PackageNotFoundError:
        return "of a checkout"
