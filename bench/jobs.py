#!/usr/bin/env python3
"""Compares typical training loops (job_loops.py: PyTorch over npz and jpeg, tf.data over TFRecord, WebDataset over tar) with their emulation. Each
loop is watched by `feedrate.watch` and recorded by strace, and by Darshan if `--darshan` names its library. The log is imported and emulated twice:
from the log alone, with files that feedrate generates; and from the log, the loop's own files, the watched batch size and step time, and the
measured client if there is one. Prints the ratio of the emulation to the log, and the AU and steps per second of the watched loop and the emulation.

Loop and emulation read files from the page cache with two workers, in two epochs with steps of 50 ms.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT

LOOPS = {"torch_npz": "PyTorch, npz", "torch_jpeg": "PyTorch, jpeg", "tf_data": "tf.data, TFRecord", "webdataset": "WebDataset, tar"}
ASPECTS = {
    "sizes": "sizes", "order": "order (points)", "opens": "reads per open", "rereads": "times read", "overlap": "overlap (points)",
    "concurrency": "in flight", "byte_rate": "bytes/s", "read_rate": "reads/s",
}
# Clients measured with plain PyTorch; the other loops are emulated with an ideal client.
CLIENTS = {"torch_npz": ["client=pytorch-npz"], "torch_jpeg": ["client=pytorch-jpeg"]}
# Facts that a log does not contain, or contains in another form.
IGNORED_FACTORS = ("workload", "batch_size", "record_length_bytes", "computation_time")


def run(argv, folder, **options):
    """Runs a command and returns its output."""
    argv = [str(word) for word in argv]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, **options)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"`{' '.join(argv)}` ended with {done.returncode}:\n{(done.stderr + done.stdout)[-2000:]}")
    return done.stdout


class Job:
    def __init__(self, name, python, arguments):
        self.name, self.binary, self.rounds = name, arguments.binary.resolve(), arguments.rounds
        self.loop = [python.absolute(), "-W", "ignore", ROOT / "bench/job_loops.py", name]
        self.folder = arguments.data.resolve() / "jobs" / name
        self.data = self.folder / "files"
        if not self.data.exists():
            part = self.folder / "part"
            shutil.rmtree(part, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            run([*self.loop, part, "--make"], self.folder)
            part.rename(self.data)
        self.darshan = arguments.darshan
        self.results = self.folder / "results"
        shutil.rmtree(self.results, ignore_errors=True)

    def feedrate(self, *words):
        return json.loads(run([self.binary, *words, "--json"], self.folder))

    def watch(self):
        for _ in range(self.rounds):
            run([*self.loop, self.data, "--watch", self.results / "watched"], self.folder)
        return self.results / "watched"

    def logs(self):
        log = self.folder / "job.strace"
        run(["strace", "-f", "-ttt", "-T", "-y", "-o", log, *self.loop, self.data], self.folder)
        yield "strace", log
        if self.darshan:
            logs = self.folder / "darshan"
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir()
            preload = {"LD_PRELOAD": self.darshan, "DARSHAN_ENABLE_NONMPI": "1", "DXT_ENABLE_IO_TRACE": "1", "DARSHAN_MODMEM": "64", "DARSHAN_LOGDIR": str(logs)}
            run([*self.loop, self.data], self.folder, env=os.environ | preload)
            yield "Darshan", logs

    def emulate(self, log, kind, files, keys):
        """Imports a log, runs the resulting workload, and returns the folders of the runs."""
        self.feedrate("import", log, "-o", f"{kind}.yaml", "--force", *files)
        argv = ["run", f"{kind}.yaml", *keys, "--results", self.results / kind, "--quiet"]
        return [self.folder / self.feedrate(*argv)["run_dir"] for _ in range(self.rounds)]

    def rows(self):
        watched = self.watch()
        loops = [record(folder.parent) for folder in watched.rglob("record.json")]
        step = statistics.median(step for loop in loops for step in compute_seconds(loop))
        keys = [*CLIENTS.get(self.name, []), f"train.computation_time={step:.6f}", f"reader.batch_size={loops[0]['plan']['loader']['batch_size']}"]
        emulations = (("generated", "{}", [], []), ("own", "{} and loop", ["--data", self.data], keys))
        for (tool, log), (variant, label, files, overrides) in itertools.product(self.logs(), emulations):
            kind = f"{tool.lower()}-{variant}"
            runs = self.emulate(log, kind, files, overrides)
            aspects = {aspect["aspect"]: difference_text(aspect) for aspect in self.feedrate("compare", runs[0], log)["aspects"]}
            across = [word for key in IGNORED_FACTORS for word in ("--across", key)]
            found = self.feedrate("compare", watched, self.results / kind, *across, "--response", "au_all_steps_percent")["findings"]
            au = [f"{statistics.median(found[0][side]['values']):.1f}" for side in "ab"] if found else ["not compared"]
            rates = [statistics.median(map(steps_per_second, side)) for side in (loops, map(record, runs))]
            yield [LOOPS[self.name], label.format(tool), *(aspects[name] for name in ASPECTS), "→".join(au), "→".join(f"{rate:.1f}" for rate in rates)]


def record(folder):
    return json.loads((folder / "record.json").read_text())


def compute_seconds(run):
    return [ns / 1e9 for epoch in run["epochs"] for block in epoch["accelerators"][0]["blocks"] for ns in block["compute_ns"]]


def steps_per_second(run):
    return len(compute_seconds(run)) * 1e9 / sum(epoch["end_ns"] - epoch["start_ns"] for epoch in run["epochs"])


def difference_text(aspect):
    """Formats the difference of two values: percentage points for shares, else their ratio."""
    a, b = aspect["a"], aspect["b"]
    if a is None or b is None:
        return "unknown"
    if aspect["aspect"] == "order":
        return f"{50 * sum(abs(a[key] - b[key]) for key in a):.1f}"
    if aspect["aspect"] == "overlap":
        return f"{100 * abs(a - b):.1f}"
    return f"{max(a, b) / min(a, b):.2f}"


def main():
    arguments = parse_arguments()
    print(f"| loop | emulated from | {' | '.join(ASPECTS.values())} | AU (%), watched→emulated | steps/s |")
    print("|" + "---|" * (4 + len(ASPECTS)))
    for name in arguments.only or LOOPS:
        python = arguments.tensorflow_python if name == "tf_data" else arguments.python
        for row in Job(name, python or arguments.python, arguments).rows():
            print("| " + " | ".join(row) + " |", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="Python with torch, webdataset, numpy and Pillow (this one)")
    parser.add_argument("--tensorflow-python", type=Path, help="Python with tensorflow, numpy and Pillow (the same)")
    parser.add_argument("--darshan", help="path of Darshan's runtime library, to record the loops with Darshan too")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each loop and of each emulation (3)")
    parser.add_argument("--only", action="append", choices=LOOPS, help="only this loop")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for files, logs and results (target/bench-data)")
    arguments = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("error: there is no `strace`\n  hint: install it with your distribution's package manager")
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


if __name__ == "__main__":
    main()
