"""Writes arrays with numpy for feedrate to read: python write_arrays.py FOLDER. Lists them in FOLDER/cases.json."""
import json
import os
import sys
import zipfile

import numpy as np

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(name, file_format, x, write, refused=None, members=(), whole=None, undecoded=None):
    """`write` writes the file. The samples of `x` are along the last axis, unless `whole` is the only sample."""
    path = os.path.join(folder, name)
    write(path, x)
    samples = 0 if refused else 1 if whole is not None else x.shape[-1]
    for sample in range(samples):
        column = whole if whole is not None else np.ascontiguousarray(x[..., sample]).tobytes()
        open(f"{path}.sample{sample}", "wb").write(column)
    case = {"path": path, "format": file_format, "samples": samples, "refused": refused}
    cases.append({**case, "members": list(members), "undecoded": undecoded})


def members_of(path, *names):
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(f"{name}.npy") for name in names)


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
            members = ["x"] if write is savez_with_other_arrays else []
            add(f"{name}_{write.__name__}.npz", "npz", x, write, members=members)
large = array("uint8", (2000, 1000, 1))
for write in npz_writers:
    add(f"large_{write.__name__}.npz", "npz", large, write, members=["x"])
add("large.npy", "npy", large, lambda path, x: np.save(path, x))
for version in [(1, 0), (2, 0), (3, 0)]:
    add(f"version_{version[0]}.npy", "npy", array("float32", (9, 2)), save_version(version))

small = array("float32", (4, 5, 2))
np_save = lambda path, x: np.save(path, x)
fields = np.zeros(3, dtype=[("a", "<f4"), ("b", "u1"), ("c", [("d", ">i8", (2, 3))])])
for name, x in {
    "big_endian": small.astype(">f4"),
    "bool": small > 3,
    "half": small.astype(">f2"),
    "dates": small.astype("M8[ns]"),
}.items():
    add(f"{name}.npy", "npy", x, np_save)
    add(f"{name}.npz", "npz", x, savez)
for name, x in {
    "fortran": np.asfortranarray(small),
    "fortran_big_endian": np.asfortranarray(small.astype(">i2")),
    "complex": small.astype("c16"),
    "long_double": small.astype("g"),
    "text": np.array(["ab", "c"]),
    "bytes": np.array([b"ab", b"c"]),
    "fields": fields,
    "no_axis": np.array(1.0),
    "many_axes": np.zeros([1] * 12 + [3]),
    "durations": np.array(3, dtype="m8[s]"),
}.items():
    add(f"{name}.npy", "npy", x, np_save, whole=x.tobytes("A"))
    add(f"{name}.npz", "npz", x, lambda path, x: np.savez(path, data=x), whole=x.tobytes("A"))
for size in [1, 100, 10000]:
    objects = np.array([{}, "x" * size], dtype=object)
    for file_format, write in [("npy", np.save), ("npz", lambda path, x, **_: np.savez_compressed(path, data=x))]:
        path = os.path.join(folder, f"objects.{file_format}")
        write(path, objects, allow_pickle=True)
        pickled = open(path, "rb").read() if file_format == "npy" else members_of(path, "data")
        pickled = pickled[10 + int.from_bytes(pickled[8:10], "little") :]
        save = lambda path, x: write(path, x, allow_pickle=True)
        add(f"objects_{size}.{file_format}", file_format, objects, save, whole=pickled, undecoded="pickled array")
add("no_x.npz", "npz", small, lambda path, x: np.savez(path, labels=x[:2, :1, 0], data=x))

for name, write in {
    "pair": lambda path, x: np.savez(path, image=x, mask=x[:3] > 2),
    "pair_compressed": lambda path, x: np.savez_compressed(path, image=x, mask=x[:3] > 2),
}.items():
    path = os.path.join(folder, name + ".npz")
    write(path, small)
    add(f"{name}.npz", "npz", small, write, whole=members_of(path, "image", "mask"))
    add(f"{name}_named.npz", "npz", small, write, members=["image"])
    add(f"{name}_file.npz", "npz", small, write, members=["image.npy"])
    both = members_of(path, "image", "mask")
    add(f"{name}_unknown.npz", "npz", small, write, members=["images"], whole=both, undecoded="npz without a chosen array")
target = array("uint8", (500, 100))
targets = lambda path, x: np.savez(path, x=x, y=x)
targets(os.path.join(folder, "targets.npz"), target)
add("targets.npz", "npz", target, targets, whole=members_of(os.path.join(folder, "targets.npz"), "x", "y"))


def bzip2(path, x):
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_BZIP2) as archive:
        with archive.open("x.npy", "w") as member:
            np.lib.format.write_array(member, x)


def packed(path, name):
    """The bytes of a member as they are stored."""
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        info = archive.getinfo(name)
        file.seek(info.header_offset + 26)
        skipped = sum(int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(skipped, os.SEEK_CUR)
        return file.read(info.compress_size)


bzip2(os.path.join(folder, "bzip2.npz"), small)
whole = packed(os.path.join(folder, "bzip2.npz"), "x.npy")
add("bzip2.npz", "npz", small, bzip2, whole=whole, undecoded="bzip2")


def bzip2_beside_labels(path, x):
    np.savez(path, labels=np.arange(x.shape[-1]))
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_BZIP2) as archive:
        with archive.open("images.npy", "w") as member:
            np.lib.format.write_array(member, x)


beside = array("float32", (400, 50, 2))
bzip2_beside_labels(os.path.join(folder, "bzip2_beside_labels.npz"), beside)
whole = packed(os.path.join(folder, "bzip2_beside_labels.npz"), "images.npy")
add("bzip2_beside_labels.npz", "npz", beside, bzip2_beside_labels, whole=whole, undecoded="bzip2")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
