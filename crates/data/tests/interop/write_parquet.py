"""Writes parquet with pyarrow and pandas for feedrate to read: python write_parquet.py FOLDER. Lists them in FOLDER/cases.json."""
import itertools
import json
import os
import sys

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def case(name, samples, refused=None):
    path = os.path.join(folder, name + ".parquet")
    for sample, value in enumerate(samples):
        open(f"{path}.sample{sample}", "wb").write(value)
    cases.append({"path": path, "format": "parquet", "samples": len(samples), "refused": refused})
    return path


def table(name, values, kind=pa.binary(), before=True, nullable=True, refused=None, **options):
    """Columns without bytes come before the column of samples. Text is null, so that its column is not the largest."""
    columns = {"image": pa.array(values, kind)}
    fields = [pa.field("image", kind, nullable)]
    if before:
        columns = {"id": pa.array(range(len(values))), "name": pa.nulls(len(values), pa.string()), **columns}
        fields = [pa.field("id", pa.int64()), pa.field("name", pa.string()), *fields]
    contents = pa.table(columns, pa.schema(fields))
    pq.write_table(contents, case(name, [] if refused else values, refused), **options)


def noise(count, longest, shortest=0):
    return [random.bytes(random.integers(shortest, longest + 1)) for _ in range(count)]


few = [random.bytes(20) for _ in range(5)]
inputs = {
    "short": (noise(100, 50), 30),
    "long": (noise(4, 500_000, 300_000), 3),
    "empty": ([b""] * 20, 7),
    "repeated": ([few[i] for i in random.integers(0, 5, 120)], 50),
    "runs": ([few[i // 25] for i in range(120)], 120),
    "zeros": ([b"\0" * 20_000] * 40, 16),
}
for (kind, (values, rows)), codec, version, dictionary in itertools.product(
    inputs.items(), ["NONE", "SNAPPY", "GZIP"], ["1.0", "2.0"], [True, False]
):
    name = "_".join([kind, codec.lower(), "v" + version[0], "dictionary" if dictionary else "plain"])
    options = {"row_group_size": rows, "data_page_version": version, "use_dictionary": dictionary}
    table(name, values, compression=codec, **options)
    table(name + "_required", values, compression=codec, nullable=False, **options)
    if kind == "repeated":
        table(name + "_fixed", values, pa.binary(20), compression=codec, **options)

values = noise(300, 3000)
table("alone", values, before=False)
table("large_binary", values, pa.large_binary())
table("small_pages", values, data_page_size=5000, row_group_size=200, use_dictionary=False)
table("small_pages_v2", values, data_page_size=5000, data_page_version="2.0", write_batch_size=3)
table("dictionary_overflows", values, dictionary_pagesize_limit=20_000, data_page_size=5000, write_batch_size=10)
table("page_index", values, write_page_index=True, write_page_checksum=True)
table("no_statistics", values, write_statistics=False)
table("old_version", values, version="1.0")
table("no_schema", values, store_schema=False)
table("one_row", values[:1])
table("row_a_group", values[:30], row_group_size=1)
table("one_large", [random.bytes(9_000_000)], compression="NONE", use_dictionary=False)
table("one_large_gzip", [random.bytes(9_000_000)], compression="GZIP")

frame = pandas.DataFrame({"label": range(300), "image": values})
frame.to_parquet(case("pandas", values))
frame.to_parquet(case("pandas_gzip", values), compression="gzip", row_group_size=64)
frame.set_index("label").to_parquet(case("pandas_index", values), compression=None)

with pq.ParquetWriter(case("uneven_groups", values), pa.schema({"image": pa.binary()})) as writer:
    for start, stop in [(0, 100), (100, 100), (100, 101), (101, 300)]:
        writer.write_table(pa.table({"image": pa.array(values[start:stop], pa.binary())}))

nested = pa.array([{"bytes": v, "path": "x"} for v in values], pa.struct({"path": pa.string(), "bytes": pa.binary()}))
pq.write_table(pa.table({"image": nested}), case("inside_a_struct", values))

for codec in ["ZSTD", "BROTLI", "LZ4"]:
    table(codec.lower(), values, compression=codec, refused=f"column `image` (BYTE_ARRAY): pages are compressed by `{codec}")


def beside_ids(name, images, kind, refused=None, **options):
    """A column of 16 bytes comes before the larger column of samples."""
    contents = pa.table({"id": pa.array(noise(len(images), 16, 16), pa.binary(16)), "image": pa.array(images, kind)})
    pq.write_table(contents, case(name, [] if refused else images, refused), **options)


beside_ids("beside_ids", values, pa.binary(), row_group_size=64)
pixels = [list(value) for value in values]
for name, images, kind, refused in [
    ("list", pixels, pa.list_(pa.uint8()), "`image` (a list), the largest column, cannot be read"),
    ("text", [value.hex() for value in values], pa.string(), "`image` (text), the largest column, cannot be read"),
    ("list_of_bytes", [[value] for value in values], pa.list_(pa.binary()), "`image` (a list), the largest column"),
]:
    beside_ids(f"{name}_beside_ids", images, kind, refused, row_group_size=64)
options = {"use_dictionary": False, "column_encoding": {"id": "PLAIN", "image": "DELTA_LENGTH_BYTE_ARRAY"}}
beside_ids("encoded_beside_ids", values, pa.binary(), "values are encoded by `DELTA_LENGTH_BYTE_ARRAY`", **options)
for encoding in ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]:
    options = {"use_dictionary": False, "column_encoding": {"image": encoding}}
    table(encoding.lower(), values, before=False, refused=f"values are encoded by `{encoding}`", **options)
table("null", [None, b"x"], refused="row 0 of the row group is null")
table("nulls", [None] * 50, refused="row 0 of the row group is null")
table("text", ["a", "b"], pa.string(), refused="no column of bytes: the file holds `id` (INT64), `name` (text), `image` (text)")
table("list", [[1, 2], [3]], pa.list_(pa.uint8()), refused="`image` (a list)")
table("list_of_bytes", [[b"a"], [b"b"]], pa.list_(pa.binary()), refused="`image` (a list)")
table("decimal", [1, 2], pa.decimal128(30, 0), refused="no column of bytes")
table("no_rows", [], refused="there is no sample 0")

whole = open(os.path.join(folder, "alone.parquet"), "rb").read()
open(case("cut_off", [], "no `PAR1` at the end"), "wb").write(whole[:-1])
open(case("trailing_byte", [], "no `PAR1` at the end"), "wb").write(whole + b"\n")
open(case("not_parquet", [], "no `PAR1` at the end"), "wb").write(b"x" * 5000)
open(case("wrong_footer_length", [], "broken parquet footer"), "wb").write(whole[:-8] + (99).to_bytes(4, "little") + b"PAR1")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
