"""Writes tensors with safetensors for feedrate to read: python write_safetensors.py FOLDER. Lists them in FOLDER/cases.json."""
import json
import os
import sys

import numpy as np
import safetensors
import safetensors.numpy

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(name, data, samples, refused=None):
    path = os.path.join(folder, name + ".safetensors")
    open(path, "wb").write(data)
    for sample, tensor in enumerate(samples):
        open(f"{path}.sample{sample}", "wb").write(tensor)
    cases.append({"path": path, "format": "safetensors", "samples": len(samples), "refused": refused})


def save(name, tensors, metadata=None):
    """Samples come in the order in which the library lays them out."""
    data = safetensors.numpy.save(tensors, metadata)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    header.pop("__metadata__", None)
    names = sorted(header, key=lambda key: header[key]["data_offsets"])
    add(name, data, [tensors[key].tobytes() for key in names])


def array(dtype, shape):
    return random.integers(0, 100, shape).astype(dtype)


dtypes = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split()
for dtype in dtypes:
    save(f"{dtype}_one", {"image": array(dtype, (31, 17))})
    save(f"{dtype}_many", {f"image {i}": array(dtype, (5, 2, i + 1)) for i in range(20)})
save("mixed", {dtype: array(dtype, (7, 3)) for dtype in dtypes})
save("scalar", {"x": array("uint8", ())})
save("empty", {"a": array("uint8", (0, 5)), "b": array("uint8", (3,))})
save("large", {"a": array("uint8", (2000, 1000)), "b": array("float32", (300, 1000))})
save("metadata", {"x": array("int16", (4, 5))}, {"made by": 'a "test"', "x": "{}"})
save("unicode", {'\u00e9 "quoted" \\ \n': array("int16", (4, 5))})
save("bool", {"mask": array("uint8", (9,)) > 50})
save("many_axes", {"x": array("uint16", (1, 2) * 5)})


def raw(name, dtype, shape, data):
    x = np.frombuffer(data, dtype=np.uint8)
    tensor = safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=x.ctypes.data, data_len=x.nbytes)
    add(name, bytes(safetensors.serialize({"x": tensor})), [data])


raw("bfloat16", "bfloat16", [3, 2], bytes(range(12)))
raw("float8", "float8_e4m3fn", [3, 2], bytes(range(6)))

whole = safetensors.numpy.save({"a": array("float32", (4, 5)), "b": array("float32", (4, 5))})
add("cut_off", whole[:-1], [], "but 159 follow")
add("goes_on", whole + b"\0", [], "but 161 follow")
add("no_header", b"\xff" * 100, [], "a header of")
add("not_json", (100).to_bytes(8, "little") + b"x" * 200, [], "not one of safetensors")

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
