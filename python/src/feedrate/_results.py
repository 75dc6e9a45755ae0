"""Reads the result folders of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ._optional import import_optional
from ._study import call

if TYPE_CHECKING:
    import pandas


def load_results(folder: Union[str, os.PathLike[str]]) -> "pandas.DataFrame":
    """Returns one row for each run below `folder`, from the `summary.json` files of feedrate, DLIO and MLPerf Storage, and from complete records of
    watched loops, which `feedrate show` summarises.

    Columns are `path` (relative to `folder`) and the keys of summary.json. Keys of `metric` have no prefix; lists and objects are not
    expanded. Values that a file does not contain are missing (NaN), never 0.

    Raises FileNotFoundError if there is no run, and ValueError with the file's name if a file is not a JSON object.
    """
    pandas = import_optional("pandas")
    root = Path(folder)
    watched = (_watched_row(root, path) for path in sorted(root.rglob("record.json")) if not path.with_name("summary.json").exists())
    rows = [_row(root, path) for path in sorted(root.rglob("summary.json"))] + [row for row in watched if row]
    if not rows:
        raise FileNotFoundError(f"there is no summary.json and no complete record of a watched loop below `{root}`")
    return pandas.DataFrame(rows)


def _row(root: Path, path: Path) -> dict[str, Any]:
    summary = _parsed(path)
    metric = summary.pop("metric", {}) if isinstance(summary, dict) else None
    if not isinstance(metric, dict):
        raise ValueError(f"`{path}`: it is not the summary of a run")
    return {"path": str(path.parent.relative_to(root)), **summary, **metric}


def _watched_row(root: Path, path: Path) -> Optional[dict[str, Any]]:
    """Returns the row of a watched loop with the keys of summary.json; None if the record is of another kind or incomplete."""
    record = _parsed(path)
    if not isinstance(record, dict) or not record.get("watched") or not record.get("complete"):
        return None
    summary = call("show", path.parent)
    samples_per_second, epochs = summary["throughput"]["samples_per_second"], summary["per_epoch"]
    row = {
        "path": str(path.parent.relative_to(root)),
        "start": record["started"],
        "num_accelerators": summary["accelerators"],
        "num_hosts": len(record.get("nodes", [record["system"]])),
        "hostname": record["system"]["hostname"],
        "epochs": summary["epochs"],
        "end": record["ended"],
        "train_au_percentage": [epoch["au"]["windowed_percent"] for epoch in epochs],
        "train_au_mean_percentage": summary["au"]["windowed_percent"],
        "train_throughput_samples_per_second": [epoch["throughput"]["samples_per_second"]["windowed"] for epoch in epochs],
        "train_throughput_mean_samples_per_second": samples_per_second["windowed"],
        "train_au_all_steps_percentage": summary["au"]["all_steps_percent"],
    }
    return {key: value for key, value in row.items() if value is not None and value != [None] * len(epochs)}


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}`: {error}") from error
