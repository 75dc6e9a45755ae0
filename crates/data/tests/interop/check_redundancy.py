"""Compresses content with pyarrow's codecs: python check_redundancy.py cases.json. Exits non-zero where less or more
is saved than was asked."""
import json
import sys

import pyarrow as pa

# Not snappy: it leaves several percent more, as its copies are short.
CODECS = [("zstd", 1), ("zstd", 3), ("gzip", 1), ("gzip", 6), ("lz4", None)]
TOLERANCE = 0.02

cases = json.load(open(sys.argv[1]))
for case in cases:
    data = open(case["path"], "rb").read()
    for name, level in CODECS:
        left = len(pa.Codec(name, compression_level=level).compress(data)) / len(data)
        assert abs(left - (1 - case["percent"] / 100)) < TOLERANCE, (case, name, level, left)
print(len(cases))
