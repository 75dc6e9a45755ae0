"""Evaluates and formats the rows of bench/README.md."""

import datetime
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import ROOT, median

README = ROOT / "bench/README.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass
class Settings:
    """Amount of measurements, and their folder."""

    rounds: int
    seconds: float
    quick: bool
    data: Path

    @property
    def results(self):
        return self.data / "results"


@dataclass
class Row:
    """One line of the table."""

    what: str
    ours: str
    peer: str
    figure: str
    target: str
    # None without a target.
    met: bool | None


def rate_row(what, ours, peers, least, peer="fio"):
    """Compares feedrate's rates with a peer's. The target is a share of `least`, if given."""
    ratios = [our / peer for our, peer in zip(ours, peers)]
    return ratio_row(what, gb(median(ours)), f"{peer}: {gb(median(peers))}", ratios, least)


def ratio_row(what, ours, peer, ratios, least):
    """Median of ratios. The target is `least`, if given."""
    target = "" if least is None else f"≥ {least:.2f}"
    return Row(what, ours, peer, ratio_text(ratios), target, None if least is None else median(ratios) >= least)


def checked_row(what, ours, reads, checks, reader, check):
    """Compares rates of reading with checks with those of a reader followed by a checksum."""
    bounds = [1 / (1 / read + 1 / summed) for read, summed in zip(reads, checks)]
    ratios = [our / bound for our, bound in zip(ours, bounds)]
    beside = f"{reader} and {check} one after the other: {gb(median(bounds))} ({check} alone {gb(median(checks))})"
    return ratio_row(what, gb(median(ours)), beside, ratios, 0.9)


def bytes_per_second(rates):
    return [rate.bytes_per_second for rate in rates]


def gb(bytes_per_second):
    return f"{bytes_per_second / 1e9:.2f} GB/s"


def ratio_text(ratios):
    if len(ratios) == 1:
        return f"{ratios[0]:.2f}"
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def workers_text(workers):
    return f"{workers} worker{'s' if workers > 1 else ''}"


def as_markdown(rows, settings):
    today = datetime.date.today().isoformat()
    rounds = "1 short round, a smoke test" if settings.quick else f"medians of {settings.rounds}, {settings.seconds:.0f} s each"
    return "\n".join([f"{today}: {harness.machine_line()}; {rounds}.", "", *table_lines(rows)])


def table_lines(rows):
    lines = ["| what | feedrate | beside it | ratio (range) | target | met |", "|---|---|---|---|---|---|"]
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        lines.append(f"| {row.what} | {row.ours} | {row.peer} | {row.figure} | {row.target} | {met} |")
    return lines


def write_table(table):
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
