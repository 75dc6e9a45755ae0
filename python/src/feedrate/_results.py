"""Reads the result folders of runs."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._optional import import_optional
from ._run import FeedrateError
from ._study import call

if TYPE_CHECKING:
    import pandas


def load_results(folder: Union[str, os.PathLike[str]]) -> "pandas.DataFrame":
    """Returns one row for each run below `folder`, from the `summary.json` files of feedrate, DLIO and MLPerf Storage, and from complete records of
    watched loops, which `feedrate analyze` reads. If it cannot, a warning says that these loops are left out.

    Columns are `path` (relative to `folder`) and the keys of summary.json, of watched loops those without lists. Keys of `metric` have no prefix;
    lists and objects are not expanded. Values that a file does not contain are missing (NaN), never 0.

    Raises FileNotFoundError if there is no run, and ValueError with the file's name if a summary.json is not a JSON object.
    """
    pandas = import_optional("pandas")
    root = Path(folder)
    rows = [_row(root, path) for path in sorted(root.rglob("summary.json"))] + _watched_rows(root)
    if not rows:
        raise FileNotFoundError(f"there is no summary.json and no complete record of a watched loop below `{root}`")
    return pandas.DataFrame(rows)


def _row(root: Path, path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}`: {error}") from error
    metric = summary.pop("metric", {}) if isinstance(summary, dict) else None
    if not isinstance(metric, dict):
        raise ValueError(f"`{path}`: it is not the summary of a run")
    return {"path": str(path.parent.relative_to(root)), **summary, **metric}


def _watched_rows(root: Path) -> list[dict[str, Any]]:
    """Returns the rows of complete watched loops with the keys of summary.json."""
    folders = [path.parent for path in sorted(root.rglob("record.json")) if _is_watched(path) and not path.with_name("summary.json").exists()]
    if not folders:
        return []
    runs = []
    # A command line has room for a limited number of folders.
    for first in range(0, len(folders), 1000):
        part = folders[first : first + 1000]
        try:
            found = call("analyze", *part)
        except (OSError, FeedrateError) as error:
            warnings.warn(f"{len(part)} records of watched loops are left out: {error}", stacklevel=3)
            continue
        runs += found["runs"]
        for unread in found["left_out"]:
            warnings.warn(f"`{unread['path']}` is left out: {unread['why']}", stacklevel=3)
    return [_watched_row(root, run) for run in runs if "incomplete_run" not in [doubt["name"] for doubt in run["doubts"]]]


def _is_watched(path: Path) -> bool:
    """Whether a file is the record of a watched loop, by its first keys. Other programs may write files of the same name, and records may be large."""
    try:
        with open(path, "rb") as file:
            return re.search(rb'"program": ?"feedrate\.watch', file.read(100)) is not None
    except OSError:
        return False


def _watched_row(root: Path, run: dict[str, Any]) -> dict[str, Any]:
    row = {
        "path": os.path.relpath(run["path"], root),
        "start": run["started"],
        "num_accelerators": run["accelerators"],
        "num_hosts": run["hosts"],
        "hostname": run["hostname"],
        "epochs": run["epochs"],
        "end": run["ended"],
        "train_au_mean_percentage": run["au"]["windowed_percent"],
        "train_throughput_mean_samples_per_second": run["throughput"]["windowed_samples_per_second"],
        "train_au_all_steps_percentage": run["au"]["all_steps_percent"],
    }
    return {key: value for key, value in row.items() if value is not None}
