"""Images of Pillow. A file is a sample."""
import os
import struct
import zlib

import numpy as np
from image_data import encode, image, jpeg, pixels
from kinds import FILES, Kind, each, random, save
from PIL import Image, PngImagePlugin


def read(source):
    yield pixels(source)


def images(name, extension, make, is_decoded=True, files=FILES):
    def write(path, number):
        save(path, make(number))

    Kind(name, each(extension, write, files), read if is_decoded else None, is_whole=True)


def jpegs(name, make, extension=".jpg", is_decoded=True):
    images(f"jpeg {name}", extension, make, is_decoded)


jpegs("rgb", lambda _: jpeg((70, 90)))
jpegs("grey", lambda _: encode(image("L"), "JPEG"), ".JPEG")
jpegs("cmyk", lambda _: encode(image("CMYK"), "JPEG"))
jpegs("progressive", lambda _: jpeg((70, 90), progressive=True))
jpegs("progressive grey", lambda _: encode(image("L"), "JPEG", progressive=True))
jpegs("progressive cmyk", lambda _: encode(image("CMYK"), "JPEG", progressive=True))
jpegs("without subsampling", lambda _: jpeg((70, 90), subsampling=0), ".jpeg")
jpegs("4:2:2", lambda _: jpeg((71, 93), subsampling=1))
jpegs("kept rgb", lambda _: jpeg((70, 90), keep_rgb=True))
jpegs("restart markers", lambda _: jpeg((70, 90), restart_marker_rows=1))
jpegs("of low quality", lambda _: jpeg((170, 190), quality=5, optimize=True))
jpegs("uneven sizes", lambda number: jpeg((70 + 9 * number, 90)))
jpegs("grey among colours", lambda number: jpeg((70, 90)) if number else encode(image("L"), "JPEG"))
jpegs("a pixel", lambda _: jpeg((1, 1)))


def exif():
    tags = Image.Exif()
    tags[0x0112], tags[0x010E] = 6, "words " * 500
    return tags


jpegs("exif and profile", lambda _: jpeg((70, 90), exif=exif(), icc_profile=bytes(3000), comment="words"))
jpegs("longer profile than pixels", lambda _: jpeg((8, 8), icc_profile=random.bytes(200_000)))
jpegs("multi-picture", lambda _: encode(image(), "MPO", save_all=True, append_images=[image()]), ".mpo")
jpegs("text after the end", lambda _: jpeg((70, 90)) + b"words " * 50)
jpegs("named png", lambda _: jpeg((70, 90)), ".png")


def pngs(name, make, extension=".png", is_decoded=True):
    images(f"png {name}", extension, make, is_decoded)


for mode, name in {"RGB": "rgb", "RGBA": "rgba", "L": "grey", "LA": "grey with alpha", "I;16": "16 bit grey", "P": "palette", "1": "1 bit"}.items():
    pngs(name, lambda _, mode=mode: encode(image(mode), "PNG"))
pngs("transparent palette", lambda _: encode(image("P"), "PNG", transparency=3))
pngs("transparent grey", lambda _: encode(image("L"), "PNG", transparency=3))
pngs("few colours", lambda _: encode(image().quantize(4), "PNG", bits=2))
pngs("uneven sizes", lambda number: encode(image("RGB", (70 + 9 * number, 90)), "PNG"))
pngs("of several modes", lambda number: encode(image(["RGB", "RGBA", "L", "LA"][number % 4]), "PNG"))
pngs("grey with alpha of uneven sizes", lambda number: encode(image("LA", (70 + 9 * number, 90)), "PNG"))
pngs("text", lambda _: encode(image(), "PNG", pnginfo=notes(), icc_profile=bytes(3000), dpi=(300, 300)))
pngs("animated", lambda _: encode(image(), "PNG", save_all=True, append_images=[image()]))


def notes():
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "words " * 500, zip=True)
    return text


def png_of_rows(channels, bits, interlaced=False):
    """A PNG of a kind that Pillow cannot write, by the layout of the specification: all rows without filter."""
    height, width = 70, 90
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def rows(lines, columns):
        return b"".join(b"\0" + random.bytes((columns * channels * bits + 7) // 8) for _ in range(lines)) if columns else b""

    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    whole = [(0, 0, 1, 1)]
    data = b""
    for top, left, down, right in passes if interlaced else whole:
        data += rows(len(range(top, height, down)), len(range(left, width, right)))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    out = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks:
        out += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return out


def png_dims(channels):
    """Pillow reads 16-bit colours as 8 bits, so the shape is that of the header."""

    def read_shape(source):
        pixels(source)
        yield np.zeros((70, 90) if channels == 1 else (70, 90, channels), np.uint16)

    return read_shape


for channels, name in [(1, "grey"), (2, "grey with alpha"), (3, "rgb"), (4, "rgba")]:
    pngs(f"interlaced {name}", lambda _, channels=channels: png_of_rows(channels, 8, True))
    write = each(".png", lambda path, number, channels=channels: save(path, png_of_rows(channels, 16)))
    if channels > 1:
        Kind(f"png 16 bit {name}", write, png_dims(channels), is_whole=True)
pngs("4 bit grey", lambda _: png_of_rows(1, 4))


def whole(extension, kind, picture=image, **options):
    images(f"whole {kind}", extension, lambda _: encode(picture(), kind, **options), is_decoded=False)


whole(".webp", "WEBP")
whole(".tif", "TIFF")
whole(".bmp", "BMP")
whole(".gif", "GIF", lambda: image("P"))
whole(".jp2", "JPEG2000")
whole(".avif", "AVIF")
whole(".ppm", "PPM")


def classes(folder):
    """As torchvision's ImageFolder reads them."""
    for split, count in [("train", 3), ("val", 1)]:
        for number in range(4 * count):
            save(os.path.join(folder, split, f"n{number % 2:08}", f"image {number}.JPEG"), jpeg((70, 90)))


Kind("jpeg in folders of classes", classes, read, "train/*/*", is_whole=True, left_out=4)


def segmentation(folder):
    """Images beside masks of another format."""
    for number in range(8):
        save(os.path.join(folder, "JPEGImages", f"{number}.jpg"), jpeg((70, 90)))
        save(os.path.join(folder, "SegmentationClass", f"{number}.png"), encode(image("P"), "PNG"))


Kind("jpeg beside png masks", segmentation, read, "JPEGImages/*", is_whole=True, left_out=8)
