"""Opens with h5py what feedrate wrote: python check_hdf5.py cases.json. Exits non-zero at the first difference."""
import json
import sys

import h5py
import numpy as np


def check(case):
    with h5py.File(case["path"], "r") as file, h5py.File(case["path"], "r") as same:
        names = [f"records_{i}" for i in range(case["datasets"])]
        assert sorted(file) == sorted(names + ["labels"]), list(file)
        labels = file["labels"]
        assert labels.dtype == np.int64 and labels.shape == (case["samples"],) and not labels[:].any(), case
        for name in names:
            check_layout(case, file[name])
        wholes = [file[name][:] for name in names]
        for sample in range(case["samples"]):
            parts = b"".join(whole[sample].tobytes() for whole in wholes)
            expected = open(f"{case['path']}.sample{sample}", "rb").read()
            assert parts == expected, (case, sample)
            if sample < 10:
                one = b"".join(same[name][sample].tobytes() for name in names)
                assert one == expected, (case, sample)


def check_layout(case, dataset):
    dims = case["dims"]
    if case["datasets"] == 1 and dims[0] == 1 and len(dims) > 1:
        dims = dims[1:]
    else:
        dims = [dims[0] // case["datasets"]] + dims[1:]
    shape = (case["samples"], *dims)
    assert dataset.dtype == np.dtype(case["dtype"]), (dataset.dtype, case)
    assert dataset.shape == shape, (dataset.shape, case)
    gzip = case["compression"] == "gzip"
    assert dataset.compression == ("gzip" if gzip else None), case
    assert dataset.compression_opts == (case["level"] if gzip else None), case
    asked = case["chunks"] or ([1] + dims if gzip or case["max_shape"] else None)
    assert dataset.chunks == (tuple(asked) if asked else None), (dataset.chunks, case)
    most = tuple(d or None for d in case["max_shape"]) or shape
    assert dataset.maxshape == most, (dataset.maxshape, case)
    if asked is None:
        assert dataset.id.get_offset() % 4096 == 0, case
    else:
        count = np.prod([-(-d // c) for d, c in zip(shape, dataset.chunks)])
        assert dataset.id.get_num_chunks() == count, (dataset.id.get_num_chunks(), case)


cases = json.load(open(sys.argv[1]))
for case in cases:
    check(case)
print(len(cases))
