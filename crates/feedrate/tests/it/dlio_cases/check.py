"""Checks the generated files of many cases: python check.py CASES.json. Prints a line for each case with an error."""
import glob
import json
import sys

import h5py
import numpy as np
import pandas as pd
from PIL import Image
from tfrecord.reader import tfrecord_loader


def hdf5(path):
    with h5py.File(path) as file:
        names = [name for name in file if name != "labels"]
        last = file[names[-1]]
        return {"shape": list(last.shape), "dtype": str(last.dtype), "datasets": len(names)}


def image_size(path):
    with Image.open(path) as image:
        image.load()
        assert image.format.lower() == path.rsplit(".", 1)[1] and image.mode == "L", (image.format, image.mode)
        return {"size": list(image.size)}


def array(path):
    data = np.load(path)
    data = data["x"] if path.endswith("npz") else data
    return {"shape": list(data.shape), "dtype": str(data.dtype)}


def tfrecord(path):
    first = next(iter(tfrecord_loader(path, None, {"image": "byte"})))
    return {"bytes": len(first["image"])}


def indexed_binary(path):
    offsets, sizes = (np.fromfile(f"{path}.{kind}.idx", np.int64) for kind in ("off", "sz"))
    assert len(offsets) == len(sizes) and len(set(sizes)) == 1, sizes
    with open(path, "rb") as file:
        for offset, size in zip(offsets, sizes):
            file.seek(offset)
            assert len(file.read(size)) == size
    return {"bytes": int(sizes[0]), "samples": len(sizes)}


def csv(path):
    return {"columns": pd.read_csv(path, header=None).shape[1]}


READERS = {"png": image_size, "jpeg": image_size, "npz": array, "npy": array}
for case in json.load(open(sys.argv[1])):
    kind = case.pop("format")
    name = case.pop("name")
    paths = glob.glob(case.pop("folder") + f"/train/*.{kind}")
    try:
        assert paths, "no files"
        for path in paths:
            found = READERS.get(kind, globals().get(kind))(path)
            assert found == case, f"{found}, wanted {case}"
    except Exception as error:
        print(f"{name}: {error}")
