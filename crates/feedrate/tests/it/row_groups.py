"""Prints the row groups of parquet files: python row_groups.py FOLDER. For each file: the number of row groups, and the bytes of each
from the first to the last column chunk, as MLPerf Storage v3's client computes them from pyarrow's metadata."""

import json
import pathlib
import sys

import pyarrow.parquet as pq


def byte_range(group):
    chunks = [group.column(number) for number in range(group.num_columns)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks)]
    return [min(starts), max(ends) - min(starts)]


found = {}
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.parquet")):
    meta = pq.read_metadata(path)
    found[path.name] = [byte_range(meta.row_group(number)) for number in range(meta.num_row_groups)]
print(json.dumps(found))
