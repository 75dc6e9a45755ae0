"""Opens with safetensors what feedrate wrote: python check_safetensors.py cases.json. Exits non-zero at the first difference."""
import json
import sys

import numpy as np
import safetensors.numpy

cases = json.load(open(sys.argv[1]))
for case in cases:
    tensors = safetensors.numpy.load_file(case["path"])
    width = len(str(case["samples"] - 1))
    assert sorted(tensors) == [f"sample_{i:0{width}}" for i in range(case["samples"])], tensors.keys()
    for sample, name in enumerate(sorted(tensors)):
        x = tensors[name]
        assert x.dtype == np.dtype(case["dtype"]), (x.dtype, case)
        assert list(x.shape) == case["dims"], (x.shape, case)
        expected = open(f"{case['path']}.sample{sample}", "rb").read()
        assert x.tobytes() == expected, (case, sample)
    assert safetensors.numpy.save(tensors) == open(case["path"], "rb").read(), case
print(len(cases))
