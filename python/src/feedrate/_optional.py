"""Imports libraries that only some functions need."""

from __future__ import annotations

import importlib
from types import ModuleType


def import_optional(name: str) -> ModuleType:
    """Imports the library `name`. If it is missing, raises ImportError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        message = f"this function needs `{error.name}`, which is not installed\n  hint: pip install {error.name}"
        raise ImportError(message, name=error.name) from error
