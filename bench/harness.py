"""Runs feedrate and fio as child processes, and measures what they cost. No judgement here."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEEDRATE = ROOT / "target/release/feedrate"
WORKLOADS = ROOT / "bench/workloads"


@dataclass
class Child:
    """A process that has ended."""

    stdout: str
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int


@dataclass
class Rate:
    """Bytes moved, and what moving them cost."""

    bytes_per_second: float
    cpu_s_per_gb: float


class Failed(Exception):
    """A child failed, with its words."""


def run_child(argv):
    """Run to the end, in the workspace. Resources are those of the child and of the children it waited for."""
    argv = [str(word) for word in argv]
    program = shutil.which(argv[0])
    if program is None:
        raise Failed(f"there is no `{argv[0]}`\n  hint: run `cargo xtask setup --bench`")
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder, "numbers")
        launch = [sys.executable, "-I", "-S", ROOT / "bench/launch.py", numbers, program, *argv[1:]]
        done = subprocess.run(launch, capture_output=True, text=True, errors="replace", cwd=ROOT, check=True)
        wall_s, cpu_s, peak_kib, status = numbers.read_text().split()
    code = os.waitstatus_to_exitcode(int(status))
    if code != 0:
        words = (done.stderr + done.stdout)[-2000:]
        raise Failed(f"`{' '.join(argv)[:300]}` ended with {code}:\n{words}")
    return Child(done.stdout, float(wall_s), float(cpu_s), int(peak_kib) * 1024)


def rss_floor_bytes():
    """What `run_child` reports for a program that needs nothing."""
    return run_child(["true"]).peak_rss_bytes


def feedrate_run(workload, overrides=(), accelerators=1, data=None, results=None):
    """`feedrate run`: its summary, and the process."""
    argv = [FEEDRATE, "run", WORKLOADS / workload, *overrides, "-n", accelerators]
    argv += ["--data", data, "--results", results, "--json", "--quiet"]
    child = run_child(argv)
    return json.loads(child.stdout), child


def feedrate_rate(workload, overrides, data, results):
    """`feedrate run` as a rate."""
    summary, child = feedrate_run(workload, overrides, 1, data, results)
    moved = summary["bytes"]["logical"]
    rate = summary["throughput"]["delivered_bytes_per_second"]["whole"]
    return Rate(rate, child.cpu_s / (moved / 1e9))


def epochs_for(seconds, workload, overrides, data, results):
    """Epochs that last at least `seconds`, after a trial that also warms the page cache."""
    summary, _ = feedrate_run(workload, [*overrides, "train.epochs=3"], 1, data, results)
    epoch_bytes = summary["bytes"]["logical"] / 3
    rate = summary["throughput"]["delivered_bytes_per_second"]["whole"]
    return max(1, int(1.15 * seconds * rate / epoch_bytes) + 1)


def generate(workload, data):
    """Make a dataset unless it is there. Durable before anything is measured."""
    run_child([FEEDRATE, "generate", WORKLOADS / workload, "--data", data, "--quiet"])
    os.sync()


def dataset_files(folder, suffix):
    """The training files below a data folder."""
    files = sorted(path for path in Path(folder).rglob(f"*{suffix}") if path.parent.name == "train")
    if not files:
        raise Failed(f"no {suffix} files below {folder}")
    return files


def crc_rate(processes, seconds):
    """The checksum's own rate with `processes` at once, over memory that stays in the cache."""
    argv = [FEEDRATE, "bench-crc", "--seconds", str(seconds)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(processes)]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise Failed("`feedrate bench-crc` failed")
    return sum(json.loads(output)["bytes_per_second"] for output in outputs)


def fio_read(files, jobs, seconds, block_bytes, file_order=None):
    """fio reading `files` from the page cache, shared out among `jobs`."""
    options = ["rw=read", "invalidate=0", "time_based=1", f"runtime={int(seconds * 1000)}ms", f"bs={block_bytes}"]
    if file_order:
        options.append(f"file_service_type={file_order}")
    shares = [[f"filename={fio_path(path)}" for path in files[job::jobs]] for job in range(jobs)]
    return fio(options, shares, "read")


def fio_write(folder, files, file_bytes, jobs):
    """fio writing `files` files of `file_bytes`, durable at the end."""
    options = ["rw=write", "refill_buffers=1", "end_fsync=1", "bs=1M", f"filesize={file_bytes}"]
    shares = [[f"directory={fio_path(folder)}", f"nrfiles={files // jobs}"] for _ in range(jobs)]
    return fio(options, shares, "write")


def fio(options, shares, direction):
    """Run one group of jobs; each share is one job's own options."""
    with tempfile.TemporaryDirectory() as folder:
        job_file, output = Path(folder, "jobs.fio"), Path(folder, "out.json")
        lines = ["[global]", "ioengine=psync", "iomem=mmap", "group_reporting=1", *options]
        for number, share in enumerate(shares):
            lines += [f"[job{number}]", *share]
        job_file.write_text("\n".join(lines) + "\n")
        safety = ["--readonly"] if direction == "read" else []
        child = run_child(["fio", *safety, "--output-format=json", f"--output={output}", job_file])
        text = output.read_text()
    # fio may print notes before the object.
    result = json.loads(text[text.index("{") :])["jobs"][0][direction]
    return Rate(result["bw_bytes"], child.cpu_s / (result["io_bytes"] / 1e9))


def fio_path(path):
    """fio separates file names by colons."""
    return str(path).replace(":", "\\:")


def warm(files):
    """Read every byte once."""
    buffer = bytearray(1 << 20)
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def empty(folder):
    """Remove a folder, and wait until the device is quiet."""
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    os.sync()


def median(values):
    """The middle value."""
    return statistics.median(values)


def machine_line():
    """What this ran on."""
    model = first_value("/proc/cpuinfo", "model name")
    memory_gib = int(first_value("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    kernel = os.uname().release
    fio_version = run_child(["fio", "--version"]).stdout.strip()
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.0f} GiB, Linux {kernel}, {fio_version}"


def first_value(path, key):
    """The value of the first `key : value` line."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"
