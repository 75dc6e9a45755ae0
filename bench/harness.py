"""Runs feedrate and its peers as child processes, and measures their costs."""

import contextlib
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
BUSY_LOOP = "import os\nwhile True: os.getpid()"


@dataclass
class Child:
    """A process that has ended."""

    stdout: str
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int


@dataclass
class Rate:
    """Bytes moved, with the time and CPU time for them."""

    bytes_per_second: float
    cpu_s_per_gb: float


class Failed(Exception):
    """Error of a failed child, with its output."""


def run_child(argv, success_codes=(0,)):
    """Runs a child in the workspace until it ends. Its costs include its own children. Other exit codes than `success_codes` raise Failed."""
    argv = [str(word) for word in argv]
    for option, folder in zip(argv, argv[1:]):
        if option == "--data" and "://" not in str(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
    program = shutil.which(argv[0])
    if program is None:
        raise Failed(f"there is no `{argv[0]}`\n  hint: run `cargo xtask setup --bench`")
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder, "numbers")
        launch = [sys.executable, "-I", "-S", ROOT / "bench/launch.py", numbers, program, *argv[1:]]
        done = subprocess.run(launch, capture_output=True, text=True, errors="replace", cwd=ROOT, check=True)
        wall_s, cpu_s, peak_kib, status = numbers.read_text().split()
    code = os.waitstatus_to_exitcode(int(status))
    if code not in success_codes:
        words = (done.stderr + done.stdout)[-2000:]
        raise Failed(f"`{' '.join(argv)[:300]}` ended with {code}:\n{words}")
    return Child(done.stdout, float(wall_s), float(cpu_s), int(peak_kib) * 1024)


@contextlib.contextmanager
def busy_processes(count):
    """Runs processes that use as much CPU time as they get."""
    children = [subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


@contextlib.contextmanager
def gpu_samples(interval_ms=500):
    """Yields a list that receives a sample of each GPU at each interval when the block ends: index, utilisation (%), memory (MiB) and power (W). It
    remains empty without nvidia-smi."""
    samples = []
    if shutil.which("nvidia-smi") is None:
        yield samples
        return
    query = ["nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,power.draw", "--format=csv,noheader,nounits", f"--loop-ms={interval_ms}"]
    with tempfile.TemporaryFile("w+") as output:
        watcher = subprocess.Popen(query, stdout=output)
        try:
            yield samples
        finally:
            watcher.terminate()
            watcher.wait()
        output.seek(0)
        # The last line may be incomplete.
        samples += [[float(cell) for cell in line.split(", ")] for line in output.read().splitlines()[:-1]]


def rss_floor_bytes():
    """Returns the peak memory that `run_child` reports for a minimal program."""
    return run_child(["true"]).peak_rss_bytes


def feedrate_run(workload, overrides=(), accelerators=1, data=None, results=None):
    """Runs `feedrate run`, and returns its summary and the process."""
    argv = [FEEDRATE, "run", WORKLOADS / workload, *overrides, "-n", accelerators]
    argv += ["--data", data, "--results", results, "--json", "--quiet"]
    child = run_child(argv)
    return json.loads(child.stdout), child


def feedrate_record(workload, overrides, accelerators, data, results):
    """Runs `feedrate run`, and returns its record."""
    summary, _ = feedrate_run(workload, overrides, accelerators, data, results)
    return json.loads((ROOT / summary["run_dir"] / "record.json").read_text())


def feedrate_rate(workload, overrides, data, results):
    """Runs `feedrate run`, and returns its rate."""
    summary, child = feedrate_run(workload, overrides, 1, data, results)
    moved = summary["bytes"]["logical"]
    rate = summary["throughput"]["delivered_bytes_per_second"]["whole"]
    return Rate(rate, child.cpu_s / (moved / 1e9))


def epochs_for(seconds, workload, overrides, data, results):
    """Returns the number of epochs that take at least `seconds`, estimated from a short run, which also fills the page cache."""
    summary, _ = feedrate_run(workload, [*overrides, "train.epochs=3"], 1, data, results)
    epoch_bytes = summary["bytes"]["logical"] / 3
    rate = summary["throughput"]["delivered_bytes_per_second"]["whole"]
    return max(1, int(1.15 * seconds * rate / epoch_bytes) + 1)


def sample_rate(workload, overrides, data, results):
    """Returns the rate of `feedrate run` in bytes of decoded samples per second."""
    summary, _ = feedrate_run(workload, overrides, 1, data, results)
    return summary["throughput"]["nominal_bytes_per_second"]["whole"]


def generate(workload, data, overrides=()):
    """Generates a dataset unless it exists, syncs it, and returns its folder."""
    child = feedrate_generate(workload, overrides, data)
    os.sync()
    return Path(json.loads(child.stdout)["folder"])


def feedrate_generate(workload, overrides, data):
    """Runs `feedrate generate`."""
    return run_child([FEEDRATE, "generate", WORKLOADS / workload, *overrides, "--data", data, "--json", "--quiet"])


def durable_writes(workload, overrides, suffix, jobs, rounds, data):
    """Alternates between feedrate generating a dataset and fio writing files of the same size, and returns the rates of both."""
    folder, peer_folder = data / "generate", data / "generate_fio"
    ours, fio = [], []
    for _ in range(rounds):
        empty(folder)
        made = feedrate_generate(workload, overrides, folder)
        synced = run_child(["sync", "-f", folder])
        files = dataset_files(folder, suffix)
        file_bytes = files[0].stat().st_size
        moved = sum(path.stat().st_size for path in files)
        ours.append(Rate(moved / (made.wall_s + synced.wall_s), made.cpu_s / (moved / 1e9)))
        empty(folder)
        empty(peer_folder)
        fio.append(fio_write(peer_folder, len(files), file_bytes, jobs))
        empty(peer_folder)
    return ours, fio


def dataset_files(folder, suffix):
    """Returns the training files in a data folder."""
    files = sorted(path for path in Path(folder).rglob(f"*{suffix}") if path.parent.name == "train")
    if not files:
        raise Failed(f"no {suffix} files below {folder}")
    return files


def crc_rate(processes, seconds, checksum="crc32"):
    """Returns the rate of a checksum alone in `processes` processes, over memory that stays in the CPU's caches."""
    argv = [FEEDRATE, "bench-crc", "--checksum", checksum, "--seconds", str(seconds)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE) for _ in range(processes)]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise Failed("`feedrate bench-crc` failed")
    return sum(json.loads(output)["bytes_per_second"] for output in outputs)


def peer_rate(kind, seconds, shares):
    """Returns the rate of a library (see peers.py). Each element of `shares` has the arguments of one process; all start together."""
    argv = [*peers_argv(), kind, str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*argv, *map(str, share)], **pipes) for share in shares]
    if all([process.stdout.readline() for process in running]):
        for process in running:
            process.stdin.write("\n")
            process.stdin.flush()
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise Failed(f"peers.py failed at {kind}")
    measured = [json.loads(output) for output in outputs]
    return sum(worker["bytes"] / worker["seconds"] for worker in measured)


def photographs(folder, count, dims):
    """Generates pictures that compress like photographs, unless they exist."""
    if not folder.exists():
        part = folder.with_name("photographs.part")
        empty(part)
        run_child([*peers_argv(), "photographs", count, part, dims])
        part.rename(folder)


def peers_argv():
    """Returns the command for peers.py with the Python that has the libraries."""
    python = os.environ.get("FEEDRATE_PYTHON") or str(ROOT / ".venv/bin/python3")
    if shutil.which(python) is None:
        raise Failed(f"there is no `{python}`\n  hint: run `cargo xtask setup`, or set FEEDRATE_PYTHON")
    return [python, str(ROOT / "bench/peers.py")]


def fio_read(files, jobs, seconds, block_bytes, file_order=None):
    """Runs fio, which reads `files` from the page cache, distributed over `jobs` jobs."""
    options = ["rw=read", "invalidate=0", "time_based=1", f"runtime={int(seconds * 1000)}ms", f"bs={block_bytes}"]
    if file_order:
        options.append(f"file_service_type={file_order}")
    shares = [[f"filename={fio_path(path)}" for path in files[job::jobs]] for job in range(jobs)]
    return fio(options, shares, "read")


def fio_write(folder, files, file_bytes, jobs, block="1M", sync=True):
    """Runs fio, which writes `files` files of `file_bytes` and syncs them at the end if `sync` is set."""
    options = ["rw=write", "refill_buffers=1", f"end_fsync={int(sync)}", f"bs={block}", f"filesize={file_bytes}"]
    shares = [[f"directory={fio_path(folder)}", f"nrfiles={files // jobs}"] for _ in range(jobs)]
    return fio(options, shares, "write")


def fio(options, shares, direction):
    """Runs a group of jobs in fio. Each element of `shares` has the options of one job."""
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
    """Escapes colons, since fio separates file names by colons."""
    return str(path).replace(":", "\\:")


def warm(files):
    """Evicts files from the page cache and reads them again, since pages cached by a write may be slower to read."""
    buffer = bytearray(1 << 20)
    for path in files:
        with open(path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while file.readinto(buffer):
                pass


def empty(folder):
    """Empties a folder, and waits until all data is on the device."""
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    os.sync()


def median(values):
    """Returns the median."""
    return statistics.median(values)


def machine_line():
    """Returns a line that describes the machine."""
    model = first_value("/proc/cpuinfo", "model name")
    memory_gib = int(first_value("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    kernel = os.uname().release
    fio_version = run_child(["fio", "--version"]).stdout.strip()
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.0f} GiB, Linux {kernel}, {fio_version}"


def first_value(path, key):
    """Returns the value of the first `key : value` line."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"
