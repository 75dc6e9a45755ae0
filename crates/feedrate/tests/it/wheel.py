"""Uses the Python module like a user. Then runs DLIO's program under mpirun, and reads the results like the notebook of perf_2025."""

import json
import math
import subprocess
import sys
from pathlib import Path

import feedrate

summary = feedrate.run("conf/workload/tiny.yaml", {"train.epochs": 1, "reader.batch_size": 2}, arguments=["-n", "2", "--results", "own"])
assert summary["accelerators"] == 2, summary
frame = feedrate.load_results("own")
assert len(frame) == 1 and frame["num_accelerators"][0] == 2, frame
loaded = feedrate.load_study("own")
assert list(loaded.columns[:5]) == ["model", "parameter", "value", "processes", "replicate"], loaded
assert loaded["processes"][0] == 2 and loaded["replicate"][0] == 1 and loaded["au_all_steps_percent"].dtype == float, loaded
feedrate.run("conf/workload/tiny.yaml", {"train.epochs": 1, "reader.batch_size": 2}, arguments=["-n", "1", "--results", "own"])
findings = feedrate.findings("own")
assert list(findings.columns[:2]) == ["says", "kind"] and findings["value"].dtype == float and 0 < len(findings), findings
assert list(feedrate.system().columns) == ["component", "specification"]
pandas = sys.modules["pandas"]
sys.modules["pandas"] = None
try:
    feedrate.load_study("own")
except ImportError as error:
    assert "needs `pandas`" in str(error) and "pip install pandas" in str(error), error
else:
    raise AssertionError("a missing pandas caused no error")
sys.modules["pandas"] = pandas
try:
    feedrate.load_study("nowhere")
except feedrate.FeedrateError as error:
    assert error.code == 2 and "nowhere" in str(error), error
else:
    raise AssertionError("a missing folder caused no error")
try:
    feedrate.run("conf/workload/tiny.yaml", {"reader.batch_size": "x"})
except feedrate.FeedrateError as error:
    assert error.code == 2 and "reader.batch_size" in str(error) and error.summary is None, error
else:
    raise AssertionError("a bad value caused no error")
try:
    feedrate.run("conf/workload/tiny.yaml", arguments=["--results", "below", "--fail-below-au", "100"])
except feedrate.FeedrateError as error:
    assert error.code == 4 and error.summary["complete"], error
else:
    raise AssertionError("an unmet condition caused no error")
for content in (b"[1]", b'{"metric": 1}', b"{", b'"\xff"'):
    Path("bad").mkdir(exist_ok=True)
    Path("bad/summary.json").write_bytes(content)
    try:
        feedrate.load_results("bad")
    except ValueError as error:
        assert "bad/summary.json" in str(error), error
    else:
        raise AssertionError(f"{content!r} was read as a summary")

mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "4"]
study = [*mpirun, "dlio_benchmark", "--config-dir", "conf", "workload=tiny", "++workload.reader.batch_size=1"]
generate = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False", "++workload.workflow.evaluation=False"]
train = ["++workload.workflow.generate_data=False", "++workload.workflow.train=True", "++workload.workflow.evaluation=False"]
for more in (generate, train):
    subprocess.run([*study, *more], check=True, stdout=subprocess.PIPE)

rows = []
for path in Path("hydra_log/tiny").glob("**/summary.json"):
    metric = json.loads(path.read_text()).get("metric", {})
    au, io = metric.get("train_au_mean_percentage", 0), metric.get("train_io_mean_MB_per_second", 0)
    if au or io:
        rows.append((au, metric.get("train_au_stdev_percentage", 0), io))
assert len(rows) == 1 and all(math.isfinite(value) for value in rows[0]), rows
for rank in range(4):
    assert list(Path("hydra_log/tiny").glob(f"*/{rank}_output.json")), rank
