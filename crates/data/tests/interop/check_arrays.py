"""Checks with numpy the files that feedrate wrote: python check_arrays.py cases.json. Exits non-zero at the first difference."""
import io
import json
import sys
import zipfile

import numpy as np


def check_array(case, x):
    assert x.dtype == np.dtype(case["dtype"]), (x.dtype, case)
    assert list(x.shape) == case["dims"] + [case["samples"]], (x.shape, case)
    assert x.flags.c_contiguous
    if x.dtype.kind == "f":
        assert np.isfinite(x).all(), case
    for sample in range(case["samples"]):
        expected = open(f"{case['path']}.sample{sample}", "rb").read()
        assert x[..., sample].tobytes() == expected, (case, sample)


def check_npy(case):
    x = np.load(case["path"], allow_pickle=False)
    check_array(case, x)
    same = io.BytesIO()
    np.save(same, x)
    assert same.getvalue() == open(case["path"], "rb").read(), case


def check_npz(case):
    with np.load(case["path"], allow_pickle=False) as archive:
        assert archive.files == ["x", "y"], archive.files
        x, y = archive["x"], archive["y"]
    check_array(case, x)
    assert y.dtype == np.int64 and y.shape == (case["samples"],) and not y.any(), case
    packed = zipfile.ZipFile(case["path"]).getinfo("x.npy").compress_type == zipfile.ZIP_DEFLATED
    assert packed == ("/zip/" in case["path"]), case
    if not packed:
        same = io.BytesIO()
        np.savez(same, x=x, y=y)
        assert same.getvalue() == open(case["path"], "rb").read(), case


def check_raw(case):
    x = np.fromfile(case["path"], dtype=case["dtype"]).reshape([case["samples"]] + case["dims"])
    for sample in range(case["samples"]):
        assert x[sample].tobytes() == open(f"{case['path']}.sample{sample}", "rb").read(), (case, sample)


def check_indexed_binary(case):
    offsets = np.fromfile(case["path"] + ".off.idx", dtype="<u8")
    sizes = np.fromfile(case["path"] + ".sz.idx", dtype="<u8")
    assert len(offsets) == len(sizes) == case["samples"]
    for sample, (offset, size) in enumerate(zip(offsets, sizes)):
        dtype = np.dtype(case["dtype"])
        x = np.fromfile(case["path"], dtype=dtype, offset=int(offset), count=int(size) // dtype.itemsize)
        assert x.size == np.prod(case["dims"]), case
        expected = open(f"{case['path']}.sample{sample}", "rb").read()
        assert x.tobytes() == expected, (case, sample)


CHECKS = {"npy": check_npy, "npz": check_npz, "raw": check_raw}
CHECKS |= dict.fromkeys(["indexed_binary", "mmap_indexed_binary"], check_indexed_binary)

cases = json.load(open(sys.argv[1]))
for case in cases:
    CHECKS[case["format"]](case)
print(len(cases))
