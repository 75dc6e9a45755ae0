"""Checks with `tarfile` and `webdataset` the files that feedrate wrote: python check_webdataset.py cases.json. Exits non-zero at
the first difference."""
import io
import json
import sys
import tarfile

import numpy as np
import webdataset

keys = {}


def check_array(case, number, x):
    assert x.dtype == np.dtype(case["dtype"]), (x.dtype, case)
    assert list(x.shape) == case["dims"], (x.shape, case)
    expected = open(f"{case['path']}.sample{number}", "rb").read()
    assert x.tobytes() == expected, (case, number)


def check_tar(case):
    with tarfile.open(case["path"], "r:") as archive:
        members = archive.getmembers()
        assert len(members) == 2 * case["samples"], case
        for member in members:
            assert member.isreg() and (member.mode, member.mtime) == (0o644, 0), (member, case)
        for number, member in enumerate(members[1::2]):
            data = archive.extractfile(member).read()
            x = np.load(io.BytesIO(data), allow_pickle=False)
            check_array(case, number, x)
            same = io.BytesIO()
            np.save(same, x)
            assert same.getvalue() == data, case
    check_headers(case, members)


def check_headers(case, members):
    """Compares headers with tarfile's, except the device numbers, which tarfile writes as zeros."""
    data = open(case["path"], "rb").read()
    assert data.endswith(bytes(1024)) and len(data) == members[-1].offset_data + (members[-1].size + 511) // 512 * 512 + 1024
    for member in members:
        info = tarfile.TarInfo(member.name)
        info.size, info.mode = member.size, 0o644
        theirs = info.tobuf(tarfile.USTAR_FORMAT)
        ours = data[member.offset : member.offset + 512]
        assert ours[:148] == theirs[:148] and ours[156:265] == theirs[156:265], case


def check_webdataset(case):
    samples = list(webdataset.WebDataset(case["path"], shardshuffle=False, empty_check=False).decode())
    assert len(samples) == case["samples"], case
    for number, sample in enumerate(samples):
        check_array(case, number, sample["npy"])
        assert sample["cls"] == 0, sample
        found = keys.setdefault(case["path"].rsplit("/train/")[0], set())
        assert sample["__key__"] not in found, sample
        found.add(sample["__key__"])


cases = json.load(open(sys.argv[1]))
for case in cases:
    check_tar(case)
    check_webdataset(case)
print(len(cases))
