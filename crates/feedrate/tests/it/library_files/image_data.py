"""Images in memory."""
import io

import numpy as np
from kinds import random
from PIL import Image, ImageFile

# Progressive noise is longer than the buffer that Pillow estimates.
ImageFile.MAXBLOCK = 1 << 24


def image(mode="RGB", sides=(70, 90)):
    """Noise in every colour."""
    height, width = sides
    if mode in ("P", "1"):
        return image("RGB", sides).quantize(200) if mode == "P" else image("L", sides).convert("1")
    if mode == "I;16":
        return Image.fromarray(random.integers(0, 65536, sides, dtype=np.uint16))
    channels = len(mode)
    return Image.frombytes(mode, (width, height), random.integers(0, 256, (height, width, channels), dtype=np.uint8).tobytes())


def encode(picture, kind, **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def jpeg(sides=(80, 60), **options):
    return encode(image("RGB", sides), "JPEG", **options)


def pixels(data):
    """The decoded image. Palettes and inks become colours, transparency alpha, bits bytes."""
    picture = Image.open(io.BytesIO(data) if isinstance(data, bytes) else data)
    if picture.mode == "P" or "transparency" in picture.info:
        alpha = "A" if "transparency" in picture.info else ""
        picture = picture.convert(("L" if picture.mode == "L" else "RGB") + alpha)
    array = np.asarray(picture.convert("RGB") if picture.mode == "CMYK" else picture)
    return array.astype(np.uint8) if array.dtype == bool else array
