"""Checks the arithmetic of src/command/calibrate.py on known rows. Run by calibrate.rs; a stub replaces torch."""

import importlib.util
import sys
import tempfile
import types
from pathlib import Path

data = types.ModuleType("torch.utils.data")
for name in ("DataLoader", "Dataset", "IterableDataset", "default_collate", "get_worker_info"):
    setattr(data, name, type(name, (), {}))
for name in ("torch", "torch.utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch.utils.data"] = data
spec = importlib.util.spec_from_file_location("calibrate", Path(__file__).parents[2] / "src/command/calibrate.py")
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)


def near(a, b):
    return all(abs(actual - expected) <= 1e-9 * abs(expected) for actual, expected in zip(a, b))


# A batch costs 1 ms and 2 ns per byte. If more bytes do not cost more time, the whole cost is fixed.
assert near(calibrate.fit_line((4000, 0.001008), (1000, 0.001002)), (0.001, 2e-9))
assert near(calibrate.fit_line((1000, 0.002), (4000, 0.001)), (0.001, 0))
# A fixed cost is never negative.
assert near(calibrate.fit_line((1000, 1e-6), (4000, 8e-6)), (0, 2e-9))

# Only samples of several sizes separate the cost per sample from the cost per byte.
def measured_rows(rows):
    return calibrate.PassTimes(rows, len(rows), [], 0.0)


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

# The wait for a ready batch is the trimmed mean, not the median.
assert near([calibrate.PassTimes([], 10, [0.001] * 6 + [0.003] * 3 + [9.0], 0.0).wait()], [(5 * 0.001 + 3 * 0.003) / 8])

# If batches are not ready after a pause, the pause is made longer, up to a maximum number of retries.
def pass_with_pause(ready, pause):
    return calibrate.PassTimes([], 10, [pause] * 10, 0.0, 0 if pause > ready else 2)


found = [calibrate.measure_ready_batches(lambda pause: pass_with_pause(ready, pause), 0.25).wait() for ready in (0.5, 0.2, 9)]
assert near(found, [0.5625, 0.25, 0.84375])

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
    assert all(0 < row[2] <= row[3] for row in measured), measured
