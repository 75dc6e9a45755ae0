"""Files of h5py and hdf5plugin. An epoch reads each dataset with at least a tenth of the largest one's bytes."""
import os

import h5py
import hdf5plugin
import numpy as np
from kinds import FILES, SAMPLES, Kind, each, noise, random

SHAPE = (SAMPLES, 3, 64, 64)
CHUNK = (1, 3, 64, 64)


def read(*names):
    def samples(source):
        with h5py.File(source, "r") as file:
            for number in range(len(file[names[0]])):
                values = [file[name][number] for name in names]
                yield values[0] if len(values) == 1 else values

    return samples


def hdf5(name, write, *names, extension=".h5", files=FILES, is_decoded=True, unread=None, **file_options):
    """`write` creates the datasets. An epoch reads the datasets `names`, of which the first is the largest."""

    def write_file(path, number):
        with h5py.File(path, "w", **file_options) as file:
            write(file)

    samples = read(*(names or ["images"]))
    Kind(f"hdf5 {name}", each(extension, write_file, files), samples, f"*{extension}", is_decoded=is_decoded, unread=unread)


def images(data=None, **options):
    def write(file):
        file.create_dataset("images", data=noise(SHAPE) if data is None else data(), **options)
        file["labels"] = np.arange(SAMPLES)

    return write


def ints():
    return noise((SAMPLES, 64, 64), "int32")


LAYOUTS = {
    "contiguous": {},
    "chunked": dict(chunks=CHUNK),
    "small chunks": dict(chunks=(1, 3, 16, 16)),
    "chunks of several samples": dict(chunks=(4, 3, 64, 64)),
    "gzip": dict(chunks=CHUNK, compression="gzip"),
    "gzip in guessed chunks": dict(compression="gzip"),
    "shuffle gzip": dict(chunks=CHUNK, compression="gzip", shuffle=True),
    "fletcher32": dict(chunks=CHUNK, fletcher32=True),
    "growing": dict(chunks=CHUNK, maxshape=(None, 3, 64, 64)),
    "growing in two axes": dict(chunks=CHUNK, maxshape=(None, 3, None, 64)),
    "zstd": dict(chunks=CHUNK, **hdf5plugin.Zstd()),
    "lz4": dict(chunks=CHUNK, **hdf5plugin.LZ4()),
}
for name, options in LAYOUTS.items():
    hdf5(name, images(**options))
    if options:
        hdf5(f"{name} latest", images(**options), libver="latest")
SEVERAL = (4, 3, 64, 64)
SEVERAL_LAYOUTS = {
    "gzip": dict(compression="gzip"),
    "shuffle zstd": dict(shuffle=True, **hdf5plugin.Zstd()),
    "lz4": hdf5plugin.LZ4(),
    "fletcher32": dict(fletcher32=True),
}
for name, options in SEVERAL_LAYOUTS.items():
    hdf5(f"{name} of several samples", images(chunks=SEVERAL, **options))
hdf5("large chunks", images(lambda: noise((SAMPLES, 3, 400, 400)), chunks=(4, 3, 400, 400)))
hdf5("lz4 of random bytes in small blocks", images(lambda: random.integers(0, 256, SHAPE, np.uint8), chunks=CHUNK, **hdf5plugin.LZ4(nbytes=1000)))
UNDECODED = {
    "lzf": dict(compression="lzf"),
    "shuffle lzf": dict(compression="lzf", shuffle=True),
    "szip": dict(compression="szip"),
    "blosc": hdf5plugin.Blosc(),
    "blosc2": hdf5plugin.Blosc2(),
    "bitshuffle": hdf5plugin.Bitshuffle(),
    "bzip2": hdf5plugin.BZip2(),
    "zfp": hdf5plugin.Zfp(reversible=True),
}
for name, options in UNDECODED.items():
    data = ints if name == "zfp" else None
    hdf5(name, images(data, chunks=(1, 64, 64) if data else CHUNK, **options), is_decoded=False)
hdf5("lzf of several samples", images(chunks=(4, 3, 64, 64), compression="lzf"), is_decoded=False)
hdf5("lzf latest growing", images(chunks=CHUNK, maxshape=(None, 3, 64, 64), compression="lzf"), is_decoded=False, libver="latest")
hdf5("scaleoffset", images(ints, chunks=(1, 64, 64), scaleoffset=0), is_decoded=False)


def nbit(file):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((1, 64, 64))
    properties.set_filter(h5py.h5z.FILTER_NBIT)
    h5py.h5d.create(file.id, b"images", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((SAMPLES, 64, 64)), properties)
    file["images"][:] = ints()


hdf5("nbit", nbit, is_decoded=False)


def as_type(dtype, decoded=True, **options):
    data = noise((SAMPLES, 64, 64), "uint8").astype(dtype) if dtype != "bool" else noise((SAMPLES, 64, 64)) > 99
    name = np.dtype(dtype).name + (" big-endian" if dtype.startswith(">") else "")
    hdf5(f"of {name}{' gzip' * bool(options)}", images(lambda: data, **options), is_decoded=decoded)


for dtype in ["float16", "float32", "float64", "int64", "uint16", "bool", ">f4", ">i2"]:
    as_type(dtype)
for dtype in ["bool", ">f4"]:
    as_type(dtype, chunks=(1, 64, 64), compression="gzip")
as_type("complex64", decoded=None)


def compound(file):
    rows = np.zeros(SAMPLES, dtype=[("image", "u1", (64, 64)), ("label", "i8")])
    rows["image"] = noise((SAMPLES, 64, 64))
    file["images"] = rows


hdf5("compound", compound, is_decoded=None)


def encoded(file):
    """JPEG files as arrays of bytes of any length."""
    dataset = file.create_dataset("images", (SAMPLES,), dtype=h5py.vlen_dtype("uint8"))
    for number in range(SAMPLES):
        dataset[number] = random.integers(0, 256, 8000 + 500 * number, dtype=np.uint8)


hdf5("vlen bytes", encoded, is_decoded=False)


def vlen(lengths, dtype="uint8", features=None, **options):
    """Rows of these lengths, and a small array that is not read, unless it seems to be the largest."""

    def write(file):
        dataset = file.create_dataset("images", (SAMPLES,), dtype=h5py.vlen_dtype(dtype), **options)
        for number, length in enumerate(lengths):
            dataset[number] = random.integers(0, 256, length).astype(dtype)
        file["features" if features else "labels"] = noise((SAMPLES, features or 1), "float32")

    return write


ROWS = [8000 + 500 * number for number in range(SAMPLES)]
hdf5("vlen gzip beside features", vlen(ROWS, features=150, chunks=(4,), compression="gzip"), is_decoded=False, unread=False)
hdf5("vlen gzip beside labels", vlen(ROWS, chunks=(4,), compression="gzip", shuffle=True), is_decoded=False, unread=False)
hdf5("vlen with an empty first row", vlen([0, *ROWS[1:]], features=150), is_decoded=False, unread=False)
hdf5("vlen with a short first row", vlen([10, *ROWS[1:]], features=150), is_decoded=False, unread=False)
hdf5("vlen floats", vlen(ROWS, "float32"), is_decoded=False, unread=False)


def rows(fields, number_of_values):
    """Records with fields of variable length."""

    def write(file):
        dataset = file.create_dataset("images", (SAMPLES,), dtype=np.dtype([*fields, ("label", "i8")]))
        for number in range(SAMPLES):
            values = [random.integers(0, 256, 5000 + 100 * number, dtype=np.uint8) for _ in range(number_of_values)]
            dataset[number] = (*values, number)

    return write


BYTES = h5py.vlen_dtype("uint8")
for version in ["earliest", "latest"]:
    hdf5(f"compound with vlen bytes {version}", rows([("image", BYTES)], 1), is_decoded=False, unread=False, libver=version)
    hdf5(f"compound with two vlen fields {version}", rows([("image", BYTES), ("mask", BYTES)], 2), is_decoded=False, unread=False, libver=version)


def strings(file):
    dtype = h5py.string_dtype()
    dataset = file.create_dataset("text", (SAMPLES,), dtype=dtype)
    dataset[:] = [random.bytes(5000 + 200 * number).hex() for number in range(SAMPLES)]


hdf5("vlen strings", strings, "text", is_decoded=False)
hdf5("fixed strings", lambda file: file.create_dataset("text", data=np.array([random.bytes(4000) + b"." for _ in range(SAMPLES)])), "text", is_decoded=None)
hdf5("opaque", lambda file: file.create_dataset("blobs", data=noise((SAMPLES, 8192)).view("V8192").reshape(SAMPLES)), "blobs", is_decoded=None)


def masks(**options):
    def write(file):
        for name in ["images", "masks"]:
            file.create_dataset(name, data=noise((SAMPLES, 64, 64, 2)), **options)
        file["labels"] = np.arange(SAMPLES)

    return write


hdf5("images and masks", masks(), "images", "masks")
hdf5("images and masks gzip", masks(chunks=(1, 64, 64, 2), compression="gzip"), "images", "masks")
hdf5("images and masks lzf", masks(chunks=(1, 64, 64, 2), compression="lzf"), "images", "masks", is_decoded=False)


def volumes_of_two_types(file):
    file.create_dataset("image", data=noise((SAMPLES, 64, 64), "float32"), chunks=(1, 64, 64), compression="gzip")
    file.create_dataset("label", data=noise((SAMPLES, 64, 64)), chunks=(1, 64, 64), compression="gzip")


hdf5("volumes and segmentation", volumes_of_two_types, "image", "label")


def three_sensors(file):
    file["camera"] = noise((SAMPLES, 64, 64))
    file["depth"] = noise((SAMPLES, 64, 32), "float32")
    file["speed"] = noise((SAMPLES, 3), "float32")


hdf5("three sensors", three_sensors, "depth", "camera")


def train_and_test(file):
    """As in the files of Andrew Ng's course."""
    file["list_classes"] = np.array([b"non-cat", b"cat"])
    for split, count in [("train", SAMPLES), ("test", 5)]:
        file[f"{split}_set_x"] = noise((count, 64, 64, 3))
        file[f"{split}_set_y"] = np.zeros(count, dtype=np.int64)


hdf5("train and test", train_and_test, "train_set_x")


def in_groups(depth):
    def write(file):
        group = file.create_group("/".join(f"level {number}" for number in range(depth)))
        group.create_dataset("images", data=noise(SHAPE), chunks=CHUNK)
        group["labels"] = np.arange(SAMPLES)

    return write


hdf5("group", in_groups(1), "level 0/images")
hdf5("group latest", in_groups(1), "level 0/images", libver="latest")
hdf5("nested groups", in_groups(3), "level 0/level 1/level 2/images")


def many_links(count):
    def write(file):
        for number in range(count):
            file[f"attribute {number}"] = np.zeros(SAMPLES, dtype=np.float32)
        file.create_dataset("images", data=noise(SHAPE), chunks=CHUNK)

    return write


for count in [12, 300]:
    hdf5(f"{count} links", many_links(count))
    hdf5(f"{count} links latest", many_links(count), libver="latest")
hdf5("2500 links", many_links(2500), files=1)
hdf5("2500 links latest", many_links(2500), files=1, libver="latest")
hdf5("track_order", images(chunks=CHUNK), track_order=True)
hdf5("track_order 12 links", many_links(12), track_order=True)
hdf5("track_order latest", images(chunks=CHUNK), track_order=True, libver="latest")
hdf5("track_order 12 links latest", many_links(12), track_order=True, libver="latest")


def group_of_each_sample(file):
    """As robomimic and DROID store demonstrations."""
    for number in range(SAMPLES):
        file.create_dataset(f"data/demo_{number}/image", data=noise((8, 32, 32, 3)))


def unwritten(written):
    def write(file):
        dataset = file.create_dataset("images", SHAPE, dtype="uint8", chunks=CHUNK, fillvalue=3)
        for number in written:
            dataset[number] = noise((1, 3, 64, 64))[0]
        file["labels"] = np.arange(SAMPLES)

    return write


hdf5("half of the chunks unwritten", unwritten(range(0, SAMPLES, 2)))
hdf5("first chunk unwritten latest", unwritten(range(1, SAMPLES)), libver="latest")
hdf5("no chunk written", unwritten([]))
hdf5("half unwritten gzip", lambda file: file.create_dataset("images", SHAPE, "uint8", chunks=CHUNK, compression="gzip").__setitem__(slice(0, 8), noise(SHAPE)[:8]))


def netcdf(file):
    """Variables of a model of the weather on a grid, as netCDF4 stores them."""
    for name, length in [("time", SAMPLES), ("latitude", 48), ("longitude", 96)]:
        file[name] = np.arange(length, dtype=np.float32)
        file[name].make_scale(name)
    for name in ["t2m", "u10"]:
        options = dict(chunks=(1, 48, 96), compression="gzip", shuffle=True, fillvalue=-999)
        variable = file.create_dataset(name, data=noise((SAMPLES, 48, 96), "float32"), **options)
        for axis, scale in enumerate(["time", "latitude", "longitude"]):
            variable.dims[axis].attach_scale(file[scale])
        variable.attrs["units"] = "K"


hdf5("netcdf", netcdf, "t2m", "u10", extension=".nc")
hdf5("matlab", images(chunks=CHUNK, compression="gzip"), extension=".mat", userblock_size=512)
hdf5("without extension of its own", images(), extension=".data")


def with_attributes(file):
    images(chunks=CHUNK)(file)
    for number in range(40):
        file["images"].attrs[f"note {number}"] = "words " * 50


hdf5("many attributes", with_attributes)
hdf5("many attributes latest", with_attributes, libver="latest")


def of_references(file):
    """Soft links lead to the dataset."""
    file.create_dataset("store/images", data=noise(SHAPE))
    file["images"] = h5py.SoftLink("/store/images")


hdf5("soft link", of_references, "store/images")
hdf5("flat", lambda file: file.create_dataset("images", data=noise((256, 8))), files=2)


def external(folder):
    for number in range(FILES):
        path = os.path.join(folder, f"part {number}.h5")
        random.integers(0, 256, SHAPE, dtype=np.uint8).tofile(f"{path}.raw")
        with h5py.File(path, "w") as file:
            size = int(np.prod(SHAPE))
            file.create_dataset("images", SHAPE, "uint8", external=[(f"part {number}.h5.raw", 0, size)])


def virtual(folder):
    sources = []
    for number in range(FILES):
        sources.append(h5py.VirtualSource(f"part {number}.h5", "images", SHAPE, np.uint8))
        with h5py.File(os.path.join(folder, f"part {number}.h5"), "w") as file:
            file["images"] = noise(SHAPE)
    layout = h5py.VirtualLayout((FILES * SAMPLES, *SHAPE[1:]), np.uint8)
    for number, source in enumerate(sources):
        layout[number * SAMPLES : (number + 1) * SAMPLES] = source
    with h5py.File(os.path.join(folder, "whole.h5"), "w", libver="latest") as file:
        file.create_virtual_dataset("images", layout)


def linked(file):
    file["images"] = h5py.ExternalLink("images.h5", "/images")
    file["labels"] = np.arange(SAMPLES)


def beside_virtual(file):
    file["images"] = noise(SHAPE)
    layout = h5py.VirtualLayout(SHAPE, np.uint8)
    layout[:] = h5py.VirtualSource("masks.h5", "masks", SHAPE, np.uint8)
    file.create_virtual_dataset("masks", layout)


def beside_external(file):
    file["images"] = noise(SHAPE)
    file.create_dataset("masks", SHAPE, "uint8", external=[("masks.raw", 0, int(np.prod(SHAPE)))])


ELSEWHERE = "values of {} are stored elsewhere and not read"
for version in ["earliest", "latest"]:
    hdf5(f"link to another file {version}", linked, "labels", unread=ELSEWHERE.format("images"), libver=version)
hdf5("virtual masks", beside_virtual, unread=ELSEWHERE.format("masks"), libver="latest")
hdf5("masks in external raw files", beside_external, unread=ELSEWHERE.format("masks"))
Kind("hdf5 beside a virtual dataset", virtual, read("images"), "part*.h5", left_out=1)
Kind("hdf5 with external raw files", external, None, "*.raw")
