"""Compares formats with the libraries that usually read and write them. Rates count the bytes of samples in numpy's representation.

Each case creates functions that measure feedrate and its peers, calls them alternately, and evaluates the rates. peers.py runs the libraries.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import Failed, median
from table import bytes_per_second, checked_row, rate_row, ratio_row, workers_text

WORKLOAD = "format.yaml"
WORKERS = (1, 2)
PICTURE = [400, 400, 3]
# Folder in memory for encoders: feedrate syncs its files and the libraries do not, so a disk would distort the comparison.
MEMORY = Path("/dev/shm/feedrate_bench")


@dataclass
class Dataset:
    """Files of one format."""

    format: str
    files: int
    samples: int
    dims: list
    element: str = "uint8"

    @property
    def keys(self):
        return [
            f"dataset.format={self.format}",
            f"dataset.num_files_train={self.files}",
            f"dataset.num_samples_per_file={self.samples}",
            f"dataset.record_dims=[{','.join(map(str, self.dims))}]",
            f"dataset.record_element_type={self.element}",
            # A batch is one file, so workers share no files.
            f"reader.batch_size={self.samples}",
        ]

    @property
    def suffix(self):
        return f".{self.format}"

    @property
    def bytes(self):
        element_bytes = {"uint8": 1, "float32": 4}[self.element]
        return self.files * self.samples * math.prod(self.dims) * element_bytes


# Datasets are much larger than the CPU's caches.
NPY = Dataset("npy", 64, 1, [8 << 20])
NPZ = Dataset("npz", 64, 1, [8 << 20])
HDF5 = Dataset("hdf5", 64, 1, [8 << 20])
TFRECORD = Dataset("tfrecord", 64, 64, [128 << 10])
PARQUET = Dataset("parquet", 16, 64, [128 << 10])
RAW = Dataset("raw", 64, 1, [8 << 20])
PICTURES = 64
# Rows of 1 KiB: pandas is fastest with few columns, DLIO with one long row.
TABLES = {
    "csv uint8": Dataset("csv", 16, 2048, [1024]),
    "csv float32": Dataset("csv", 16, 2048, [256], "float32"),
    "json": Dataset("json", 16, 2048, [1024]),
}


def hdf5(settings):
    """Reading hdf5 from the page cache, compared with npy, h5py and fio, and the gain from a second worker."""
    npy, hdf5_files = Warm(NPY, settings), Warm(HDF5, settings)
    seconds = run_seconds(settings, 1.5)
    turns = {}
    for workers in WORKERS:
        turns["ours", workers] = hdf5_files.reader(workers, seconds)
        turns["npy", workers] = npy.reader(workers, seconds)
        turns["h5py", workers] = hdf5_files.library("hdf5", workers, seconds)
        turns["fio", workers] = hdf5_files.fio(workers, seconds)
    rates = take_turns(turns, settings.rounds)
    rows = []
    for workers in WORKERS:
        what = f"warm 8 MiB hdf5, {workers_text(workers)}"
        rows.append(rate_row(what, rates["ours", workers], rates["npy", workers], 0.9, "our npy"))
        rows.append(rate_row(what, rates["ours", workers], rates["h5py", workers], 1, "h5py"))
    gains = {name: [double / single for single, double in zip(rates[name, 1], rates[name, 2])] for name in ("ours", "fio")}
    ratios = [our_gain / fio_gain for our_gain, fio_gain in zip(gains["ours"], gains["fio"])]
    ours, fio = (f"× {median(gains[name]):.2f}" for name in ("ours", "fio"))
    rows.append(ratio_row("warm 8 MiB hdf5, gain from the second worker", ours, f"fio: {fio}", ratios, 0.9))
    return rows


def tfrecord(settings):
    """Reading tfrecord from the page cache with all checksums, compared with npy followed by CRC-32C, and with Python."""
    npy, records = Warm(NPY, settings), Warm(TFRECORD, settings)
    seconds = run_seconds(settings, 1.5)
    turns = {}
    for workers in WORKERS:
        turns["ours", workers] = records.reader(workers, seconds)
        turns["npy", workers] = npy.reader(workers, seconds)
        turns["crc", workers] = lambda workers=workers: harness.crc_rate(workers, seconds, "crc32c")
        turns["python", workers] = records.library("tfrecord", workers, seconds)
    rates = take_turns(turns, settings.rounds)
    rows = []
    for workers in WORKERS:
        ours, npy_rates, crc, python = (rates[name, workers] for name in ("ours", "npy", "crc", "python"))
        what = f"warm tfrecord of 128 KiB, check on, {workers_text(workers)}"
        rows.append(checked_row(what, ours, npy_rates, crc, "our npy", "CRC-32C"))
        rows.append(rate_row(what, ours, python, 5, "`tfrecord`, which checks nothing"))
    return rows


def pictures(settings):
    """Decoding png and jpeg, with noise and photograph-like content, compared with Pillow."""
    photographs = settings.data / "photographs"
    harness.photographs(photographs, PICTURES, PICTURE)
    seconds = run_seconds(settings, 0.6)
    turns = {}
    for kind in ("png", "jpeg"):
        dataset = Dataset(kind, PICTURES, 1, PICTURE)
        sets = {
            "noise": Warm(dataset, settings),
            "photograph-like": Warm(dataset, settings, foreign=photographs / kind),
        }
        for content, warm in sets.items():
            for workers in WORKERS:
                turns[kind, content, workers, "ours"] = warm.reader(workers, seconds, ["reader.batch_size=4"])
                turns[kind, content, workers, "peer"] = warm.library(kind, workers, seconds)
    return library_rows(turns, settings, lambda kind, content: f"decode {content} {kind}", 1, "Pillow")


def tables(settings):
    """Parsing csv and json, compared with pandas and json."""
    seconds = run_seconds(settings, 1.0)
    rows = []
    for kind, dataset in TABLES.items():
        minimum, peer = (None, "json.loads, then numpy") if kind == "json" else (3, "pandas.read_csv")
        turns = library_turns(kind, dataset, seconds, settings)
        rows += library_rows(turns, settings, lambda kind, _: f"parse {kind}", minimum, peer)
    return rows


def columns(settings):
    """Reading parquet from the page cache, compared with pyarrow."""
    turns = library_turns(PARQUET.format, PARQUET, run_seconds(settings, 1.0), settings)
    return library_rows(turns, settings, lambda kind, _: f"warm {kind}", 1, "pyarrow")


def payload_writes(settings):
    """Writing and syncing formats that store payload unchanged, compared with fio."""
    files = 8 if settings.quick else 64
    jobs = len(os.sched_getaffinity(0))
    rows = []
    for dataset in (NPY, HDF5, TFRECORD, RAW):
        keys = [*dataset.keys, f"dataset.num_files_train={files}"]
        pair = harness.durable_writes(WORKLOAD, keys, dataset.suffix, jobs, settings.rounds, settings.data)
        ours, fio = map(bytes_per_second, pair)
        rows.append(rate_row(f"generate {files} {dataset.format} of 8 MiB, {jobs} jobs, durable", ours, fio, 0.8))
    return rows


def encoded_writes(settings):
    """Encoding png, jpeg and csv into memory, compared with Pillow and pandas."""
    jobs = len(os.sched_getaffinity(0))
    seconds = run_seconds(settings, 1.5)
    share = 8 if settings.quick else 1
    datasets = {
        "png": (Dataset("png", 512 // share, 1, PICTURE), "Pillow", 3),
        "jpeg": (Dataset("jpeg", 1024 // share, 1, PICTURE), "Pillow", 3),
        "csv uint8": (Dataset("csv", 16 // share, 2048, [1024]), "pandas.to_csv", 10),
        "csv float32": (Dataset("csv", 16 // share, 2048, [256], "float32"), "pandas.to_csv", 10),
    }
    turns = {}
    for kind, (dataset, _, _) in datasets.items():
        turns[kind, "ours"] = lambda dataset=dataset: generation_rate(dataset)
        turns[kind, "peer"] = lambda kind=kind, dataset=dataset: library_writes(kind, dataset, jobs, seconds)
    rates = take_turns(turns, settings.rounds)
    return [
        rate_row(f"generate {kind}, {jobs} jobs", rates[kind, "ours"], rates[kind, "peer"], least, peer)
        for kind, (_, peer, least) in datasets.items()
    ]


def library_requests(settings):
    """Reading from the page cache in the requests of the format's library, compared with the library, and with large requests."""
    seconds = run_seconds(settings, 1.0)
    pictures = [Dataset(kind, PICTURES, 1, PICTURE) for kind in ("png", "jpeg")]
    turns = {}
    for dataset in (NPZ, NPY, HDF5, *pictures):
        warm = Warm(dataset, settings)
        for workers in WORKERS:
            kind = dataset.format
            turns[kind, workers, "ours"] = warm.reader(workers, seconds, ["reader.requests=library"])
            turns[kind, workers, "peer"] = warm.library(kind, workers, seconds)
            turns[kind, workers, "large"] = warm.reader(workers, seconds)
    rates = take_turns(turns, settings.rounds)
    rows = []
    for kind, workers in dict.fromkeys(name[:2] for name in turns):
        what = f"warm {kind} in the requests of its library, {workers_text(workers)}"
        ours, peer, large = (rates[kind, workers, side] for side in ("ours", "peer", "large"))
        rows.append(rate_row(what, ours, peer, 0.9, LIBRARIES[kind]))
        rows.append(rate_row(what, ours, large, None, "large requests"))
    return rows


LIBRARIES = {"npz": "numpy", "npy": "numpy", "hdf5": "h5py", "png": "Pillow", "jpeg": "Pillow"}

CASES = {
    "g": hdf5,
    "h": tfrecord,
    "i": pictures,
    "j": tables,
    "k": columns,
    "l": payload_writes,
    "m": encoded_writes,
    "q": library_requests,
}


class Warm:
    """A dataset in the page cache with its readers. Each reader is a function that measures and returns a rate."""

    def __init__(self, dataset, settings, foreign=None):
        self.settings = settings
        self.data = foreign or settings.data / "formats"
        self.keys = dataset.keys
        self.options = ["--foreign"] if foreign else []
        if foreign:
            folder = foreign
        else:
            folder = harness.generate(WORKLOAD, self.data, self.keys)
        self.files = harness.dataset_files(folder, dataset.suffix)
        harness.warm(self.files)

    def reader(self, workers, seconds, keys=()):
        """Returns a function that measures feedrate."""
        keys = [*self.options, *self.keys, *keys, f"reader.read_threads={workers}"]
        results = self.settings.results
        epochs = harness.epochs_for(seconds, WORKLOAD, keys, self.data, results)
        return lambda: harness.sample_rate(WORKLOAD, [*keys, f"train.epochs={epochs}"], self.data, results)

    def library(self, kind, workers, seconds):
        """Returns a function that measures the format's library. Each worker has its own files."""
        shares = [self.files[worker::workers] for worker in range(workers)]
        return lambda: harness.peer_rate(kind, seconds, shares)

    def fio(self, workers, seconds):
        """Returns a function that measures fio, which reads bytes without a format."""
        return lambda: harness.fio_read(self.files, workers, seconds, 1 << 20).bytes_per_second


def library_turns(kind, dataset, seconds, settings):
    warm = Warm(dataset, settings)
    turns = {}
    for workers in WORKERS:
        turns[kind, "", workers, "ours"] = warm.reader(workers, seconds)
        turns[kind, "", workers, "peer"] = warm.library(kind, workers, seconds)
    return turns


def library_rows(turns, settings, what, least, peer):
    """Returns a row for each kind, content and number of workers."""
    rates = take_turns(turns, settings.rounds)
    return [
        rate_row(f"{what(kind, content)}, {workers_text(workers)}", ours, rates[kind, content, workers, "peer"], least, peer)
        for (kind, content, workers, side), ours in rates.items()
        if side == "ours"
    ]


def take_turns(turns, rounds):
    """Calls all functions alternately, and returns their rates in each round."""
    rates = {name: [] for name in turns}
    for _ in range(rounds):
        for name, measure in turns.items():
            rates[name].append(measure())
    return rates


def generation_rate(dataset):
    folder = MEMORY / "generate"
    harness.empty(folder)
    wall_s = harness.feedrate_generate(WORKLOAD, dataset.keys, folder).wall_s
    files = len(harness.dataset_files(folder, dataset.suffix))
    harness.empty(folder)
    if files != dataset.files:
        raise Failed(f"{files} files were generated instead of {dataset.files}")
    return dataset.bytes / wall_s


def library_writes(kind, dataset, jobs, seconds):
    folders = [MEMORY / "generate_peer" / str(job) for job in range(jobs)]
    for folder in folders:
        harness.empty(folder)
    dims = dataset.dims if dataset.samples == 1 else [dataset.samples, *dataset.dims]
    rate = harness.peer_rate(kind, seconds, [["--write", folder, dims] for folder in folders])
    harness.empty(MEMORY)
    return rate


def run_seconds(settings, seconds):
    """Returns the duration of a run, which is short because there are many formats."""
    return min(seconds, settings.seconds)
