"""Loads every file below a folder with torch: python3 load_checkpoint.py FOLDER. Prints type and shape of each tensor as JSON."""
import json
import math
import pathlib
import sys

import torch


def walk(state, path, found):
    for key, value in state.items():
        name = f"{path}/{key}" if path else key
        if isinstance(value, dict):
            walk(value, name, found)
        else:
            assert value.dtype in (torch.int8, torch.uint8) or torch.isfinite(value).all(), name
            found[name] = [str(value.dtype), list(value.shape)]
    return found


files = sorted(pathlib.Path(sys.argv[1]).rglob("*.pt"))
assert files
tensors_by_file = {}
for path in files:
    tensors = walk(torch.load(path), "", {})
    assert all(math.prod(shape) > 0 for _, shape in tensors.values())
    tensors_by_file[path.name] = tensors
print(json.dumps(tensors_by_file))
