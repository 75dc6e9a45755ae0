"""Compresses content with pyarrow's codecs: python check_redundancy.py cases.json. Exits non-zero if the
saved share differs from the configured one."""
import json
import sys

import pyarrow as pa

# Snappy is left out: its matches are short, so its output is several percent longer.
CODECS = [("zstd", 1), ("zstd", 3), ("gzip", 1), ("gzip", 6), ("lz4", None)]
TOLERANCE = 0.02

cases = json.load(open(sys.argv[1]))
for case in cases:
    data = open(case["path"], "rb").read()
    for name, level in CODECS:
        ratio = len(pa.Codec(name, compression_level=level).compress(data)) / len(data)
        assert abs(ratio - (1 - case["percent"] / 100)) < TOLERANCE, (case, name, level, ratio)
print(len(cases))
