"""Watches a training loop of yours: how long each step waited for its batch, and what lay between, into a record that feedrate reads."""

from __future__ import annotations

import atexit
import os
import sys
from array import array
from contextlib import ContextDecorator
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns as clock
from time import time_ns
from typing import Any, Callable, Iterator, Optional, Union

from . import _machine, _record

StrPath = Union[str, "os.PathLike[str]"]

FLUSH_NS = 30_000_000_000
"""The record is written at the end of each epoch, and no more often than this within one."""
FREE_NS = 1_000_000_000
"""From here on writing takes no more than a hundredth of the time: a record of many short epochs grows with each."""


class Watch:
    """An iterable in the place of `loader`; each pass over it is an epoch of the record."""

    def __init__(self, loader: Any, log: "_Log") -> None:
        self._loader = loader
        self._log = log

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        # Not of a copy that is being unpickled.
        if name.startswith("__") or "_loader" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        log = self._log
        epoch = log.begin(self._loader)
        add_load, add_compute = epoch.load.append, epoch.compute.append
        synchronise = log.synchronise()
        hand: list[Any] = []
        steps = 0
        asked = clock()
        epoch.start = asked
        ended = 0
        try:
            iterator = iter(self._loader)
            while True:
                try:
                    batch = next(iterator)
                except StopIteration:
                    ended = clock()
                    break
                got = clock()
                if steps == 0:
                    log.see(batch)
                    # What looking at it takes is not the step's.
                    seen = clock() - got
                    got += seen
                    epoch.start += seen
                    asked += seen
                # Handed over whole, so that a batch is let go where the loop lets it go.
                hand.append(batch)
                batch = None
                yield hand.pop()
                if synchronise is not None:
                    synchronise()
                now = clock()
                add_load(got - asked)
                if epoch.paused:
                    add_compute(now - got - epoch.paused)
                    epoch.end_block(now)
                else:
                    add_compute(now - got)
                asked = now
                steps += 1
                if log.due < now:
                    asked = log.flush_within(epoch, now)
                if steps == 1:
                    # The first step may have been the first to use a GPU.
                    synchronise = log.synchronise()
        finally:
            # A step that was left by `break` or an exception is none.
            log.end(epoch, asked, ended or asked)

    def close(self) -> Path:
        """Say that the training is over, where the process goes on; the folder of the record."""
        return self._log.close()


class _Epoch:
    """Times of one pass, absolute until it is written."""

    def __init__(self, number: int, before: _machine.Counters, loader: Any) -> None:
        self.number = number
        self.loader = loader
        self.before = before
        self.started = _machine.wall()
        self.load, self.compute = array("q"), array("q")
        self.start = 0
        self.thread = get_ident()
        # Steps before the end of each block, and the time between that and the next.
        self.blocks: list[tuple[int, int]] = []
        self.paused = 0
        self.pending: list[tuple[str, int, int]] = []
        self.checkpoints: list[dict[str, Any]] = []

    def end_block(self, now: int) -> None:
        """The checkpoints of a step count behind it, whatever of the step came after them."""
        self.blocks.append((len(self.compute), self.paused))
        at = now - self.paused
        for kind, length, count in self.pending:
            self.checkpoints.append(
                {"kind": kind, "start_ns": at, "end_ns": at + length, "bytes": count, "after_step": len(self.compute)}
            )
            at += length
        self.paused = 0
        self.pending = []

    def as_json(self, origin: int, asked: int, ended: int, after: _machine.Counters) -> dict[str, Any]:
        load, compute = self.load.tolist(), self.compute.tolist()
        blocks, first, at = [], 0, self.start - origin
        for end, paused in [*self.blocks, (len(compute), 0)]:
            part = slice(first, end)
            length = sum(load[part]) + sum(compute[part])
            if first < end:
                blocks.append({"start_ns": at, "end_ns": at + length, "load_ns": load[part], "compute_ns": compute[part]})
            first, at = end, at + length + paused
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
            "end_ns": max(ended - origin, at),
            "started": self.started,
            "ended": _machine.wall(),
            "blocks": blocks,
            "checkpoints": [
                {**one, "start_ns": one["start_ns"] - origin, "end_ns": one["end_ns"] - origin} for one in self.checkpoints
            ],
            "host": host,
            "read_call_bytes": _machine.difference(after.read_call_bytes, before.read_call_bytes),
        }


class _Log:
    """All passes of one loop."""

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
        self.started = _machine.wall()
        self.ended = ""
        self.stopped: Optional[str] = None
        self.synchronised: Optional[bool] = None
        self.loader = ""
        self.kind = ""
        self.workers: Optional[int] = None
        self.in_flight: Optional[int] = None
        self.epochs: list[dict[str, Any]] = []
        self.open: list[_Epoch] = []
        self.begun = 0
        self.due = 0
        self.spent = 0
        self.waiting: list[dict[str, Any]] = []
        self.system: dict[str, Any] = {}
        self.device: Optional[str] = None

    def begin(self, loader: Any) -> _Epoch:
        """Told from the record that is written at once: whoever is killed from now on leaves one that is not whole."""
        if self.job is None:
            self.job = _record.job(self.results, self.name)
            self.system = _machine.system(self.data, self.results)
            self.device = (self.system["data_mount"] or {}).get("device")
            self.look_at(loader)
        self.ended, self.stopped = "", None
        self.begun += 1
        if self.begun == 1:
            self.write([])
        self.due = clock() + FLUSH_NS
        epoch = _Epoch(self.begun, _machine.counters(self.device), loader)
        self.open.append(epoch)
        return epoch

    def look_at(self, loader: Any) -> None:
        """What the loader tells of itself."""
        of = type(loader)
        # A callback has but the name of what takes the batches.
        self.loader = loader if isinstance(loader, str) else f"{of.__module__}.{of.__qualname__}"
        if self.batch is None:
            batch = getattr(loader, "batch_size", None)
            self.batch = batch if isinstance(batch, int) and batch > 0 else None
        if of.__module__.startswith("torch."):
            self.kind = "pytorch"
            workers = getattr(loader, "num_workers", None)
            self.workers = workers if isinstance(workers, int) else None
            factor = getattr(loader, "prefetch_factor", None)
            self.in_flight = self.workers * factor if self.workers and isinstance(factor, int) else None
        elif of.__module__.startswith("tensorflow."):
            self.kind = "tensorflow"

    def see(self, batch: Any) -> None:
        """The first batch of an epoch."""
        if self.batch is None:
            try:
                self.batch = _leading(batch)
            except Exception:  # A batch may be anything; training goes on.
                self.batch = None

    def synchronise(self) -> Optional[Callable[[], Any]]:
        """What waits for the GPU, where there is one in use; not `torch.cuda` itself, which would start to use it."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return None
        self.synchronised = self.synchronises
        return cuda.synchronize if self.synchronises else None

    def flush_within(self, epoch: _Epoch, now: int) -> int:
        """Write meanwhile; what that takes lies outside of all steps, as if the clock had stood still."""
        self.write([epoch.as_json(self.origin, now, now, _machine.counters(self.device))])
        after = clock()
        self.due = after + max(FLUSH_NS, 100 * (after - now))
        self.origin += after - now
        epoch.start += after - now
        for one in epoch.checkpoints:
            one["start_ns"] += after - now
            one["end_ns"] += after - now
        return after

    def end(self, epoch: _Epoch, asked: int, ended: int) -> None:
        if epoch.paused:
            # In a step that was broken off: behind those before it.
            epoch.end_block(asked + epoch.paused)
            ended = max(ended, asked + epoch.paused)
        self.open.remove(epoch)
        if os.getpid() != self.process or sys.is_finalizing():
            return
        if epoch.compute:
            told = epoch.as_json(self.origin, asked, ended, _machine.counters(self.device))
            told["checkpoints"] = self.waiting + told["checkpoints"]
            self.waiting = []
            self.epochs.append(told)
            for number, one in enumerate(self.epochs, 1):
                one["number"] = number
        if self.spent < FREE_NS + (clock() - self.origin) // 100:
            self.write([])

    def checkpoint(self, kind: str, start: int, end: int, count: Optional[int]) -> None:
        """Within a step it is cut out of its compute; between epochs it belongs to the one before. Without its bytes it is not told."""
        # One that another thread saves holds no step up.
        of_thread = [epoch for epoch in self.open if epoch.thread == get_ident()]
        for epoch in of_thread:
            epoch.paused += end - start
            if count is not None:
                epoch.pending.append((kind, end - start, count))
        if not self.open and count is not None:
            steps = sum(len(block["load_ns"]) for block in self.epochs[-1]["blocks"]) if self.epochs else 0
            told = {"kind": kind, "start_ns": start - self.origin, "end_ns": end - self.origin, "bytes": count, "after_step": steps}
            (self.epochs[-1]["checkpoints"] if self.epochs else self.waiting).append(told)

    def close(self) -> Path:
        if self.job is None:
            raise RuntimeError("nothing was watched: the loop has not begun")
        if not self.ended:
            self.ended = _machine.wall()
            self.write([])
        return self.job.folder

    def write(self, more: list[dict[str, Any]]) -> None:
        """Training goes on where the record cannot be written, with a word about it."""
        assert self.job is not None
        if os.getpid() != self.process:
            return
        begun = clock()
        part = {
            "program": f"feedrate.watch {_version()}",
            "rank": self.job.rank,
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
            "stopped_because": self.stopped,
            "monotonic_ns": self.origin,
            "wall_ns": self.origin_wall,
            "epochs": self.epochs + more,
        }
        try:
            _record.write(self.job, part)
        except OSError as error:
            sys.stderr.write(f"feedrate: cannot write the record in `{self.job.folder}`: {error}\n")
        self.spent += clock() - begun


class checkpoint(ContextDecorator):
    """`with feedrate.checkpoint(): torch.save(…)`, or as a decorator of what saves: its time is no compute, and stands in the record.

    Its bytes are those that this process gave to write calls meanwhile; with `kind="load"`, those that its read calls returned.
    """

    def __init__(self, kind: str = "save") -> None:
        if kind not in ("save", "load"):
            raise ValueError(f"no checkpoint is called `{kind}`\n  hint: save or load")
        self._kind = kind
        self._counted = _machine.written_bytes if kind == "save" else _machine.read_bytes
        self._begun: list[tuple[int, Optional[int]]] = []

    def __enter__(self) -> "checkpoint":
        self._begun.append((clock(), self._counted()))
        return self

    def __exit__(self, *_: Any) -> None:
        start, before = self._begun.pop()
        count = _machine.difference(self._counted(), before)
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
    """Iterate over this instead of `loader`: `for batch in feedrate.watch(loader):`. Each pass is an epoch of one record.

    The record lies in `results/NAME/…`, for `feedrate show`, `compare`, `analyze` and `report`. Loops of one place in a script, or of one
    `name`, share it. `batch` is the samples of a batch, where neither the loader nor the first batch tells; `data` the folder of the
    dataset, whose storage is recorded then. Where a GPU is in use each step waits for it before its end is timed, unless
    `synchronise` is False. Several ranks, of torch.distributed or a launcher, write one record.
    """
    frame = sys._getframe(1)
    return Watch(loader, _log(name, (frame.f_code.co_filename, frame.f_lineno), results, batch, data, synchronise))


_LOGS: dict[Any, _Log] = {}


def _log(
    name: Optional[str], place: tuple[str, int], results: StrPath, batch: Optional[int], data: Optional[StrPath], synchronise: bool
) -> _Log:
    """Of a loop that was not watched before a new one."""
    key = (name, os.fspath(results)) if name else place
    log = _LOGS.get(key)
    # A fork's own loops are no part of its parent's.
    if log is None or log.process != os.getpid():
        if not _LOGS:
            atexit.register(_finish)
            sys.excepthook = _told(sys.excepthook)
        if name is None:
            script = Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else place[0]).stem
            taken = sum(1 for other in _LOGS if isinstance(other[1], int))
            name = (script.strip("<>") or "watched") + (f"-{taken + 1}" if taken else "")
        log = _LOGS[key] = _Log(name, Path(results), batch, data, synchronise)
    log.batch, log.data = log.batch or batch, log.data or data
    return log


def _told(before: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that remembers what ended the script, and leaves the telling to the one before."""

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        why = "interrupted" if issubclass(kind, KeyboardInterrupt) else " ".join(f"{kind.__name__}: {error}".split())[:200]
        for log in _LOGS.values():
            log.stopped = log.stopped or why
        before(kind, error, trace)

    return hook


def _finish() -> None:
    for log in _LOGS.values():
        if log.job is None or log.ended or log.process != os.getpid():
            continue
        for epoch in list(log.open):
            # Held by the trace of what ended the script: its last step is none.
            last = epoch.start + sum(epoch.load) + sum(epoch.compute) + sum(paused for _, paused in epoch.blocks)
            log.end(epoch, last, last)
        log.ended = _machine.wall()
        log.write([])
        if log.job.rank == 0:
            sys.stderr.write(f"feedrate: {log.job.folder}\n")


def _leading(batch: Any) -> Optional[int]:
    """The first dimension of a batch, or of the first thing in it; None where that may be no number of samples."""
    if isinstance(batch, (list, tuple)) and batch:
        first, is_list = batch[0], isinstance(batch, list)
        if isinstance(first, (list, tuple)):
            # A list of samples; a tuple may be one of anything.
            return len(batch) if is_list else None
        shapes = [getattr(one, "shape", None) for one in batch]
        if is_list and len(batch) > 1 and shapes == shapes[:1] * len(batch):
            # Samples, or parts of a batch.
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
