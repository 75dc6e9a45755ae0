"""Writes small datasets with the formats' usual libraries: python folder.py FOLDER."""

import io
import os
import sys
import tarfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

root = sys.argv[1]
random = np.random.default_rng(1)


def make_path(path):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def jpeg(height, width):
    picture = io.BytesIO()
    pixels = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(picture, "JPEG")
    return picture.getvalue()


def shard(path, samples):
    with tarfile.open(make_path(path), "w") as archive:
        for i in range(samples):
            for name, data in ((f"{i:06}.jpg", jpeg(20, 30)), (f"{i:06}.cls", b"3")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


for i, samples in enumerate([10, 10, 10, 10, 3]):
    shard(f"shards/train/shard-{i:06}.tar", samples)
shard("shards/val/shard-000000.tar", 10)

for split, shards in (("train", 2), ("test", 1)):
    for i in range(shards):
        images = [jpeg(20 + i, 30) for i in range(10)]
        paths = [f"{i}.jpg" for i in range(10)]
        column = pa.StructArray.from_arrays([pa.array(images, pa.binary()), pa.array(paths)], ["bytes", "path"])
        table = pa.table({"image": column, "label": pa.array([1] * 10)})
        pq.write_table(table, make_path(f"hub/data/{split}-{i:05}-of-{shards:05}.parquet"))

data = random.integers(0, 255, (12, 16, 16, 3), dtype=np.uint8)
for folder, options in (("h5", {}), ("h5z", {"chunks": (1, 16, 16, 3), "compression": "gzip"})):
    with h5py.File(make_path(f"{folder}/my data.h5"), "w") as file:
        file.create_dataset("images", data=data, **options)
        file.create_dataset("labels", data=np.zeros(12, dtype=np.int64))

for i in range(6):
    volume = random.random((16, 16, 8), dtype=np.float32)
    np.savez(make_path(f"npz/a/b{i % 2}/scan {i}.npz"), volume=volume, label=np.int64(1))
    with open(make_path(f"jpeg/class {i % 2}/picture {i}.jpg"), "wb") as file:
        file.write(jpeg(30 + i, 40))
