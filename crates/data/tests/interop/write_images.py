"""Writes images with Pillow for feedrate to read: python write_images.py FOLDER. Lists them in FOLDER/cases.json."""
import io
import json
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageFile
from PIL.PngImagePlugin import PngInfo

folder = sys.argv[1]
# Progressive noise is longer than the buffer that Pillow estimates.
ImageFile.MAXBLOCK = 1 << 24
random = np.random.default_rng(1)
cases = []


# Decoders may round the mean and both colour values up or down; blue adds 1.8 times one of these.
TOLERANCE = 6
# At the edge of subsampled colours, libjpeg repeats the last value, and feedrate uses the value that the encoder stored
# beyond the edge.
EDGE_TOLERANCE = 64


def add(name, data, refused=None, pixels=None):
    """`pixels` are the expected pixels; by default those that Pillow decodes."""
    path = os.path.join(folder, name)
    open(path, "wb").write(data)
    case = {"path": path, "format": name.rsplit(".")[-1], "samples": 0 if refused else 1, "refused": refused}
    if not refused:
        x = np.asarray(Image.open(path)) if pixels is None else pixels
        open(path + ".sample0", "wb").write(x.astype(x.dtype.newbyteorder("<")).tobytes())
        case["dims"] = x.shape
        if case["format"] == "jpeg":
            case |= {"tolerance": TOLERANCE, "edge_tolerance": EDGE_TOLERANCE}
    cases.append(case)


def encode(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def smooth(height, width, channels):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 60 * np.sin(x / 23 + c) * np.cos(y / 31) + 50 * np.sin((x + 2 * y) / 57 - c) for c in range(channels)]
    return np.stack(waves, axis=-1).astype(np.uint8).squeeze()


def noise(height, width, channels):
    return random.integers(0, 256, (height, width, channels), dtype=np.uint8).squeeze()


# png
for height, width in [(1, 1), (7, 5), (120, 97), (301, 256)]:
    for make in [smooth, noise]:
        for channels, mode in [(1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")]:
            image = Image.frombytes(mode, (width, height), make(height, width, channels).tobytes())
            add(f"{make.__name__}_{mode}_{height}.png", encode(image, "png"))
grey = Image.fromarray(smooth(200, 301, 1))
colours = Image.fromarray(smooth(200, 301, 3))
for level in [0, 1, 9]:
    add(f"level_{level}.png", encode(colours, "png", compress_level=level))
add("optimized.png", encode(colours, "png", optimize=True))
wide = random.integers(0, 65536, (100, 77), dtype=np.uint16)
add("16.png", encode(Image.fromarray(wide), "png"))
add("1.png", encode(grey.convert("1"), "png"), pixels=np.asarray(grey.convert("1")).astype(np.uint8) * 255)
palette = colours.quantize(200)
add("palette.png", encode(palette, "png"), pixels=np.asarray(palette.convert("RGB")))
for bits in [1, 2, 4]:
    few = colours.quantize(1 << bits)
    add(f"palette_{bits}.png", encode(few, "png", bits=bits), pixels=np.asarray(few.convert("RGB")))
data = encode(palette, "png", transparency=3)
add("palette_transparent.png", data, pixels=np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))
data = encode(colours, "png", transparency=(128, 130, 100))
add("transparent.png", data, pixels=np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))


def text_chunks(words):
    text = PngInfo()
    text.add_text("Comment", "much " * words)
    text.add_text("Packed", "more " * words, zip=True)
    return text


exif = Image.Exif()
exif[0x010E] = "words " * 8000
add("words.png", encode(colours, "png", pnginfo=text_chunks(20000), exif=exif, icc_profile=bytes(3000), dpi=(300, 300)))
add("animated.png", encode(colours, "png", save_all=True, append_images=[colours.rotate(90)]), pixels=np.asarray(colours))


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced(x):
    """Adam7 interlacing, which Pillow cannot write."""
    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b""
    for y, x0, y_step, x_step in passes:
        part = x[y::y_step, x0::x_step]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    head = struct.pack(">IIBBBBB", x.shape[1], x.shape[0], 8, 2 if x.ndim == 3 else 0, 0, 0, 1)
    chunks = png_chunk(b"IHDR", head) + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


for x in [noise(61, 45, 3), noise(3, 3, 1), smooth(200, 100, 1)]:
    add(f"interlaced_{x.shape[0]}.png", interlaced(x))
whole = encode(colours, "png")
add("trailer.png", whole + b"said later", pixels=np.asarray(colours))
add("half.png", whole[: len(whole) // 2], "not a complete png")
add("no_end.png", whole[:-12], "not a complete png")
add("bad_crc.png", whole[:-13] + bytes([whole[-13] ^ 1]) + whole[-12:], "not a complete png")
add("jpeg_inside.png", encode(colours, "jpeg"), "not a complete png: Invalid PNG signature")
huge = whole[:8] + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)) + whole[33:]
add("huge.png", huge, "not a complete png: limits are exceeded")
zero = whole[:8] + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 5, 8, 2, 0, 0, 0)) + whole[33:]
add("zero.png", zero, "not a complete png: Invalid image dimensions")

# jpeg
for height, width in [(1, 1), (7, 5), (110, 120), (120, 97), (301, 256)]:
    for make in [smooth, noise]:
        for channels in [1, 3]:
            image = Image.fromarray(make(height, width, channels).reshape((height, width, channels)[: 2 + (channels > 1)]))
            for name, options in [
                ("75", {}),
                ("95", {"quality": 95}),
                ("444", {"quality": 95, "subsampling": 0}),
                ("422", {"subsampling": 1}),
                ("progressive", {"progressive": True}),
                ("progressive_444", {"quality": 95, "subsampling": 0, "progressive": True}),
                ("optimized", {"optimize": True}),
                ("restarts", {"restart_marker_blocks": 3}),
            ]:
                name = f"{name}_{make.__name__}_{height}_{channels}.jpeg"
                add(name, encode(image, "jpeg", **options))
rich = encode(colours, "jpeg", exif=exif, icc_profile=bytes(100000), comment="words", dpi=(300, 300))
add("words.jpeg", rich)
add("rgb.jpeg", encode(colours, "jpeg", keep_rgb=True))
add("trailer.jpeg", rich + b"said later")
add("half.jpeg", rich[: -len(encode(colours, "jpeg")) // 2], "the file ends before the end of the image")
add("no_end.jpeg", rich[:-2], "the file ends before the end of the image")
whole = encode(colours, "jpeg", quality=95)
data = encode(colours.convert("CMYK"), "jpeg", quality=95)
add("cmyk.jpeg", data, pixels=np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
add("png_inside.jpeg", encode(colours, "png"), "not a complete jpeg: Error parsing image. Illegal start bytes")
frame = whole.index(b"\xff\xc0")
add("huge.jpeg", whole[: frame + 5] + b"\xff\xff\xff\xff" + whole[frame + 9 :], "cannot hold")
add("deep.jpeg", whole[: frame + 4] + b"\x0c" + whole[frame + 5 :], "the image has 12 bits of precision")
add("lossless.jpeg", whole[: frame + 1] + b"\xc3" + whole[frame + 2 :], "not a complete jpeg")

# Small files that the test truncates and changes.
few = Image.fromarray(noise(7, 9, 3))
add("tiny_interlaced.png", interlaced(noise(7, 9, 3)))
add("tiny_16.png", encode(Image.fromarray(wide[:7, :9].copy()), "png"))
data = encode(few.quantize(9), "png", transparency=3)
add("tiny_palette.png", data, pixels=np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")))
add("tiny_1.png", encode(few.convert("1"), "png"), pixels=np.asarray(few.convert("1")).astype(np.uint8) * 255)
add("tiny_words.png", encode(few, "png", pnginfo=text_chunks(300), icc_profile=bytes(300)))
add("tiny_progressive.jpeg", encode(few, "jpeg", progressive=True))
add("tiny_422.jpeg", encode(few, "jpeg", subsampling=1))
add("tiny_restarts.jpeg", encode(Image.fromarray(noise(20, 30, 3)), "jpeg", restart_marker_blocks=1))
add("tiny_words.jpeg", encode(few.convert("L"), "jpeg", icc_profile=bytes(300), comment="words"))

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
