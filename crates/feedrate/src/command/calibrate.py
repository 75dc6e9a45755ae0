"""Times what a PyTorch DataLoader costs its processes on cached data, for `feedrate calibrate`; run by the user's Python. Costs go as JSON to the file that is named. Costs of workers are processor time, so that others on the
machine hardly change them; what the main process waits for a batch that is there is time on the clock.
"""

import importlib
import inspect
import json
import os
import statistics
import sys
import tempfile
import time
from functools import partial

try:
    from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate, get_worker_info
except ImportError as error:
    sys.exit(f"{sys.executable} has no PyTorch: {error}\n  hint: name the Python of your training with --python")

VARIED = 0.1
"""Sizes differ from here on, as their standard deviation over their mean: a cost by the byte can be told from one by the sample."""
LARGE_BYTES = 256 << 10
"""Samples of one size cost by the byte from here on, else by the sample."""
FIRST = 3
"""Batches of each worker that begin a pass: its memory has yet to grow."""
ENOUGH = 5
"""Batches of each worker that a mean is of, at least."""

BUSY, IDLE = 1.2, 1.5
"""Pauses between two batches: as multiples of what all workers together take for one, so that some are at work on others when one is asked for,
and of what one worker takes, so that none is."""
PAUSES = 3
"""Longer pauses that are tried, until batches are there before they are asked for."""

HEAD_BYTES = 64
"""Enough of /proc/self/io for its first number, and less than all of it."""


class Probe:
    """Writes what each sample and each batch took in its worker. A row: samples, bytes read, in `__getitem__`, in all."""

    def __init__(self, folder, batch):
        self.folder, self.batch = folder, batch
        self.file = None

    def start(self):
        self.file = open(os.path.join(self.folder, str(os.getpid())), "w", buffering=1)
        self.io = os.open("/proc/self/io", os.O_RDONLY)
        self.before = time.process_time_ns()
        self.samples, self.read, self.get, self.own = 0, 0, 0, 0

    def read_bytes(self):
        """Of this process so far, this reading itself not yet among them."""
        return int(os.pread(self.io, HEAD_BYTES, 0).split(None, 2)[1])

    def sample(self, get):
        if self.file is None:
            self.start()
        if self.samples == self.batch:
            # Behind the batch before: it has been handed over, or is being so by another thread.
            self.end_batch()
        asked = time.thread_time_ns()
        read = self.read_bytes()
        begun = time.thread_time_ns()
        try:
            return get()
        finally:
            ended = time.thread_time_ns()
            self.samples += 1
            self.get += ended - begun
            self.read += self.read_bytes() - read - HEAD_BYTES
            self.own += begun - asked + time.thread_time_ns() - ended

    def end_batch(self):
        now = time.process_time_ns()
        row = [self.samples, self.read, self.get, now - self.before - self.own]
        self.file.write(json.dumps(row) + "\n")
        self.before = time.process_time_ns()
        self.samples, self.read, self.get, self.own = 0, 0, 0, 0


class Watched(Dataset):
    """The samples of some indices of a dataset, over and over."""

    def __init__(self, dataset, indices, count, probe):
        self.dataset, self.indices, self.count, self.probe = dataset, indices, count, probe

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.probe.sample(partial(self.dataset.__getitem__, self.indices[index % len(self.indices)]))


class WatchedStream(IterableDataset):
    """The samples of a dataset that is iterated, again where it ends."""

    def __init__(self, dataset, count, probe):
        self.dataset, self.count, self.probe = dataset, count, probe

    def __iter__(self):
        worker = get_worker_info()
        left = self.count // (worker.num_workers if worker else 1)
        while left > 0:
            samples, before = iter(self.dataset), left
            while left > 0:
                try:
                    yield self.probe.sample(partial(next, samples))
                except StopIteration:
                    break
                left -= 1
            if left == before:
                return


class Measured:
    """What one pass over a loader showed."""

    def __init__(self, rows, batches, waits, start, late=0):
        self.rows, self.batches, self.waits, self.start, self.late = rows, batches, waits, start, late

    def bytes(self):
        return middle(row[1] for row in self.rows)

    def all(self):
        return middle(row[3] for row in self.rows) / 1e9

    def get(self):
        """Its share of all: middles of parts are not together the middle of the whole."""
        get, rest = middle(row[2] for row in self.rows), middle(row[3] - row[2] for row in self.rows)
        return self.all() * get / (get + rest) if get else 0.0

    def rest(self):
        return self.all() - self.get()

    def wait(self):
        return middle(self.waits)


def middle(values):
    """Mean without the tenth at either end: a loop takes as long as its batches do in the mean, and a few of them others disturb."""
    values = sorted(enough(values))
    ends = len(values) // 10
    return statistics.fmean(values[ends : len(values) - ends])


def enough(values):
    """As they are, if there are any."""
    values = list(values)
    return values or sys.exit("the dataset is too short to be timed\n  hint: it needs some ten batches; take a smaller --batch")


class Job:
    """The user's loader, or a plain one around the user's dataset."""

    def __init__(self, made, batch, workers):
        told = made if isinstance(made, DataLoader) else None
        self.dataset = told.dataset if told else made
        self.batch = batch or (told and told.batch_size) or 32
        # A part of what starting takes does not grow with the workers: two are near to few and to several.
        self.workers = workers or (told and told.num_workers) or 2
        self.persistent = bool(told and told.persistent_workers)
        self.options = {"collate_fn": default_collate}
        if told:
            self.options = {"collate_fn": told.collate_fn, "pin_memory": told.pin_memory, "worker_init_fn": told.worker_init_fn}
            self.options["multiprocessing_context"] = told.multiprocessing_context
        self.streams = isinstance(self.dataset, IterableDataset)
        self.indices = None if self.streams else list(range(min(len(self.dataset), 1 << 20)))
        if self.indices == []:
            sys.exit("the dataset is empty")

    def loader(self, folder, batch, workers, batches):
        count, probe = batches * batch, Probe(folder, batch)
        watched = WatchedStream(self.dataset, count, probe) if self.streams else Watched(self.dataset, self.indices, count, probe)
        return DataLoader(watched, batch_size=batch, num_workers=workers, **self.options)

    def measure(self, batch, workers, seconds, pause=0.0, batches=1 << 20):
        """A pass of `seconds`, or of so many batches; `pause` seconds lie between two."""
        with tempfile.TemporaryDirectory() as folder:
            loader = self.loader(folder, batch, workers, batches)
            asked = time.perf_counter()
            iterator = iter(loader)
            waits, late, begun, held = [], [], None, None
            # Where torch keeps what workers have handed over.
            handed_over = getattr(iterator, "_data_queue", None)
            least = min(batches, (FIRST + ENOUGH) * workers)
            while len(waits) < least or time.perf_counter() - begun < seconds:
                late.append(handed_over is not None and handed_over.empty())
                before = time.perf_counter()
                got = next(iterator, None)
                if got is None:
                    break
                # The batch before is let go here, as in a loop.
                held = got
                del got
                waits.append(time.perf_counter() - before)
                begun = begun or time.perf_counter()
                if pause:
                    time.sleep(pause)
            del held, iterator
            rows = []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    lines = [line for line in file if line.endswith("\n")]
                rows += [json.loads(line) for line in lines[FIRST:] or lines[1:]]
            measured = slice(FIRST * workers, None)
            return Measured(rows, len(waits), waits[measured], begun - asked if begun else None, sum(late[measured]))

    def warm(self, seconds):
        """Read what a pass of that time gets through once, and keep to it: how many samples."""
        with tempfile.TemporaryDirectory() as folder:
            begun, samples = time.perf_counter(), 0
            rounds = -(-len(self.indices) // self.batch) if self.indices else 1 << 20
            for _ in self.loader(folder, self.batch, 1, rounds):
                samples += self.batch
                if time.perf_counter() - begun > seconds and samples >= 4 * self.batch:
                    break
        if self.indices:
            self.indices = self.indices[:samples]
        return min(samples, len(self.indices or range(samples)))


def line(one, other):
    """Through two points (bytes, seconds): a cost of the whole and one by the byte, neither below 0."""
    (few, small), (many, large) = sorted([one, other])
    if many <= 0:
        return large, 0.0
    slope = (large - small) / (many - few) if many > few else 0.0
    if slope <= 0:
        return large, 0.0
    return (large - slope * many, slope) if large > slope * many else (0.0, large / many)


def by_sample_and_byte(own, batch):
    """Of `__getitem__`: seconds by the sample, by the byte, and whether the sizes told the two apart. Together what it takes for a batch."""
    read = [row[1] / row[0] for row in own.rows]
    mean, seconds = statistics.fmean(read), own.get() / batch
    if mean > 0 and statistics.pstdev(read) * batch**0.5 > VARIED * mean:
        slope, fixed = statistics.linear_regression(read, [row[2] / row[0] for row in own.rows])
        if slope > 0 and fixed >= 0:
            scale = seconds / (fixed + slope * mean)
            return fixed * scale, slope * scale, True
    return (0.0, seconds / mean, False) if mean >= LARGE_BYTES else (seconds, 0.0, False)


def paced(measure, pause):
    """A pass with pauses after which batches are there. On a machine that has become slower they are not there at first."""
    found = measure(pause)
    for _ in range(PAUSES):
        if found.late <= len(found.waits) / 10:
            break
        pause *= 1.5
        found = measure(pause)
    return found


def calibrated(job, seconds):
    share = seconds / 9
    samples = job.warm(2 * share)
    own = job.measure(job.batch, job.workers, 2 * share)
    few = max(1, job.batch // 4)
    small = job.measure(few, job.workers, share)
    others = 1 if job.workers > 1 else 2
    other = job.measure(job.batch, others, share)
    # Batches are there before they are asked for. First workers are at work on others, as in a loop that they nearly hold up: cores, memory and
    # the interpreter's lock are contended. Then none is.
    busy = paced(partial(job.measure, job.batch, job.workers, share), BUSY * own.wait())
    busy_small = paced(partial(job.measure, few, job.workers, share), BUSY * small.wait())
    idle = paced(partial(job.measure, job.batch, job.workers, share), IDLE * job.workers * own.wait())
    start = starts(job, own) if not job.persistent else None
    per_sample, per_byte, told_apart = by_sample_and_byte(own, job.batch)
    per_batch, hand_over = line((own.bytes(), own.rest()), (small.bytes(), small.rest()))
    # Whoever has slept for long takes longer.
    idle_share = idle.wait() / busy.wait()
    receive, receive_byte = line((busy.bytes(), busy.wait()), (busy_small.bytes(), busy_small.wait()))
    return {
        "client": {
            "per_sample": per_sample,
            "per_byte": per_byte,
            "per_batch": per_batch,
            "handover_bytes_per_second": 1 / hand_over if hand_over else None,
            "receive_per_batch": receive * max(1.0, idle_share),
            "receive_per_byte": receive_byte * max(1.0, idle_share),
            "receive_wait_share": max(0.0, 1 - idle_share),
            "start_per_epoch": start,
        },
        "told_apart": told_apart,
        "samples": samples,
        "sample_bytes": own.bytes() / job.batch,
        "batch_size": job.batch,
        "workers": job.workers,
        "batches": own.batches,
        "batch_cpu_seconds": {str(job.workers): own.all(), str(others): other.all()},
    }


def starts(job, own):
    """From the start of an epoch to its first batch, beyond what a batch takes; shared out among the workers."""
    several = [job.measure(job.batch, job.workers, 0.0, batches=2 * job.workers).start for _ in range(9)]
    return max(0.0, statistics.median(several) - own.all()) / job.workers


def main():
    script, function, batch, workers, seconds, out = sys.argv[1:]
    # The training's own words are no answer.
    os.dup2(2, 1)
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    module = importlib.import_module(os.path.splitext(os.path.basename(script))[0])
    make = getattr(module, function, None)
    if not callable(make):
        own = [name for name, of in vars(module).items() if inspect.isfunction(of) and of.__module__ == module.__name__]
        there = f"name one of {', '.join(own)}" if own else "write one"
        sys.exit(f"`{script}` has no function `{function}`\n  hint: {there}; it takes no arguments and returns your Dataset or DataLoader")
    made = make()
    if not isinstance(made, DataLoader) and not hasattr(made, "__getitem__") and not isinstance(made, IterableDataset):
        sys.exit(f"`{function}` returned {type(made).__name__}\n  hint: let it return a Dataset or a DataLoader of PyTorch")
    told = calibrated(Job(made, int(batch), int(workers)), float(seconds))
    with open(out, "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        sys.exit(f"`{sys.argv[0]}` needs `{error.name}`, which {sys.executable} has not\n  hint: name the Python of your training with --python, or install it there")
