"""Reads and writes formats with their usual libraries, with one process per worker. The Python that runs it must have the libraries.

Usage: python3 peers.py KIND SECONDS ARGUMENT...
Prepares, prints `ready`, waits for a line, works for SECONDS, and prints a JSON object with the bytes of samples and the seconds. Only the
loop is timed. For reading, the arguments are files; for writing, they are `--write`, a folder, and the dimensions of a file's content.

       python3 peers.py photographs COUNT FOLDER DIMENSIONS
Generates a dataset of pictures that compress like photographs, unlike noise.
"""

import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np


def main():
    kind, seconds, arguments = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    if kind == "photographs":
        write_photographs(Path(arguments[0]), json.loads(arguments[1]), int(seconds))
        return
    if arguments[0] == "--write":
        work, inputs = WRITERS[kind](Path(arguments[1]), json.loads(arguments[2])), itertools.count()
    else:
        work, inputs = READERS[kind](), itertools.cycle(arguments)
    for item in itertools.islice(inputs, 2):
        work(item)
    print("ready", flush=True)
    sys.stdin.readline()
    moved = 0
    start = time.perf_counter()
    end = start + seconds
    while (now := time.perf_counter()) < end:
        moved += work(next(inputs))
    print(json.dumps({"bytes": moved, "seconds": now - start}))


def read_hdf5():
    import h5py

    def read(path):
        with h5py.File(path, "r") as file:
            # `read_direct` into reused memory is slower here, as the kernel copies slowly to some addresses.
            return file["records_0"][:].nbytes

    return read


def read_npz():
    def read(path):
        with np.load(path) as file:
            return file["x"].nbytes

    return read


def read_npy():
    return lambda path: np.load(path).nbytes


def read_tfrecord():
    from tfrecord.reader import tfrecord_loader

    def read(path):
        examples = tfrecord_loader(path, None, {"image": "byte", "size": "int"})
        return sum(np.frombuffer(example["image"], np.uint8).nbytes for example in examples)

    return read


def read_picture():
    from PIL import Image

    def read(path):
        with Image.open(path) as picture:
            return np.asarray(picture).nbytes

    return read


def read_csv(dtype):
    """Reads like DLIO's reader. pandas converts all numbers to 64 bits, so bytes are counted as written."""
    import pandas

    def read(path):
        return pandas.read_csv(path, header=None).to_numpy().size * np.dtype(dtype).itemsize

    return read


def read_json():
    def read(path):
        with open(path, "rb") as file:
            return sum(np.array(json.loads(line), np.uint8).nbytes for line in file)

    return read


def read_parquet():
    import pyarrow.parquet

    def read(path):
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read(["image"], use_threads=False)
        # The last buffer of each chunk has its values; numpy uses it without a copy.
        return sum(np.frombuffer(chunk.buffers()[2], np.uint8).nbytes for chunk in table["image"].chunks)

    return read


READERS = {
    "npz": read_npz,
    "npy": read_npy,
    "hdf5": read_hdf5,
    "tfrecord": read_tfrecord,
    "png": read_picture,
    "jpeg": read_picture,
    "csv uint8": lambda: read_csv("uint8"),
    "csv float32": lambda: read_csv("float32"),
    "json": read_json,
    "parquet": read_parquet,
}

# Number of files that a writer overwrites in turn.
FILES = 64


def write_picture(folder, dims, suffix):
    from PIL import Image

    pictures = [Image.fromarray(noise(number, dims, "uint8")) for number in range(4)]

    def write(number):
        picture = pictures[number % len(pictures)]
        picture.save(folder / f"{number % FILES}.{suffix}")
        return int(np.prod(dims))

    return write


def write_csv(folder, dims, dtype):
    import pandas

    frames = [pandas.DataFrame(noise(number, dims, dtype)) for number in range(2)]

    def write(number):
        frame = frames[number % len(frames)]
        frame.to_csv(folder / f"{number % FILES}.csv", index=False, header=False)
        return int(np.prod(dims)) * np.dtype(dtype).itemsize

    return write


def noise(seed, dims, dtype):
    """Random content like feedrate's: any bits for integers, any finite numbers for floats."""
    random = np.random.default_rng(seed)
    if dtype == "uint8":
        return random.integers(0, 256, dims, dtype)
    bits = random.integers(0, 1 << 32, dims, "uint32")
    return (bits & np.uint32(0xBFFFFFFF)).view(dtype)


WRITERS = {
    "png": lambda folder, dims: write_picture(folder, dims, "png"),
    "jpeg": lambda folder, dims: write_picture(folder, dims, "jpeg"),
    "csv uint8": lambda folder, dims: write_csv(folder, dims, "uint8"),
    "csv float32": lambda folder, dims: write_csv(folder, dims, "float32"),
}


def write_photographs(folder, dims, count):
    """Writes png and jpeg files, with the folders and names that DLIO uses."""
    from PIL import Image

    def layer(grid):
        return Image.fromarray(grid.astype("float32")).resize((dims[1], dims[0]), Image.BICUBIC)

    for number in range(count):
        random = np.random.default_rng(number)
        picture = random.standard_normal(dims) * 3 + 128
        # Adds octaves of noise; finer octaves are weaker.
        for octave in range(1, 8):
            grid = random.standard_normal((3, 1 << octave, 1 << octave))
            picture += np.stack([layer(colour) for colour in grid], axis=2) * 80 / 1.4**octave
        picture = Image.fromarray(np.clip(picture, 0, 255).astype("uint8"))
        for suffix in ("jpeg", "png"):
            train = folder / suffix / "train"
            train.mkdir(parents=True, exist_ok=True)
            picture.save(train / f"img_{number:0{len(str(count))}}_of_{count}.{suffix}")


if __name__ == "__main__":
    main()
