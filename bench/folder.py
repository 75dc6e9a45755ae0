#!/usr/bin/env python3
"""Reads folders of typical user files: compares the samples per second of `feedrate run --data DIR` with one worker and of the format's library in
one process.

Both read from the page cache and decode. A round runs the library, feedrate, and the library again; the ratio compares feedrate with the mean of
the two library runs. Prints the median ratio over rounds for each kind of folder, and exits 1 if a ratio is below 1. The libraries generate the
files once, in `--data`. Kinds with a slash are those of the tests (crates/feedrate/tests/it/library_files) with more files and samples, which are
read in order.
"""

import argparse
import importlib
import io
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from harness import FEEDRATE, ROOT, peers_argv, run_child, warm

RATIO_MIN = 1.0
PICTURES = 600
SHARDS = 4
ARRAYS = 200
ROWS = 600
IMAGE_DIMS = (128, 128, 3)
LIBRARY_FILES = ROOT / "crates/feedrate/tests/it/library_files"
# Kinds of the tests by the numbers of files and of samples in a file. Feedrate decodes each.
LIBRARY_KINDS = {
    (4, 600): [
        "hdf5 shuffle gzip", "hdf5 fletcher32", "hdf5 zstd", "hdf5 lz4", "hdf5 of bool gzip", "hdf5 of float32 big-endian",
        "hdf5 images and masks gzip", "hdf5 netcdf", "hdf5 half of the chunks unwritten",
    ],
    (200, 1): [
        "npy Fortran", "npy big-endian", "npy bool", "npz deflated", "npz images and masks deflated", "npz Fortran",
        "jpeg grey", "jpeg cmyk", "jpeg progressive", "png rgb", "png grey with alpha", "png 16 bit grey", "png palette", "png interlaced rgb",
    ],
    (4, 160): [
        "parquet snappy", "parquet gzip", "parquet zstd", "parquet lz4", "parquet zstd v2 pages", "parquet text", "parquet numbers",
        "parquet lists of floats", "parquet token lists", "parquet nulls", "parquet delta lengths", "parquet delta numbers",
        "parquet images of Hugging Face", "tfrecord gzip", "tar gzip", "tar png", "tar npy", "jsonl gzip", "csv of numbers", "csv gzip", "mds zstd",
    ],
}


def picture(random, sides=(300, 560)):
    """Returns a JPEG with sides in this range of pixels, which compresses like a photograph."""
    import numpy as np
    from PIL import Image

    height, width = (int(side) for side in random.integers(*sides, 2))
    small = random.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), dtype=np.uint8)
    pixels = np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC)).astype(np.int16)
    pixels += random.integers(-12, 13, pixels.shape, dtype=np.int16)
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


def write_files(root):
    import h5py
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    import tfrecord

    def new_path(path):
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    random = np.random.default_rng(1)
    pictures = [picture(random) for _ in range(PICTURES)]
    for number, data in enumerate(pictures):
        new_path(f"jpeg in class folders/n{number % 10:03}/photo {number}.JPEG").write_bytes(data)
        new_path(f"flat jpg/{number}.jpg").write_bytes(data)
    each = PICTURES // SHARDS
    for shard in range(SHARDS):
        shard_pictures = pictures[shard * each : (shard + 1) * each]
        with tarfile.open(new_path(f"tar shards/shard-{shard:06}.tar"), "w") as archive:
            for number, data in enumerate(shard_pictures):
                for name, content in ((f"{number:06}.jpg", data), (f"{number:06}.cls", b"3")):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        paths = pa.array([f"{number}.jpg" for number in range(each)])
        images = pa.StructArray.from_arrays([pa.array(shard_pictures, pa.binary()), paths], ["bytes", "path"])
        table = pa.table({"image": images, "label": pa.array([1] * each)})
        pq.write_table(table, new_path(f"parquet/data/train-{shard:05}-of-{SHARDS:05}.parquet"), row_group_size=50)
        writer = tfrecord.TFRecordWriter(str(new_path(f"tfrecord/part-{shard}.tfrecord")))
        for data in shard_pictures:
            writer.write({"image": (data, "byte"), "label": (3, "int")})
        writer.close()
    rows = random.integers(0, 64, (ROWS, *IMAGE_DIMS), dtype=np.uint8)
    for kind, options in (
        ("hdf5", {}),
        ("hdf5 in chunks", {"chunks": (1, *IMAGE_DIMS)}),
        ("hdf5 gzip", {"chunks": (1, *IMAGE_DIMS), "compression": "gzip"}),
    ):
        with h5py.File(new_path(f"{kind}/images.h5"), "w") as file:
            file.create_dataset("images", data=rows, **options)
    for number in range(ARRAYS):
        volume = random.random((64, 64, 32), dtype=np.float32)
        np.savez(new_path(f"npz/patient {number % 5}/scan {number}.npz"), volume=volume, label=np.int64(1))
        np.save(new_path(f"npy/volume_{number}.npy"), volume)
        new_path(f"raw/{number}.raw").write_bytes(volume.tobytes())


def decode(source):
    import numpy as np
    from PIL import Image

    with Image.open(source) as image:
        return np.asarray(image.convert("RGB"))


def list_files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def read_jpeg(files, random):
    for number in random.permutation(len(files)):
        yield decode(files[number])


def read_tar(files, random):
    import webdataset

    for number in random.permutation(len(files)):
        for sample in webdataset.WebDataset(str(files[number]), shardshuffle=False):
            yield decode(io.BytesIO(sample["jpg"]))


def read_parquet(files, random):
    import pyarrow.parquet as pq

    for number in random.permutation(len(files)):
        with pq.ParquetFile(files[number]) as file:
            for group in range(file.num_row_groups):
                for row in file.read_row_group(group, columns=["image"], use_threads=False)["image"]:
                    yield decode(io.BytesIO(row["bytes"].as_py()))


def read_tfrecord(files, random):
    from tfrecord.reader import tfrecord_loader

    for number in random.permutation(len(files)):
        for example in tfrecord_loader(str(files[number]), None, {"image": "byte"}):
            yield decode(io.BytesIO(bytes(example["image"])))


def read_hdf5(files, random):
    import h5py

    for path in files:
        with h5py.File(path, "r") as file:
            images = file["images"]
            for number in random.permutation(len(images)):
                yield images[number]


def read_npz(files, random):
    import numpy as np

    for number in random.permutation(len(files)):
        with np.load(files[number]) as file:
            yield file["volume"]


def read_npy(files, random):
    import numpy as np

    for number in random.permutation(len(files)):
        yield np.load(files[number])


def read_raw(files, random):
    import numpy as np

    for number in random.permutation(len(files)):
        yield np.fromfile(files[number], dtype=np.float32)


KINDS = {
    "jpeg in class folders": ("Pillow", read_jpeg),
    "flat jpg": ("Pillow", read_jpeg),
    "tar shards": ("webdataset, Pillow", read_tar),
    "parquet": ("pyarrow, Pillow", read_parquet),
    "tfrecord": ("tfrecord, Pillow", read_tfrecord),
    "hdf5": ("h5py", read_hdf5),
    "hdf5 in chunks": ("h5py", read_hdf5),
    "hdf5 gzip": ("h5py", read_hdf5),
    "npz": ("numpy", read_npz),
    "npy": ("numpy", read_npy),
    "raw": ("numpy", read_raw),
}


def write_library_kinds(root):
    """Writes the kinds of the tests."""
    for (files, samples), names in LIBRARY_KINDS.items():
        environment = os.environ | {"LIBRARY_FILES": str(files), "LIBRARY_SAMPLES": str(samples)}
        subprocess.run([sys.executable, LIBRARY_FILES, root, *names], env=environment, check=True)


def read_library_kind(name, folder):
    """Reads the files as the tests do."""
    sys.path.insert(0, str(LIBRARY_FILES))
    group = {"parquet": "arrow", "tfrecord": "archive", "tar": "archive", "npy": "numpy", "npz": "numpy", "jpeg": "image", "png": "image"}
    word = name.split()[0]
    importlib.import_module(f"{group.get(word, 'hdf5' if word == 'hdf5' else 'text')}_kinds")
    kind = importlib.import_module("kinds").kinds[name]
    paths = [path for path in sorted(folder.glob(kind.pattern)) if path.is_file()]

    def read_epoch(_files, _random):
        for path in paths:
            yield from kind.read(str(path))

    return read_epoch


def print_library_rate(kind, folder, seconds):
    """Prints the samples per second of the library, after a warm-up of a hundred samples."""
    import numpy as np

    read_epoch = KINDS[kind][1] if kind in KINDS else read_library_kind(kind.split("/")[1], folder)
    files, random = list_files(folder), np.random.default_rng(2)
    samples = itertools.chain.from_iterable(read_epoch(files, random) for _ in itertools.count())
    for _ in itertools.islice(samples, 100):
        pass
    number, start_s = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - start_s) < seconds:
        next(samples)
        number += 1
    print(number / elapsed_s)


def library_rate(kind, folder, seconds):
    python = peers_argv()[0]
    return float(run_child([python, __file__, "--read", kind, folder, seconds]).stdout)


def feedrate_rate(folder, results, epochs, settings):
    argv = [FEEDRATE, "run", "--data", folder, "--results", results, "--json", "--quiet", "reader.read_threads=1", f"train.epochs={epochs}", *settings]
    summary = json.loads(run_child(argv).stdout)
    shutil.rmtree(ROOT / summary["run_dir"])
    return summary["throughput"]["samples_per_second"]["whole"], summary["found"]["samples"]


def measure(kind, root, arguments):
    """Returns the rates of feedrate and of the library in each round."""
    folder, results = root / kind, root.parent / "folder-results"
    settings = [] if kind in KINDS else ["reader.file_shuffle=off", "reader.sample_shuffle=off"]
    warm(list_files(folder))
    rate, samples = feedrate_rate(folder, results, 1, settings)
    epochs = int(arguments.seconds * rate / samples) + 1
    rounds, before = [], library_rate(kind, folder, arguments.seconds)
    for _ in range(arguments.rounds):
        our_rate = feedrate_rate(folder, results, epochs, settings)[0]
        after = library_rate(kind, folder, arguments.seconds)
        rounds.append((our_rate, (before + after) / 2))
        before = after
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT / "target/bench-data", help="folder for the files (target/bench-data)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="minimum duration of a measurement (1.0)")
    parser.add_argument("--only", default="", help="only kinds whose name contains this text")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        write_files(arguments.make)
        return write_library_kinds(arguments.make / "library")
    if arguments.read:
        kind, folder, seconds = arguments.read
        return print_library_rate(kind, Path(folder), float(seconds))
    root = arguments.data.absolute() / "folder"
    if not root.exists():
        part = root.with_name("folder.part")
        shutil.rmtree(part, ignore_errors=True)
        run_child([peers_argv()[0], __file__, "--make", part])
        part.rename(root)
    print("| one worker | feedrate, samples/s | library, samples/s | ratio (range) | target met |")
    print("|---|---|---|---|---|")
    slower_count = 0
    libraries = {kind: name for kind, (name, _) in KINDS.items()}
    libraries |= {f"library/{name}": "its library" for names in LIBRARY_KINDS.values() for name in names}
    for kind, name in libraries.items():
        if arguments.only not in kind:
            continue
        rounds = measure(kind, root, arguments)
        ratios = [our_rate / peer_rate for our_rate, peer_rate in rounds]
        our_rate, peer_rate = (statistics.median(rates) for rates in zip(*rounds))
        ratio = statistics.median(ratios)
        slower_count += ratio < RATIO_MIN
        met = "**no**" if ratio < RATIO_MIN else "yes"
        span = f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {kind} | {our_rate:,.0f} | {name}: {peer_rate:,.0f} | {span} | {met} |", flush=True)
    return int(slower_count > 0)


if __name__ == "__main__":
    sys.exit(main())
