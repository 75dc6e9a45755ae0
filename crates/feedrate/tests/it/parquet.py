"""Writes folders of parquet with pyarrow and pandas: python parquet.py FOLDER. Prints for each its rows and the bytes that are read."""

import datetime
import json
import os
import sys

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq

root = sys.argv[1]
random = np.random.default_rng(1)
ROWS = 64
found = {}


def folder(name, table, write=pq.write_table, undecoded=0, **options):
    os.makedirs(os.path.join(root, name))
    rows, read = 0, 0
    for number in range(4):
        path = os.path.join(root, name, f"part-{number}.parquet")
        write(table, path, **options)
        # The end of a file is read first. It serves the samples of a short file too.
        length, meta = os.path.getsize(path), pq.read_metadata(path)
        rows += meta.num_rows
        groups = [meta.row_group(group) for group in range(meta.num_row_groups)]
        stored = sum(group.column(column).total_compressed_size for group in groups for column in range(group.num_columns))
        read += length if length <= 1 << 16 else stored + (1 << 16)
    found[name] = {"rows": rows, "read": read, "undecoded": undecoded}


def noise(length, rows=ROWS):
    return [random.bytes(length) for _ in range(rows)]


images = pa.table({"id": pa.array(noise(16), pa.binary(16)), "image": noise(2000)})
folder("image", images, row_group_size=16)
for codec in ["none", "zstd", "lz4", "gzip", "brotli"]:
    folder(codec, images, compression=codec, undecoded=int(codec == "brotli"))
for encoding in ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]:
    folder(encoding.lower(), images, use_dictionary=False, column_encoding={"image": encoding, "id": "PLAIN"}, undecoded=1)
folder("thumb", pa.table({"thumb": noise(200), "emb": list(random.random((ROWS, 1024), dtype=np.float32))}), row_group_size=10)
parts = [pa.array(noise(3000), pa.binary()), pa.array([f"{number}.jpg" for number in range(ROWS)])]
hub = pa.StructArray.from_arrays(parts, ["bytes", "path"])
labels = pa.array(range(ROWS))
folder("hub", pa.table({"image": hub, "label": labels}))
folder("tokens", pa.table({"text": ["word " * 50] * ROWS, "input_ids": [list(range(number % 9 * 20)) for number in range(ROWS)]}))
frame = pandas.DataFrame({"x": random.random(ROWS), "name": pandas.Categorical(["a", "b"] * (ROWS // 2))})
frame["when"] = datetime.datetime(2024, 1, 1)
frame = frame.set_index(pandas.Index(range(100, 100 + ROWS), name="key"))
folder("pandas", frame, lambda frame, path: frame.to_parquet(path))
values = {
    "large": pa.array([f"text {number}" for number in range(ROWS)], pa.large_string()), "decimal": pa.array([3] * ROWS, pa.decimal128(30, 2)),
    "when": pa.array([1] * ROWS, pa.timestamp("ns")), "flag": pa.array([True, False] * (ROWS // 2)), "none": pa.nulls(ROWS, pa.int32()),
}
folder("types", pa.table(values), use_deprecated_int96_timestamps=True, row_group_size=20)
nulls = [None if number % 3 == 0 else value for number, value in enumerate(noise(500))]
folder("null_images", pa.table({"image": pa.array(nulls, pa.binary())}))
folder("nested", pa.table({"x": [[[1, 2], [3]]] * ROWS}), undecoded=1)
folder("version_2", images, data_page_version="2.0", row_group_size=7)


def uneven(table, path):
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, stop in [(0, 5), (5, 5), (5, 40), (40, ROWS)]:
            writer.write_table(table.slice(start, stop - start))


folder("uneven", images, uneven)
pq.write_table(images.slice(0, 0), os.path.join(root, "uneven", "part-9.parquet"))


def shard(table, path):
    pq.write_table(table.slice(0, ROWS - path.count("-3.")), path)


folder("shards", pa.table({"image": noise(2000), "mask": noise(2000)}), shard)
print(json.dumps(found))
