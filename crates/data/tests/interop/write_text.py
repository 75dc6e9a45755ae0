"""Writes csv and json with pandas, csv and json for feedrate to read: python write_text.py FOLDER. Lists them in FOLDER/cases.json."""
import csv
import gzip
import json
import os
import sys

import numpy as np
import pandas as pd

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(name, x, write, planned=True, refused=None):
    """Adds an array (samples, dims...). feedrate reads it in its own type with a plan, and as float64 without one."""
    path = os.path.join(folder, name)
    write(path, x)
    expected = x if planned else x.astype(np.float64)
    for sample in range(len(x)):
        open(f"{path}.sample{sample}", "wb").write(np.ascontiguousarray(expected[sample]).tobytes())
    case = {"path": path, "format": name.rsplit(".")[-1], "samples": len(x), "refused": refused}
    if planned:
        case["plan"] = {"dtype": x.dtype.name, "dims": x.shape[1:]}
    cases.append(case)


def array(dtype, shape):
    if np.dtype(dtype).kind == "f":
        scale = np.exp(random.uniform(-8, 8, shape))
        x = (random.standard_normal(shape) * scale).astype(dtype)
        x.flat[0] = 0.0
        x.flat[1:2] = -0.0
        return x
    limits = np.iinfo(dtype)
    x = random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    x.flat[0], x.flat[-1] = limits.min, limits.max
    return x


def flat(x):
    return x.reshape(len(x), -1)


def to_csv(**options):
    return lambda path, x: pd.DataFrame(flat(x)).to_csv(path, index=False, header=False, **options)


def csv_writer(**options):
    def write(path, x):
        with open(path, "w", newline="") as file:
            csv.writer(file, **options).writerows(flat(x).tolist())

    return write


def savetxt(path, x):
    np.savetxt(path, flat(x), delimiter=", ", fmt="%d" if x.dtype.kind in "iu" else "%.40e")


def to_json_records(path, x):
    pd.DataFrame(flat(x)).to_json(path, orient="records", lines=True)


def json_lines(end="\n", nested=True, **options):
    def write(path, x):
        samples = (x if nested else flat(x)).tolist()
        open(path, "w").write("".join(json.dumps(sample, **options) + end for sample in samples))

    return write


def text(content, opener=open):
    return lambda path, x: opener(path, "wb").write(content)


dtypes = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split()
csv_writers = {
    "pandas": to_csv(),
    "pandas_crlf": to_csv(lineterminator="\r\n"),
    "pandas_quoted": to_csv(quoting=csv.QUOTE_ALL),
    "pandas_gzip": to_csv(compression="gzip"),
    "writer": csv_writer(),
    "writer_quoted": csv_writer(quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"),
    "savetxt": savetxt,
}
json_writers = {
    "nested": json_lines(),
    "flat": json_lines(nested=False, separators=(",", ":")),
    "crlf": json_lines(end="\r\n"),
    "blank": json_lines(end="\n\n"),
}
for dtype in dtypes:
    for shape in [(1, 31, 17), (4, 5, 2, 3), (3, 2000), (5, 1)]:
        x = array(dtype, shape)
        name = f"{dtype}_{'x'.join(map(str, shape))}"
        for kind, write in csv_writers.items():
            add(f"{name}_{kind}.csv", x, write)
        for kind, write in json_writers.items():
            add(f"{name}_{kind}.json", x, write)
        if x.dtype.kind in "iu":
            add(f"{name}_records.json", x, to_json_records)
        if np.can_cast(dtype, np.float64) and dtype not in ("float16", "float32"):
            # The shortest text of a narrower float is another float64.
            add(f"{name}_free.csv", x, to_csv(), planned=False)
            add(f"{name}_free.json", x, json_lines(), planned=False)
large = array("uint8", (2, 1000, 1000))
add("large.csv", large, to_csv())
add("large_gzip.csv", large, to_csv(compression="gzip"))
add("large.json", large, json_lines())

# As DLIO 2.0.0 writes them: with an index before each row, which is read as data, and a line of column names.
indexed = np.column_stack([np.arange(5), array("uint8", (5, 900))]).astype(np.int64)
add("dlio_2_0_0.csv", indexed, lambda path, x: pd.DataFrame(x[:, 1:]).to_csv(path), planned=False)
add("dlio_2_0_0_two.csv", indexed[:, :3], lambda path, x: pd.DataFrame(x[:, 1:]).to_csv(path), planned=False)

unindexed = array("int32", (5, 900)).astype(np.int64)
add("unindexed.csv", unindexed, lambda path, x: pd.DataFrame(x).to_csv(path, index=False), planned=False)
add("series.csv", indexed[:, :2], lambda path, x: pd.DataFrame(x[:, 1:]).to_csv(path, lineterminator="\r\n"), planned=False)
add("marked.csv", unindexed, to_csv(encoding="utf-8-sig"), planned=False)
add("marked.json", unindexed, lambda path, x: open(path, "w", encoding="utf-8-sig").write("".join(f"{row}\n" for row in x.tolist())), planned=False)

odd = np.array([[1.0, np.nan, np.inf], [-np.inf, 0.5, 2.0]], dtype=np.float32)
add("odd.csv", odd, to_csv())
add("odd.json", odd, json_lines())
add("odd_null.json", np.array([[1.0, np.nan]]), text(b"[1.0, null]\n"))
add("keys.json", np.array([[1.0, 2.0]]), text(b'{"a\\"}": 1, "b": {"c": [2]}}\n'))
add("no_newline.csv", np.array([[1, 2]]), text(b"1,2"), planned=False)
add("no_newline.json", np.array([[1, 2]]), text(b"[1,2]"), planned=False)
members = gzip.compress(b"1,2\n3,") + gzip.compress(b"4\n")
add("members.csv", np.array([[1, 2], [3, 4]]), text(members))

small = np.array([[1, 2]], dtype=np.uint8)
to_pandas = lambda path, x: pd.DataFrame(x, columns=["a", "b"]).to_csv(path, index=False)
add("header.csv", small, to_pandas, refused="`a` is not a valid uint8")
add("index.csv", small, lambda path, x: pd.DataFrame(x).to_csv(path, header=False), refused="continues after 2 numbers")
add("semicolon.csv", small, to_csv(sep=";"), refused="`1;2` is not a valid uint8")
for packer in ["bz2", "zip", "xz"]:
    add(f"{packer}.csv", small, to_csv(compression=packer), refused=f"compressed by `{packer}`")
add("float.csv", small, text(b"1.0,2.0\n"), refused="`1.0` is not a valid uint8")
add("missing.csv", small, text(b"1,\n"), refused="`` is not a valid uint8")
add("short.csv", small, text(b"1\n"), refused="row 0 has 1 numbers")
add("more.csv", small, text(b"1,2\n3,4\n"), refused="more rows follow")
add("large_number.csv", small, text(b"1,256\n"), refused="`256` is not a valid uint8")
add("cut.csv", small, text(b"1,2"), refused="ends within row 0")
add("text.json", small, text(b'["1","2"]\n'), refused="a string")
add("null.json", small, text(b"[1,null]\n"), refused="`null` is not a valid uint8")
add("indent.json", small, lambda path, x: open(path, "w").write(json.dumps(x.tolist(), indent=1)), refused="the line ends within")
add("true.json", small, text(b"[1,true]\n"), refused="`true` is not a valid uint8")
add("number.json", small, text(b"1\n"), refused="expected an array")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
