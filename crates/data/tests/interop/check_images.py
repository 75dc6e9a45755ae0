"""Opens with Pillow what feedrate wrote, and compares a jpeg with Pillow's own of noise: python check_images.py cases.json. Exits non-zero at the first difference."""
import io
import json
import os
import sys

import numpy as np
from PIL import Image

Image.MAX_IMAGE_PIXELS = None
MODES = {2: "L", 3: "RGB", 4: "RGBA"}
# Decoders may round a mean and each of two colours up or down: blue is 1.8 times one of them.
TOLERANCE = 6
# Where halved colours end, libjpeg spreads the last one and we what the encoder put behind it.
EDGE_TOLERANCE = 64


def expected(case, suffix):
    dtype = np.dtype(case["dtype"]).newbyteorder("<")
    return np.fromfile(case["path"] + suffix, dtype=dtype).reshape(case["dims"])


def check(case):
    with Image.open(case["path"]) as image:
        image.verify()
    with Image.open(case["path"]) as image:
        assert image.format.lower() == case["format"], image.format
        x = np.asarray(image)
        mode = image.mode
    dims = case["dims"]
    decoded = expected(case, ".decoded")
    if case["format"] == "png":
        assert (decoded == expected(case, ".sample0")).all(), case
    if case["dtype"] == "uint16":
        if len(dims) == 3:
            # Pillow has no such mode and keeps the upper halves.
            decoded = (decoded >> 8).astype(np.uint8)
        else:
            assert mode == "I;16", mode
    if case["dtype"] == "uint8" or len(dims) == 3:
        assert mode == MODES[dims[2] if len(dims) == 3 else 2], mode
    assert list(x.shape) == dims, (x.shape, case)
    off = np.abs(x.astype(np.int64) - decoded.astype(np.int64))
    if case["format"] == "png":
        assert off.max() == 0, (off.max(), case)
        return
    assert off.max() <= EDGE_TOLERANCE, (off.max(), case)
    assert off[:-1, :-1].max(initial=0) <= TOLERANCE, (off.max(), case)
    check_beside_noise(case, x)


def check_beside_noise(case, x):
    """Ours is as large as Pillow's of noise where edges count little, and about as wide."""
    dims = case["dims"]
    if min(dims[:2]) < 200:
        return
    pixels = np.random.default_rng(0).integers(0, 256, dims, "uint8")
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "jpeg")
    ratio = os.path.getsize(case["path"]) / len(file.getvalue())
    assert 0.97 < ratio < 1.03, (ratio, case)
    noise = np.asarray(Image.open(file)).astype(float)
    for statistic in (np.mean, np.std):
        ours, theirs = statistic(x), statistic(noise)
        assert abs(ours - theirs) < 8, (ours, theirs, case)


cases = json.load(open(sys.argv[1]))
for case in cases:
    check(case)
print(len(cases))
