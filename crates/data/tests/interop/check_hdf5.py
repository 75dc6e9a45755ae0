"""Checks with h5py the files that feedrate wrote: python check_hdf5.py cases.json. Exits non-zero at the first difference."""
import json
import os
import sys

import h5py
import numpy as np


def check(case):
    with h5py.File(case["path"], "r") as file, h5py.File(case["path"], "r") as reopened:
        names = [f"records_{i}" for i in range(case["datasets"])]
        assert sorted(file) == sorted(names + ["labels"]), list(file)
        labels = file["labels"]
        assert labels.dtype == np.int64 and labels.shape == (case["samples"],) and not labels[:].any(), case
        for name in names:
            check_layout(case, file[name])
        datasets = [file[name][:] for name in names]
        for sample in range(case["samples"]):
            parts = b"".join(dataset[sample].tobytes() for dataset in datasets)
            expected = open(f"{case['path']}.sample{sample}", "rb").read()
            assert parts == expected, (case, sample)
            if sample < 10:
                sample_bytes = b"".join(reopened[name][sample].tobytes() for name in names)
                assert sample_bytes == expected, (case, sample)


def shape_of_part(case):
    first, *rest = case["dims"]
    first //= case["datasets"]
    return rest if first == 1 else [first, *rest]


def check_size(case):
    """Compares the length with that of a file that h5py writes with DLIO's settings. Metadata of more datasets has another length there."""
    path = f"{case['path']}.other"
    data = np.zeros((case["samples"], *shape_of_part(case)), case["dtype"])
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(case["datasets"]):
            file.create_dataset(f"records_{i}", data=data)
        file.create_dataset("labels", data=[0] * case["samples"])
    assert os.path.getsize(case["path"]) == os.path.getsize(path), (os.path.getsize(path), case)


def check_layout(case, dataset):
    dims = shape_of_part(case)
    shape = (case["samples"], *dims)
    assert dataset.dtype == np.dtype(case["dtype"]), (dataset.dtype, case)
    assert dataset.shape == shape, (dataset.shape, case)
    gzip = case["compression"] == "gzip"
    assert dataset.compression == ("gzip" if gzip else None), case
    assert dataset.compression_opts == (case["level"] if gzip else None), case
    configured = case["chunks"] or ([1] + dims if gzip or case["max_shape"] else None)
    assert dataset.chunks == (tuple(configured) if configured else None), (dataset.chunks, case)
    max_shape = tuple(d or None for d in case["max_shape"]) or shape
    if len(max_shape) < len(shape):
        max_shape = (case["samples"], *max_shape)
    assert dataset.maxshape == max_shape, (dataset.maxshape, case)
    if configured is not None:
        count = np.prod([-(-d // c) for d, c in zip(shape, dataset.chunks)])
        assert dataset.id.get_num_chunks() == count, (dataset.id.get_num_chunks(), case)


cases = json.load(open(sys.argv[1]))
for case in cases:
    check(case)
    if case["compression"] == "none" and not case["chunks"] and not case["max_shape"] and case["datasets"] <= 2:
        check_size(case)
print(len(cases))
