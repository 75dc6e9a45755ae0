"""Checks with Pillow the files that feedrate wrote, and compares jpeg files with noise that Pillow encoded:
python check_images.py cases.json. Exits non-zero at the first difference."""
import io
import json
import os
import sys

import numpy as np
from PIL import Image

Image.MAX_IMAGE_PIXELS = None
MODES = {2: "L", 3: "RGB", 4: "RGBA"}
# Decoders may round the mean and both colour values up or down; blue adds 1.8 times one of these.
TOLERANCE = 6
# At the edge of subsampled colours, libjpeg repeats the last value, and feedrate uses the value that the encoder stored
# beyond the edge.
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
            # Pillow has no mode for 16-bit colours and keeps their upper bytes.
            decoded = (decoded >> 8).astype(np.uint8)
        else:
            assert mode == "I;16", mode
    if case["dtype"] == "uint8" or len(dims) == 3:
        assert mode == MODES[dims[2] if len(dims) == 3 else 2], mode
    assert list(x.shape) == dims, (x.shape, case)
    difference = np.abs(x.astype(np.int64) - decoded.astype(np.int64))
    if case["format"] == "png":
        assert difference.max() == 0, (difference.max(), case)
        return
    assert difference.max() <= EDGE_TOLERANCE, (difference.max(), case)
    assert difference[:-1, :-1].max(initial=0) <= TOLERANCE, (difference.max(), case)
    check_against_noise(case, x)


def check_against_noise(case, x):
    """Compares length, mean and deviation with those of noise that Pillow encodes. In small images, edges count too much."""
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
