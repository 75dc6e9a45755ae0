#!/usr/bin/env python3
"""Compares three training jobs on a GPU with feedrate's emulation of them, on the same files: ResNet-50 on JPEGs, a small 3-D CNN on npz, and a small
transformer on packed tokens, with 1 to 12 workers, with the files in the page cache and dropped from it.

Real jobs and emulations alternate. A real job's AU is its number of steps × the time of a step ÷ its elapsed time; the time of a step is measured
before, with a batch in pinned memory, and includes the copy to the GPU. `feedrate calibrate` measures the client of each job once. Prints a table,
and exits 1 if a target is missed. Needs torch and torchvision, `cargo build --release`, and less than six minutes; `--tiny` is a trial of all
steps without a GPU and without targets.
"""

import argparse
import json
import math
import multiprocessing
import os
import shutil
import statistics
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from fidelity import print_gaps
from harness import FEEDRATE, ROOT, gpu_samples, warm

WORKERS = (1, 2, 4, 8, 12)
CALIBRATED_WORKERS = 4
ROUNDS = 2
STEPS_MIN = 8
TIMED_STEPS = 20


@dataclass(frozen=True)
class Size:
    """Sizes of the data and models."""

    pictures: int
    picture_dims: tuple[int, int]
    crop: int
    scans: int
    scan_dims: tuple[int, int, int]
    sequences: int
    tokens: int
    width: int
    layers: int
    vocabulary: int
    batches: dict[str, int]


FULL = Size(2048, (500, 375), 224, 512, (256, 256, 128), 65_536, 1024, 512, 6, 32_000, {"jpeg": 128, "npz": 4, "tokens": 32})
TINY = Size(64, (64, 48), 32, 64, (16, 16, 8), 256, 32, 32, 1, 256, {"jpeg": 4, "npz": 4, "tokens": 8})


class Pictures(Dataset):
    """JPEGs as for ImageNet: decoded by PIL, cropped at random and normalised."""

    def __init__(self, folder, size):
        from torchvision import transforms

        self.paths = sorted(folder.glob("*/*.jpg"))
        normalise = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        self.transform = transforms.Compose([transforms.RandomResizedCrop(size.crop), transforms.ToTensor(), normalise])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        from PIL import Image

        with Image.open(self.paths[index]) as picture:
            return self.transform(picture.convert("RGB")), int(self.paths[index].parent.name)


class Scans(Dataset):
    """Volumes of bytes in npz files, converted to numbers from 0 to 1."""

    def __init__(self, folder, _):
        self.paths = sorted(folder.glob("*.npz"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with np.load(self.paths[index]) as scan:
            volume = torch.from_numpy(scan["volume"])
        return volume.permute(2, 0, 1).float().div(255).unsqueeze(0), index % 10


class Tokens(Dataset):
    """Sequences in a file of packed tokens in the format of Megatron-LM."""

    def __init__(self, folder, size):
        self.tokens = np.memmap(folder / "tokens.bin", np.uint16, "r").reshape(-1, size.tokens + 1)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        sequence = torch.from_numpy(self.tokens[index].astype(np.int64))
        return sequence[:-1], sequence[1:]


DATASETS = {"jpeg": Pictures, "npz": Scans, "tokens": Tokens}


def write_picture(folder, dims, number):
    from PIL import Image

    random = np.random.default_rng(number)
    # Coarse structure and fine noise compress like a photograph.
    coarse = Image.fromarray(random.integers(0, 256, (12, 16, 3), np.uint8)).resize(dims, Image.Resampling.BICUBIC)
    noisy = np.asarray(coarse, np.int16) + random.integers(-12, 13, (dims[1], dims[0], 3), np.int16)
    path = folder / str(number % 10) / f"{number:05}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, quality=90)


def write_scan(folder, dims, number):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{number:05}.npz", volume=np.random.default_rng(number).integers(0, 256, dims, np.uint8))


def write_tokens(folder, size):
    folder.mkdir(parents=True)
    count, length = size.sequences, size.tokens + 1
    np.random.default_rng(1).integers(0, size.vocabulary, count * length, np.uint16).tofile(folder / "tokens.bin")
    # Code 8 means uint16; each sequence is a document.
    with open(folder / "tokens.idx", "wb") as index:
        index.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        np.full(count, length, np.int32).tofile(index)
        np.arange(0, 2 * length * count, 2 * length, dtype=np.int64).tofile(index)
        np.arange(count + 1, dtype=np.int64).tofile(index)


def write_files(job, folder, size):
    """Writes the files of a job unless they exist, and syncs them."""
    if folder.exists():
        return
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    if job == "tokens":
        write_tokens(part, size)
    else:
        with multiprocessing.get_context("fork").Pool() as pool:
            if job == "jpeg":
                pool.map(partial(write_picture, part, size.picture_dims), range(size.pictures), chunksize=16)
            else:
                pool.map(partial(write_scan, part, size.scan_dims), range(size.scans))
    part.rename(folder)
    os.sync()


def loader_of(job, folder, size, workers):
    uses_gpu = torch.cuda.is_available()
    return DataLoader(DATASETS[job](folder, size), size.batches[job], shuffle=True, drop_last=True, num_workers=workers, pin_memory=uses_gpu)


def make_loader():
    """The loader of a job, for `feedrate calibrate`."""
    size = TINY if os.environ["GPU_JOBS_TINY"] == "1" else FULL
    return loader_of(os.environ["GPU_JOBS_JOB"], Path(os.environ["GPU_JOBS_FOLDER"]), size, CALIBRATED_WORKERS)


class Transformer(nn.Module):
    """A decoder of a language model."""

    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        layer = nn.TransformerEncoderLayer(size.width, 8, 4 * size.width, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False)
        self.output = nn.Linear(size.width, size.vocabulary)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.output(self.layers(self.embedding(tokens), mask=mask, is_causal=True)).transpose(1, 2)


def model_of(job, size):
    if job == "jpeg":
        from torchvision.models import resnet18, resnet50

        return (resnet18 if size is TINY else resnet50)()
    if job == "tokens":
        return Transformer(size)
    layers = [nn.Conv3d(1, 16, 3, stride=2), nn.ReLU(), nn.Conv3d(16, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(*layers)


def make_step(job, size):
    """Returns a function that trains on a batch, and returns when the GPU has finished."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model_of(job, size).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step(batch):
        inputs, labels = (part.to(device, non_blocking=True) for part in batch)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def step_seconds(job, folder, size, step):
    """Median time of a step on one batch, without the first steps, which choose kernels and allocate memory."""
    batch = next(iter(loader_of(job, folder, size, 0)))
    times = []
    for _ in range(TIMED_STEPS):
        start = time.perf_counter()
        step(batch)
        times.append(time.perf_counter() - start)
    return statistics.median(times[TIMED_STEPS // 4 :])


class Job:
    """The real job and its emulations."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.size = TINY if arguments.tiny else FULL
        self.folder = arguments.data.resolve() / f"gpu-jobs{'-tiny' if arguments.tiny else ''}" / name
        self.results = self.folder.parent / "results"
        write_files(name, self.folder, self.size)
        self.files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        self.batch = self.size.batches[name]
        self.step = make_step(name, self.size)
        self.step_s = step_seconds(name, self.folder, self.size, self.step)
        self.calibration = self.calibrate()

    def calibrate(self):
        environment = {"GPU_JOBS_JOB": self.name, "GPU_JOBS_FOLDER": str(self.folder), "GPU_JOBS_TINY": str(int(self.arguments.tiny))}
        words = ["calibrate", f"{Path(__file__).resolve()}:make_loader", "--python", sys.executable]
        return self.feedrate(*words, *(["--time", "4s"] if self.arguments.tiny else []), environment=environment)

    def steps(self, workers):
        """Number of steps that take about `--seconds`, limited by the samples of an epoch."""
        measured = {int(count): seconds for count, seconds in self.calibration["batch_cpu_seconds"].items()}
        nearest = min(measured, key=lambda count: abs(count - workers))
        period_s = max(self.step_s, measured[nearest] / workers)
        samples = len(DATASETS[self.name](self.folder, self.size))
        return min(samples // self.batch, max(STEPS_MIN, math.ceil(self.arguments.seconds / period_s)))

    def run_real(self, workers):
        """Trains, and returns the AU and the mean utilisation of the GPU that nvidia-smi reports, both in percent."""
        wanted, done = self.steps(workers), 0
        loader = loader_of(self.name, self.folder, self.size, workers)
        with gpu_samples(interval_ms=100) as samples:
            start = time.perf_counter()
            for batch in loader:
                self.step(batch)
                done += 1
                if done == wanted:
                    break
            elapsed_s = time.perf_counter() - start
        assert done == wanted, f"{done} steps, not {wanted}"
        gpu = statistics.mean(sample[1] for sample in samples) if samples else None
        return 100 * done * self.step_s / elapsed_s, gpu

    def run_emulation(self, workers, client):
        keys = [f"++workload.client.{key}={value!r}" for key, value in client.items() if value]
        keys += [f"train.total_training_steps={self.steps(workers)}"]
        words = ["run", "--data", self.folder, "--batch", self.batch, "--workers", workers, "--compute", f"{1e3 * self.step_s:.3f}ms"]
        return self.feedrate(*words, *keys, "--results", self.results, "--quiet")["au"]["all_steps_percent"]

    def prepare(self, is_cold):
        """Fills the page cache, or drops the files from it."""
        if not is_cold:
            warm(self.files)
            return
        for path in self.files:
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def feedrate(self, *words, environment=None):
        argv = [str(word) for word in [self.arguments.binary.resolve(), *words, "--json"]]
        done = subprocess.run(argv, env={**os.environ, **(environment or {})}, cwd=self.folder.parent, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"`{' '.join(argv)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)


def measure(job, workers, is_cold, rounds):
    """Returns the cells of a row, and the gap in points."""
    real, gpu, emulated = [], [], []
    for _ in range(rounds):
        job.prepare(is_cold)
        au_percent, gpu_percent = job.run_real(workers)
        real.append(au_percent)
        gpu.append(gpu_percent)
        job.prepare(is_cold)
        emulated.append(job.run_emulation(workers, job.calibration["client"]))
    job.prepare(is_cold)
    ideal = job.run_emulation(workers, {})
    known = [percent for percent in gpu if percent is not None]
    smi = f"{statistics.mean(known):.0f} %" if known else "unknown"
    texts = [" ".join(f"{value:.1f}" for value in values) for values in (real, emulated)]
    row = [job.name, workers, "cold" if is_cold else "warm", *texts, f"{ideal:.1f}", smi]
    return row, statistics.median(emulated) - statistics.median(real)


def main():
    arguments = parse_arguments()
    start = time.perf_counter()
    workers, rounds = ((1, 2), 1) if arguments.tiny else (WORKERS, ROUNDS)
    gaps = []
    print("| job | workers | page cache | real AU (%) | emulated, calibrated | ideal client | nvidia-smi in the real job |\n" + "|---" * 7 + "|")
    for name in arguments.only or DATASETS:
        job = Job(name, arguments)
        for is_cold in (False, True):
            for count in workers:
                row, gap = measure(job, count, is_cold, rounds)
                gaps.append(gap)
                print("| " + " | ".join(map(str, row)) + " |", flush=True)
        print(f"{name}: step {1e3 * job.step_s:.2f} ms, client {json.dumps(job.calibration['client'])}", file=sys.stderr, flush=True)
        shutil.rmtree(job.results, ignore_errors=True)
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"\n{gpu}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, {time.perf_counter() - start:.0f} s")
    # Without a GPU, steps and workers share the cores, and gaps mean nothing.
    if not arguments.tiny:
        sys.exit(0 if print_gaps("calibrated client", gaps) else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for the files (target/bench-data)")
    parser.add_argument("--seconds", type=float, default=1.0, help="approximate duration of a run (1.0)")
    parser.add_argument("--only", action="append", choices=DATASETS, help="only this job")
    parser.add_argument("--tiny", action="store_true", help="tiny files and models, 1 and 2 workers, one round, no targets")
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.seconds = 0.2
        torch.set_num_threads(1)
    elif not torch.cuda.is_available():
        sys.exit("error: torch finds no GPU\n  hint: `--tiny` needs none")
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    return arguments


if __name__ == "__main__":
    main()
