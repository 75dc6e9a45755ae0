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
    """Number and duration of measurements, and the folder for their data."""

    rounds: int
    seconds: float
    quick: bool
    data: Path

    @property
    def results(self):
        return self.data / "results"


@dataclass
class Row:
    """A row of the table."""

    what: str
    ours: str
    peer: str
    figure: str
    target: str
    # None if there is no target.
    met: bool | None


def rate_row(what, ours, peers, minimum, peer="fio"):
    """Compares feedrate's rates with the rates of a peer. `minimum` is the target of the ratio, if given."""
    ratios = [our_rate / peer_rate for our_rate, peer_rate in zip(ours, peers)]
    return ratio_row(what, gb(median(ours)), f"{peer}: {number_of_gb(median(peers))}", ratios, minimum)


def ratio_row(what, ours, peer, ratios, minimum):
    """Evaluates the median of ratios. `minimum` is the target, if given."""
    target = "" if minimum is None else f"≥{minimum:.2f}"
    return Row(what, ours, peer, ratio_text(ratios), target, None if minimum is None else median(ratios) >= minimum)


def checked_row(what, ours, reads, checks, reader, check):
    """Compares checked reads with a peer that reads and then computes the checksum."""
    bounds = [1 / (1 / read_rate + 1 / check_rate) for read_rate, check_rate in zip(reads, checks)]
    ratios = [our_rate / bound for our_rate, bound in zip(ours, bounds)]
    peer = f"{reader}, then {check}: {number_of_gb(median(bounds))} ({check}: {number_of_gb(median(checks))})"
    return ratio_row(what, gb(median(ours)), peer, ratios, 0.9)


def bytes_per_second(rates):
    return [rate.bytes_per_second for rate in rates]


def gb(bytes_per_second):
    return f"{number_of_gb(bytes_per_second)} GB/s"


def number_of_gb(bytes_per_second):
    return f"{bytes_per_second / 1e9:.2f}"


def ratio_text(ratios):
    if len(ratios) == 1:
        return f"{ratios[0]:.2f}"
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def workers_text(workers):
    return f"{workers} worker{'s' if workers > 1 else ''}"


def as_markdown(rows, settings):
    today = datetime.date.today().isoformat()
    rounds = "1 short round, a smoke test" if settings.quick else f"medians of {settings.rounds}, {settings.seconds:.0f} s each"
    return "\n".join([f"{today}: {harness.machine_line()}; {rounds}.", "", *table_lines(rows)])


def table_lines(rows):
    lines = ["| what | feedrate | peer | ratio (range) | target |", "|---|---|---|---|---|"]
    for row in rows:
        missed = ", **missed**" if row.met is False else ""
        lines.append(f"| {row.what} | {row.ours} | {row.peer} | {row.figure} | {row.target}{missed} |")
    return lines


def write_table(table):
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
