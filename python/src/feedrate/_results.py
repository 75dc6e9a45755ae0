"""Reads the folders that runs leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Union

from ._optional import needed

if TYPE_CHECKING:
    import pandas


def load_results(folder: Union[str, os.PathLike[str]]) -> "pandas.DataFrame":
    """One row for each run below `folder`, from the `summary.json` files there: feedrate's, DLIO's, MLPerf Storage's.

    Columns are `path` (relative to `folder`) and the keys of summary.json, those of `metric` without a prefix; lists and objects
    stay as they are. What a file does not tell is missing (NaN), never 0.

    Raises FileNotFoundError where there is no such file, ValueError naming a file that is no object of JSON.
    """
    pandas = needed("pandas")
    root = Path(folder)
    rows = [_row(root, path) for path in _summaries(root)]
    if not rows:
        raise FileNotFoundError(f"there is no summary.json below `{root}`")
    return pandas.DataFrame(rows)


def _summaries(root: Path) -> Iterator[Path]:
    return iter(sorted(root.rglob("summary.json")))


def _row(root: Path, path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}`: {error}") from error
    metric = summary.pop("metric", {}) if isinstance(summary, dict) else None
    if not isinstance(metric, dict):
        raise ValueError(f"`{path}`: it is not the summary of a run")
    return {"path": str(path.parent.relative_to(root)), **summary, **metric}
