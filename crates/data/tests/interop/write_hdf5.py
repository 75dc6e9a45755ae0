"""Writes files with h5py for feedrate to read: python write_hdf5.py FOLDER. Lists them in FOLDER/cases.json."""
import ctypes
import glob
import json
import os
import sys

import h5py
import hdf5plugin
import numpy as np

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []
# The libhdf5 that h5py has loaded, for calls without a function in h5py.
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "../h5py.libs/libhdf5-*"))[0])
VERSIONS = ["earliest", "v108", "v110", "latest"]


def array(dtype, shape):
    # Half noise, half repetition, so that compression has an effect.
    x = random.integers(0, 100, shape).astype(dtype)
    x.reshape(-1)[: x.size // 2] = 7
    return x


def row(file, x, sample):
    return x[sample : sample + 1].tobytes()


def add(name, x, write, refused=None, libver="earliest", picked=None, payload=row, undecoded=None, members=(), **file_options):
    """`write` creates the datasets. `x` contains the samples that feedrate must find, along the first axis, unless `payload`
    returns them. If samples are picked, only these are read."""
    path = os.path.join(folder, f"{name}_{libver}.hdf5")
    with h5py.File(path, "w", libver=libver, **file_options) as file:
        write(file, x)
    picked = [] if refused else picked or list(range(len(x)))
    with h5py.File(path) as file:
        for sample in picked:
            open(f"{path}.sample{sample}", "wb").write(payload(file, x, sample))
    case = {"path": path, "format": "hdf5", "samples": len(x) if picked else 0, "picked": picked, "refused": refused}
    cases.append({**case, "undecoded": undecoded, "members": list(members)})


def records(**options):
    def write(file, x):
        file.create_dataset("records_0", data=x, **options)
        file.create_dataset("labels", data=np.zeros(len(x), dtype=np.int64))

    return write


LAYOUTS = {
    "contiguous": {},
    "chunked": dict(chunks=(1, 13, 7)),
    "rows": dict(chunks=(1, 5, 23)),
    "columns": dict(chunks=(1, 31, 4)),
    "whole": dict(chunks=(1, 31, 23)),
    "many": dict(chunks=(2, 31, 23)),
    "one": dict(chunks=(5, 31, 23)),
    "small": dict(chunks=(1, 2, 3)),
    "gzip": dict(chunks=(1, 31, 23), compression="gzip"),
    "gzip_many": dict(chunks=(3, 31, 23), compression="gzip", compression_opts=9),
    "gzip_one": dict(chunks=(5, 31, 23), compression="gzip"),
    "gzip_small": dict(chunks=(2, 2, 3), compression="gzip", compression_opts=1),
    "gzip_none": dict(chunks=(2, 7, 9), compression="gzip", compression_opts=0),
    "shuffle_gzip": dict(chunks=(2, 13, 23), compression="gzip", shuffle=True),
    "shuffle": dict(chunks=(2, 13, 7), shuffle=True),
    "fletcher32": dict(chunks=(1, 13, 23), fletcher32=True),
    "all": dict(chunks=(2, 13, 5), compression="gzip", shuffle=True, fletcher32=True),
    "auto": dict(chunks=True),
    "growing": dict(chunks=(1, 31, 23), maxshape=(None, 31, 23)),
    "growing_small": dict(chunks=(1, 2, 3), maxshape=(None, 31, 23)),
    "growing_gzip": dict(chunks=(1, 4, 6), maxshape=(None, 31, 23), compression="gzip", shuffle=True),
    "growing_inside": dict(chunks=(1, 2, 3), maxshape=(5, None, 23)),
    "growing_last": dict(chunks=(2, 2, 3), maxshape=(5, 40, None), compression="gzip"),
    "bounded": dict(chunks=(2, 2, 3), maxshape=(9, 40, 50)),
}
for libver in VERSIONS:
    for dtype in "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split():
        x = array(dtype, (5, 31, 23))
        for name in ["contiguous", "chunked", "shuffle_gzip"]:
            add(f"{dtype}_{name}", x, records(**LAYOUTS[name]), libver=libver)
    for name, options in LAYOUTS.items():
        add(name, array("float32", (5, 31, 23)), records(**options), libver=libver)

    # Chunk indexes with several levels, and with pages.
    tall = array("int16", (6000, 3))
    some = [0, 3, 4, 63, 64, 1023, 1024, 2345, 4095, 4096, 5998, 5999]
    add("tall", tall, records(chunks=(1, 3)), libver=libver, picked=some)
    add("tall_gzip", tall, records(chunks=(1, 3), compression="gzip"), libver=libver, picked=some)
    add("tall_growing", tall, records(chunks=(1, 3), maxshape=(None, 3)), libver=libver, picked=some)
    growing_gzip = records(chunks=(1, 2), maxshape=(None, 3), compression="gzip")
    add("tall_growing_gzip", tall, growing_gzip, libver=libver, picked=some)
    wide = array("uint8", (2, 60, 80))
    add("wide", wide, records(chunks=(1, 2, 2)), libver=libver)
    add("wide_growing", wide, records(chunks=(1, 2, 2), maxshape=(None, 60, 80)), libver=libver)
    if libver in ["earliest", "latest"]:
        # Long enough that the blocks of an extensible array have pages.
        taller = array("uint8", (140000,))
        some = [0, 131055, 131059, 131060, 132083, 132084, 135000, 139999]
        add("taller", taller, records(chunks=(1,), maxshape=(None,)), libver=libver, picked=some)

    add("flat", array("int32", (40,)), records(), libver=libver)
    add("flat_chunked", array("int32", (40,)), records(chunks=(7,)), libver=libver)
    add("deep", array("uint8", (2, 3, 2, 3, 2, 3, 2, 3, 2)), records(chunks=(1, 2, 1, 2, 1, 2, 1, 2, 1)), libver=libver)

    def early(file, x):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1, 5, 23))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple(x.shape)
        h5py.h5d.create(file.id, b"records_0", h5py.h5t.py_create(x.dtype), space, plist)
        file["records_0"][:] = x

    add("implicit", array("uint16", (5, 31, 23)), early, libver=libver)

    def compact(file, x):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(x.shape)
        h5py.h5d.create(file.id, b"records_0", h5py.h5t.py_create(x.dtype), space, plist)
        file["records_0"][:] = x

    add("compact", array("uint16", (5, 31, 23)), compact, libver=libver)

    def edges(file, x):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2, 13, 9))
        plist.set_deflate(4)
        # Chunks that extend beyond the dataset are not filtered.
        assert library.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(2)) == 0
        space = h5py.h5s.create_simple(x.shape)
        h5py.h5d.create(file.id, b"records_0", h5py.h5t.py_create(x.dtype), space, plist)
        file["records_0"][:] = x

    add("edges", array("uint16", (5, 31, 23)), edges, libver=libver)

    def grown(file, x):
        data = file.create_dataset("records_0", shape=(0, 31, 23), maxshape=(None, 31, 23), dtype=x.dtype, chunks=(1, 31, 23))
        for i, sample in enumerate(x):
            data.resize(i + 1, axis=0)
            data[i] = sample

    add("grown", array("float64", (70, 31, 23)), grown, libver=libver)

    def several(file, x):
        for i in range(4):
            file.create_dataset(f"records_{i}", data=x[:, 8 * i : 8 * i + 8], chunks=(2, 3, 3) if i % 2 else None)
        file.create_dataset("labels", data=np.zeros(len(x), dtype=np.int64))

    add("several", array("uint8", (3, 32, 9)), several, libver=libver)

    def attributes(file, x):
        file.attrs["about"] = "words " * 100
        data = file.create_dataset("records_0", data=x)
        for i in range(30):
            data.attrs[f"number {i}"] = np.arange(100)

    add("attributes", array("uint8", (3, 32, 9)), attributes, libver=libver)

    def data_and_target(file, x):
        file["target"] = np.arange(len(x))
        file["images"] = x
        file["names"] = np.array([b"ab", b"c"])
        file.create_group("more")["x"] = np.zeros(10)

    add("data_and_target", array("uint8", (3, 32, 9)), data_and_target, libver=libver)

    add("ordered", array("uint8", (3, 4)), records(), libver=libver, track_order=True)
    add("user_block", array("float32", (3, 4, 5)), records(chunks=(1, 2, 5), compression="gzip"), libver=libver, userblock_size=1024)

    def crowd(file, x):
        for i in range(200):
            file[f"other_{i}"] = np.zeros(2)
        file["records_0"] = x

    add("crowd", array("uint8", (3, 4)), crowd, libver=libver)

    small = array("float32", (4, 5, 2))
    refusals = {
        "scalar": (np.float32(1), lambda file, x: file.create_dataset("records_0", data=x), "without dimensions"),
        "empty_file": (small, lambda file, x: None, "the root group is empty"),
        "group": (small, lambda file, x: file.create_group("records_0"), "no dataset"),
        "only_groups": (small, lambda file, x: file.create_group("a"), "the file contains `a`"),
        "no_samples": (small, lambda file, x: file.create_dataset("records_0", shape=(0, 4), dtype="f4"), "there is no sample 0"),
        "differing": (small, lambda file, x: (file.create_dataset("records_0", data=x), file.create_dataset("records_1", data=x[:, :2])), "differ in shape"),
        "virtual": (small, lambda file, x: file.create_virtual_dataset("records_0", h5py.VirtualLayout(shape=(4,), dtype="f4")), "virtual dataset"),
        "rank": (np.zeros([1] * 10), records(), "`10` dimensions"),
    }
    for name, (x, write, reason) in refusals.items():
        add(name, x, write, reason, libver=libver)

    # Bytes of elements that are no plain little-endian numbers are those of numpy's arrays.
    elements = {
        "big_endian": small.astype(">f4"),
        "big_endian_integers": small.astype(">i2"),
        "complex": small.astype("c8"),
        "bool": small > 3,
        "strings": np.array([b"ab", b"c"]),
        "fields": np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")]),
        "opaque": np.array([b"abc", b"def"], dtype="V3"),
    }
    for name, x in elements.items():
        add(name, x, records(), libver=libver)
        if x.size > 2:
            add(f"{name}_gzip", x, records(chunks=(1, 5, 2), compression="gzip"), libver=libver)

    def zeros(file, x, sample):
        return bytes(x[sample].nbytes)

    def unwritten(**options):
        return lambda file, x: file.create_dataset("records_0", shape=x.shape, dtype=x.dtype, **options)

    add("unwritten", small, unwritten(), libver=libver, payload=zeros)
    for chunks in [(1, 5, 2), (3, 2, 2), (2, 3, 1)]:
        add(f"unwritten_{chunks[1]}", small, unwritten(chunks=chunks), libver=libver, payload=zeros)
        partly = lambda file, x: unwritten(chunks=chunks, compression="gzip")(file, x).__setitem__(2, x[2])
        add(f"partly_{chunks[1]}", small, partly, libver=libver, payload=lambda file, x, sample: file["records_0"][sample].tobytes())

    def images_and_labels(**options):
        def write(file, x):
            file["a_name"] = "text"
            file.create_dataset("images", data=x, **options)
            file["labels"] = np.arange(len(x), dtype="u1")
            file["words"] = np.array(["one", "two"], dtype=h5py.string_dtype())

        return write

    def stored(name):
        def chunks(file, x, sample):
            data = file[name].id
            infos = [data.get_chunk_info(i) for i in range(data.get_num_chunks())]
            own = [info.chunk_offset for info in infos if info.chunk_offset[0] // file[name].chunks[0] == sample // file[name].chunks[0]]
            return b"".join(data.read_direct_chunk(offset)[1] for offset in sorted(own))

        return chunks

    chunks = (1, 5, 2)
    add("beside_labels", small, images_and_labels(chunks=chunks, compression="gzip"), libver=libver)
    filters = {
        "lzf": dict(compression="lzf"),
        "szip": dict(compression="szip"),
        "scaleoffset": dict(scaleoffset=0),
        "zstd": hdf5plugin.Zstd(),
        "lz4": hdf5plugin.LZ4(),
        "blosc": hdf5plugin.Blosc(),
        "bitshuffle": hdf5plugin.Bitshuffle(),
        "bzip2": hdf5plugin.BZip2(),
    }
    for name, options in filters.items():
        for chunks in [(1, 5, 2), (2, 3, 2)]:
            x = array("int32", (4, 5, 2))
            beside = images_and_labels(chunks=chunks, shuffle=False, **options)
            is_decoded = name in ["zstd", "lz4"]
            reads = dict() if is_decoded else dict(payload=stored("images"), undecoded=name)
            add(f"{name}_{chunks[0]}", x, beside, libver=libver, **reads)

    def labels(file, x):
        file["labels"] = np.arange(len(x), dtype="u1")

    def pairs(**options):
        def write(file, x):
            labels(file, x)
            file.create_dataset("images", data=x, **options)
            file.create_dataset("masks", data=(x[:, :3] > 2), **options)

        return write

    both = lambda file, x, sample: x[sample].tobytes() + (x[sample, :3] > 2).tobytes()
    for options in [{}, dict(chunks=(1, 3, 2)), dict(chunks=(2, 3, 2), compression="gzip")]:
        name = "".join(sorted(options))
        add(f"images_and_masks_{name}", small, pairs(**options), libver=libver, payload=both)
        for member in ["images", "/images"]:
            add(f"only_{len(member)}_{name}", small, pairs(**options), libver=libver, members=[member])
    add("unknown_member", small, pairs(), "no dataset `image`: the file contains", members=["image"], libver=libver)
    same = lambda file, x: [file.__setitem__(name, x) for name in ["left", "right"]]
    add("left_and_right", small, same, libver=libver, payload=lambda file, x, sample: 2 * x[sample].tobytes())

    def nested(file, x):
        group = file.create_group("data/train")
        for i in range(12):
            group.create_dataset(f"weights_{i}", data=np.zeros(2, dtype="u1"))
        group["images"] = x
        labels(file, x)
        group["again"] = group
        file["soft"] = h5py.SoftLink("/data/train/images")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/images")

    add("nested", small, nested, libver=libver)
    add("nested_named", small, nested, libver=libver, members=["data/train/images"])
    add("nested_ordered", small, nested, libver=libver, track_order=True)

    def many_links(file, x):
        for i in range(900):
            file.create_group("folder").create_dataset("x", data=x) if i == 500 else file.create_group(f"a rather long name of a group, number {i}")

    add("many_links", small, many_links, libver=libver)

    def named_type(file, x):
        file["float"] = x.dtype
        file.create_dataset("images", data=x, dtype=file["float"])

    add("named_type", small, named_type, libver=libver)

    words = ["a few words", "", "x" * 5000, "more"]
    word = lambda file, x, sample: words[sample].encode()
    for name, options in [("plain", {}), ("chunks", dict(chunks=(3,))), ("gzip", dict(chunks=(2,), compression="gzip"))]:
        write = lambda file, x: file.create_dataset("words", data=words, dtype=h5py.string_dtype(), **options)
        add(f"variable_{name}", np.zeros(4), write, libver=libver, payload=word, undecoded="variable-length")

    several_axes = records(chunks=(1, 2, 3), maxshape=(None, None, 23))
    add("growing_all", array("float32", (5, 31, 23)), several_axes, libver=libver)
    several_axes = records(chunks=(1, 2, 3), maxshape=(None, None, 23), compression="gzip")
    add("growing_all_gzip", array("float32", (70, 31, 23)), several_axes, libver=libver, picked=[0, 1, 34, 69])

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
