"""Runs feedrate's programs, reads their results, and watches training loops. All numbers are computed by the programs."""

from ._plots import plot_levels, plot_processes
from ._results import load_results
from ._run import FeedrateError, run
from ._study import call, design, experiments, findings, load_study, run_study, system
from ._callbacks import keras_callback, lightning_callback
from ._watch import checkpoint, watch

__all__ = [
    "FeedrateError",
    "call",
    "checkpoint",
    "design",
    "experiments",
    "findings",
    "keras_callback",
    "lightning_callback",
    "load_results",
    "load_study",
    "plot_levels",
    "plot_processes",
    "run",
    "run_study",
    "system",
    "watch",
]
