"""Writes arrays with numpy for feedrate to read: python write_arrays.py FOLDER. Lists them in FOLDER/cases.json."""
import json
import os
import sys
import zipfile

import numpy as np

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(name, file_format, x, write, refused=None):
    path = os.path.join(folder, name)
    write(path, x)
    samples = 0 if refused else x.shape[-1]
    for sample in range(samples):
        open(f"{path}.sample{sample}", "wb").write(np.ascontiguousarray(x[..., sample]).tobytes())
    cases.append({"path": path, "format": file_format, "samples": samples, "refused": refused})


def array(dtype, shape):
    # Half noise, half repetition, so that compression has an effect.
    x = random.integers(0, 100, shape).astype(dtype)
    x[: shape[0] // 2] = 7
    return x


def savez(path, x):
    np.savez(path, x=x, y=np.zeros(x.shape[-1], dtype=np.int64))


def savez_compressed(path, x):
    np.savez_compressed(path, x=x, y=np.zeros(x.shape[-1], dtype=np.int64))


def savez_with_other_arrays(path, x):
    np.savez_compressed(path, a=np.arange(1000), x=x, z=np.arange(100000))


def savez_to_a_pipe(path, x):
    """zipfile writes sizes after the data if it cannot seek."""

    class Pipe:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            return self.file.write(data)

        def flush(self):
            self.file.flush()

    with open(path, "wb") as file, zipfile.ZipFile(Pipe(file), "w") as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, x)


def savez_with_a_comment(path, x):
    savez(path, x)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK comment " * 3000


def save_version(version):
    def write(path, x):
        with open(path, "wb") as file:
            np.lib.format.write_array(file, x, version=version)

    return write


dtypes = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split()
npz_writers = [savez, savez_compressed, savez_with_other_arrays, savez_to_a_pipe, savez_with_a_comment]
for dtype in dtypes:
    for shape in [(31, 17, 1), (5, 2, 3, 4)]:
        x = array(dtype, shape)
        name = f"{dtype}_{len(shape)}"
        add(f"{name}.npy", "npy", x, lambda path, x: np.save(path, x))
        for write in npz_writers:
            add(f"{name}_{write.__name__}.npz", "npz", x, write)
large = array("uint8", (2000, 1000, 1))
for write in npz_writers:
    add(f"large_{write.__name__}.npz", "npz", large, write)
add("large.npy", "npy", large, lambda path, x: np.save(path, x))
for version in [(1, 0), (2, 0), (3, 0)]:
    add(f"version_{version[0]}.npy", "npy", array("float32", (9, 2)), save_version(version))

small = array("float32", (4, 5, 2))
np_save = lambda path, x: np.save(path, x)
add("fortran.npy", "npy", np.asfortranarray(small), np_save, "Fortran order")
add("big_endian.npy", "npy", small.astype(">f4"), np_save, "big-endian")
add("object.npy", "npy", np.array([{}, 1], dtype=object), lambda path, x: np.save(path, x, allow_pickle=True), "Python objects")
add("text.npy", "npy", np.array(["ab", "c"]), np_save, "not one of")
add("fields.npy", "npy", np.zeros(3, dtype=[("a", "<f4"), ("b", "u1")]), np_save, "structured")
add("no_axis.npy", "npy", np.array(1.0), np_save, "no axis")
add("fortran.npz", "npz", np.asfortranarray(small), savez, "Fortran order")
add("no_x.npz", "npz", small, lambda path, x: np.savez(path, labels=x[:2], data=x))


def bzip2(path, x):
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_BZIP2) as archive:
        with archive.open("x.npy", "w") as member:
            np.lib.format.write_array(member, x)


add("bzip2.npz", "npz", small, bzip2, "member `x.npy` is compressed by method `12`")


def bzip2_beside_labels(path, x):
    np.savez(path, labels=np.arange(x.shape[-1]))
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_BZIP2) as archive:
        with archive.open("images.npy", "w") as member:
            np.lib.format.write_array(member, x)


refused = "member `images.npy` is compressed by method `12`"
add("bzip2_beside_labels.npz", "npz", small, bzip2_beside_labels, refused)

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
