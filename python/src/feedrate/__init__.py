"""Runs feedrate's programs and reads the records they leave. The numbers are theirs; nothing is worked out here."""

from ._results import load_results
from ._run import FeedrateError, run

__all__ = ["FeedrateError", "load_results", "run"]
