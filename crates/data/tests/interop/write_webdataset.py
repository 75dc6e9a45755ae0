"""Writes shards with `webdataset` and `tarfile` for feedrate to read: python write_webdataset.py FOLDER. Lists them in
FOLDER/cases.json."""
import io
import json
import os
import sys
import tarfile

import numpy as np
import webdataset

folder = sys.argv[1]
random = np.random.default_rng(1)
cases = []


def add(name, payloads, write, refused=None):
    path = os.path.join(folder, name)
    write(path)
    for sample, payload in enumerate(payloads):
        open(f"{path}.sample{sample}", "wb").write(payload)
    cases.append({"path": path, "format": "webdataset", "samples": len(payloads), "refused": refused})


def array(dtype, *shape):
    return random.integers(0, 100, shape).astype(dtype)


def npy(x):
    data = io.BytesIO()
    np.save(data, x)
    return data.getvalue()


def blob(size):
    return random.bytes(size)


def add_bytes(name, payloads, data, refused=None):
    add(name, [] if refused else payloads, lambda path: open(path, "wb").write(data), refused)


# Files that webdataset writes.
def add_by_library(name, samples, payloads, **options):
    def write(path):
        with webdataset.TarWriter(path, **options) as writer:
            for number, sample in enumerate(samples):
                writer.write({"__key__": f"key{number:05d}", **sample})

    add(name, payloads, write)


dtypes = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split()
for dtype in dtypes:
    for shape in [(31, 17), (5, 2, 3, 4), (1,)]:
        arrays = [array(dtype, *shape) for _ in range(5)]
        samples = [{"npy": x, "cls": number} for number, x in enumerate(arrays)]
        add_by_library(f"{dtype}_{len(shape)}.tar", samples, [x.tobytes() for x in arrays])
large = [array("float32", 300, 1000), array("uint8", 2000, 999)]
add_by_library("large.tar", [{"npy": x, "json": {"a": 1}} for x in large], [x.tobytes() for x in large])
images = [blob(size) for size in (1, 511, 512, 513, 100_000, 3, 0, 5000)]
for form in ["USTAR_FORMAT", "GNU_FORMAT", "PAX_FORMAT"]:
    add_by_library(f"images_{form}.tar", [{"jpg": x, "cls": b"3", "txt": b"a"} for x in images], images, encoder=False, format=form)
add_by_library("images.tar.gz", [{"jpg": x, "cls": b"3"} for x in images], images, encoder=False)
add_by_library("arrays.tar.gz", [{"npy": x, "json": {"a": 1}} for x in large], [x.tobytes() for x in large])
mixed = [{"png" if n % 2 else "jpg": x, "cls": b"3"} for n, x in enumerate(images)]
add_by_library("mixed.tgz", mixed, images, encoder=False, compress="gz")
texts = [b"one", b"two", b"three"]
add_by_library("texts.tar", [{"txt": x, "zzz.json": b"{}"} for x in texts], texts, encoder=False)
thumbnails = [{"a.png": b"small", "jpg": x, "z.id": b"17", "json": b"{}"} for x in images[3:5]]
add_by_library("thumbnails.tar", thumbnails, images[3:5], encoder=False)
long = [blob(size) for size in (400_000, 3_000_000, 70_000)]
ids = [{"a.id": blob(16), "npy": np.frombuffer(x, np.uint8), "cls": 1} for x in long]
add_by_library("ids.tar", ids, long)
pictures = [blob(size) for size in (2_900, 100_000, 100_000)]
captions = [{"jpg": x, "json": b" " * 4_000} for x in pictures]
add_by_library("captions.tar", captions, pictures, encoder=False)
documents = [{"meta": b"m", "txt": x} for x in long]
add_by_library("documents.tar", documents, long, encoder=False)
many = [blob(int(size)) for size in random.integers(1, 3000, 400)]
add_by_library("many.tar", [{"bin": x, "cls": b"1"} for x in many], many, encoder=False)


# Files that Python's tarfile writes.
def tar(members, form=tarfile.PAX_FORMAT, **options):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **options) as archive:
        for member in members:
            name, data, fields = (*member, {})[:3]
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


forms = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
pair = [blob(700), blob(90_000)]
for form_name, form in forms.items():
    folders = "a-folder-of-some-length/" * 6
    add_bytes(f"prefix_{form_name}.tar", pair, tar([(f"{folders}{n}.bin", x) for n, x in enumerate(pair)], form))
    odd = [
        ("folder", b"", {"type": tarfile.DIRTYPE}),
        ("__meta__", b"meta"),
        ("__meta__/x.bin", b"meta"),
        ("link.bin", b"", {"type": tarfile.SYMTYPE, "linkname": "a.bin"}),
        ("README", b"no extension"),
        (".hidden", b"no key"),
        ("folder/a.cls", b"4"),
        ("folder/a.x.bin", pair[0]),
        ("folder/a.y.bin", b"second"),
        ("hard.bin", b"", {"type": tarfile.LNKTYPE, "linkname": "a.bin"}),
        ("other/a.bin", pair[1]),
        ("other/a.txt", b"t"),
    ]
    add_bytes(f"odd_{form_name}.tar", pair, tar(odd, form))
    words = [("w.txt", b"only a label"), ("x.json", b"{}"), ("x.bin", pair[0]), ("y.cls", b"5"), ("y.txt", b"6")]
    add_bytes(f"labels_{form_name}.tar", [b"only a label", pair[0], b"6"], tar(words, form))
for form_name in ["gnu", "pax"]:
    # Keys that differ only after the 100 bytes of the name in the header, and a short one between them.
    long = [(f"{'long' * 80}{n}.bin", x) for n, x in enumerate(pair * 2)]
    linked = ("l.bin", b"", {"type": tarfile.SYMTYPE, "linkname": "target" * 60})
    members = [*long[:2], linked, ("s.bin", b"short"), *long[2:]]
    add_bytes(f"long_{form_name}.tar", [*pair, b"short", *pair], tar(members, forms[form_name]))
unicode = [(f"Schlüssel{n}.bin", x, {"mtime": 1.5, "uname": "jürgen"}) for n, x in enumerate(pair)]
add_bytes("unicode.tar", pair, tar(unicode, pax_headers={"comment": "global"}))
add_bytes("attributes.tar", pair, tar([(f"{n}.bin", x, {"pax_headers": {"SCHILY.xattr.a": "v" * 20_000}}) for n, x in enumerate(pair)]))


def patch_header(data, start, patch):
    block = bytearray(data[start : start + 512])
    for offset, value in patch.items():
        block[offset : offset + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return data[:start] + bytes(block) + data[start + 512 :]


plain = tar([("a.bin", pair[0]), ("b.bin", pair[1])], tarfile.USTAR_FORMAT)
add_bytes("base_256.tar", pair, patch_header(plain, 0, {124: b"\x80" + (700).to_bytes(11, "big")}))
add_bytes("blanks.tar", pair, patch_header(plain, 0, {124: b"       1274 "}))
add_bytes("old.tar", pair, patch_header(plain, 0, {156: b"\0", 257: b"\0" * 8}))
sized = tar([("a.bin", pair[0], {"pax_headers": {"size": "700"}}), ("b.bin", pair[1])])
add_bytes("size_in_pax.tar", pair, patch_header(sized, 1024, {124: b"00000000000\0"}))
content_end = 512 + 1024 + 512 + 90_000
add_bytes("no_end.tar", pair, plain[: content_end + 512 - content_end % 512])
add_bytes("no_padding.tar", pair, plain[:content_end])
add_bytes("one_empty_block.tar", pair, plain[: content_end + 512 - content_end % 512] + bytes(512))
add_bytes("data_after_the_end.tar", pair, plain + b"anything")
add_bytes("large_block.tar", pair, plain + bytes(1 << 20))
x = array("int32", 4, 5)
deep = array("uint8", 1, 2, 1, 2, 1, 2, 1, 2)
add_bytes("deep.tar", [deep.tobytes()], tar([("a.npy", npy(deep))]))
add_bytes("versions.tar", [x.tobytes()] * 2, tar([("a.npy", npy(x)), ("b.x.npy", npy(x))]))

add_bytes("fortran.tar", [np.asfortranarray(x).tobytes("A")], tar([("a.npy", npy(np.asfortranarray(x)))]))
add_bytes("big_endian.tar", [x.astype(">i4").tobytes()], tar([("a.npy", npy(x.astype(">i4")))]))
add_bytes("no_array.tar", [], tar([("a.npy", b"not an array")]), "not an npy array")
add_bytes("short_array.tar", [], tar([("a.npy", npy(x)[:-1])]), "an array of 208 bytes in a member of 207")
add_bytes("no_header.tar", [], tar([("a.npy", npy(x)[:20])]), "too short for its array's header")
add_bytes("nothing.tar", [], tar([]), "holds 0 samples, so there is no sample 0")
add_bytes("no_bytes.tar", [], b"", "so there is no sample 0")
add_bytes("no_keys.tar", [], tar([("README", b"x"), ("d", b"", {"type": tarfile.DIRTYPE})]), "holds 0 samples")
add_bytes("text.tar", [], b"text " * 500, "no tar header begins here")
add_bytes("flipped.tar", [], b"x" + plain[1:], "its checksum is wrong")
add_bytes("huge.tar", [], patch_header(plain, 0, {124: b"77777777777\0"}), "a member of 8589934591 bytes, but the file ends")
add_bytes("huger.tar", [], patch_header(plain, 0, {124: b"\x80\0\0\0" + b"\xff" * 8}), "a member of 18446744073709551615 bytes")
add_bytes("no_size.tar", [], patch_header(plain, 0, {124: b"size?"}), "whose size is not a number")
add_bytes("negative.tar", [], patch_header(plain, 0, {124: b"\xff" * 12}), "whose size is not a number")
add_bytes("sparse.tar", [], patch_header(plain, 0, {156: b"S"}), "a sparse member")
add_bytes("sparse_pax.tar", [], tar([("a.bin", pair[0], {"pax_headers": {"GNU.sparse.major": "1"}})]), "a sparse member")
add_bytes("bad_pax.tar", [], patch_header(tar([("x", b"99 path=a\n" + b"y" * 90)]), 0, {156: b"x"}), "an invalid extended header")
add_bytes("long_meta.tar", [], patch_header(tar([("x", bytes(2 << 20))]), 0, {156: b"L"}), "a header of 2097152 bytes")
for mode in ["gz", "bz2", "xz"]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{mode}") as archive:
        archive.addfile(tarfile.TarInfo("a.bin"), io.BytesIO())
    refused = {} if mode == "gz" else {"refused": "a tar that is compressed"}
    add_bytes(f"compressed_{mode}.tar", [] if refused else [b""], out.getvalue() + bytes(512), **refused)

json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))
