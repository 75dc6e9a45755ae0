"""Studies as pandas DataFrames with plain columns and one row per run or experiment. The numbers come from `feedrate … --json`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Optional, Union

from ._optional import import_optional
from ._run import FeedrateError, program

if TYPE_CHECKING:
    import pandas

StrPath = Union[str, os.PathLike[str]]

RUN_COLUMNS = ["model", "parameter", "value", "processes", "replicate"]
RESPONSES = ["au_all_steps_percent", "au_windowed_percent", "au_sustained_percent", "samples_per_second", "bytes_per_second"]


def call(*arguments: StrPath, cwd: Optional[StrPath] = None, progress: bool = False) -> Any:
    """Returns the output of `feedrate ARGUMENTS… --json`, started in the folder `cwd`: `call("study", "status", "my.csv")`.

    With `progress`, messages of the program are printed immediately. Raises FeedrateError if the program fails.
    """
    command = [program("feedrate"), *map(os.fspath, arguments), "--json"]
    messages = []
    # The output goes to a file, since a full pipe without a reader would block the program.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=cwd, stdout=output, stderr=pipe, encoding="utf-8", errors="replace") as process:
            assert process.stderr is not None
            for line in process.stderr:
                messages.append(line)
                if progress:
                    sys.stdout.write(line)
                    sys.stdout.flush()
        if process.returncode != 0:
            raise FeedrateError(process.returncode, "".join(messages).strip())
        output.seek(0)
        return json.load(output)


def system() -> "pandas.DataFrame":
    """Describes this machine, like `feedrate system`: `component`, `specification`."""
    pandas = import_optional("pandas")
    return pandas.DataFrame(call("system")["components"], columns=["component", "specification"])


def design(study: StrPath) -> "pandas.DataFrame":
    """Returns the rows of a study's CSV in order, each with its `status` (done, running, pending or failed) and the `reason` for a failure."""
    pandas = import_optional("pandas")
    rows = pandas.json_normalize(call("study", "status", study, "--all")["rows"], max_level=0)
    rows["overrides"] = rows["overrides"].map(" ".join)
    columns = ["row", "model", "epochs", "processes", "overrides", "replicate", "block", "order", "status", "reason"]
    return rows[columns]


def run_study(study: StrPath, *arguments: StrPath, cwd: Optional[StrPath] = None) -> "pandas.DataFrame":
    """Runs the pending rows of a study. `arguments` are flags of `feedrate study run`: `run_study("my.csv", "--limit", "1")`.

    Relative paths, including `study` and those in workloads, are relative to `cwd`. Prints the progress, and returns `label`, `status` and `run_dir` of all
    requested rows. Raises FeedrateError if a row failed; the other rows are run nevertheless, and calling it again continues with the pending rows.
    """
    pandas = import_optional("pandas")
    rows = call("study", "run", study, *arguments, cwd=cwd, progress=True)["rows"]
    return pandas.DataFrame(rows, columns=["label", "status", "run_dir"])


def load_study(*sources: StrPath) -> "pandas.DataFrame":
    """Returns one row for each run of the sources. A source is the CSV of a study, or a folder with runs of feedrate, DLIO or MLPerf Storage. The column
    `source` names it.

    Columns are the keys of `feedrate analyze --json`. Nested keys are joined by `_`: `au_windowed_percent`, `au_all_steps_percent`,
    `au_sustained_percent`, `throughput_whole_samples_per_second`, `throughput_windowed_mib_per_second` and more. `model` and `processes`
    are the names that studies use for workload and accelerators. `doubts` has the names of the doubts, the most
    severe first, and `severity` is the severity of the first: `invalid` runs must not be used. Unknown values are missing (NaN), never 0.
    """
    pandas = import_optional("pandas")
    runs = call("analyze", *sources)["runs"]
    for run in runs:
        doubts = run["doubts"]
        run["severity"] = doubts[0]["severity"] if doubts else "none"
        run["doubts"] = ", ".join(doubt["name"] for doubt in doubts)
        run["overrides"] = " ".join(run["overrides"])
    frame = pandas.json_normalize(runs, sep="_").rename(columns={"workload": "model", "accelerators": "processes"})
    for column in frame.columns:
        # Columns that contain only None have no type.
        is_number = column.startswith(("au_", "throughput_", "stall_", "skew_"))
        if is_number and not column.endswith("_provenance"):
            frame[column] = pandas.to_numeric(frame[column])
    frame = frame.astype({"processes": "Int64", "replicate": "Int64"})
    return frame[RUN_COLUMNS + [column for column in frame.columns if column not in RUN_COLUMNS]]


def experiments(*sources: StrPath) -> "pandas.DataFrame":
    """Combines replicates into experiments, in long form: a row for each experiment and response.

    `response` is one of `au_all_steps_percent`, `au_windowed_percent`, `au_sustained_percent`, `samples_per_second`, `bytes_per_second`;
    `estimate` is the mean of the `runs` (the geometric mean for rates); `low` and `high` are its 95 % interval, missing without replicates. Invalid
    runs are excluded.
    """
    pandas = import_optional("pandas")
    rows = []
    for experiment in call("report", *sources)["experiments"]:
        about = {"source": os.fspath(sources[experiment["source"]]), "model": experiment["workload"]}
        about.update(parameter=experiment["parameter"], value=experiment["value"])
        about.update(processes=experiment["accelerators"], runs=len(experiment["runs"]))
        for response in RESPONSES:
            mean = experiment[response]
            low, high = mean["interval"] or (None, None)
            rows.append({**about, "response": response, "estimate": mean["estimate"], "low": low, "high": high})
    columns = ["source", "model", "parameter", "value", "processes", "runs", "response", "estimate", "low", "high"]
    types = {"processes": "Int64", "estimate": float, "low": float, "high": float}
    return pandas.DataFrame(rows, columns=columns).astype(types)


def findings(*sources: StrPath) -> "pandas.DataFrame":
    """Returns the findings of the runs, most important first, with a row for each.

    `says` is the sentence; `kind`, `model`, `response` and `factors` are its subject; `value`, `low`, `high`, `unit` and `p` are its first
    number, missing if it has none; `runs` is the number of runs on which it is based. `support` is `shown`, `doubted`, `described` (not
    tested), or `cannot_be_told`: the runs do not show it, and the sentence gives the reason.
    """
    pandas = import_optional("pandas")
    rows = []
    for finding in call("report", *sources)["findings"]:
        number = finding["numbers"][0] if finding["numbers"] else {}
        row = {"says": finding["says"], "kind": finding["kind"], "model": finding["workload"], "response": finding["response"]}
        row.update({name: number.get(name) for name in ["value", "low", "high", "unit", "p"]})
        row.update(factors=", ".join(finding["factors"]), runs=len(finding["runs"]), doubts=", ".join(finding["doubts"]))
        rows.append({**row, "support": finding["support"]})
    columns = ["says", "kind", "model", "response", "factors", "value", "low", "high", "unit", "p", "support", "runs", "doubts"]
    types = {name: float for name in ["value", "low", "high", "p"]}
    return pandas.DataFrame(rows, columns=columns).astype(types)
