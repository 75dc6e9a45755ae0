"""Writes containers of images and arrays for feedrate to decode: python write_members.py FOLDER. Lists them in
FOLDER/cases.json. The decoded samples are stored next to the container."""
import io
import json
import os
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tfrecord
from PIL import Image

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def image(kind, channels=3):
    y, x = np.mgrid[0:40, 0:56]
    phase = random.uniform(0, 6)
    waves = [128 + 60 * np.sin(x / 23 + c + phase) * np.cos(y / 31) for c in range(channels)]
    file = io.BytesIO()
    Image.fromarray(np.stack(waves, axis=-1).astype(np.uint8).squeeze()).save(file, kind)
    return file.getvalue(), np.asarray(Image.open(file))


def array():
    x = random.integers(0, 1000, (3, 4)).astype(np.float32)
    file = io.BytesIO()
    np.save(file, x)
    return file.getvalue(), x


def case(name, members, undecoded=None):
    """`members` are pairs of a file and its decoded content."""
    path = os.path.join(folder, name)
    for sample, (_, decoded) in enumerate(members):
        data = decoded if isinstance(decoded, bytes) else decoded.astype(decoded.dtype.newbyteorder("<")).tobytes()
        open(f"{path}.sample{sample}", "wb").write(data)
    formats = {"tar": "webdataset", "parquet": "parquet", "tfrecord": "tfrecord"}
    known = {"path": path, "format": formats[name.rsplit(".")[-1]], "samples": len(members), "decodes": True}
    lossy = any(data.startswith(b"\xff\xd8") for data, _ in members)
    if lossy and undecoded is None:
        known |= {"dims": members[0][1].shape, "tolerance": 6, "edge_tolerance": 64}
    cases.append(known | {"undecoded": undecoded})
    return path


def shard(name, extension, members, undecoded=None):
    with tarfile.open(case(name, members, undecoded), "w") as archive:
        for number, (data, _) in enumerate(members):
            for word, content in [("cls", b"7"), (extension, data)]:
                info = tarfile.TarInfo(f"{number:06}.{word}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def column(name, kind, values, members, undecoded=None, **options):
    table = pa.table({"label": list(range(len(values))), "image": pa.array(values, kind)})
    pq.write_table(table, case(name, members, undecoded), **options)


kinds = {
    "jpeg": lambda: image("JPEG"),
    "grey": lambda: image("JPEG", 1),
    "png": lambda: image("PNG"),
    "rgba": lambda: image("PNG", 4),
    "npy": array,
}
for kind, make in kinds.items():
    members = [make() for _ in range(3)]
    files = [data for data, _ in members]
    for extension in {"jpeg": ["jpg", "JPEG", "seg.jpg", "bin"], "png": ["png"]}.get(kind, [kind]):
        shard(f"{kind}.{extension}.tar", extension, members)
    for compression in ["none", "snappy", "gzip"]:
        for dictionary in [False, True]:
            options = {"compression": compression, "use_dictionary": dictionary}
            column(f"{kind}_{compression}_{dictionary}.parquet", pa.binary(), files, members, **options)
    # As Hugging Face's `datasets` stores images.
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    values = [{"bytes": data, "path": f"{number}.x"} for number, data in enumerate(files)]
    column(f"{kind}_huggingface.parquet", struct, values, members)
    # As TensorFlow's datasets store them: not in the first feature of bytes.
    writer = tfrecord.TFRecordWriter(case(f"{kind}.tfrecord", members))
    for data in files:
        writer.write({"image/class/text": (b"cat", "byte"), "image/encoded": (data, "byte"), "image/class/label": (3, "int")})
    writer.close()

broken = image("JPEG")[0]
webp = image("WEBP")[0]
for name, extension, data, kind in [
    ("cut", "jpg", broken[: len(broken) // 2], "jpeg"),
    ("text", "jpg", b"text that has the name of an image", "jpeg"),
    ("short", "jpg", b"\xff\xd8\xff", "jpeg"),
    ("tail", "png", image("PNG")[0][:-30], "png"),
    ("head", "npy2", b"\x93NUMPY\x01\x00\xff\xff{'descr'", "npy"),
    ("webp", "webp", webp, "webp"),
    ("renamed", "jpg", webp, "webp"),
    ("pickle", "pyd", b"\x80\x04\x95 and so on, for a while", "pickle"),
    ("raw", "bin", bytes(range(200)), None),
]:
    shard(f"{name}.tar", extension, [(data, data)] * 2, kind)
    if name not in ["text", "pickle"]:
        column(f"{name}.parquet", pa.binary(), [data] * 2, [(data, data)] * 2, kind)

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
