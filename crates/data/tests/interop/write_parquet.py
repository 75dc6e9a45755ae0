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


def case(name, samples, refused=None, undecoded=None, decodes=True):
    path = os.path.join(folder, name + ".parquet")
    for sample, value in enumerate(samples):
        open(f"{path}.sample{sample}", "wb").write(value or b"")
    samples = {"samples": len(samples), "refused": refused, "undecoded": undecoded, "decodes": decodes}
    cases.append({"path": path, "format": "parquet", **samples})
    return path


def shares(name, contents, undecoded=None, decodes=True, **options):
    """A sample is a share of the stored bytes of its row group."""
    path = os.path.join(folder, name + ".parquet")
    pq.write_table(contents, path, **options)
    stored, meta = open(path, "rb").read(), pq.read_metadata(path)
    samples = []
    for group in (meta.row_group(number) for number in range(meta.num_row_groups)):
        ranges = []
        for column in (group.column(number) for number in range(group.num_columns)):
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            ranges.append((start, start + column.total_compressed_size))
        data = b"".join(stored[start:end] for start, end in sorted(ranges))
        cuts = [len(data) * row // group.num_rows for row in range(group.num_rows + 1)]
        samples += [data[start:end] for start, end in zip(cuts, cuts[1:])]
    assert len(samples) == contents.num_rows
    case(name, samples, undecoded=undecoded, decodes=decodes)


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

for codec, version in itertools.product(["ZSTD", "LZ4"], ["1.0", "2.0"]):
    for kind, (inputs_of_kind, rows) in inputs.items():
        options = {"row_group_size": rows, "data_page_version": version}
        table(f"{kind}_{codec.lower()}_v{version[0]}", inputs_of_kind, compression=codec, **options)
ids = pa.array(range(300))
images = pa.table({"id": ids, "image": values})
shares("brotli", images, "BROTLI", compression="BROTLI")
shares("not_decoded", images, decodes=False, row_group_size=70)
for encoding in ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]:
    options = {"use_dictionary": False, "column_encoding": {"image": encoding, "id": "PLAIN"}}
    shares(encoding.lower(), images, encoding, **options)
options = {"use_dictionary": False, "column_encoding": {"image": "PLAIN", "id": "DELTA_BINARY_PACKED"}}
pq.write_table(images, case("delta_beside", values, undecoded="DELTA_BINARY_PACKED"), **options)


def beside(name, images, kind, **options):
    """The column of samples is between columns that are read too."""
    columns = {"id": pa.array(noise(len(images), 16, 16), pa.binary(16)), "image": pa.array(images, kind), "label": ids}
    pq.write_table(pa.table(columns), case(name, images), **options)


for codec in ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"]:
    beside(f"beside_{codec.lower()}", values, pa.binary(), row_group_size=64, compression=codec)
nulls = [None if number % 7 == 3 else value for number, value in enumerate(values)]
beside("nulls_beside", nulls, pa.binary(), row_group_size=64)
beside("large_nulls_beside", nulls, pa.large_binary(), compression="NONE")
texts = [value.hex() for value in values]
table("text", [text.encode() for text in texts], pa.string(), before=False)
pq.write_table(pa.table({"text": texts, "score": random.random(300)}), case("text_with_score", [text.encode() for text in texts]))
pq.write_table(pa.table({"text": pa.array(texts, pa.large_string())}), case("large_text", [text.encode() for text in texts]))

floats = random.random((300, 1024), dtype=np.float32)
thumbs = pa.table({"thumb": noise(300, 200, 200), "emb": list(floats)})
for codec, version in itertools.product(["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"], ["1.0", "2.0"]):
    options = {"compression": codec, "data_page_version": version}
    shares(f"thumb_{codec.lower()}_v{version[0]}", thumbs, row_group_size=64, **options)
hours = pa.array(range(300), pa.timestamp("us"))
numbers = {
    "a": ids, "b": random.random(300), "c": pa.array([number % 3 == 0 for number in range(300)]), "d": hours,
    "e": pa.array(range(300), pa.decimal128(30, 2)), "f": [f"group {number % 5}" for number in range(300)],
    "g": pa.array([None] * 300, pa.int32()), "h": pa.array([f"{number % 9}" for number in range(300)]).dictionary_encode(),
    "i": random.random(300).astype(np.float16),
}
shares("numbers", pa.table(numbers), row_group_size=100)
shares("int96", pa.table({"time": hours, "x": ids}), use_deprecated_int96_timestamps=True)
shares("all_null", pa.table({"x": pa.nulls(300)}))
split = {"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}}
shares("byte_stream_split", pa.table({"x": random.random(300)}), "BYTE_STREAM_SPLIT", **split)
lists = {"list": (pa.list_(pa.uint8()), [list(value) for value in values]), "list_of_bytes": (pa.list_(pa.binary()), [[value] for value in values])}
for name, (kind, column) in lists.items():
    shares(name, pa.table({"id": noise(300, 16, 16), "image": pa.array(column, kind)}), row_group_size=64)
shares("large_list", pa.table({"x": pa.array([[1.5] * 9] * 300, pa.large_list(pa.float64()))}))
shares("fixed_size_list", pa.table({"x": pa.array([[1.5] * 9] * 300, pa.list_(pa.float64(), 9))}))
shares("nested_list", pa.table({"x": [[[1, 2], [3]]] * 300}), "nested lists")
shares("decimal", pa.table({"x": pa.array([1, 2], pa.decimal128(30, 0)), "y": [1.5, 2.5]}))
frame.drop(columns="image").to_parquet(os.path.join(folder, "frame.parquet"))
shares("pandas_numbers", pq.read_table(os.path.join(folder, "frame.parquet")))
table("null", [None, b"x"])
table("all_images_null", [None] * 50)
table("no_rows", [], refused="there is no sample 0")

whole = open(os.path.join(folder, "alone.parquet"), "rb").read()
open(case("cut_off", [], "no `PAR1` at the end"), "wb").write(whole[:-1])
open(case("trailing_byte", [], "no `PAR1` at the end"), "wb").write(whole + b"\n")
open(case("not_parquet", [], "no `PAR1` at the end"), "wb").write(b"x" * 5000)
open(case("wrong_footer_length", [], "broken parquet footer"), "wb").write(whole[:-8] + (99).to_bytes(4, "little") + b"PAR1")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
