#!/usr/bin/env python3
"""Measures the cost of `feedrate.watch` per step and per epoch: the median step time of an empty loop of 100,000 steps, compared with the same loop
unwatched, and the median time of passes over an empty loop of one step, of which the record is written twice.

Exits 1 if watching costs more than 5 µs per step or 50 ms per epoch. The record is written into a folder in `target`.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns as clock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/src"))
import feedrate  # noqa: E402

STEPS = 100_000
ROUNDS = 5
EPOCHS = 50
STEP_COST_MAX_NS = 5_000
EPOCH_COST_MAX_NS = 50_000_000


def median_ns(iterable):
    """Median time between two steps of a loop over an iterable."""
    times = []
    add = times.append
    for _ in iterable:
        add(clock())
    return statistics.median(after - before for before, after in zip(times, times[1:]))


def median_pass_ns(loop):
    """Median time of a pass over an iterable, without the first pass."""
    times = [clock()]
    for _ in range(1 + EPOCHS):
        for _ in loop:
            pass
        times.append(clock())
    return statistics.median(after - before for before, after in zip(times[1:], times[2:]))


def main():
    # Temporary folders may be in memory, where syncing costs nothing.
    parent = ROOT / "target"
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        pairs = []
        for number in range(ROUNDS):
            loop = feedrate.watch(range(STEPS), name=f"cost-{number}", results=folder)
            pairs.append((median_ns(range(STEPS)), median_ns(loop)))
            loop.close()
        loop = feedrate.watch(range(1), name="epochs", results=folder)
        epoch_ns = median_pass_ns(loop)
        loop.close()
    bare, watched = (statistics.median(values) for values in zip(*pairs))
    print(f"step: {bare:.0f} ns unwatched, {watched:.0f} ns watched: watching costs {watched - bare:.0f} ns, {STEP_COST_MAX_NS:,} ns are allowed")
    print(f"epoch: watching costs {epoch_ns / 1e6:.1f} ms, {EPOCH_COST_MAX_NS / 1e6:.0f} ms are allowed")
    return int(watched - bare > STEP_COST_MAX_NS or epoch_ns > EPOCH_COST_MAX_NS)


if __name__ == "__main__":
    sys.exit(main())
