"""Writes Arrow files with `datasets` and `pyarrow`, and token files in the layouts of Megatron-LM and MosaicML Streaming, for
feedrate to read: python write_tokens.py FOLDER. Lists them in FOLDER/cases.json."""
import json
import os
import struct
import sys

import datasets
import numpy as np
import pyarrow as pa

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(path, format, payloads, refused=None):
    for sample, payload in enumerate(payloads):
        open(f"{path}.sample{sample}", "wb").write(payload)
    cases.append({"path": path, "format": format, "samples": len(payloads), "refused": refused})


def shares(path):
    """The equal share of each row of its record batch's body, as pyarrow's messages hold it."""
    source = pa.memory_map(path)
    if open(path, "rb").read(6) == b"ARROW1":
        source.seek(8)
    payloads = []
    while True:
        try:
            message = pa.ipc.read_message(source)
        except EOFError:
            return payloads
        if message.type == "record batch":
            rows = pa.ipc.read_record_batch(message, schema).num_rows
            body = message.body.to_pybytes()
            for row in range(rows):
                payloads.append(body[len(body) * row // rows:len(body) * (row + 1) // rows])


# `datasets` writes streams.
table = {
    "text": [f"row {i} " * (i % 7 + 1) for i in range(250)],
    "ids": [list(range(i % 30)) for i in range(250)],
    "label": list(range(250)),
}
dataset = datasets.Dataset.from_dict(table)
dataset.save_to_disk(os.path.join(folder, "saved"), num_shards=3)
schema = dataset.data.schema
count = 0
for name in sorted(os.listdir(os.path.join(folder, "saved"))):
    if name.endswith(".arrow"):
        path = os.path.join(folder, "saved", name)
        payloads = shares(path)
        assert len(payloads) == len(datasets.Dataset.from_file(path))
        count += len(payloads)
        add(path, "arrow", payloads)
assert count == len(dataset) == 250

for name, new, options in [
    ("file.arrow", pa.ipc.new_file, {}),
    ("stream.arrow", pa.ipc.new_stream, {}),
    ("zstd.arrow", pa.ipc.new_file, {"compression": "zstd"}),
]:
    path = os.path.join(folder, name)
    schema = pa.schema({"a": pa.int64(), "b": pa.string()})
    batches = [
        pa.record_batch({"a": random.integers(0, 9, rows), "b": ["x" * (i % 5) for i in range(rows)]}, schema)
        for rows in [3, 0, 41, 1]
    ]
    with new(path, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    add(path, "arrow", shares(path))
whole = open(os.path.join(folder, "stream.arrow"), "rb").read()
for name, data, reason in [
    ("cut.arrow", whole[:-200], "the file ends, but"),
    ("old.arrow", whole[4:], "no message of Arrow IPC"),
    ("rows.arrow", whole.replace(struct.pack("<q", 41), struct.pack("<q", 1 << 29), 1), "first column has other rows"),
]:
    path = os.path.join(folder, name)
    open(path, "wb").write(data)
    add(path, "arrow", [], reason)

# Megatron-LM: megatron/core/datasets/indexed_dataset.py.
CODES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float64, 7: np.float32, 8: np.uint16}


def megatron(name, code, lengths, tail=b""):
    path = os.path.join(folder, name + ".idx")
    sequences = [random.integers(0, 100, length).astype(CODES[code]) for length in lengths]
    with open(os.path.join(folder, name + ".bin"), "wb") as tokens:
        for sequence in sequences:
            tokens.write(sequence.tobytes())
    sizes = np.array([sequence.nbytes for sequence in sequences], np.int64)
    with open(path, "wb") as index:
        index.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1))
        index.write(np.array(lengths, np.int32).tobytes())
        index.write((np.cumsum(sizes) - sizes).astype(np.int64).tobytes())
        index.write(np.arange(len(lengths) + 1, dtype=np.int64).tobytes() + tail)
    return path, [sequence.tobytes() for sequence in sequences]


for code in CODES:
    path, payloads = megatron(f"tokens{code}", code, [5, 1, 0, 700, 3])
    add(path, "megatron", payloads)
path, payloads = megatron("modes", 8, [2000] * 60, bytes(60))
add(path, "megatron", payloads)
path, payloads = megatron("cut", 8, [3] * 50)
data = open(path, "rb").read()
open(path, "wb").write(data[:300])
add(path, "megatron", [], "sequences in an index of 300 bytes")

# MosaicML Streaming: streaming/base/format/mds/writer.py.


def mds(name, payloads):
    path = os.path.join(folder, name + ".mds")
    config = json.dumps({"column_encodings": ["bytes"], "column_names": ["x"], "column_sizes": [None]}, sort_keys=True)
    samples = [struct.pack("<I", len(payload)) + payload for payload in payloads]
    offsets = np.array([0] + [len(sample) for sample in samples]).cumsum().astype(np.uint32)
    offsets += np.uint32(4 + offsets.nbytes + len(config))
    head = np.uint32(len(samples)).tobytes() + offsets.tobytes() + config.encode()
    open(path, "wb").write(head + b"".join(samples))
    add(path, "mds", samples)


mds("one", [b"word"])
mds("many", [random.bytes(int(length)) for length in random.integers(0, 9000, 120)])
mds("long", [bytes([i % 256]) for i in range(3000)])
cases[-1]["picked"] = [0, 1, 1500, 2999]

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
print(len(cases))
