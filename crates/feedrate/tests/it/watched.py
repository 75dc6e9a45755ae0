"""Watches loops over plain iterables and stubs with `feedrate.watch`, and checks the records: python watched.py FUNCTION [ARGUMENTS]."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import feedrate


class Loader:
    """A loader of batches of four that belongs to no framework. Each batch takes `seconds`."""

    batch_size = 4

    def __init__(self, steps, seconds=0.0):
        self.steps, self.seconds = steps, seconds

    def __len__(self):
        return self.steps

    def __iter__(self):
        for step in range(self.steps):
            time.sleep(self.seconds)
            yield step


def record(name):
    (path,) = Path("results", name).glob("*/record.json")
    return json.loads(path.read_text())


def steps(name):
    return [
        [sum(len(block["load_ns"]) for block in accelerator["blocks"]) for accelerator in epoch["accelerators"]] for epoch in record(name)["epochs"]
    ]


def starved():
    """Two epochs that wait three times as long as they compute. There is a checkpoint in the first epoch and one after it."""
    loader = Loader(10, 0.006)
    assert len(feedrate.watch(loader, name="starved")) == 10
    for epoch in range(2):
        for step, batch in enumerate(feedrate.watch(loader, name="starved", data=".")):
            assert step == batch
            time.sleep(0.002)
            if epoch == 0 and step == 4:
                with feedrate.checkpoint():
                    Path("model.pt").write_bytes(bytes(100_000))
        if epoch == 0:
            save()


def save_in(clock, length_ns):
    with feedrate.checkpoint():
        clock.now += length_ns


@feedrate.checkpoint()
def save():
    Path("model.pt").write_bytes(bytes(200_000))


def fed():
    for _ in feedrate.watch(range(10), name="fed"):
        time.sleep(0.005)


class Workers:
    """Looks like a `DataLoader` of two workers, and starts a process that computes."""

    batch_size, num_workers, prefetch_factor = 4, 2, 2

    def __iter__(self):
        for step in range(5):
            child = os.fork()
            if child == 0:
                burn(0.02)
                os._exit(0)
            os.waitpid(child, 0)
            yield step


Workers.__module__ = "torch.utils.data.dataloader"


def burn(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def computing():
    """Loaders that compute in the thread of the loop, and in other processes."""

    def batches():
        for step in range(20):
            burn(0.005)
            yield step

    for _ in feedrate.watch(batches(), name="computing", data="."):
        pass
    watched = record("computing")["watched"]
    assert watched["loader_cpu_ns"] >= 20 * 5_000_000 and watched["loader_cpu_ns"] <= watched["loader_time_ns"], watched
    for _ in feedrate.watch(Workers(), name="workers", data="."):
        time.sleep(0.001)
    written = record("workers")
    watched = written["watched"]
    (block,) = written["epochs"][0]["accelerators"][0]["blocks"]
    assert watched["loader_time_ns"] == 2 * (sum(block["load_ns"]) + sum(block["compute_ns"])), watched
    # The kernel counts in ticks.
    assert watched["loader_cpu_ns"] >= 5 * 10_000_000, watched


def reading():
    """A loader that reads past the page cache."""
    import mmap

    size = 4 << 20
    Path("data.bin").write_bytes(os.urandom(size) * 4)
    buffer = mmap.mmap(-1, size)

    def batches():
        descriptor = os.open("data.bin", os.O_RDONLY | os.O_DIRECT)
        for step in range(12):
            assert os.preadv(descriptor, [buffer], step % 4 * size) == size
            yield step
        os.close(descriptor)

    os.sync()
    for _ in feedrate.watch(batches(), name="reading", data="."):
        pass
    written = record("reading")
    host = written["epochs"][0]["host"]
    expected = 0 if written["system"]["data_mount"]["file_system"] == "tmpfs" else 12 * size
    assert host["process_device_read_bytes"] >= expected, host


def check_starved():
    """Checks the record of `starved` after its process has ended."""
    written = record("starved")
    assert written["complete"] and written["ended"], written
    assert written["watched"]["loader"] == "__main__.Loader" and written["watched"]["workers"] is None
    assert written["plan"]["loader"]["batch_size"] == 4
    first, second = written["epochs"]
    saved = first["checkpoints"]
    assert [checkpoint["after_step"] for checkpoint in saved] == [5, 10] and saved[0]["bytes"] >= 100_000 <= saved[1]["bytes"], saved
    blocks = first["accelerators"][0]["blocks"]
    assert [len(block["load_ns"]) for block in blocks] == [5, 5]
    assert blocks[1]["start_ns"] - blocks[0]["end_ns"] == saved[0]["end_ns"] - saved[0]["start_ns"]
    blocks += second["accelerators"][0]["blocks"]
    for number, block in enumerate(blocks):
        rest = block["end_ns"] - block["start_ns"] - sum(block["load_ns"]) - sum(block["compute_ns"])
        # The last block of an epoch includes the time in which the loader ends.
        assert rest >= 0 if number else rest == 0, (number, rest)
        assert min(block["load_ns"]) >= 6_000_000 and min(block["compute_ns"]) >= 2_000_000
    assert written["system"]["data_mount"]["point"] and "io" not in first["accelerators"][0]


def unusual_loops():
    """Loops that end early, are nested, are empty or raise an error, and the detection of the batch size."""
    for name, steps_wanted in [("break", 3), ("own-error", 2), ("loader-error", 4)]:
        for turn in range(2):
            try:
                for step, _ in enumerate(feedrate.watch(broken(4) if name == "loader-error" else Loader(9), name=name)):
                    if name == "break" and step == 3:
                        break
                    if name == "own-error" and step == 2:
                        raise ValueError
            except ValueError:
                pass
        assert steps(name) == [[steps_wanted]] * 2, (name, steps(name))
    once = (step for step in range(3))
    for _ in range(2):
        for _ in feedrate.watch(once, name="once"):
            pass
    assert steps("once") == [[3]], "an epoch without steps does not count"
    for _ in feedrate.watch(Loader(2), name="outer"):
        for _ in feedrate.watch(Loader(3), name="inner"):
            pass
    assert steps("outer") == [[2]] and steps("inner") == [[3]] * 2

    class Tensor:
        shape = (7, 2)

    for name, batch, size in [
        ("tensor", Tensor(), 7),
        ("pair", (Tensor(), 1), 7),
        ("dali", [{"data": Tensor()}], 7),
        ("columns", {"text": ["a", "b"]}, 2),
        ("numbers", 5, 0),
        ("samples", [(Tensor(), 1)] * 3, 3),
        ("uncollated", [Tensor()] * 3, 0),
        ("rows", [{"text": "a"}] * 3, 0),
        ("nested", ((Tensor(), Tensor()), (1, 2)), 0),
        ("text", "abc", 0),
    ]:
        for _ in feedrate.watch([batch], name=name):
            pass
        assert record(name)["plan"]["loader"]["batch_size"] == size, name
    for _ in feedrate.watch([1], batch=3):
        pass
    assert record("watched")["plan"]["loader"]["batch_size"] == 3, "named after the script"
    try:
        feedrate.checkpoint("write")
        raise AssertionError("an unknown kind of checkpoint was accepted")
    except ValueError as error:
        assert "hint: use `save` or `load`" in str(error)


def broken(steps):
    yield from range(steps)
    raise ValueError


def frequent_writes():
    """The record is written after each step. The time to write is not part of a step, and the record is valid but not complete."""
    feedrate._watch.FLUSH_NS = 0
    loop = feedrate.watch(Loader(4, 0.001), name="often")
    for step, _ in enumerate(loop):
        time.sleep(0.001)
        loop._log.due = 0
        written = record("often")
        assert not written["complete"] and steps("often") == ([[step]] if step else [])
        (block,) = written["epochs"][0]["accelerators"][0]["blocks"] if step else [{}]
        if step == 3:
            assert block["end_ns"] - block["start_ns"] == sum(block["load_ns"]) + sum(block["compute_ns"])
    # From now on, the record may be written only at the end.
    feedrate._watch.FLUSH_NS, feedrate._watch.WRITE_FREE_NS = 10**18, -(10**18)
    for _ in range(3):
        for _ in feedrate.watch(Loader(2), name="often"):
            pass
    assert steps("often") == [[4]]


def gpu():
    """If a GPU is in use, each step waits for the GPU, unless `synchronise` is False."""

    class Cuda:
        waits = 0

        def is_initialized(self):
            return True

        def synchronize(self):
            self.waits += 1

    class Torch:
        cuda, distributed = Cuda(), None

    sys.modules["torch"] = Torch
    for synchronise in (True, False):
        for _ in feedrate.watch(range(5), name=f"gpu-{synchronise}", synchronise=synchronise):
            pass
        assert record(f"gpu-{synchronise}")["watched"]["synchronised"] is synchronise
    assert Torch.cuda.waits == 5


def worker():
    """The bytes that a child process read count for the parent that waited for it."""

    def batches():
        for _ in range(2):
            child = os.fork()
            if child == 0:
                Path("/dev/zero").open("rb", buffering=0).read(3_000_000)
                os._exit(0)
            os.waitpid(child, 0)
            yield 0

    for _ in feedrate.watch(batches(), name="worker"):
        pass
    assert 6_000_000 <= record("worker")["watched"]["read_call_bytes"] < 7_000_000


def late_checkpoints():
    """Threads save checkpoints and end after the epoch, or in the next epoch."""

    def save(released):
        with feedrate.checkpoint():
            released.wait()
            Path("behind.pt").write_bytes(bytes(1000))

    for name in ("between", "within"):
        for epoch in range(2):
            for step, _ in enumerate(feedrate.watch(Loader(4, 0.001), name=name)):
                if epoch == 0 and step == 1:
                    released = threading.Event()
                    thread = threading.Thread(target=save, args=[released])
                    thread.start()
                if name == "within" and step == 2 and epoch == 1:
                    released.set()
                    thread.join()
            if name == "between" and epoch == 0:
                released.set()
                thread.join()
        assert steps(name) == [[4], [4]]


def forked():
    """A forked process ends within the parent's loop, after a loop of its own."""
    for step, _ in enumerate(feedrate.watch(Loader(5), name="forked")):
        if step == 2:
            child = os.fork()
            if child == 0:
                for _ in feedrate.watch(Loader(3), name="fork"):
                    pass
                sys.exit()
            assert os.waitpid(child, 0)[1] == 0
            assert steps("forked") == [] and not record("forked")["ended"] and steps("fork") == [[3]]
            assert record("fork")["complete"]


class Clock:
    """Replaces the clock of the module. Time passes only where a test says so."""

    now = 1

    def __call__(self):
        return self.now


class StoppingLoader:
    """Takes 6 ns for each of 4 batches, and 500 ns to stop its workers after the last one, like a `DataLoader`."""

    def __init__(self, clock):
        self.clock = clock

    def __iter__(self):
        for step in range(4):
            self.clock.now += 6
            yield step
        self.clock.now += 500


def ended():
    """The record of a loop that has ended is complete while its process is alive. The time in which its loader stops belongs to its last block, also if
    there is a checkpoint in the last step."""
    clock = feedrate._watch.clock = Clock()
    loader = StoppingLoader(clock)
    # For each pass, the step with a checkpoint and the lengths of the blocks. The checkpoint of "step" 4 follows the pass.
    for passes, (saving_step, lengths) in enumerate([(None, [540]), (3, [540]), (2, [30, 510]), (4, [540])], 1):
        for step in feedrate.watch(loader, name="ended"):
            assert not record("ended")["complete"], passes
            clock.now += 4
            if step == saving_step:
                save_in(clock, 44)
        if saving_step == 4:
            save_in(clock, 44)
        written = record("ended")
        assert written["complete"] and written["ended"] and len(written["epochs"]) == passes, written
        epoch = written["epochs"][-1]
        blocks = epoch["accelerators"][0]["blocks"]
        assert [block["end_ns"] - block["start_ns"] for block in blocks] == lengths, (saving_step, blocks)
        is_within = saving_step in (2, 3)
        assert epoch["end_ns"] - epoch["start_ns"] == 540 + 44 * is_within, epoch
        if is_within:
            (saved,) = epoch["checkpoints"]
            assert (saved["start_ns"], saved["end_ns"] - saved["start_ns"]) == (blocks[0]["end_ns"], 44), epoch
    for _ in feedrate.watch(loader, name="ended"):
        break
    assert record("ended")["complete"]
    os.kill(os.getpid(), signal.SIGKILL)


def reopened():
    """A rank that begins another pass after all ranks have ended one makes the record incomplete, whichever rank it is."""
    from feedrate import _record

    for _ in feedrate.watch(Loader(2), name="one"):
        pass
    (log,) = feedrate._watch._LOGS.values()
    folder = Path("results/several")
    folder.mkdir()
    for rank, ended, complete in [(0, "", False), (1, "", False), (0, "time", False), (1, "time", True), (1, "", False), (1, "time", True), (0, "", False)]:
        _record.write(_record.Job(rank, 2, folder), {**log.part(rank, []), "ended": ended})
        assert json.loads((folder / "record.json").read_text())["complete"] is complete, (rank, ended)
    # A full disk or another program may have damaged the file of the lock.
    for content in [b"0 x", b"\xff" * 9, b"1"]:
        (folder / ".watch-lock").write_bytes(content)
        for rank in (0, 1):
            _record.write(_record.Job(rank, 2, folder), {**log.part(rank, []), "ended": "time"})
        assert json.loads((folder / "record.json").read_text())["complete"], content
        for rank in (1, 0):
            _record.write(_record.Job(rank, 2, folder), log.part(rank, []))


def frames():
    """`load_results` reads complete records of watched loops with the keys of summary.json, in one call of the program, and no records of other programs."""
    files = {
        "torn/record.json": json.dumps({**record("starved"), "complete": False}),
        "damaged/record.json": '{"version":1,"program":"feedrate.watch',
        "music/record.json": "not JSON",
        "own/summary.json": json.dumps({"num_accelerators": 2}),
    }
    for path, text in files.items():
        Path("results", path).parent.mkdir()
        Path("results", path).write_text(text)
    shutil.copytree("results/starved", "results/twice")
    calls = []
    call = feedrate._results.call
    feedrate._results.call = lambda *arguments: calls.append(arguments) or call(*arguments)
    frame = feedrate.load_results("results")
    assert len(calls) == 1, calls
    own, row, _ = frame.to_dict("records")
    assert own["path"] == "own" and own["num_accelerators"] == 2, own
    assert row["path"].startswith("starved/") and row["num_accelerators"] == row["num_hosts"] == 1 and row["epochs"] == 2, row
    assert row["start"] == record("starved")["started"] and row["end"] == record("starved")["ended"], row
    assert 5 < row["train_au_all_steps_percentage"] < 60 and 5 < row["train_au_mean_percentage"] < 60, row
    assert row["train_throughput_mean_samples_per_second"] > 0, row

    def missing(*_):
        raise FileNotFoundError("there is no `feedrate`")

    feedrate._results.call = missing
    with warnings.catch_warnings(record=True) as caught:
        frame = feedrate.load_results("results")
    assert frame["path"].tolist() == ["own"], frame
    assert "4 records of watched loops are left out: there is no `feedrate`" in str(caught[0].message), caught


def killed():
    for epoch in range(2):
        for step, _ in enumerate(feedrate.watch(Loader(5), name="killed")):
            if (epoch, step) == (1, 2):
                os.kill(os.getpid(), signal.SIGKILL)


def interrupted():
    for step, _ in enumerate(feedrate.watch(Loader(5), name="interrupted")):
        if step == 3:
            raise KeyboardInterrupt


def ranks(wanted):
    """Starts two ranks like a launcher. With `lost`, one kills itself; with `alive`, the record must be complete before they end."""
    children = []
    for rank in range(2):
        environment = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"}
        command = [sys.executable, __file__, "rank", wanted]
        children.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    # A rank that is killed closes its output.
    ended = [child.stdout.readline() for child in children]
    if wanted == "alive":
        assert ended == [b"ended\n"] * 2 and record("alive")["complete"], "the record is complete when the last rank has ended its loop"
    for child in children:
        child.communicate()
    assert wanted == "lost" or [child.returncode for child in children] == [0, 0], children


def rank(wanted):
    for epoch in range(2):
        for step, _ in enumerate(feedrate.watch(Loader(6, 0.001), name=wanted)):
            if wanted == "lost" and os.environ["OMPI_COMM_WORLD_RANK"] == "1" and (epoch, step) == (1, 3):
                os.kill(os.getpid(), signal.SIGKILL)
    print("ended", flush=True)
    # The rank lives until its input is closed.
    sys.stdin.read()


if __name__ == "__main__":
    # The module imports no large packages.
    assert not {"numpy", "pandas", "torch"} & set(sys.modules)
    globals()[sys.argv[1]](*sys.argv[2:])
