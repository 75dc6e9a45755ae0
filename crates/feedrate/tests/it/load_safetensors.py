"""Loads every safetensors file below a folder: python3 load_safetensors.py FOLDER. Prints type and shape of each tensor as JSON."""
import json
import pathlib
import sys

from safetensors import safe_open

tensors_by_file = {}
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.safetensors")):
    with safe_open(path, framework="numpy") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}
        tensors_by_file[path.name] = {name: [part.get_dtype(), part.get_shape()] for name, part in slices.items()}
        # numpy has no bf16.
        for name in (name for name, part in slices.items() if part.get_dtype() != "BF16"):
            assert list(file.get_tensor(name).shape) == tensors_by_file[path.name][name][1]
assert tensors_by_file
print(json.dumps(tensors_by_file))
