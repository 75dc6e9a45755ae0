"""Checks the arithmetic of src/command/calibrate.py on known rows. Run by calibrate.rs; a stub replaces torch."""

import subprocess
import sys
import tempfile
import types
from pathlib import Path

from calibrate_module import calibrate


def near(a, b):
    return all(abs(actual - expected) <= 1e-9 * abs(expected) for actual, expected in zip(a, b))


# A batch costs 1 ms and 2 ns per byte. If more bytes do not cost more time, the whole cost is fixed.
assert near(calibrate.fit_line((4000, 0.001008), (1000, 0.001002)), (0.001, 2e-9))
assert near(calibrate.fit_line((1000, 0.002), (4000, 0.001)), (0.001, 0))
# A fixed cost is never negative.
assert near(calibrate.fit_line((1000, 1e-6), (4000, 8e-6)), (0, 2e-9))

# Only samples of several sizes separate the cost per sample from the cost per byte.
def measured_rows(rows):
    return calibrate.PhaseTimes(rows, [])


varied = measured_rows([[1, size, 100_000 + 3 * size, 200_000 + 6 * size] for size in (10_000, 50_000, 200_000, 400_000)])
assert near(calibrate.getitem_costs(varied, 1), (0.0001, 3e-9))
assert calibrate.getitem_costs(varied, 1)[2]
large = measured_rows([[4, 4 << 20, 8_388_608, 9_000_000]] * 5)
assert near(calibrate.getitem_costs(large, 4), (0.0, 2e-9, False))
small = measured_rows([[4, 4000, 1_000_000, 1_000_000]] * 5)
assert near(calibrate.getitem_costs(small, 4), (0.00025, 0.0, False))

# The parts of a batch add up to its mean time. Disturbed batches are not part of the mean.
skewed = measured_rows([[1, 100, 2_000_000, 3_000_000]] * 7 + [[1, 100, 6_000_000, 7_000_000], [1, 100, 0, 1_000_000], [1, 100, 0, 900_000_000]])
assert near([skewed.total()], [(7 * 3e-3 + 7e-3) / 8])
assert near([skewed.getitem(), skewed.rest()], [1.75 / 2.75 * 3.5e-3, 1 / 2.75 * 3.5e-3])

# Contention, from the time of a worker per batch by the number of workers: the number of workers whose costs are used, and the rate of batches that all
# workers together do not exceed.
for costs, workers, used, limit in [
    # No contention, or too little to be distinguished from noise.
    ({1: 1.0, 2: 1.0, 4: 1.04}, 2, 2, None),
    # Eight workers make no more batches than four: the costs of a single worker, and the rate that workers share.
    ({1: 3.0, 4: 4.0, 8: 8.0}, 4, 1, 1.0),
    # Four workers still gain from more: their own costs, and a limit a little above the highest rate.
    ({1: 4.0, 4: 5.0, 8: 8.0}, 4, 4, 1.0),
    # No cores for more workers than the job's, which slow each other a little, or much.
    ({1: 4.0, 2: 4.8}, 2, 2, None),
    ({1: 2.0, 8: 8.0}, 8, 1, 1.0),
    # A job with one worker.
    ({1: 1.0}, 1, 1, None),
    ({1: 1.0, 2: 2.0}, 1, 1, 1.0),
]:
    found = calibrate.contention(costs, workers)
    assert found[0] == used and (found[1] is None if limit is None else limit <= found[1] < 1.02 * limit), (costs, found)

# The thread that pins batches needs 2 ms for 4 MB.
pinned = calibrate.PhaseTimes([[4, 4_000_000, 1_000_000, 2_000_000, 0]] * 5, [0.001], pinned_s=0.002)
costs = calibrate.client_costs({1: pinned}, 1, 4, pinned, pinned, pinned, pinned, 0.0)
assert near([costs["pin_bytes_per_second"]], [2e9]) and costs["shared_bytes_per_second"] is None

# Mapped files count no bytes: the thread's time gives no rate.
mapped = calibrate.PhaseTimes([[4, 0, 1_000_000, 2_000_000, 0]] * 5, [0.001], pinned_s=0.002)
costs = calibrate.client_costs({1: mapped}, 1, 4, mapped, mapped, mapped, mapped, 0.0)
assert costs["pin_bytes_per_second"] is None and costs["per_sample"] > 0, costs

# The wait for a ready batch is the trimmed mean, not the median.
assert near([calibrate.PhaseTimes([], [0.001] * 6 + [0.003] * 3 + [9.0]).wait()], [(5 * 0.001 + 3 * 0.003) / 8])

# Phases share the time by their weights. A phase that takes longer shortens the next ones, and the end stays.
clock, reported = [100.0], []
calibrate.time = types.SimpleNamespace(perf_counter=lambda: clock[0], sleep=lambda seconds: clock.__setitem__(0, clock[0] + seconds))
schedule = calibrate.Schedule(15.0, {"one", "double"}, reported.append)
weights = {name: share for name, share in calibrate.PHASES.items() if name not in ("one", "double")}
for name, late in zip(weights, (0.0, 1.0, 0.5, 0.0, 0.25, 0.0)):
    clock[0] += schedule.seconds(name, 2) + late
assert near([clock[0]], [115.0]) and reported == [f"[{phase}/6] 2 workers" for phase in range(1, 7)]
assert not schedule.left


# With pauses, only batches that were ready when requested count, and the pause grows until they are.
class Batches:
    """An iterator whose batches are ready `period` seconds after one another; receiving a ready batch takes 1 ms."""

    def __init__(self, period):
        self.ready_at, self.period = clock[0] + period, period

    def empty(self):
        return clock[0] < self.ready_at

    def __next__(self):
        clock[0] = max(clock[0], self.ready_at) + 0.001
        self.ready_at = clock[0] + self.period
        return "batch"


def phase(period, seconds, pause):
    workers = object.__new__(calibrate.Workers)
    workers.iterator = workers.finished = Batches(period)
    workers.workers, workers.pinning, workers.first_s, workers.created = 2, None, None, clock[0]
    workers.rows = lambda start, started_s: []
    return workers.measure(seconds, pause), workers


found, workers = phase(0.1, 2.0, 0.08)
assert near([found.wait(), workers.first_s], [0.001, 0.101]) and 15 < found.received < 20
# Without pauses the wait is the interval of the batches.
found, _ = phase(0.1, 2.0, 0.0)
assert near([found.wait()], [0.101]) and found.received == 20
# A slow loader exceeds its time by a few batches, not by a number that grows with its workers.
before = clock[0]
assert phase(7.0, 2.0, 0.0)[0].received == 3 and clock[0] - before < 22
calibrate.time = __import__("time")

# The probe writes a row per batch: samples, bytes, processor time in `__getitem__` and in total.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "sample")
    file.write_bytes(bytes(5000))
    rows = Path(folder, "rows")
    rows.mkdir()
    probe = calibrate.Probe(rows, 2)
    for _ in range(5):
        assert probe.sample(file.read_bytes) == bytes(5000)
    [output] = rows.iterdir()
    measured = [calibrate.json.loads(line) for line in output.read_text().splitlines()]
    assert [row[:2] for row in measured] == [[2, 10_000]] * 2
    assert measured[0][4] < measured[1][4]
    assert all(0 < row[2] <= row[3] for row in measured), measured

# What the user's script printed is written, although the process ends at once.
script = "from calibrate_module import calibrate; print('from the script'); calibrate.leave()"
left = subprocess.run([sys.executable, "-B", "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True)
assert (left.returncode, left.stdout) == (0, "from the script\n"), left
