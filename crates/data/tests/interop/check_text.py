"""Checks with pandas, json and csv the files that feedrate wrote: python check_text.py cases.json. Exits non-zero at the first difference."""
import csv
import gzip
import json
import sys

import numpy as np
import pandas as pd


def expected(case, sample):
    return np.fromfile(f"{case['path']}.sample{sample}", dtype=case["dtype"])


def check_rows(case, rows):
    assert len(rows) == case["samples"], case
    for sample, row in enumerate(rows):
        x = np.array(row, dtype=case["dtype"])
        assert x.tobytes() == expected(case, sample).tobytes(), (case, sample)


def open_text(case):
    return gzip.open(case["path"], "rt") if case["compression"] == "gzip" else open(case["path"])


def check_csv(case):
    compression = case["compression"] if case["compression"] != "none" else None
    dtype = case["dtype"] if case["dtype"] != "float16" else "float64"
    frame = pd.read_csv(
        case["path"], header=None, compression=compression, dtype=dtype, float_precision="round_trip"
    )
    assert frame.shape == (case["samples"], np.prod(case["dims"])), case
    check_rows(case, frame.to_numpy())
    with open_text(case) as file:
        number = float if case["dtype"].startswith("float") else int
        check_rows(case, [[number(field) for field in row] for row in csv.reader(file)])
    if not case["dtype"].startswith("float"):
        # DLIO's own call writes the same bytes.
        frame = pd.DataFrame([expected(case, sample) for sample in range(case["samples"])])
        with open_text(case) as file:
            assert frame.to_csv(index=False, header=False) == file.read(), case


def check_json(case):
    with open_text(case) as file:
        check_rows(case, [json.loads(line) for line in file])
    if case["dtype"].startswith("float") or case["dtype"] == "uint64":
        return
    compression = case["compression"] if case["compression"] != "none" else None
    frame = pd.read_json(case["path"], lines=True, compression=compression)
    check_rows(case, frame.to_numpy())


CHECKS = {"csv": check_csv, "json": check_json}

cases = json.load(open(sys.argv[1]))
for case in cases:
    CHECKS[case["format"]](case)
print(len(cases))
