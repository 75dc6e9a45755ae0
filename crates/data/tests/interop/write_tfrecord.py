"""Writes records with `tfrecord`, and unusual ones by hand, for feedrate to read: python write_tfrecord.py FOLDER. Lists
them in FOLDER/cases.json."""
import gzip
import json
import os
import random
import struct
import sys
import zlib

import crc32c
from tfrecord.writer import TFRecordWriter

folder = sys.argv[1]
random.seed(1)
cases = []


def add(name, payloads, write, refused=None):
    path = os.path.join(folder, name + ".tfrecord")
    write(path)
    for sample, payload in enumerate(payloads):
        open(f"{path}.sample{sample}", "wb").write(payload)
    cases.append({"path": path, "format": "tfrecord", "samples": len(payloads), "refused": refused})


def add_by_library(name, payloads, datum, refused=None):
    def write(path):
        writer = TFRecordWriter(path)
        for payload in payloads or [b"nothing"]:
            writer.write(datum(payload))
        writer.close()

    add(name, [] if refused else payloads, write, refused)


# Messages that protobuf allows but the library does not write.
def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number_field(number, value):
    return varint(number << 3) + varint(value)


def bytes_feature(*values):
    return field(1, b"".join(field(1, value) for value in values))


def int_feature(value):
    return field(3, field(1, varint(value)))


def float_feature(value):
    return field(2, field(1, struct.pack("<f", value)))


def entry(name, feature):
    return field(1, field(1, name.encode()) + field(2, feature))


def example(*entries):
    return field(1, b"".join(entries))


def masked_crc(data):
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(message):
    length = struct.pack("<Q", len(message))
    return length + masked_crc(length) + message + masked_crc(message)


def add_by_hand(name, payloads, message, refused=None):
    add_bytes(name, payloads, b"".join(record(message(payload)) for payload in payloads), refused)


def add_bytes(name, payloads, data, refused=None):
    add(name, [] if refused else payloads, lambda path: open(path, "wb").write(data), refused)


def blobs(*sizes):
    return [random.randbytes(size) for size in sizes]


small = blobs(*(random.randrange(1, 200) for _ in range(700)))
middle = blobs(5000, 40, 100_000, 4096, 70_000, 1)
large = blobs(1_500_000, 400_000)
for size, payloads in [("small", small), ("middle", middle), ("large", large)]:
    add_by_library(f"dlio_{size}", payloads, lambda x: {"image": (x, "byte"), "size": (len(x), "int")})
    add_by_library(f"turned_{size}", payloads, lambda x: {"size": (len(x), "int"), "image": (x, "byte")})
    add_by_library(f"alone_{size}", payloads, lambda x: {"image": (x, "byte")})
    add_by_library(f"floats_{size}", payloads, lambda x: {"f": ([1.5, 2.5], "float"), "image": (x, "byte"), "s": (3, "int")})
    add_by_library(f"other_{size}", payloads, lambda x: {"label": (7, "int"), "jpeg": (x, "byte")})
    add_by_hand(f"size_first_{size}", payloads, lambda x: example(entry("size", int_feature(len(x))), entry("image", bytes_feature(x))))
    add_by_hand(f"size_last_{size}", payloads, lambda x: example(entry("image", bytes_feature(x)), entry("size", int_feature(len(x)))))

add_by_library("label_first", middle, lambda x: {"a_label": (b"cat", "byte"), "jpeg": (x, "byte"), "z": (b"z", "byte")})
add_by_hand("encoded", middle, lambda x: example(entry("a", bytes_feature(b"a" * 9000)), entry("image/encoded", bytes_feature(x)), entry("z", bytes_feature(b"z" * 9000))))
add_by_library("empty", [b"", b"abc", b""], lambda x: {"image": (x, "byte"), "size": (len(x), "int")})
add_by_hand("two_messages", middle, lambda x: example(entry("size", int_feature(1))) + example(entry("image", bytes_feature(x))))
add_by_hand("among_others", middle, lambda x: example(entry("a", bytes_feature(b"a" * 3000)), entry("image", bytes_feature(x)), entry("b", bytes_feature(b"b"))))
add_by_hand("as_parts", middle, lambda x: example(entry("image", bytes_feature(x[:10], x[10:10], x[10:]))))
add_by_hand("no_value", [b"", b""], lambda x: example(entry("image", bytes_feature())))
add_by_hand(
    "unknown_fields",
    middle,
    lambda x: number_field(3, 1 << 63)
    + field(77, b"unknown" * 99)
    + field(1, number_field(9, 5) + field(1, field(8, b"u") + field(1, b"image") + varint(4 << 3 | 5) + b"1234" + field(2, field(12, b"") + bytes_feature(x))) + varint(7 << 3 | 1) + b"12345678"),
)
add_by_hand("both_names", middle, lambda x: example(entry("aa", bytes_feature(b"not this")), entry("size", int_feature(1)), entry("image", bytes_feature(x))))
add_by_hand("image_is_a_number", middle, lambda x: example(entry("image", int_feature(5)), entry("data", bytes_feature(x))))
add("no_records", [], lambda path: open(path, "wb"), "so there is no sample 0")

one = record(example(entry("image", bytes_feature(b"x" * 5000)), entry("size", int_feature(5000))))
numbers = example(entry("x", int_feature(1)), entry("y", float_feature(1.0)))
add_bytes("numbers", [numbers], record(numbers))
no_examples = {
    "no_features": b"",
    "value_first": field(1, field(1, field(2, bytes_feature(b"x")) + field(1, b"image"))),
    "long_name": example(entry("n" * 2000, bytes_feature(b"x"))),
    "nested_too_long": b"\x0a\x05\x0a\x20" + b"x" * 3,
    "group": varint(1 << 3 | 3),
    "endless_number": b"\x80" * 20,
    "jpeg": b"\xff\xd8\xff" + random.randbytes(70_000),
    "tensor": number_field(1, 1) + field(2, b"") + field(4, random.randbytes(1_000_000)),
    "sequence_example": field(2, field(1, field(1, b"image") + field(2, bytes_feature(b"x")))),
}
for name, message in no_examples.items():
    add_bytes(name, [message] * 3, record(message) * 3)
add_bytes("twice", [], record(example(entry("image", bytes_feature(b"x")), entry("image", bytes_feature(b"y")))), "two lists of bytes called `image`")
# Whole files in gzip or zlib, as `TFRecordOptions` writes them.
records = blobs(5000, 0, 300_000, 17)
stream = b"".join(record(example(entry("label", bytes_feature(b"cat")), entry("image", bytes_feature(x)))) for x in records)
add_bytes("gzip", records, gzip.compress(stream))
add_bytes("zlib", records, zlib.compress(stream))
add_bytes("two_streams", records * 2, gzip.compress(stream) + gzip.compress(stream))
add_bytes("cut_gzip", [], gzip.compress(one)[:-20], "ends within its stream")
add_bytes("text", [], b"this is not a record, but a line of text", "no record begins here")
add_bytes("flipped", [], one[:100] + b"y" + one[101:], "has the checksum")
add_bytes("cut", [], one[:-1], "but the file ends")
huge = struct.pack("<Q", 1 << 60)
add_bytes("huge", [], huge + masked_crc(huge) + one, "a record of 1152921504606846976 bytes, but the file ends")
full = struct.pack("<Q", (1 << 64) - 1)
add_bytes("fullest", [], full + masked_crc(full) + one, "a record of 18446744073709551615 bytes, but the file ends")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
