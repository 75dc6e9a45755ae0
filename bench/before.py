#!/usr/bin/env python3
"""Compares this build of feedrate with an earlier one: prints a table of ratios, and exits 1 if a ratio is below `--least`.

The builds alternate in rounds. Each build has its own files, as the bytes of a format may have changed. A ratio is computed within a round: the
rate of this build divided by the rate of the earlier build, or for start-up the earlier time divided by the new time. The median of the ratios
over all rounds is compared with `--least`.
"""

import argparse
import sys
from pathlib import Path

import harness
from harness import FEEDRATE, ROOT, median
from table import Settings, gb, ratio_row, table_lines

READS = {
    "npy": ["dataset.format=npy"],
    "npz, check on": ["dataset.format=npz", "reader.check_crc=True"],
    "npz, check off": ["dataset.format=npz", "reader.check_crc=False"],
    "hdf5": ["dataset.format=hdf5"],
    "tfrecord": ["dataset.format=tfrecord", "dataset.num_samples_per_file=64", "dataset.record_length_bytes=131072"],
}
CHECKPOINT_BYTES = 512 << 20


def main():
    arguments = parse_arguments()
    settings = Settings(arguments.rounds, arguments.seconds, False, arguments.data.resolve())
    settings.data.mkdir(parents=True, exist_ok=True)
    builds = Builds(arguments.earlier.resolve(), settings)
    rows = [builds.compare(f"warm {name}", builds.reader(name)) for name in READS]
    rows += [builds.compare(f"checkpoint {what}", builds.checkpoint(what)) for what in ("written", "read")]
    rows.append(builds.compare("start-up", builds.start_up(), lambda rate: f"{1e3 / rate:.1f} ms"))
    for row in rows:
        row.peer = f"earlier: {row.peer}"
    print("\n".join(table_lines(rows)))
    sys.exit(0 if all(row.met for row in rows) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path, help="the earlier build's binary")
    parser.add_argument("--least", type=float, default=0.97, help="minimum ratio (0.97)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="approximate duration of a run (2)")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if not FEEDRATE.exists():
        sys.exit("error: there is no target/release/feedrate\n  hint: run `cargo build --release`")
    Builds.least = arguments.least
    return arguments


class Builds:
    """The two builds, and the function that measures a rate with either of them."""

    least = 0.97

    def __init__(self, earlier, settings):
        self.earlier, self.settings = earlier, settings
        self.names = {earlier: "earlier", FEEDRATE: "this"}

    def compare(self, what, measure, format_rate=gb):
        """Measures both builds in turns. The first turn of each build is a warm-up and does not count."""
        rates = {FEEDRATE: [], self.earlier: []}
        for turn in range(self.settings.rounds + 1):
            order = list(rates) if turn % 2 else list(rates)[::-1]
            for build in order:
                harness.FEEDRATE = build
                rate = measure()
                if turn:
                    rates[build].append(rate)
        harness.FEEDRATE = FEEDRATE
        ours, earlier = rates.values()
        ratios = [new / old for new, old in zip(ours, earlier)]
        return ratio_row(what, format_rate(median(ours)), format_rate(median(earlier)), ratios, self.least)

    def reader(self, name):
        keys, file_format = READS[name], name.partition(",")[0]
        folders = {build: self.settings.data / f"before_{file_format}" / build_name for build, build_name in self.names.items()}
        for build, data in folders.items():
            harness.FEEDRATE = build
            harness.generate("format.yaml", data, keys)
            harness.warm(sorted(path for path in data.rglob("*") if path.is_file()))
        epochs = harness.epochs_for(self.settings.seconds, "format.yaml", keys, data, self.settings.results)
        overrides = [*keys, f"train.epochs={epochs}"]

        def measure():
            data = folders[harness.FEEDRATE]
            return harness.feedrate_rate("format.yaml", overrides, data, self.settings.results).bytes_per_second

        return measure

    def checkpoint(self, what):
        writes, reads, direction = (1, 0, "save") if what == "written" else (0, 1, "load")

        def run(writes, reads):
            keys = [
                "workflow.train=false",
                "workflow.checkpoint=true",
                f"model.model_size_bytes={CHECKPOINT_BYTES}",
                f"checkpoint.checkpoint_folder={self.checkpoint_folder()}",
                f"checkpoint.num_checkpoints_write={writes}",
                f"checkpoint.num_checkpoints_read={reads}",
            ]
            summary, _ = harness.feedrate_run("null.yaml", keys, 1, self.settings.data / "null", self.settings.results)
            return summary["checkpoint"]

        def measure():
            if writes:
                harness.empty(self.checkpoint_folder())
            done = run(writes, reads)[direction]
            return done["bytes"] / done["duration_s"]

        for harness.FEEDRATE in self.names:
            harness.empty(self.checkpoint_folder())
            run(1, 0)
        return measure

    def checkpoint_folder(self):
        """Returns the checkpoint folder of the build that is being measured."""
        return self.settings.data / "before_checkpoints" / self.names[harness.FEEDRATE]

    def start_up(self):
        folder = self.settings.data / "tiny"
        harness.generate("tiny.yaml", folder)

        def measure():
            runs = [harness.feedrate_run("tiny.yaml", [], 1, folder, self.settings.results)[1] for _ in range(9)]
            return 1 / median([run.wall_s for run in runs])

        return measure


if __name__ == "__main__":
    main()
