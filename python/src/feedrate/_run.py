"""Starts `feedrate run`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

Value = Union[str, int, float, bool, None]

COMPLETED_CODES = (3, 4)
"""Exit codes of completed runs: 3 if the run does not meet `--fail-below-au` or `--fail-on`, 4 if that is unknown."""


class FeedrateError(RuntimeError):
    """The program ended with an exit code other than 0. `code` is the exit code; the text is the program's output.

    `summary` is the summary of a completed run with exit code 3 or 4 (see `COMPLETED_CODES`), else None.
    """

    def __init__(self, code: int, message: str, summary: Optional[dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.code = code
        self.summary = summary


def run(
    workload: Union[str, os.PathLike[str]],
    overrides: Union[Mapping[str, Value], Sequence[str]] = (),
    *,
    arguments: Sequence[str] = (),
    launcher: Sequence[str] = (),
    cwd: Union[str, os.PathLike[str], None] = None,
) -> dict[str, Any]:
    """Runs a workload and returns its summary, the object that `feedrate run --json` prints.

    `workload` is a bundled name or a YAML file; `overrides` are `{"reader.batch_size": 4}` or `["reader.batch_size=4"]`;
    `arguments` are further flags, such as `["--cold"]`; `launcher` precedes the program, such as `["mpirun", "-np", "4"]`.

    Raises FeedrateError with the program's stderr if it fails.
    """
    if isinstance(overrides, Mapping):
        overrides = [f"{key}={_text(value)}" for key, value in overrides.items()]
    command = [*launcher, program("feedrate"), "run", os.fspath(workload), *overrides, *arguments, "--json"]
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", check=False
    )
    if done.returncode != 0:
        summary = _summary(done.stdout) if done.returncode in COMPLETED_CODES else None
        raise FeedrateError(done.returncode, done.stderr.strip(), summary)
    return json.loads(done.stdout)


def program(name: str) -> str:
    """Returns the path of a program of this package, or of the program on PATH if the package has none."""
    packaged = Path(sysconfig.get_path("scripts")) / name
    beside = Path(sys.executable).parent / name
    for path in (packaged, beside):
        if path.is_file():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"there is no `{name}` next to this Python or on PATH")
    return found


def _summary(text: str) -> Optional[dict[str, Any]]:
    """Parses the summary in the output; None if a launcher ended with the same code before the program printed it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def _text(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
