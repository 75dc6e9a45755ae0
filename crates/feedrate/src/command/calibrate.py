"""Measures the costs of a PyTorch DataLoader on cached data, for `feedrate calibrate`. It runs in the user's Python and writes the costs as JSON
to the named file. Costs of workers are processor time, which other load on the machine hardly changes. The time in which the main process
receives a finished batch is wall-clock time.
"""

import ast
import difflib
import importlib
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
import traceback
from functools import partial


def refuse(message, hint):
    """Ends the process after writing what the user can correct, for the program that started this one."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refusal"), "w") as file:
        json.dump({"message": message, "hint": hint}, file)
    sys.exit(1)


def refuse_unknown_function(script, function):
    """Refuses a name that the script does not define. The script is not imported, since its imports may take long."""
    with open(script, "rb") as file:
        try:
            statements = ast.parse(file.read(), script).body
        except SyntaxError:
            # The import reports it.
            return
    nested = (ast.If, ast.Try, ast.With, ast.ImportFrom, ast.Import, ast.Assign, ast.AnnAssign)
    names = [node.name for node in statements if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    # Other statements may define the name too.
    if function in names or any(isinstance(node, nested) and re.search(rf"\b{re.escape(function)}\b|\*", ast.unparse(node)) for node in statements):
        return
    functions = [node.name for node in statements if isinstance(node, ast.FunctionDef)]
    close = difflib.get_close_matches(function, functions, 1) or functions[:1] * (len(functions) == 1)
    choice = f"give one of {', '.join(functions)}" if functions else "write one"
    advice = f"{choice}; it takes no arguments and returns your Dataset or DataLoader"
    refuse(f"`{script}` has no function `{function}`", f"did you mean `{close[0]}`?" if close else advice)


if __name__ == "__main__":
    refuse_unknown_function(*sys.argv[1:3])

try:
    from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate, get_worker_info
except ImportError as import_error:
    refuse(f"{sys.executable} has no PyTorch: {import_error}", "give the Python of your training by `--python`")

SIZE_VARIATION_MIN = 0.1
"""Minimum ratio of standard deviation to mean of the sample sizes for separating the costs per sample and per byte."""
LARGE_BYTES = 256 << 10
"""Samples of equal size have a cost per byte if they have at least this many bytes, otherwise a cost per sample."""
SKIPPED_BATCHES = 3
"""Number of batches of each worker that are left out after its start, while its memory grows."""
BATCHES_MIN = 5
"""Number of batches of each worker that a phase should measure. Batches are made smaller for that."""
RECEIVED_MIN = 3
"""Minimum number of batches of a phase, however long it takes."""

BUSY_FACTOR, IDLE_FACTOR = 1.2, 1.5
"""Lengths of the pause between two batches. BUSY_FACTOR is relative to the time in which all workers together finish one batch: some workers are
busy when the next batch is requested. IDLE_FACTOR is relative to the time of one worker: all workers are idle by then."""
LATE_FACTOR = 1.1
"""Factor for the pause after a batch that was not ready when requested."""

GROWTH_MIN = 1.05
"""Minimum ratio of a worker's costs with more and with fewer workers that is taken for contention."""
CROWDED_GROWTH_MIN = 1.25
"""The same if the machine has no cores for more workers than the job has."""
SATURATED_GAIN_MAX = 0.2
"""Maximum gain of rate from more workers, relative to a proportional gain, for workers that are saturated."""
KNEE = 6.0
"""Exponent of the transition between workers that are independent and workers that are limited by a shared rate: 1 / rate ** KNEE is the sum of those of
both. From simulated loops."""
OTHER_LOAD_MAX = 0.1
"""Share of the machine's cores that other processes may use."""

PHASES = {"warm": 1.5, "one": 1.5, "full": 3.0, "busy": 2.0, "idle": 1.5, "small": 1.2, "small_busy": 1.2, "double": 1.8}
"""The phases of a calibration with their shares of the time."""

HEAD_BYTES = 64
"""Bytes to read of /proc/self/io: enough for its first number, less than the whole file."""


class Probe:
    """Writes a row per batch of a worker: samples, bytes read, processor time in `__getitem__`, processor time in total, start of the batch (ns)."""

    def __init__(self, folder, batch):
        self.folder, self.batch = folder, batch
        self.file = None

    def start(self):
        self.file = open(os.path.join(self.folder, str(os.getpid())), "w", buffering=1)
        self.io = os.open("/proc/self/io", os.O_RDONLY)
        self.begin_batch()

    def begin_batch(self):
        self.start_ns, self.before = time.perf_counter_ns(), time.process_time_ns()
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
        row = [self.samples, self.read, self.get, now - self.before - self.overhead, self.start_ns]
        self.file.write(json.dumps(row) + "\n")
        self.begin_batch()


class ProbedDataset(Dataset):
    """Times each sample of a dataset."""

    def __init__(self, dataset, probe):
        self.dataset, self.probe = dataset, probe

    def __getitem__(self, index):
        return self.probe.sample(partial(self.dataset.__getitem__, index))


class ProbedStream(IterableDataset):
    """Repeats the samples of an iterable dataset, and times each. Once `limit` is set, each worker repeats this number of samples."""

    def __init__(self, dataset, limit, probe):
        self.dataset, self.limit, self.probe = dataset, limit, probe

    def __iter__(self):
        while True:
            samples, count = iter(self.dataset), 0
            while not self.limit.value or count < self.limit.value:
                try:
                    yield self.probe.sample(partial(next, samples))
                except StopIteration:
                    break
                count += 1
            if count == 0:
                return


class RepeatedIndices:
    """The indices of a dataset in order, repeated. Once `limit` is set, only this number of them."""

    def __init__(self, count, limit):
        self.count, self.limit = count, limit

    def __iter__(self):
        index = 0
        while True:
            yield index
            index = (index + 1) % min(self.count, self.limit.value or self.count)


class PhaseTimes:
    """Measurements of one phase: rows of the workers, times for receiving a batch, the number of received batches, and the processor time per batch of
    the thread that pins them, if there is one."""

    def __init__(self, rows, waits, received=0, pinned_s=None):
        self.rows, self.waits, self.received, self.pinned_s = rows, waits, received, pinned_s

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
    return values or refuse("too few batches were measured", "give a longer `--time` or a smaller `--batch`; the dataset needs about ten batches")


def batch_size(loader):
    """The samples of a batch, from the loader or its sampler of batches."""
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return size or refuse("the number of samples in a batch of the DataLoader is unknown", "give `--batch`")


class Job:
    """The user's loader, or a plain one around the user's dataset."""

    def __init__(self, made, batch, workers):
        loader = made if isinstance(made, DataLoader) else None
        self.dataset = loader.dataset if loader else made
        self.batch = batch or (batch_size(loader) if loader else 32)
        # Starting has a fixed cost and one per worker: two workers are representative of few and of several.
        if loader and not workers and loader.num_workers == 0:
            refuse("the DataLoader has no workers, so that the training waits while it prepares each batch", "give it workers, or measure it with `--workers 2`")
        self.workers = workers or (loader.num_workers if loader else 2)
        self.prefetch_factor = getattr(loader, "prefetch_factor", None)
        self.persistent = bool(loader and loader.persistent_workers)
        self.options = {"collate_fn": default_collate}
        if loader:
            self.options = {"collate_fn": loader.collate_fn, "pin_memory": loader.pin_memory, "worker_init_fn": loader.worker_init_fn}
            self.options["multiprocessing_context"] = loader.multiprocessing_context
        self.streams = isinstance(self.dataset, IterableDataset)
        # The number of samples that were brought into memory; 0 while it is unknown.
        self.limit = multiprocessing.RawValue("q", 0)
        self.samples = None if self.streams else len(self.dataset)
        if self.samples == 0:
            refuse("the dataset is empty", "return a Dataset or a DataLoader with samples")

    def loader(self, folder, batch, workers):
        probe = Probe(folder, batch)
        if self.streams:
            return DataLoader(ProbedStream(self.dataset, self.limit, probe), batch_size=batch, num_workers=workers, **self.options)
        sampler = RepeatedIndices(self.samples, self.limit)
        return DataLoader(ProbedDataset(self.dataset, probe), batch_size=batch, sampler=sampler, num_workers=workers, **self.options)


class Workers:
    """Workers that make batches until they are closed. Several phases may be measured with the same workers."""

    def __init__(self, job, batch, workers):
        self.batch, self.workers = batch, workers
        self.folder = tempfile.TemporaryDirectory()
        self.created = time.perf_counter()
        self.iterator = iter(job.loader(self.folder.name, batch, workers))
        # PyTorch's queue of finished batches.
        self.finished = getattr(self.iterator, "_data_queue", None)
        self.pinning = getattr(self.iterator, "_pin_memory_thread", None)
        # Seconds from the start to the first batch.
        self.first_s = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.iterator
        self.folder.cleanup()

    def pinning_s(self):
        return time.clock_gettime(time.pthread_getcpuclockid(self.pinning.ident)) if self.pinning else None

    def measure(self, seconds, pause=0.0):
        """Receives batches for `seconds`, with `pause` seconds between two of them. If there is a pause, only batches that were ready count."""
        start, started_s = time.perf_counter(), self.first_s
        # At first workers start, or PyTorch's queue of two batches for each worker fills.
        skipped = (2 if started_s else SKIPPED_BATCHES) * self.workers
        pinning_s = self.pinning_s()
        received, waits, previous = 0, [], None
        while time.perf_counter() - start < seconds or received < RECEIVED_MIN:
            is_late = pause and self.finished is not None and self.finished.empty()
            before = time.perf_counter()
            batch_data = next(self.iterator, None)
            if batch_data is None:
                break
            # The previous batch is freed here, as in a training loop.
            previous = batch_data
            del batch_data
            now = time.perf_counter()
            self.first_s = self.first_s or now - self.created
            received += 1
            if not is_late:
                waits.append(now - before)
            elif received > skipped:
                pause *= LATE_FACTOR
            if pause:
                time.sleep(pause)
        del previous
        pinned_s = (self.pinning_s() - pinning_s) / max(1, received) if self.pinning else None
        return PhaseTimes(self.rows(start, started_s), waits[min(skipped, len(waits) // 2) :], received, pinned_s)

    def rows(self, start, started_s):
        """The rows of complete batches that were begun after `start`, without the first ones of each worker unless all had begun before."""
        rows = []
        for name in os.listdir(self.folder.name):
            with open(os.path.join(self.folder.name, name)) as file:
                own = [json.loads(line) for line in file if line.endswith("\n")]
            own = [row for row in own if row[4] >= 1e9 * start]
            rows += own if started_s else own[min(SKIPPED_BATCHES, len(own) // 2) :]
        return rows


class Schedule:
    """Divides the time among the phases. A phase that took longer shortens the following ones."""

    def __init__(self, seconds, skipped, report):
        self.end = time.perf_counter() + seconds
        self.left = {name: share for name, share in PHASES.items() if name not in skipped}
        self.count = len(self.left)
        self.report = report

    def seconds(self, name, workers):
        """The time of the next phase."""
        share = self.left.pop(name) / (self.left_shares() + PHASES[name])
        self.report(f"[{self.count - len(self.left)}/{self.count}] {workers} worker{'s' if workers > 1 else ''}")
        return max(0.0, self.end - time.perf_counter()) * share

    def left_shares(self):
        return sum(self.left.values())


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


def contention(costs, workers):
    """Contention of workers, from the time of a worker per batch by the number of workers. Returns the number of workers whose costs are used, and the
    batches per second that all workers together do not exceed, or None.

    If more workers than the job's hardly make more batches, the costs are those of a single worker, which the shared rate slows. Otherwise they are
    those with the job's number of workers.
    """
    most = max(costs)
    rates = {count: count / seconds for count, seconds in costs.items()}
    if most > workers:
        is_shared = costs[most] > GROWTH_MIN * costs[workers]
        gain = (rates[most] / rates[workers] - 1) / (most / workers - 1)
        is_saturated = gain < SATURATED_GAIN_MAX
    else:
        is_saturated = is_shared = workers > 1 and costs[workers] > CROWDED_GROWTH_MIN * costs[1]
    used = 1 if is_saturated else workers
    # The rate that workers would reach without sharing anything.
    free = most / costs[used]
    # Near their limit workers hinder each other before they reach it, so the limit is above a rate that is close to `free`.
    limit = rates[most] / (1 - (rates[most] / free) ** KNEE) ** (1 / KNEE) if is_shared and rates[most] < free else None
    return used, limit


def machine_seconds():
    """Processor time of all processes of the machine, including that of other virtual machines (`steal`); None if unknown."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(tick) for tick in file.readline().split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def own_seconds():
    """Processor time of this process and of its workers that have ended."""
    return sum(os.times()[:4])


def calibrate(job, seconds, report):
    start, load = time.perf_counter(), (machine_seconds(), own_seconds())
    cores = len(os.sched_getaffinity(0))
    most = max(job.workers, min(2 * job.workers, cores))
    schedule = Schedule(seconds, {name for name, is_left_out in (("one", job.workers == 1), ("double", most == job.workers)) if is_left_out}, report)
    batch = warm(job, schedule)
    few = max(1, batch // 4)
    by_workers, start_s = {}, []

    def started(workers, times):
        """Notes the time for starting a worker, without the time for preparing its first batch."""
        start_s.append((workers.first_s - times.total() * max(1.0, workers.workers / cores)) / workers.workers)
        return times

    if job.workers > 1:
        with Workers(job, batch, 1) as workers:
            by_workers[1] = started(workers, workers.measure(schedule.seconds("one", 1)))
    # Batches are ready before they are requested. In `busy`, workers prepare further batches at the same time and compete for cores, memory and
    # the interpreter's lock, as in a loop that the loader almost limits. In `idle`, the workers do nothing.
    with Workers(job, batch, job.workers) as workers:
        full = by_workers[job.workers] = started(workers, workers.measure(schedule.seconds("full", job.workers)))
        busy = workers.measure(schedule.seconds("busy", job.workers), BUSY_FACTOR * full.wait())
        idle = workers.measure(schedule.seconds("idle", job.workers), IDLE_FACTOR * job.workers * full.wait())
    with Workers(job, few, job.workers) as workers:
        small = started(workers, workers.measure(schedule.seconds("small", job.workers)))
        busy_small = workers.measure(schedule.seconds("small_busy", job.workers), BUSY_FACTOR * small.wait())
    if most > job.workers:
        with Workers(job, batch, most) as workers:
            by_workers[most] = started(workers, workers.measure(schedule.seconds("double", most)))
    measuring_s = time.perf_counter() - start
    own_s = own_seconds() - load[1]
    other_cores = max(0.0, machine_seconds() - load[0] - own_s) / measuring_s if load[0] is not None else None
    is_disturbed = other_cores is not None and other_cores > OTHER_LOAD_MAX * os.cpu_count()
    client = client_costs(by_workers, job.workers, batch, small, busy, busy_small, idle, None if job.persistent else max(0.0, statistics.median(start_s)))
    if is_disturbed:
        # Other processes limit the rate of all workers as a shared rate does.
        client["shared_bytes_per_second"] = None
    return {
        "client": client,
        "told_apart": getitem_costs(full, batch)[2],
        "samples": job.limit.value,
        "sample_bytes": full.bytes() / batch,
        "batch_size": job.batch,
        "workers": job.workers,
        "prefetch_factor": job.prefetch_factor,
        "batches": len(full.rows),
        "batch_cpu_seconds": {str(count): times.total() * job.batch / batch for count, times in by_workers.items()},
        "measuring_seconds": measuring_s,
        "other_cores": other_cores,
        "is_disturbed": is_disturbed,
    }


def warm(job, schedule):
    """Reads samples into memory, uses only these from now on, and returns the size of the batches to measure: the job's, or less if each phase would
    see too few of them."""
    with Workers(job, max(1, job.batch // 8), 1) as workers:
        warmed = workers.measure(schedule.seconds("warm", 1))
    job.limit.value = min(warmed.received * workers.batch, job.samples or sys.maxsize)
    batch_s_max = (schedule.end - time.perf_counter()) * min(PHASES.values()) / schedule.left_shares() / (SKIPPED_BATCHES + BATCHES_MIN)
    return max(1, min(job.batch, int(batch_s_max * workers.batch / warmed.total())))


def client_costs(by_workers, workers, batch, small, busy, busy_small, idle, start_s):
    """The costs by the keys of `client`."""
    full = by_workers[workers]
    used, shared_rate = contention({count: times.total() for count, times in by_workers.items()}, workers)
    per_sample, per_byte, _ = getitem_costs(by_workers[used], batch)
    per_batch, hand_over = fit_line((full.bytes(), full.rest()), (small.bytes(), small.rest()))
    factor = by_workers[used].rest() / full.rest() if full.rest() else 1.0
    # After a long sleep, a process needs more time to receive a batch.
    idle_share = idle.wait() / busy.wait()
    receive, receive_byte = fit_line((busy.bytes(), busy.wait()), (busy_small.bytes(), busy_small.wait()))
    return {
        "per_sample": per_sample,
        "per_byte": per_byte,
        "per_batch": per_batch * factor,
        "handover_bytes_per_second": 1 / (hand_over * factor) if hand_over else None,
        "shared_bytes_per_second": shared_rate and full.bytes() * shared_rate or None,
        # Without bytes, as with mapped files, the rate is unknown.
        "pin_bytes_per_second": full.pinned_s and full.bytes() / full.pinned_s or None,
        "receive_per_batch": receive * max(1.0, idle_share),
        "receive_per_byte": receive_byte * max(1.0, idle_share),
        "receive_wait_share": max(0.0, 1 - idle_share),
        "start_per_epoch": start_s,
    }


def main():
    script, function, batch, workers, seconds, out = sys.argv[1:]
    # The script's own output goes to stderr.
    os.dup2(2, 1)
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    module = importlib.import_module(os.path.splitext(os.path.basename(script))[0])
    make = getattr(module, function, None)
    if not callable(make):
        refuse(f"`{function}` of `{script}` is not a function", "give a function that takes no arguments and returns your Dataset or DataLoader")
    made = make()
    if not isinstance(made, DataLoader) and not hasattr(made, "__getitem__") and not isinstance(made, IterableDataset):
        refuse(f"`{function}` returned {type(made).__name__}", "return a Dataset or a DataLoader of PyTorch")
    result = calibrate(Job(made, int(batch), int(workers)), float(seconds), partial(write_progress, os.path.join(os.path.dirname(out), "progress")))
    with open(out, "w") as file:
        json.dump(result, file)


def leave():
    """Ends the process at once. Modules that were imported may take long to end; only what the script printed is left to write."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def write_progress(path, text):
    """Writes the progress for the process that shows it. It reads either the previous text or the whole new one."""
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)


def print_traceback(error):
    """Prints the traceback of the user's code, without the frames of this file, which its user did not write."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    own = rf'  File "(?:{re.escape(__file__)}|<frozen importlib[^"]*)", .*\n(?:    .*\n)*'
    users = re.sub(own, "", text)
    sys.stderr.write(users if "  File " in users else text)


if __name__ == "__main__":
    try:
        main()
    except ModuleNotFoundError as error:
        refuse(
            f"`{sys.argv[0]}` needs `{error.name}`, which is not installed in {sys.executable}",
            "give the Python of your training by `--python`, or install the module",
        )
    except Exception as error:
        print_traceback(error)
        sys.exit(1)
    leave()
