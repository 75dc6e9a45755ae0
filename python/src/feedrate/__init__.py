"""Runs feedrate's programs and reads what they leave. The numbers are theirs; nothing is worked out here."""

from ._plots import plot_levels, plot_processes
from ._results import load_results
from ._run import FeedrateError, run
from ._study import call, design, experiments, findings, load_study, run_study, system

__all__ = [
    "FeedrateError",
    "call",
    "design",
    "experiments",
    "findings",
    "load_results",
    "load_study",
    "plot_levels",
    "plot_processes",
    "run",
    "run_study",
    "system",
]
