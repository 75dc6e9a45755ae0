"""Measures the costs of a PyTorch DataLoader on cached data, for `feedrate calibrate`. It runs in the user's Python and writes the costs as JSON
to the named file. Costs of workers are processor time, which other load on the machine hardly changes. The time in which the main process
receives a finished batch is wall-clock time.
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
    sys.exit(f"{sys.executable} has no PyTorch: {error}\n  hint: give the Python of your training by --python")

SIZE_VARIATION_MIN = 0.1
"""Minimum ratio of standard deviation to mean of the sample sizes for separating the costs per sample and per byte."""
LARGE_BYTES = 256 << 10
"""Samples of equal size have a cost per byte if they have at least this many bytes, otherwise a cost per sample."""
SKIPPED_BATCHES = 3
"""Number of batches of each worker that are left out at the start of a pass, while the worker's memory grows."""
BATCHES_MIN = 5
"""Minimum number of batches of each worker for a mean."""

BUSY_FACTOR, IDLE_FACTOR = 1.2, 1.5
"""Lengths of the pause between two batches. BUSY_FACTOR is relative to the time in which all workers together finish one batch: some workers are
busy when the next batch is requested. IDLE_FACTOR is relative to the time of one worker: all workers are idle by then."""
RETRIES_MAX = 3
"""Maximum number of passes that are repeated with a longer pause, because batches were not ready when requested."""

HEAD_BYTES = 64
"""Bytes to read of /proc/self/io: enough for its first number, less than the whole file."""


class Probe:
    """Writes a row per batch of a worker: samples, bytes read, processor time in `__getitem__`, processor time in total (ns)."""

    def __init__(self, folder, batch):
        self.folder, self.batch = folder, batch
        self.file = None

    def start(self):
        self.file = open(os.path.join(self.folder, str(os.getpid())), "w", buffering=1)
        self.io = os.open("/proc/self/io", os.O_RDONLY)
        self.before = time.process_time_ns()
        self.samples, self.read, self.get, self.overhead = 0, 0, 0, 0

    def read_bytes(self):
        """Bytes that this process has read so far, without this read."""
        return int(os.pread(self.io, HEAD_BYTES, 0).split(None, 2)[1])

    def sample(self, get):
        if self.file is None:
            self.start()
        if self.samples == self.batch:
            # The previous batch has been handed over, or another thread is doing so.
            self.end_batch()
        before = time.thread_time_ns()
        read = self.read_bytes()
        start = time.thread_time_ns()
        try:
            return get()
        finally:
            end = time.thread_time_ns()
            self.samples += 1
            self.get += end - start
            self.read += self.read_bytes() - read - HEAD_BYTES
            self.overhead += start - before + time.thread_time_ns() - end

    def end_batch(self):
        now = time.process_time_ns()
        row = [self.samples, self.read, self.get, now - self.before - self.overhead]
        self.file.write(json.dumps(row) + "\n")
        self.before = time.process_time_ns()
        self.samples, self.read, self.get, self.overhead = 0, 0, 0, 0


class ProbedDataset(Dataset):
    """Repeats the samples at `indices` of a dataset, and times each."""

    def __init__(self, dataset, indices, count, probe):
        self.dataset, self.indices, self.count, self.probe = dataset, indices, count, probe

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.probe.sample(partial(self.dataset.__getitem__, self.indices[index % len(self.indices)]))


class ProbedStream(IterableDataset):
    """Repeats the samples of an iterable dataset, and times each."""

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


class PassTimes:
    """Measurements of one pass over a loader, per batch."""

    def __init__(self, rows, batches, waits, start, late=0):
        self.rows, self.batches, self.waits, self.start, self.late = rows, batches, waits, start, late

    def bytes(self):
        return trimmed_mean(row[1] for row in self.rows)

    def total(self):
        return trimmed_mean(row[3] for row in self.rows) / 1e9

    def getitem(self):
        """Time in `__getitem__`. It is scaled, since the trimmed means of the parts do not add up to the trimmed mean of the total."""
        get, rest = trimmed_mean(row[2] for row in self.rows), trimmed_mean(row[3] - row[2] for row in self.rows)
        return self.total() * get / (get + rest) if get else 0.0

    def rest(self):
        return self.total() - self.getitem()

    def wait(self):
        return trimmed_mean(self.waits)


def trimmed_mean(values):
    """Mean without the lowest and highest tenth: the mean determines the time of a loop, and other load disturbs a few batches."""
    values = sorted(require_values(values))
    ends = len(values) // 10
    return statistics.fmean(values[ends : len(values) - ends])


def require_values(values):
    """The values as a list. Exits if there are none."""
    values = list(values)
    return values or sys.exit("the dataset is too short to be measured\n  hint: it needs about ten batches; give a smaller --batch")


class Job:
    """The user's loader, or a plain one around the user's dataset."""

    def __init__(self, made, batch, workers):
        loader = made if isinstance(made, DataLoader) else None
        self.dataset = loader.dataset if loader else made
        self.batch = batch or (loader and loader.batch_size) or 32
        # Starting has a fixed cost and one per worker: two workers are representative of few and of several.
        self.workers = workers or (loader and loader.num_workers) or 2
        self.persistent = bool(loader and loader.persistent_workers)
        self.options = {"collate_fn": default_collate}
        if loader:
            self.options = {"collate_fn": loader.collate_fn, "pin_memory": loader.pin_memory, "worker_init_fn": loader.worker_init_fn}
            self.options["multiprocessing_context"] = loader.multiprocessing_context
        self.streams = isinstance(self.dataset, IterableDataset)
        self.indices = None if self.streams else list(range(min(len(self.dataset), 1 << 20)))
        if self.indices == []:
            sys.exit("the dataset is empty")

    def loader(self, folder, batch, workers, batches):
        count, probe = batches * batch, Probe(folder, batch)
        watched = ProbedStream(self.dataset, count, probe) if self.streams else ProbedDataset(self.dataset, self.indices, count, probe)
        return DataLoader(watched, batch_size=batch, num_workers=workers, **self.options)

    def measure(self, batch, workers, seconds, pause=0.0, batches=1 << 20):
        """Makes a pass that ends after `seconds` or `batches`, whichever comes first, with `pause` seconds between two batches."""
        with tempfile.TemporaryDirectory() as folder:
            loader = self.loader(folder, batch, workers, batches)
            created = time.perf_counter()
            iterator = iter(loader)
            waits, late, first, previous = [], [], None, None
            # PyTorch's queue of finished batches.
            finished = getattr(iterator, "_data_queue", None)
            minimum = min(batches, (SKIPPED_BATCHES + BATCHES_MIN) * workers)
            while len(waits) < minimum or time.perf_counter() - first < seconds:
                late.append(finished is not None and finished.empty())
                before = time.perf_counter()
                batch_data = next(iterator, None)
                if batch_data is None:
                    break
                # The previous batch is freed here, as in a training loop.
                previous = batch_data
                del batch_data
                waits.append(time.perf_counter() - before)
                first = first or time.perf_counter()
                if pause:
                    time.sleep(pause)
            del previous, iterator
            rows = []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    lines = [line for line in file if line.endswith("\n")]
                rows += [json.loads(line) for line in lines[SKIPPED_BATCHES:] or lines[1:]]
            measured = slice(SKIPPED_BATCHES * workers, None)
            return PassTimes(rows, len(waits), waits[measured], first - created if first else None, sum(late[measured]))

    def warm(self, seconds):
        """Reads samples for `seconds` to bring them into memory, uses only these from now on, and returns their number."""
        with tempfile.TemporaryDirectory() as folder:
            start, samples = time.perf_counter(), 0
            rounds = -(-len(self.indices) // self.batch) if self.indices else 1 << 20
            for _ in self.loader(folder, self.batch, 1, rounds):
                samples += self.batch
                if time.perf_counter() - start > seconds and samples >= 4 * self.batch:
                    break
        if self.indices:
            self.indices = self.indices[:samples]
        return min(samples, len(self.indices or range(samples)))


def fit_line(first, second):
    """Fits a line through two points (bytes, seconds). Returns a fixed cost and a cost per byte, both at least 0."""
    (few, small), (many, large) = sorted([first, second])
    if many <= 0:
        return large, 0.0
    slope = (large - small) / (many - few) if many > few else 0.0
    if slope <= 0:
        return large, 0.0
    return (large - slope * many, slope) if large > slope * many else (0.0, large / many)


def getitem_costs(measured, batch):
    """Costs of `__getitem__`: seconds per sample, seconds per byte, and whether the two were separated. Together they give its time per batch."""
    read = [row[1] / row[0] for row in measured.rows]
    mean, seconds = statistics.fmean(read), measured.getitem() / batch
    if mean > 0 and statistics.pstdev(read) * batch**0.5 > SIZE_VARIATION_MIN * mean:
        slope, fixed = statistics.linear_regression(read, [row[2] / row[0] for row in measured.rows])
        if slope > 0 and fixed >= 0:
            scale = seconds / (fixed + slope * mean)
            return fixed * scale, slope * scale, True
    return (0.0, seconds / mean, False) if mean >= LARGE_BYTES else (seconds, 0.0, False)


def measure_ready_batches(measure, pause):
    """Makes a pass in which batches are ready when requested. Repeats it with a longer pause if the machine has become too slow for that."""
    found = measure(pause)
    for _ in range(RETRIES_MAX):
        if found.late <= len(found.waits) / 10:
            break
        pause *= 1.5
        found = measure(pause)
    return found


def calibrate(job, seconds):
    share = seconds / 9
    samples = job.warm(2 * share)
    full = job.measure(job.batch, job.workers, 2 * share)
    few = max(1, job.batch // 4)
    small = job.measure(few, job.workers, share)
    others = 1 if job.workers > 1 else 2
    other = job.measure(job.batch, others, share)
    # Batches are ready before they are requested. In `busy`, workers prepare further batches at the same time and compete for cores, memory and
    # the interpreter's lock, as in a loop that the loader almost limits. In `idle`, the workers do nothing.
    busy = measure_ready_batches(partial(job.measure, job.batch, job.workers, share), BUSY_FACTOR * full.wait())
    busy_small = measure_ready_batches(partial(job.measure, few, job.workers, share), BUSY_FACTOR * small.wait())
    idle = measure_ready_batches(partial(job.measure, job.batch, job.workers, share), IDLE_FACTOR * job.workers * full.wait())
    start = worker_start_s(job, full) if not job.persistent else None
    per_sample, per_byte, separated = getitem_costs(full, job.batch)
    per_batch, hand_over = fit_line((full.bytes(), full.rest()), (small.bytes(), small.rest()))
    # After a long sleep, a process needs more time to receive a batch.
    idle_share = idle.wait() / busy.wait()
    receive, receive_byte = fit_line((busy.bytes(), busy.wait()), (busy_small.bytes(), busy_small.wait()))
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
        "told_apart": separated,
        "samples": samples,
        "sample_bytes": full.bytes() / job.batch,
        "batch_size": job.batch,
        "workers": job.workers,
        "batches": full.batches,
        "batch_cpu_seconds": {str(job.workers): full.total(), str(others): other.total()},
    }


def worker_start_s(job, measured):
    """Time per worker from the start of an epoch to its first batch, without the time to prepare the batch."""
    several = [job.measure(job.batch, job.workers, 0.0, batches=2 * job.workers).start for _ in range(9)]
    return max(0.0, statistics.median(several) - measured.total()) / job.workers


def main():
    script, function, batch, workers, seconds, out = sys.argv[1:]
    # The script's own output goes to stderr.
    os.dup2(2, 1)
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    module = importlib.import_module(os.path.splitext(os.path.basename(script))[0])
    make = getattr(module, function, None)
    if not callable(make):
        names = [name for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]
        choice = f"give one of {', '.join(names)}" if names else "write one"
        sys.exit(f"`{script}` has no function `{function}`\n  hint: {choice}; it takes no arguments and returns your Dataset or DataLoader")
    made = make()
    if not isinstance(made, DataLoader) and not hasattr(made, "__getitem__") and not isinstance(made, IterableDataset):
        sys.exit(f"`{function}` returned {type(made).__name__}\n  hint: return a Dataset or a DataLoader of PyTorch")
    result = calibrate(Job(made, int(batch), int(workers)), float(seconds))
    with open(out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        sys.exit(f"`{sys.argv[0]}` needs `{error.name}`, which is not installed in {sys.executable}\n  hint: give the Python of your training by --python, or install the module")
