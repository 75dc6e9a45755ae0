"""Checks with pyarrow and pandas the files that feedrate wrote: python check_parquet.py cases.json. Exits non-zero at the first difference."""
import json
import math
import sys

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq

cases = json.load(open(sys.argv[1]))
for case in cases:
    samples, rows = case["samples"], case["row_group_samples"]
    expected = [open(f"{case['path']}.sample{i}", "rb").read() for i in range(samples)]
    file = pq.ParquetFile(case["path"])
    assert file.schema_arrow.equals(
        pa.schema([pa.field("image", pa.binary(), nullable=False), pa.field("label", pa.int64(), nullable=False)])
    ), file.schema_arrow
    meta = file.metadata
    assert (meta.num_rows, meta.num_row_groups, meta.created_by) == (samples, math.ceil(samples / rows), "feedrate"), meta
    assert json.loads("[%s]" % meta.metadata[b"feedrate.dims"].decode()) == case["dims"], meta.metadata
    assert meta.metadata[b"feedrate.element"].decode() == case["dtype"], meta.metadata
    end = 4
    for group in range(meta.num_row_groups):
        part = file.read_row_group(group)
        assert part["image"].to_pylist() == expected[group * rows : (group + 1) * rows], (case, group)
        unpacked = 0
        for column in range(2):
            chunk = meta.row_group(group).column(column)
            assert chunk.compression == {"none": "UNCOMPRESSED", "gzip": "GZIP"}[case["compression"]], chunk
            assert chunk.data_page_offset == end, chunk
            end += chunk.total_compressed_size
            unpacked += chunk.total_uncompressed_size
        assert meta.row_group(group).total_byte_size == unpacked, meta.row_group(group)
    frame = pandas.read_parquet(case["path"])
    assert list(frame["image"]) == expected, case
    assert not frame["label"].any() and frame["label"].dtype == np.int64, case
    image = np.frombuffer(frame["image"][samples - 1], case["dtype"]).reshape(case["dims"])
    assert image.tobytes() == expected[-1], case
print(len(cases))
