"""Writes malformed files: python hostile.py FOLDER OURS. The folder OURS contains the output of `cargo run --bin seeds OURS`."""
import io
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

import h5py
import numpy as np

MARK = b"\n=part=\n"
out, ours = map(pathlib.Path, sys.argv[1:3])


def save(format, name, data):
    folder = out / format
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"hostile_{name}").write_bytes(data)


def plan(*words):
    return MARK + " ".join(map(str, words)).encode()


def npy(x):
    data = io.BytesIO()
    np.save(data, x)
    return data.getvalue()


def header(text, version=(1, 0)):
    width = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(width, len(text)) + text


# npy: shapes that exceed any memory, and headers without an end.
for name, shape in {
    "huge": "(1152921504606846976, 2)",
    "overflow": "(4294967296, 4294967296, 4294967296)",
    "too_large": "(99999999999999999999999999,)",
    "negative": "(-1, 3)",
    "zero": "(0, 3)",
    "scalar": "()",
    "many": "(" + "1," * 300 + ")",
}.items():
    save("npy", name, header(b"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n" % shape.encode()) + bytes(64))
save("npy", "header_of_4_gib", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"{'descr': " + b" " * 100)
save("npy", "nested", header(b"{" * 2000))
save("npy", "object", header(b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }\n") + bytes(64))

# npz: a zip inside a zip, wrong zip64 sizes, overlapping members, decompression bombs.
x = np.arange(24, dtype="f4").reshape(2, 4, 3)


def archive(members, **options):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", **options) as file:
        for name, content in members:
            file.writestr(name, content)
    return data.getvalue()


inner = archive([("x.npy", npy(x))])
save("npz", "within", archive([("x.npy", inner)]))
save("npz", "within_packed", archive([("a.npz", inner), ("x.npy", npy(x))], compression=zipfile.ZIP_DEFLATED))
save("npz", "behind", inner + inner)
save("npz", "in_its_comment", inner[:-2] + struct.pack("<H", len(inner)) + inner)
save("npz", "twice", archive([("x.npy", npy(x)), ("x.npy", npy(x))]))
save("npz", "bomb", archive([("x.npy", npy(np.zeros((200, 200, 4), dtype="u1")))], compression=zipfile.ZIP_DEFLATED))
with_zip64 = next(iter(sorted((ours / "npz").glob("ours_0_none*")))).read_bytes().split(MARK)[0]
for value in [0, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 60, (1 << 63) - 1, (1 << 64) - 1]:
    for size in {struct.pack("<Q", s) for s in range(200, 800)}:
        offset = with_zip64.find(size)
        if offset >= 0:
            save("npz", f"zip64_{offset}_{value}", with_zip64[:offset] + struct.pack("<Q", value) + with_zip64[offset + 8 :])
directory = inner.find(b"PK\x01\x02")
end = inner.find(b"PK\x05\x06")
zip64_end = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1 << 60, 1 << 60, 1 << 62, directory)
locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
end_of_ones = b"PK\x05\x06" + bytes(4) + b"\xff" * 12 + bytes(2)
save("npz", "zip64_directory_of_2_to_62", inner[:end] + zip64_end + locator + end_of_ones)
loop = struct.pack("<4sIQI", b"PK\x06\x07", 0, end + 56, 1)
save("npz", "zip64_locator_of_itself", inner[:end] + zip64_end + loop + end_of_ones)
save("npz", "directory_of_itself", inner[: end + 16] + struct.pack("<I", end) + inner[end + 20 :])

# tfrecord: lengths that exceed the file, with correct checksums.


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data, length=None):
    length = struct.pack("<Q", len(data) if length is None else length)
    return length + struct.pack("<I", crc32c(length)) + data + struct.pack("<I", crc32c(data))


for power in [31, 32, 60, 63]:
    save("tfrecord", f"record_of_2_to_{power}", record(b"\x0a\x00", 1 << power))
save("tfrecord", "record_of_all_ones", record(b"\x0a\x00", (1 << 64) - 1))
save("tfrecord", "empty_records", record(b"") * 30)


def field(number, data, length=None):
    size = b""
    length = len(data) if length is None else length
    while length >= 128:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


deep = b""
for _ in range(300):
    deep = field(1, deep)
save("tfrecord", "nested", record(deep))
image = field(1, field(1, field(1, b"image") + field(2, field(1, field(1, b"12345678")))))
save("tfrecord", "good", record(image) * 3)
for length in [1 << 31, 1 << 62, (1 << 64) - 1]:
    save("tfrecord", f"field_of_{length}", record(field(1, b"12345678", length)))

# webdataset: paths outside the archive's folder, links, wrong sizes.


def tar(*members, format=tarfile.USTAR_FORMAT):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=format) as file:
        for name, content, options in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in options.items():
                setattr(info, key, value)
            file.addfile(info, io.BytesIO(content))
    data = data.getvalue().rstrip(b"\0")
    return data + bytes(-len(data) % 512 + 1024)


save("webdataset", "outside", tar(("../../outside/a.npy", npy(x), {}), ("/outside/a.cls", b"0", {})))
for kind in [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"Z"]:
    link = {"type": kind, "linkname": "../../outside"}
    save("webdataset", f"kind_{kind.decode()}", tar(("a.npy", b"", link), ("b.npy", npy(x), {})))
save("webdataset", "within", tar(("a.npy", tar(("a.npy", npy(x), {})), {})))
good = tar(("a.npy", npy(x), {}), ("a.cls", b"0", {}))


def sized(data, size):
    block = bytearray(data[:512])
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + data[512:]


save("webdataset", "octal_max", sized(good, b"77777777777\0"))
for byte, rest in [(0x80, b"\x7f" + b"\xff" * 7), (0x80, b"\xff" * 8), (0xFF, b"\xff" * 8), (0x80, b"\x10" + bytes(7))]:
    save("webdataset", f"binary_{byte}_{rest[0]}_{rest[7]}", sized(good, bytes([byte, 0, 0, 0]) + rest))
pax = {"pax_headers": {"size": str(1 << 62)}}
save("webdataset", "pax_size", tar(("a.npy", npy(x), pax), format=tarfile.PAX_FORMAT))
save("webdataset", "pax_long", tar(("a" * 3000 + ".npy", npy(x), {}), format=tarfile.PAX_FORMAT))
save("webdataset", "gnu_long", tar(("a" * 3000 + ".npy", npy(x), {}), format=tarfile.GNU_FORMAT))
save("webdataset", "empty", bytes(2048))

# hdf5: each address in a small file is replaced by other addresses, which gives loops and objects of the wrong type.
for name, options in {
    "old": {},
    "new": {"libver": "latest"},
}.items():
    for chunks in [None, (1, 2, 3)]:
        data = io.BytesIO()
        with h5py.File(data, "w", **options) as file:
            file.create_dataset("records", data=x, chunks=chunks)
        whole = data.getvalue()
        whole = whole[: len(whole.rstrip(b"\0")) + 8]
        if len(whole) > 8192:
            continue
        save("hdf5", f"whole_{name}_{chunks is None}", whole)
        offsets = [
            offset
            for offset in range(0, len(whole) - 8)
            if 0 < struct.unpack_from("<Q", whole, offset)[0] < len(whole)
            and struct.unpack_from("<Q", whole, offset)[0] >= 48
        ]
        values = sorted({struct.unpack_from("<Q", whole, offset)[0] for offset in offsets})
        for offset in offsets:
            for value in [values[0], values[len(values) // 2], values[-1], offset, 1 << 60, (1 << 64) - 2]:
                save(
                    "hdf5",
                    f"{name}_{chunks is None}_{offset}_{value}",
                    whole[:offset] + struct.pack("<Q", value) + whole[offset + 8 :],
                )

# parquet: footers that are longer than the file, and lists of wrong lengths.
good = sorted((ours / "parquet").glob("ours_0_none*"))[0].read_bytes().split(MARK)[0]
for length in [0, 1, len(good), 1 << 30, (1 << 31) - 1, (1 << 32) - 1]:
    save("parquet", f"footer_of_{length}", good[:-8] + struct.pack("<I", length) + b"PAR1")


def footer(data):
    return b"PAR1" + data + struct.pack("<I", len(data)) + b"PAR1"


save("parquet", "list_of_2_to_31", footer(b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07"))
save("parquet", "list_of_2_to_63", footer(b"\x15\x02\x19\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
save("parquet", "string_of_2_to_31", footer(b"\x15\x02\x18\xff\xff\xff\xff\x07"))
save("parquet", "nested_structs", footer(b"\x1c" * 3000))
save("parquet", "nested_lists", footer(b"\x19" * 3000))
save("parquet", "empty_lists", footer(b"\x15\x02" + b"\x19\x0c" * 1500))
save("parquet", "magic_alone", b"PAR1PAR1")

# csv and json: very long tokens and numbers, deep nesting.
for name, text in {
    "digits": b"1" * 3000,
    "exponent": b"1e999999999999\n" * 20,
    "small": b"1e-99999999,2.5e-320,4.9e-324,-0,nan,inf\n" * 20,
    "quotes": b'"' * 1001,
    "open_quote": b'0,"1,2\n3,4\n' * 30,
    "commas": b"," * 3000,
    "lines": b"\r\n" * 1000,
    "no_number": b"0,1\nx,y\n",
    "null_bytes": bytes(100),
    "not_utf8": b"\xff\xfe0,1\n",
    "gzip_bomb": zlib.compress(b"1," * 50_000, 9, 31),
    "gzip_twice": zlib.compress(zlib.compress(b"1,2\n" * 100, 9, 31), 9, 31),
}.items():
    save("csv", name, text + plan("float64", 3, 4, 5))
for name, text in {
    "nested": b"[" * 3000,
    "nested_objects": b'{"a":' * 1000,
    "digits": b"[[" + b"1" * 3000 + b"]]",
    "exponent": b"[[1e999999999999, -1e999999999999, 1e-99999999]]",
    "strings": b'["\\u0000\\ud800", "' + b"a" * 2000,
    "literals": b"[[null, true, false, NaN, Infinity]]",
    "commas": b"[" + b"," * 2000 + b"]",
    "spaces": b" " * 4000,
    "empty_lists": b"[" + b"[]," * 1000 + b"[]]",
    "gzip_bomb": zlib.compress(b"[[" + b"1," * 50_000, 9, 31),
    "records": b'{"records": [[1, 2], [3, 4]], "labels": [0, 1]}\n' * 5,
}.items():
    save("json", name, text + plan("float64", 3, 4, 5))

# png: pictures with sides of 2^31 pixels, decompression bombs, chunks of wrong lengths.


def chunk(kind, data, length=None):
    length = len(data) if length is None else length
    return struct.pack(">I", length) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *chunks, depth=8, colour=0, interlace=0):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunks) + chunk(b"IEND", b"")


pixels = chunk(b"IDAT", zlib.compress(b"\0" + bytes(20) * 1 + b"\0" + bytes(20)))
side = (1 << 31) - 1
save("png", "good", png(20, 2, pixels))
save("png", "sides_of_2_to_31", png(side, side, pixels))
save("png", "wide", png(side, 1, pixels))
save("png", "rgba16_wide", png(side, side, pixels, depth=16, colour=6))
save("png", "no_side", png(0, 2, pixels))
save("png", "bomb", png(600, 400, chunk(b"IDAT", zlib.compress(bytes(601 * 400), 9))))
save("png", "interlaced", png(20, 2, pixels, interlace=1))
save("png", "palette", png(20, 2, chunk(b"PLTE", bytes(9)), pixels, colour=3, depth=4))
save("png", "palette_missing", png(20, 2, pixels, colour=3))
save("png", "chunk_of_2_to_31", png(20, 2, chunk(b"IDAT", b"", side)))
save("png", "chunk_of_2_to_32", png(20, 2, chunk(b"teXt", b"", (1 << 32) - 1)))
save("png", "text_bomb", png(20, 2, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100_000), 9)), pixels))
save("png", "profile_bomb", png(20, 2, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(100_000), 9)), pixels))
save("png", "animated", png(20, 2, chunk(b"acTL", struct.pack(">II", 0xFFFFFFFF, 0)), pixels))
save("png", "empty_chunks", png(20, 2, chunk(b"IDAT", b"") * 200, pixels))

# jpeg: wrong segments, and a picture with sides of 2^16 pixels.
good = sorted((ours / "jpeg").glob("ours_*"))[0].read_bytes().split(MARK)[0]
frame = good.find(b"\xff\xc0")
save("jpeg", "sides_of_2_to_16", good[: frame + 5] + b"\xff\xff\xff\xff" + good[frame + 9 :])
save("jpeg", "no_side", good[: frame + 5] + bytes(4) + good[frame + 9 :])
save("jpeg", "samplings", good[: frame + 11] + b"\xff" + good[frame + 12 :])
save("jpeg", "progressive", good[:frame] + b"\xff\xc2" + good[frame + 2 :])
save("jpeg", "arithmetic", good[:frame] + b"\xff\xc9" + good[frame + 2 :])
save("jpeg", "restarts", good[:frame] + b"\xff\xdd\0\x04\0\x01" + good[frame:])
save("jpeg", "fills", b"\xff\xd8" + b"\xff" * 3000)
save("jpeg", "comments", b"\xff\xd8" + b"\xff\xfe\0\x02" * 1000)
save("jpeg", "two_frames", good[:frame] + good[frame:] + good[frame:])
# The same files as members of a tar archive.
for name, data in {
    "cut": good[: len(good) // 2],
    "sides_of_2_to_16": good[: frame + 5] + b"\xff\xff\xff\xff" + good[frame + 9 :],
    "bomb": png(side, side, pixels),
    "array": header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967295, 4294967295), }"),
}.items():
    save("webdataset", f"member_{name}", tar(("a.jpg", data, {}), ("a.cls", b"0", {})))

# indexed_binary: indexes that point outside the file. raw: plans that exceed the file.
for offset, size in [(0, 1 << 60), ((1 << 64) - 1, 1), (1 << 63, 1 << 63), (8, 8), (0, 0), (100, 8)]:
    index = struct.pack("<QQ", 0, offset), struct.pack("<QQ", 8, size)
    save("indexed_binary", f"{offset}_{size}", MARK.join([bytes(16), *index]))
save("indexed_binary", "short_sizes", MARK.join([bytes(16), bytes(16), bytes(8)]))
save("indexed_binary", "odd_offsets", MARK.join([bytes(16), bytes(15), bytes(16)]))
for words in [("float32", 3, 4, 5), ("uint8", 1 << 20, 1 << 20), ("float64", 1, 1 << 56), ("uint8", 1 << 59, 1)]:
    save("raw", "_".join(map(str, words)), bytes(240) + plan(*words))
