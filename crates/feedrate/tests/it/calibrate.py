"""The sums of src/command/calibrate.py, of rows that are known; run by calibrate.rs. In the place of torch stands nothing."""

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
    return all(abs(one - other) <= 1e-9 * abs(other) for one, other in zip(a, b))


# A batch of 1 ms and 2 ns a byte; one that grows with none is a cost of the whole.
assert near(calibrate.line((4000, 0.001008), (1000, 0.001002)), (0.001, 2e-9))
assert near(calibrate.line((1000, 0.002), (4000, 0.001)), (0.001, 0))
# Never below nothing.
assert near(calibrate.line((1000, 1e-6), (4000, 8e-6)), (0, 2e-9))

# Samples of several sizes tell by the sample from by the byte, those of one do not.
def measured_rows(rows):
    return calibrate.Measured(rows, len(rows), [], 0.0)


varied = measured_rows([[1, size, 100_000 + 3 * size, 200_000 + 6 * size] for size in (10_000, 50_000, 200_000, 400_000)])
assert near(calibrate.by_sample_and_byte(varied, 1), (0.0001, 3e-9))
assert calibrate.by_sample_and_byte(varied, 1)[2]
large = measured_rows([[4, 4 << 20, 8_388_608, 9_000_000]] * 5)
assert near(calibrate.by_sample_and_byte(large, 4), (0.0, 2e-9, False))
small = measured_rows([[4, 4000, 1_000_000, 1_000_000]] * 5)
assert near(calibrate.by_sample_and_byte(small, 4), (0.00025, 0.0, False))

# The parts of a batch are together what it takes, in the mean, of which one that was disturbed is no part.
skewed = measured_rows([[1, 100, 2_000_000, 3_000_000]] * 7 + [[1, 100, 6_000_000, 7_000_000], [1, 100, 0, 1_000_000], [1, 100, 0, 900_000_000]])
assert near([skewed.all()], [(7 * 3e-3 + 7e-3) / 8])
assert near([skewed.get(), skewed.rest()], [1.75 / 2.75 * 3.5e-3, 1 / 2.75 * 3.5e-3])

# Batches that are there are waited for as long as in the mean, not as most of them.
assert near([calibrate.Measured([], 10, [0.001] * 6 + [0.003] * 3 + [9.0], 0.0).wait()], [(5 * 0.001 + 3 * 0.003) / 8])

# Batches that are not there after a pause are asked for after a longer one; where they never are, that ends.
def after(ready, pause):
    return calibrate.Measured([], 10, [pause] * 10, 0.0, 0 if pause > ready else 2)


found = [calibrate.paced(lambda pause: after(ready, pause), 0.25).wait() for ready in (0.5, 0.2, 9)]
assert near(found, [0.5625, 0.25, 0.84375])

# What the probe writes of a batch: samples, bytes, and processor time, that within `__getitem__` among it.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "sample")
    file.write_bytes(bytes(5000))
    rows = Path(folder, "rows")
    rows.mkdir()
    probe = calibrate.Probe(rows, 2)
    for _ in range(5):
        assert probe.sample(file.read_bytes) == bytes(5000)
    [told] = rows.iterdir()
    measured = [calibrate.json.loads(line) for line in told.read_text().splitlines()]
    assert [row[:2] for row in measured] == [[2, 10_000]] * 2
    assert all(0 < row[2] <= row[3] for row in measured), measured
