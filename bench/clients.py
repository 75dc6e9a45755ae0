#!/usr/bin/env python3
"""Measures the clients that are called by a name, such as `pytorch-npz`, and prints a row of crates/spec/src/plan/client.rs for each.

`feedrate calibrate` measures plain PyTorch loops with two workers over cached files of two sizes. The difference between both gives the costs per
byte, and what remains the costs per sample or batch. The machine must be idle; all take about ten minutes.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, warm

BATCH, WORKERS = 16, 2
KIB, MIB = 1 << 10, 1 << 20
ARRAY_BYTES = (64 * KIB, 4 * MIB)
# Bytes of the pixels of images of 224 by 224 and 1000 by 1000, in grey.
IMAGE_BYTES = (224 * 224, 1000 * 1000)
FORMATS = {
    "npz": ARRAY_BYTES, "npy": ARRAY_BYTES, "hdf5": ARRAY_BYTES, "jpeg": IMAGE_BYTES, "png": IMAGE_BYTES, "tfrecord": (16 * KIB, MIB),
}
CACHED_BYTES_MAX, FILES_MAX = 512 * MIB, 1024


def calibrate(arguments, kind, record_bytes):
    """Generates files of a size, and returns their mean length in bytes and the calibrated client."""
    folder = arguments.data.resolve() / "clients" / f"{kind}-{record_bytes}"
    folder.mkdir(parents=True, exist_ok=True)
    count = max(4 * BATCH, min(FILES_MAX, CACHED_BYTES_MAX // record_bytes))
    keys = [f"dataset.format={kind}", f"dataset.num_files_train={count}", f"dataset.record_length_bytes={record_bytes}"]
    keys += ["dataset.record_element_type=uint8"] if kind in ("jpeg", "png") else []
    run(arguments, "generate", WORKLOADS / "fidelity.yaml", *keys, "--data", folder)
    files = [path for path in folder.rglob("*") if path.parent.name == "train" and path.suffix != ".idx" and path.is_file()]
    warm(files)
    environment = {"FIDELITY_FORMAT": kind, "FIDELITY_FOLDER": str(folder)}
    words = ["calibrate", f"{ROOT / 'bench/torch_loop.py'}:make_dataset", "--batch", BATCH, "--workers", WORKERS, "--python", arguments.python]
    found = run(arguments, *words, environment=environment)
    for warning in found.get("warnings", []):
        print(f"{kind}, {record_bytes} bytes: {warning}", file=sys.stderr)
    return sum(path.stat().st_size for path in files) / len(files), found["client"]


def run(arguments, *words, environment=None):
    argv = [str(word) for word in [arguments.binary, *words, "--json"]]
    done = subprocess.run(argv, env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"`{' '.join(argv)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def split(small_bytes, small_s, large_bytes, large_s):
    """Divides the costs of two sizes into a constant part and one per byte, in seconds, neither below 0."""
    per_byte = max(0.0, (large_s - small_s) / (large_bytes - small_bytes))
    return max(0.0, small_s - per_byte * small_bytes), per_byte


def client_row(arguments, kind):
    (small_bytes, small), (large_bytes, large) = (calibrate(arguments, kind, size) for size in FORMATS[kind])

    def sample_s(client, sample_bytes):
        return client["per_sample"] + client["per_byte"] * sample_bytes

    def receive_s(client, sample_bytes):
        return client["receive_per_batch"] + client["receive_per_byte"] * BATCH * sample_bytes

    per_sample, per_byte = split(small_bytes, sample_s(small, small_bytes), large_bytes, sample_s(large, large_bytes))
    receive_per_batch, receive_per_byte = split(
        BATCH * small_bytes, receive_s(small, small_bytes), BATCH * large_bytes, receive_s(large, large_bytes)
    )
    wait_share = (small["receive_wait_share"] + large["receive_wait_share"]) / 2
    start = (small["start_per_epoch"] + large["start_per_epoch"]) / 2
    costs = [per_sample, per_byte, small["per_batch"], large["handover_bytes_per_second"], receive_per_batch, receive_per_byte, wait_share, start]
    return f'    profile("pytorch-{kind}", [{", ".join(f"{cost:.2g}" for cost in costs)}]),'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=FEEDRATE, help="feedrate's binary (target/release/feedrate)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="Python with torch, numpy, h5py, Pillow and tfrecord (this one)")
    parser.add_argument("--only", action="append", choices=FORMATS, help="only this format")
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for datasets (target/bench-data)")
    arguments = parser.parse_args()
    if not arguments.binary.exists():
        sys.exit(f"error: there is no {arguments.binary}\n  hint: run `cargo build --release`")
    for kind in arguments.only or FORMATS:
        print(client_row(arguments, kind), flush=True)


if __name__ == "__main__":
    main()
