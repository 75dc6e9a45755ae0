"""Opens with `tfrecord` what feedrate wrote: python check_tfrecord.py cases.json. Exits non-zero at the first difference."""
import json
import os
import struct
import sys

import crc32c
from tfrecord import example_pb2
from tfrecord.reader import tfrecord_loader
from tfrecord.tools.tfrecord2idx import create_index


def masked(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def check_frames(case):
    """The loader checks no checksum."""
    data = open(case["path"], "rb").read()
    at, count = 0, 0
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert length_crc == masked(data[at : at + 8]), (case, at)
        message = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(message), (case, at)
        example = example_pb2.Example.FromString(message)
        assert sorted(example.features.feature) == ["image", "size"]
        assert example.SerializeToString(deterministic=True) == message, case
        at += length + 16
        count += 1
    assert (at, count) == (len(data), case["samples"]), case


def check_index(case):
    folder, name = os.path.split(case["path"])
    own = os.path.join(os.path.dirname(folder), "index", os.path.basename(folder), name + ".idx")
    theirs = case["path"] + ".tfindex"
    create_index(case["path"], theirs)
    assert open(own).read() == open(theirs).read(), case


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
