"""Reads the result folders of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Union

from ._optional import import_optional

if TYPE_CHECKING:
    import pandas


def load_results(folder: Union[str, os.PathLike[str]]) -> "pandas.DataFrame":
    """Returns one row for each run below `folder`, from the `summary.json` files of feedrate, DLIO and MLPerf Storage.

    Columns are `path` (relative to `folder`) and the keys of summary.json. Keys of `metric` have no prefix; lists and objects are not
    expanded. Values that a file does not contain are missing (NaN), never 0.

    Raises FileNotFoundError if there is no `summary.json`, and ValueError with the file's name if a file is not a JSON object.
    """
    pandas = import_optional("pandas")
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
