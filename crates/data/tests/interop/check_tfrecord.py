"""Checks with `tfrecord` the files that feedrate wrote: python check_tfrecord.py cases.json. Exits non-zero at the first difference."""
import json
import os
import struct
import sys

import crc32c
from tfrecord import example_pb2
from tfrecord.reader import tfrecord_loader
from tfrecord.tools.tfrecord2idx import create_index


def masked_crc(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def check_frames(case):
    """Checks the checksums, which the loader ignores."""
    data = open(case["path"], "rb").read()
    offset, count = 0, 0
    while offset < len(data):
        length, length_crc = struct.unpack_from("<QI", data, offset)
        assert length_crc == masked_crc(data[offset : offset + 8]), (case, offset)
        message = data[offset + 12 : offset + 12 + length]
        assert struct.unpack_from("<I", data, offset + 12 + length)[0] == masked_crc(message), (case, offset)
        example = example_pb2.Example.FromString(message)
        assert sorted(example.features.feature) == ["image", "size"]
        assert example.SerializeToString(deterministic=True) == message, case
        offset += length + 16
        count += 1
    assert (offset, count) == (len(data), case["samples"]), case


def check_index(case):
    folder, name = os.path.split(case["path"])
    ours = os.path.join(os.path.dirname(folder), "index", os.path.basename(folder), name + ".idx")
    theirs = case["path"] + ".tfindex"
    create_index(case["path"], theirs)
    assert open(ours).read() == open(theirs).read(), case


def check(case):
    samples = list(tfrecord_loader(case["path"], None, {"image": "byte", "size": "int"}))
    assert len(samples) == case["samples"], case
    for number, sample in enumerate(samples):
        expected = open(f"{case['path']}.sample{number}", "rb").read()
        assert sample["image"] == expected, (case, number)
        assert list(sample["size"]) == [len(expected)], (case, number)
    check_frames(case)
    check_index(case)


cases = json.load(open(sys.argv[1]))
for case in cases:
    check(case)
print(len(cases))
