"""Writes HDF5 files and reads their rows in random order: python hdf5_requests.py FOLDER. Prints h5py's reads of data of each file.

Short contiguous rows are missing: the library reads ahead of them only in files that it opens itself.
"""
import io
import json
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
random = np.random.default_rng(1)
# Shorter reads are of metadata.
DATA_BYTES_MIN = 2048


class CountedFile(io.FileIO):
    def __init__(self, path):
        super().__init__(path)
        self.reads = self.read_bytes = 0

    def readinto(self, buffer):
        size = super().readinto(buffer)
        if size >= DATA_BYTES_MIN:
            self.reads += 1
            self.read_bytes += size
        return size


def rows(*shape):
    return random.integers(0, 64, shape, dtype=np.uint8)


kinds = {
    "large_rows": (rows(64, 3, 200, 256), {}),
    "row_chunks": (rows(128, 3, 64, 64), {"chunks": (1, 3, 64, 64), "compression": "lzf"}),
    "long_chunks": (rows(128, 3, 64, 64), {"chunks": (16, 3, 64, 64), "compression": "lzf"}),
    "default_chunks": (rows(128, 3, 64, 64), {"chunks": True, "compression": "gzip"}),
    # Each chunk is shorter than the library's cache of a dataset.
    "many_datasets": (np.zeros((12, 512, 1024), np.uint8) + rows(12, 1, 1), {"chunks": (12, 512, 1024), "compression": "lzf"}),
}
DATASETS = {"many_datasets": 12}
counts = {}
for kind, (data, options) in kinds.items():
    os.makedirs(f"{folder}/{kind}")
    path = f"{folder}/{kind}/a.h5"
    with h5py.File(path, "w") as file:
        for number in range(DATASETS.get(kind, 1)):
            file.create_dataset(f"images_{number}", data=data, **options)
    with CountedFile(path) as counted, h5py.File(counted, "r") as file:
        images = list(file.values())
        for row in random.permutation(len(data)):
            for dataset in images:
                dataset[row]
        counts[kind] = {"reads": counted.reads, "bytes": counted.read_bytes, "datasets": len(images)}
print(json.dumps(counts))
