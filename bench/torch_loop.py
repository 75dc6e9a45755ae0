"""Plain PyTorch loops over files of feedrate's, for fidelity.py; run by a Python that has torch, numpy, h5py and Pillow.

Started without arguments it takes one loop a line on stdin, as JSON, and says what came out, likewise: torch is imported once, each loop
has a process of its own, in the cgroup that is named. `make_dataset` is for `feedrate calibrate`.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def npz(path):
    with np.load(path) as file:
        return file["x"]


def hdf5(path):
    import h5py

    with h5py.File(path) as file:
        # Samples, not labels.
        return max(file.values(), key=lambda one: one.nbytes)[:]


def picture(path):
    from PIL import Image

    with Image.open(path) as image:
        return np.array(image)


def tfrecord(path):
    """The parts of `Example` are the client's; a record is read without checking it, as the library `tfrecord` does."""
    from tfrecord.reader import tfrecord_loader

    return np.concatenate([np.frombuffer(one["image"], np.uint8) for one in tfrecord_loader(path, None, {"image": "byte"})])


READ = {"npz": npz, "npy": np.load, "hdf5": hdf5, "jpeg": picture, "png": picture, "tfrecord": tfrecord}


class Files(Dataset):
    """A sample a file."""

    def __init__(self, kind, folder, count=None):
        self.read = READ[kind]
        self.paths = sorted(path for path in Path(folder).rglob("*") if path.parent.name == "train" and path.is_file())[:count]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.as_tensor(self.read(self.paths[index]))


def make_dataset():
    return Files(os.environ["FIDELITY_FORMAT"], os.environ["FIDELITY_FOLDER"])


def loop(asked):
    """Share of the time that is compute: waits of `step_seconds`, as long as they took, from before the first worker starts to the end of
    the last. The emulation's are counted likewise: where cores are contended, both wake late."""
    dataset = Files(asked["format"], asked["folder"], asked["batch"] * asked["steps"])
    loader = DataLoader(dataset, batch_size=asked["batch"], num_workers=asked["workers"])
    steps, computed, begun = 0, 0.0, time.perf_counter()
    for _ in loader:
        came = time.perf_counter()
        time.sleep(asked["step_seconds"])
        steps += 1
        ended = time.perf_counter()
        computed += ended - came
    assert steps == asked["steps"], f"{steps} steps, not {asked['steps']}"
    return 100 * computed / (ended - begun)


def main():
    print(json.dumps({"torch": torch.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        out, told = os.pipe()
        child = os.fork()
        if child == 0:
            if asked["cgroup"]:
                Path(asked["cgroup"], "cgroup.procs").write_text(str(os.getpid()))
            os.write(told, json.dumps(loop(asked)).encode())
            # What torch does at the end of a process is not the loop's.
            os._exit(0)
        os.close(told)
        with open(out) as answer:
            au = answer.read()
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit("a loop failed")
        print(au, flush=True)


if __name__ == "__main__":
    main()
