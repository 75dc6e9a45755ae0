"""Files of pyarrow and of Hugging Face's `datasets`. An epoch reads every column."""
import os

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from image_data import jpeg, pixels
from kinds import FILES, SAMPLES, Kind, each, noise, random

ROWS = 4 * SAMPLES
datasets.disable_progress_bars()


def read_parquet(source):
    with pq.ParquetFile(source) as file:
        for group in range(file.num_row_groups):
            yield from range(file.read_row_group(group).num_rows)


def read_images(source):
    """The images of a column with Hugging Face's feature `Image`, or of a column of bytes."""
    with pq.ParquetFile(source) as file:
        for group in range(file.num_row_groups):
            for value in file.read_row_group(group)["image"].to_pylist():
                yield pixels(value["bytes"] if isinstance(value, dict) else value)


def parquet(name, table, is_decoded=True, read=read_parquet, files=FILES, **options):
    options = {"row_group_size": 16} | options

    def write(path, number):
        data = table(number)
        pq.write_table(data if isinstance(data, pa.Table) else pa.table(data), path, **options)

    Kind(f"parquet {name}", each(".parquet", write, files), read, "*.parquet", is_decoded=is_decoded)


def blobs(size=5000):
    """Values of which the first half is random."""
    return [random.bytes(size // 2) + bytes(size - size // 2) for _ in range(ROWS)]


def labelled(_=0):
    return {"image": pa.array(blobs(), pa.binary()), "label": pa.array(range(ROWS))}


for codec in ["snappy", "none", "gzip", "zstd", "lz4", "brotli"]:
    parquet(codec, labelled, codec != "brotli", compression=codec)
    parquet(f"{codec} v2 pages", labelled, codec != "brotli", compression=codec, data_page_version="2.0")
parquet("without a dictionary", labelled, use_dictionary=False)
parquet("dictionary of few values", lambda _: {"image": pa.array(blobs()[:4] * (ROWS // 4), pa.binary()), "label": pa.array([1] * ROWS)})
parquet("dictionary that grows too large", labelled, dictionary_pagesize_limit=30_000, row_group_size=ROWS)
parquet("small pages", labelled, data_page_size=6000, row_group_size=ROWS)
parquet("page index and checksums", labelled, write_page_index=True, write_page_checksum=True, data_page_size=6000)
parquet("id before image", lambda _: {"id": pa.array([random.bytes(16) for _ in range(ROWS)]), "image": pa.array(blobs(6000), pa.binary())})
parquet("thumb and emb", lambda _: {"thumb": pa.array(blobs(200), pa.binary()), "emb": pa.array(list(random.random((ROWS, 1024), dtype=np.float32)))})
parquet("one row group", labelled, row_group_size=ROWS)
parquet("a row group of each row", labelled, row_group_size=1)
parquet("unequal row groups", labelled, row_group_size=25)
parquet("unequal files", lambda number: {"image": pa.array(blobs()[: ROWS - 7 * number], pa.binary())})
parquet("nulls", lambda _: {"image": pa.array([None if row % 3 == 0 else blob for row, blob in enumerate(blobs())], pa.binary()), "label": pa.array([None, 1] * (ROWS // 2))})
parquet("first row null", lambda _: {"image": pa.array([None, *blobs()[1:]], pa.binary())})
parquet("only nulls beside an image", lambda _: labelled() | {"caption": pa.nulls(ROWS, pa.string())})
parquet("required columns", lambda _: pa.table(labelled(), pa.schema([pa.field("image", pa.binary(), False), pa.field("label", pa.int64(), False)])))
words = [" ".join(f"word{number % 97}" for number in range(row, row + 300)) for row in range(ROWS)]
parquet("text", lambda _: {"text": [f"{random.bytes(500).hex()} {text}" for text in words], "url": [f"https://example.org/{row}" for row in range(ROWS)]})
parquet("large strings", lambda _: {"text": pa.array(words, pa.large_string()), "image": pa.array(blobs(), pa.large_binary())})
parquet("string views", lambda _: {"text": pa.array(words, pa.string_view())})
parquet("fixed size binary", lambda _: {"image": pa.array(blobs(), pa.binary(5000))})
parquet("long statistics", lambda _: {"image": pa.array(blobs(4000), pa.binary())})
parquet("numbers", lambda _: {f"feature {column}": random.integers(0, 2 if dtype == "bool" else 100, 4000).astype(dtype) for column, dtype in enumerate(["float32", "float64", "int8", "int64", "uint16", "bool", "float16"])}, row_group_size=1000)
parquet("dates and decimals", lambda _: {"time": pa.array(range(ROWS * 60), pa.timestamp("ms")), "price": pa.array(range(ROWS * 60), pa.int64()).cast(pa.decimal128(21, 2)), "day": pa.array(range(ROWS * 60), pa.date32())}, row_group_size=960)
parquet("wide table", lambda _: {f"feature {column}": noise((ROWS,), "float32") for column in range(300)}, row_group_size=ROWS)
parquet("lists of floats", lambda _: {"emb": pa.array(list(random.random((ROWS, 768), dtype=np.float32)))})
parquet("lists of fixed size", lambda _: {"emb": pa.FixedSizeListArray.from_arrays(random.random((ROWS, 768), dtype=np.float32).reshape(-1), 768)})
parquet("token lists", lambda _: {"input_ids": pa.array([list(range(row, row + 500 + row)) for row in range(ROWS)], pa.list_(pa.int32())), "attention_mask": pa.array([[1] * 500] * ROWS, pa.list_(pa.int8()))})
parquet("empty and null lists", lambda _: {"input_ids": pa.array([None if row % 5 == 0 else [] if row % 5 == 1 else list(range(900)) for row in range(ROWS)], pa.list_(pa.int32()))})
parquet("lists of lists", is_decoded=False, table=lambda _: {"boxes": pa.array([[[row, 2, 3, 4]] * 100 for row in range(ROWS)]), "image": pa.array(blobs(), pa.binary())})
parquet("structs", lambda _: {"image": pa.array([{"bytes": blob, "size": {"height": 3, "width": 4}} for blob in blobs()])})
parquet("conversations", lambda _: {"messages": [[{"role": "user", "content": text}, {"role": "assistant", "content": text[::-1]}] for text in words]})
parquet("maps", lambda _: {"image": pa.array(blobs(), pa.binary()), "tags": pa.array([[("a", 1), ("b", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int64()))})
DELTA = dict(use_dictionary=False)
parquet("delta lengths", labelled, False, column_encoding={"image": "DELTA_LENGTH_BYTE_ARRAY", "label": "PLAIN"}, **DELTA)
parquet("delta strings", lambda _: {"text": words}, False, column_encoding={"text": "DELTA_BYTE_ARRAY"}, **DELTA)
parquet("delta numbers", lambda _: labelled() | {"row": range(ROWS)}, False, column_encoding={"row": "DELTA_BINARY_PACKED", "image": "PLAIN", "label": "PLAIN"}, **DELTA)
parquet("byte stream split", lambda _: {"x": random.random(4_000, dtype=np.float32)}, False, column_encoding="BYTE_STREAM_SPLIT", row_group_size=1000, **DELTA)
parquet("images of Hugging Face", lambda _: {"image": pa.array([{"bytes": jpeg(), "path": f"{row}.jpg"} for row in range(ROWS)]), "label": pa.array(range(ROWS))}, read=read_images)
parquet("images", lambda _: {"label": pa.array(range(ROWS)), "image": pa.array([jpeg() for _ in range(ROWS)])}, read=read_images)
parquet("empty file", lambda number: {"image": pa.array(blobs() if number else [], pa.binary())})
parquet("of another writer", lambda _: labelled(), version="1.0", flavor="spark")


def with_pandas(path, number):
    frame = pd.DataFrame({"image": blobs(), "label": range(ROWS)}, index=[f"row {row}" for row in range(ROWS)])
    frame.to_parquet(path, row_group_size=16)


Kind("parquet of pandas with an index", each(".parquet", with_pandas), read_parquet)


def partitioned(folder):
    table = pa.table(labelled() | {"class": pa.array([row % 4 for row in range(ROWS)])})
    pq.write_to_dataset(table, folder, partition_cols=["class"])
    open(os.path.join(folder, "_SUCCESS"), "w").close()


Kind("parquet partitions", partitioned, read_parquet, "**/*.parquet", left_out=1)


def with_metadata_files(folder):
    found = []
    for number in range(FILES):
        table = pa.table(labelled())
        pq.write_table(table, os.path.join(folder, f"part.{number}.parquet"), row_group_size=16, metadata_collector=found)
    pq.write_metadata(table.schema, os.path.join(folder, "_common_metadata"))
    pq.write_metadata(table.schema, os.path.join(folder, "_metadata"))


Kind("parquet beside metadata files", with_metadata_files, read_parquet, "*.parquet", left_out=2)


def splits(folder):
    for split, count in [("train", 3), ("validation", 1), ("test", 1)]:
        for number in range(count):
            path = os.path.join(folder, "data", f"{split}-{number:05}-of-{count:05}.parquet")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pq.write_table(pa.table(labelled()), path, row_group_size=16)


Kind("parquet splits", splits, read_parquet, "data/train*", left_out=2)


def read_stream(source):
    with ipc.open_stream(source) as reader:
        for batch in reader:
            yield from range(batch.num_rows)


def read_file(source):
    with ipc.open_file(source) as reader:
        for batch in range(reader.num_record_batches):
            yield from range(reader.get_batch(batch).num_rows)


def arrow(name, table, new, read, extension=".arrow", compression=None):
    def write(path, number):
        data = pa.table(table(0))
        with new(path, data.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(data, max_chunksize=16)

    is_decoded = None if compression else True
    Kind(f"arrow {name}", each(extension, write), read, is_decoded=is_decoded)


arrow("stream", labelled, ipc.new_stream, read_stream)
arrow("stream of text", lambda _: {"text": words}, ipc.new_stream, read_stream)
arrow("stream of tokens", lambda _: {"input_ids": pa.array([list(range(512))] * ROWS, pa.list_(pa.int32()))}, ipc.new_stream, read_stream)
arrow("file", labelled, ipc.new_file, read_file)
arrow("file zstd", labelled, ipc.new_file, read_file, compression="zstd")
arrow("file lz4", labelled, ipc.new_file, read_file, extension=".feather", compression="lz4")
arrow("file of dictionaries", lambda _: {"image": pa.array(blobs(), pa.binary()), "label": pa.array(["cat", "dog"] * (ROWS // 2)).dictionary_encode()}, ipc.new_file, read_file)


def saved_to_disk(folder):
    table = datasets.Dataset.from_dict({"image": blobs(), "label": list(range(ROWS))})
    table.save_to_disk(folder, num_shards=FILES)


Kind("arrow of save_to_disk", saved_to_disk, read_stream, "data-*.arrow", left_out=0)


def cache(folder):
    """The cache of `datasets`: the stream that `load_dataset` writes."""
    table = datasets.Dataset.from_dict({"text": words * 4})
    source = os.path.join(os.path.dirname(folder), "source.parquet")
    table.to_parquet(source)
    datasets.load_dataset("parquet", data_files=source, cache_dir=folder)
    os.remove(source)


Kind("arrow cache of load_dataset", cache, read_stream, "**/*.arrow", left_out=3)
