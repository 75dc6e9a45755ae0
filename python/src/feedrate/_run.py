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

DONE = (3, 4)
"""The run is done, but not as `--fail-below-au` or `--fail-on` ask for, or that cannot be told."""


class FeedrateError(RuntimeError):
    """The program ended with another code than 0; `code` is that code, the text what it said.

    `summary` is that of a run that was done, but not as `--fail-below-au` or `--fail-on` asked (3) or nobody can tell (4), else None.
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
    """Run a workload and return its summary, the object that `feedrate run --json` prints.

    `workload` is a bundled name or a YAML file; `overrides` are `{"reader.batch_size": 4}` or `["reader.batch_size=4"]`;
    `arguments` are more flags, as `["--cold"]`; `launcher` comes before the program, as `["mpirun", "-np", "4"]`.

    Raises FeedrateError where the program fails, with what it wrote to stderr.
    """
    if isinstance(overrides, Mapping):
        overrides = [f"{key}={_text(value)}" for key, value in overrides.items()]
    command = [*launcher, program("feedrate"), "run", os.fspath(workload), *overrides, *arguments, "--json"]
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", check=False
    )
    if done.returncode != 0:
        summary = _summary(done.stdout) if done.returncode in DONE else None
        raise FeedrateError(done.returncode, done.stderr.strip(), summary)
    return json.loads(done.stdout)


def program(name: str) -> str:
    """The path of one of the programs that came with this package, else the one on PATH."""
    own = Path(sysconfig.get_path("scripts")) / name
    beside = Path(sys.executable).parent / name
    for path in (own, beside):
        if path.is_file():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"there is no `{name}` beside this Python or on PATH")
    return found


def _summary(text: str) -> Optional[dict[str, Any]]:
    """None where a launcher ends with the same code and the program said nothing."""
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
