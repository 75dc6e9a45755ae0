#!/usr/bin/env python3
"""Measures the cost of `feedrate.watch` per step: the median step time of an empty loop of 100,000 steps, compared with the same loop unwatched.

Prints both times, and exits 1 if watching costs more than 5 µs per step. The record is written into a temporary folder.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns as clock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python/src"))
import feedrate  # noqa: E402

STEPS = 100_000
ROUNDS = 5
COST_MAX_NS = 5_000


def median_ns(iterable):
    """Median time between two steps of a loop over an iterable."""
    times = []
    add = times.append
    for _ in iterable:
        add(clock())
    return statistics.median(after - before for before, after in zip(times, times[1:]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        pairs = []
        for number in range(ROUNDS):
            loop = feedrate.watch(range(STEPS), name=f"cost-{number}", results=folder)
            pairs.append((median_ns(range(STEPS)), median_ns(loop)))
            loop.close()
    bare, watched = (statistics.median(values) for values in zip(*pairs))
    print(f"{bare:.0f} ns per step unwatched, {watched:.0f} ns watched: watching costs {watched - bare:.0f} ns, {COST_MAX_NS:,} ns are allowed")
    return int(watched - bare > COST_MAX_NS)


if __name__ == "__main__":
    sys.exit(main())
