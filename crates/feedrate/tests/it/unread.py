"""Writes files of which a part is not read: python unread.py FOLDER KIND..."""
import io
import os
import sys

import datasets
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

folder, kinds = sys.argv[1], sys.argv[2:]
random = np.random.default_rng(1)
FILES = 40
# Not among the files that are opened before a run.
LATE = 38


def image_bytes(*shape):
    return random.integers(0, 256, shape, dtype=np.uint8)


def path(kind, name):
    os.makedirs(f"{folder}/{kind}", exist_ok=True)
    return f"{folder}/{kind}/{name}"


def linked():
    for number in range(4):
        with h5py.File(path("linked", f"{number}.h5"), "w") as file:
            file["labels"] = np.arange(64)
            file["images"] = h5py.ExternalLink("../elsewhere.h5", "/images")


def late():
    for number in range(FILES):
        is_late = number == LATE
        with h5py.File(path("late_hdf5", f"{number:02}.h5"), "w") as file:
            file["images"] = image_bytes(8, 32, 32)
            file["labels"] = np.arange(8)
            if is_late:
                file["video"] = image_bytes(4, 1_000_000)
        arrays = {"image": image_bytes(32, 32), "label": np.arange(1), "video": image_bytes(4, 1_000_000)}
        names = [name for name in arrays if is_late or name != "video"]
        np.savez(path("late_npz", f"{number:02}.npz"), **{name: arrays[name] for name in names})


def late_links():
    for kind, options, more in [("late_links", {}, 0), ("late_links_latest", {"libver": "latest"}, 12)]:
        for number in range(FILES):
            with h5py.File(path(kind, f"{number:02}.h5"), "w", **options) as file:
                file["images"] = image_bytes(8, 32, 32)
                file["labels"] = np.arange(8)
                for index in range(more):
                    file[f"note_{index}"] = np.arange(2)
                if number == LATE:
                    file["masks"] = h5py.ExternalLink("../elsewhere.h5", "/masks")


def late_paths():
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}).arrow_schema
    for number in range(FILES):
        images = [{"bytes": None if number == LATE else png(), "path": f"/images/{number}_{row}.png"} for row in range(4)]
        table = pa.Table.from_pydict({"image": images, "label": list(range(4))}, schema=features)
        pq.write_table(table, path("late_paths", f"{number:02}.parquet"))
        with pa.ipc.new_stream(path("late_paths_arrow", f"{number:02}.arrow"), features) as stream:
            stream.write_table(table)


def one_each():
    with h5py.File(path("one_each", "a.h5"), "w") as file:
        for number in range(100):
            file[f"image_{number}"] = image_bytes(20, 30)
    np.savez(path("one_each_npz", "a.npz"), *[image_bytes(20, 30) for _ in range(20)])


def very_many():
    with h5py.File(path("very_many", "a.h5"), "w") as file:
        for number in range(10_000):
            file[f"image_{number}"] = image_bytes(10, 20)


def many():
    with h5py.File(path("many", "a.h5"), "w") as file:
        file["images"] = image_bytes(8, 32, 32)
        for number in range(1500):
            file[f"metadata/{number:04}"] = np.arange(2)


def png():
    file = io.BytesIO()
    Image.fromarray(image_bytes(32, 32)).save(file, "PNG")
    return file.getvalue()


def paths():
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}).arrow_schema
    for kind, embedded in [("paths", 0), ("mixed", 1), ("embedded", 50)]:
        images = [{"bytes": png() if number < embedded else None, "path": f"/images/{number}.png"} for number in range(50)]
        table = pa.Table.from_pydict({"image": images, "label": list(range(50))}, schema=features)
        pq.write_table(table, path(kind, "train-00000-of-00001.parquet"))
        with pa.ipc.new_stream(path(f"{kind}_arrow", "imagefolder-train.arrow"), features) as stream:
            stream.write_table(table)


def missing():
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}).arrow_schema
    images = [{"bytes": None, "path": None}, None] * 25
    table = pa.Table.from_pydict({"image": images, "label": list(range(50))}, schema=features)
    pq.write_table(table, path("missing", "train-00000-of-00001.parquet"))
    with pa.ipc.new_stream(path("missing_arrow", "imagefolder-train.arrow"), features) as stream:
        stream.write_table(table)


def saved_missing():
    """In the saved table, the path of an image that is missing is hidden by its group."""
    with open(f"{folder}/image.png", "wb") as file:
        file.write(png())
    features = datasets.Features({"image": datasets.Image()})
    images = [f"{folder}/image.png", None] * 25
    datasets.Dataset.from_dict({"image": images}, features).save_to_disk(f"{folder}/saved_missing")


def saved():
    images = [Image.fromarray(image_bytes(32, 32)) for _ in range(50)]
    features = datasets.Features({
        "tokens": datasets.List(datasets.Value("int64")),
        "kind": {"name": datasets.Value("string"), "note": datasets.Value("null")},
        "image": datasets.Image(),
        "pages": datasets.List(datasets.Image()),
    })
    columns = {
        "tokens": [[1, 2]] * 50,
        "kind": [{"name": "a", "note": None}] * 50,
        "image": images,
        "pages": [[image] * (number % 3) for number, image in enumerate(images)],
    }
    datasets.Dataset.from_dict(columns, features).save_to_disk(f"{folder}/saved")
    pages = [[{"bytes": None, "path": "/page.png"}] * (number % 3) for number in range(50)]
    images = [{"bytes": png(), "path": None} for _ in range(50)]
    table = pa.Table.from_pydict({**columns, "image": images, "pages": pages}, schema=features.arrow_schema)
    with pa.ipc.new_stream(path("pages", "pages-train.arrow"), table.schema) as stream:
        stream.write_table(table)


def long_chunks():
    for kind, compression in [("long_chunks", None), ("long_chunks_gzip", "gzip")]:
        with h5py.File(path(kind, "a.h5"), "w") as file:
            images = image_bytes(10, 128, 128)
            file.create_dataset("images", data=images, chunks=(64, 128, 128), maxshape=(None, 128, 128), compression=compression)
            file["labels"] = np.arange(7)


def masks():
    for number in range(20):
        image = png()
        for extension, content in [("png", image), ("bin", bytes(len(image) * 7 // 3))]:
            with open(path("masks", f"{number}.{extension}"), "wb") as file:
                file.write(content)


for kind in kinds:
    globals()[kind]()
