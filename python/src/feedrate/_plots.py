"""Plots the results of `feedrate.experiments` on matplotlib Axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._optional import import_optional

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

# Colours of Okabe and Ito (2008), which are distinguishable with any colour vision. Markers distinguish lines in black-and-white prints.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

LABELS = {
    "au_all_steps_percent": ("AU, all steps (%)", 1.0),
    "au_windowed_percent": ("AU, windowed (%)", 1.0),
    "au_sustained_percent": ("AU, sustained (%)", 1.0),
    "samples_per_second": ("throughput (samples/s)", 1.0),
    "bytes_per_second": ("I/O throughput (MiB/s)", 2.0**20),
}


def plot_processes(experiments: "pandas.DataFrame", response: str, ax: Any = None) -> "matplotlib.axes.Axes":
    """Plots a response against the number of processes, with a line for each combination of settings that was run with several numbers of processes.

    Bars are 95 % intervals.
    """
    ax = _axes(ax)
    frame, label = _response_rows(experiments, response)
    lines = [
        (name, line.sort_values("processes"))
        for name, line in frame.groupby(_run_names(frame), sort=False)
        if line["processes"].nunique() > 1
    ]
    for index, (name, line) in enumerate(lines):
        # Lines are shifted sideways, so overlapping bars remain visible.
        shift = 0.06 * (index - (len(lines) - 1) / 2)
        ax.errorbar(line["processes"].astype(float) + shift, line["estimate"], _bars(line), label=name, **_style(index))
    if lines:
        ax.set_xticks(sorted(frame["processes"].dropna().unique()))
        ax.legend(frameon=False)
    else:
        ax.text(0.5, 0.5, "no combination was run with several numbers of processes", ha="center", transform=ax.transAxes)
    return _finish(ax, "y", label, "processes")


def plot_levels(experiments: "pandas.DataFrame", response: str, ax: Any = None) -> "matplotlib.axes.Axes":
    """Plots a response by the level of each factor, with a row per level and a mark for each number of processes. Bars are 95 % intervals.

    A dashed line shows the study's baseline, if it was run separately.
    """
    ax = _axes(ax)
    frame, label = _response_rows(experiments, response)
    # The baseline's only factor is its number of processes.
    is_baseline = frame["parameter"] == "processes"
    levels, baseline = frame[~is_baseline], frame[is_baseline]
    rows = levels[["parameter", "value"]].drop_duplicates().iloc[::-1]
    names = [f"{parameter} = {value}" for parameter, value in rows.itertuples(index=False)]
    positions = {name: position for position, name in enumerate(names)}
    counts = sorted(levels["processes"].dropna().unique())
    for index, count in enumerate(counts):
        points = levels[levels["processes"] == count]
        shift = 0.14 * ((len(counts) - 1) / 2 - index)
        heights = [positions[f"{p} = {v}"] + shift for p, v in zip(points["parameter"], points["value"])]
        style = {**_style(index), "linestyle": "none"}
        label_of_count = "1 process" if count == 1 else f"{count} processes"
        ax.errorbar(points["estimate"], heights, xerr=_bars(points), label=label_of_count, **style)
        for estimate in baseline.loc[baseline["processes"] == count, "estimate"]:
            ax.axvline(estimate, color=style["color"], linestyle="--", linewidth=1, label=f"baseline, {label_of_count}", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    if names:
        # The legend is above all marks.
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0, columnspacing=1, handletextpad=0.3)
    else:
        ax.text(0.5, 0.5, "only the number of processes was varied", ha="center", transform=ax.transAxes)
    return _finish(ax, "x", label, "")


def _axes(ax: Any) -> Any:
    return import_optional("matplotlib.pyplot").gca() if ax is None else ax


def _response_rows(experiments: "pandas.DataFrame", response: str) -> tuple["pandas.DataFrame", str]:
    """Returns the rows of a response in the unit of its label, and the label. Raises ValueError if there is no such response."""
    if response not in LABELS:
        raise ValueError(f"no response is called `{response}`\n  hint: use one of {', '.join(LABELS)}")
    label, unit = LABELS[response]
    frame = experiments[experiments["response"] == response].dropna(subset=["estimate"]).copy()
    frame[["estimate", "low", "high"]] /= unit
    return frame, label


def _run_names(frame: "pandas.DataFrame") -> "pandas.Series":
    """Returns names of runs without their numbers of processes. Model and source are included only if they differ between runs."""
    names = (frame["parameter"] + " = " + frame["value"]).where(frame["parameter"] != "processes", "baseline")
    for column in ("model", "source"):
        if frame[column].nunique() > 1:
            names = frame[column] + ", " + names
    return names


def _bars(points: "pandas.DataFrame") -> list[Any]:
    return [points["estimate"] - points["low"], points["high"] - points["estimate"]]


def _style(index: int) -> dict[str, Any]:
    style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
    return {**style, "capsize": 3, "markersize": 5, "linewidth": 1.5, "elinewidth": 1}


def _finish(ax: Any, axis: str, label: str, other: str) -> Any:
    """Labels the axes and sets their limits. Axes start at 0, since readers compare lengths."""
    limit = {"left": 0} if axis == "x" else {"bottom": 0}
    if label.startswith("AU"):
        limit["right" if axis == "x" else "top"] = 105
    (ax.set_xlim if axis == "x" else ax.set_ylim)(**limit)
    ax.set(**{f"{axis}label": label, f"{'y' if axis == 'x' else 'x'}label": other})
    ax.grid(axis=axis, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
