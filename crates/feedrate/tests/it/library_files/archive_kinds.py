"""Shards of webdataset, tarfile and tfrecord, which are read whole."""
import gzip
import io
import os
import struct
import tarfile
import zlib

import numpy as np
import pyarrow as pa
import tfrecord
import webdataset
from image_data import encode, image, jpeg, pixels
from kinds import FILES, SAMPLES, Kind, each, noise, random
from tfrecord.reader import tfrecord_iterator, tfrecord_loader


def array_file(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def read_tar(path):
    """The samples of a shard: the decoded image or array of each, or else its key."""
    for sample in webdataset.WebDataset(path, shardshuffle=False, empty_check=False):
        if image_data := sample.get("jpg") or sample.get("png"):
            yield pixels(image_data)
        else:
            yield np.load(io.BytesIO(sample["npy"])) if "npy" in sample else sample["__key__"]


def tar(name, sample, samples=SAMPLES, extension=".tar", mode="w", options={}, is_decoded=True, key="{number:06}"):
    """`sample` gives the members of a sample by extension."""

    def write(path, number):
        count = samples(number) if callable(samples) else samples
        with tarfile.open(path, mode, **options) as archive:
            for row in range(count):
                for word, data in sample().items():
                    member = tarfile.TarInfo(f"{key.format(number=row)}.{word}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))

    Kind(f"tar {name}", each(extension, write), read_tar, is_whole=True, is_decoded=is_decoded)


def photo():
    return {"jpg": jpeg(), "cls": b"3"}


tar("even", photo)
tar("uneven", photo, lambda number: 9 + 7 * number)
tar("last shard short", photo, lambda number: SAMPLES if number < FILES - 1 else 3)
tar("json and text", lambda: photo() | {"json": b'{"a": 1}', "txt": b"words " * 20})
tar("gzip", photo, extension=".tar.gz", mode="w:gz")
tar("tgz", photo, extension=".tgz", mode="w:gz")
tar("pax names", photo, options={"format": tarfile.PAX_FORMAT}, key="ä" * 120 + "{number:06}")
tar("gnu names", photo, options={"format": tarfile.GNU_FORMAT}, key="long" * 40 + "{number:06}")
tar("ustar names", photo, options={"format": tarfile.USTAR_FORMAT}, key="folder/" * 18 + "{number:06}")
tar("in folders", photo, key="./train/class 3/{number:06}")
tar("png", lambda: {"png": encode(image("RGB", (80, 60)), "PNG")})
tar("npy", lambda: {"npy": array_file(noise((3, 40, 30), "float32")), "cls": b"3"})
tar("uneven images", lambda: {"jpg": jpeg((80 + random.integers(9), 60))})
tar("mp4", lambda: {"mp4": random.bytes(9000), "json": b"{}"}, is_decoded=False)
tar("webp", lambda: {"webp": encode(image("RGB", (80, 60)), "WEBP")}, is_decoded=False)
tar("tokens", lambda: {"input_ids.pth": random.bytes(9000)}, is_decoded=False)


def with_shard_writer(folder):
    with webdataset.ShardWriter(os.path.join(folder, "shard-%06d.tar"), maxcount=SAMPLES, verbose=0) as writer:
        for number in range(SAMPLES * FILES - 5):
            writer.write({"__key__": f"sample{number:06}", "jpg": jpeg(), "cls": 3, "json": {"number": number}})


Kind("tar of ShardWriter", with_shard_writer, read_tar, is_whole=True)


def packed_folder(folder):
    """As `tar -cf` packs a folder: with entries for the folders."""
    for number in range(FILES):
        with tarfile.open(os.path.join(folder, f"{number}.tar"), "w") as archive:
            entry = tarfile.TarInfo("images/")
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
            for row in range(SAMPLES):
                data = jpeg()
                member = tarfile.TarInfo(f"images/{row}.jpg")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


Kind("tar of a folder", packed_folder, read_tar, is_whole=True)


def train_and_val(folder):
    for name, count in [("imagenet-train-000000", SAMPLES), ("imagenet-train-000001", SAMPLES), ("imagenet-val-000000", 7)]:
        with webdataset.TarWriter(os.path.join(folder, f"{name}.tar")) as writer:
            for number in range(count):
                writer.write({"__key__": f"{number:06}", "jpg": jpeg(), "cls": 3})


Kind("tar of two splits", train_and_val, read_tar, "*train*", is_whole=True, left_out=1)


def read_examples(path):
    for example in tfrecord_loader(path, None, {"image/encoded": "byte"}):
        yield pixels(bytes(example["image/encoded"]))


def write_examples(path, count=SAMPLES, feature=None):
    writer = tfrecord.TFRecordWriter(path)
    for _ in range(count):
        writer.write(feature() if feature else {"image/encoded": (jpeg(), "byte"), "image/class/label": (3, "int")})
    writer.close()


def compressed(compress):
    def write(path, number):
        write_examples(path)
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(compress(data))

    return write


def read_gzip(path):
    for record in tfrecord_iterator(path, compression_type="gzip"):
        yield pixels(bytes(tfrecord.example_pb2.Example.FromString(bytes(record)).features.feature["image/encoded"].bytes_list.value[0]))


def read_zlib(path):
    """TensorFlow's `ZLIB` option compresses the whole file; the library `tfrecord` reads only gzip."""
    with open(path, "rb") as file:
        plain = zlib.decompress(file.read())
    with open(f"{path}.plain", "wb") as file:
        file.write(plain)
    yield from read_examples(f"{path}.plain")
    os.remove(f"{path}.plain")


def read_zstd(read):
    """From a decompressed copy."""

    def read_copy(path):
        with open(path, "rb") as file:
            packed = file.read()
        copy = os.path.join(os.path.dirname(path), "..", "copy.tar")
        with open(copy, "wb") as file:
            file.write(pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read())
        yield from read(copy)
        os.remove(copy)

    return read_copy


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def zstd_tar(path, number):
    with webdataset.TarWriter(f"{path}.plain") as writer:
        for row in range(SAMPLES):
            writer.write({"__key__": f"{row:06}", "jpg": jpeg(), "cls": 3})
    with open(f"{path}.plain", "rb") as plain, open(path, "wb") as file:
        file.write(zstd(plain.read()))
    os.remove(f"{path}.plain")


Kind("tar zstd", each(".tar.zst", zstd_tar), read_zstd(read_tar), is_whole=True)
Kind("tfrecord zstd", each(".tfrecord.zst", compressed(zstd)), read_zstd(read_examples), is_whole=True)
Kind("tfrecord", each(".tfrecord", lambda path, number: write_examples(path)), read_examples, is_whole=True)
Kind("tfrecord gzip", each(".tfrecord.gz", compressed(gzip.compress)), read_gzip, is_whole=True)
Kind("tfrecord gzip by content", each(".tfrecord", compressed(gzip.compress)), read_gzip, is_whole=True)
Kind("tfrecord zlib", each(".tfrecord", compressed(zlib.compress)), read_zlib, is_whole=True)
Kind("tfrecord uneven", each(".tfrecord", lambda path, number: write_examples(path, 9 + 7 * number)), read_examples, is_whole=True)
Kind("tfrecord without extension", each("", lambda path, number: write_examples(f"{path}-of-00004")), read_examples, is_whole=True)


def read_records(path):
    for record in tfrecord_iterator(path):
        yield len(record)


def features():
    return {"tokens": (list(range(2000)), "int"), "weights": (noise((1, 900), "float32")[0], "float")}


Kind("tfrecord of numbers", each(".tfrecord", lambda path, number: write_examples(path, SAMPLES, features)), read_records, is_whole=True, is_decoded=True)


def write_records(path, message):
    with open(path, "wb") as file:
        for _ in range(SAMPLES):
            data = message()
            length = struct.pack("<Q", len(data))
            file.write(length + tfrecord.TFRecordWriter.masked_crc(length) + data + tfrecord.TFRecordWriter.masked_crc(data))


def read_images(path):
    for record in tfrecord_iterator(path):
        yield pixels(bytes(record))


def tensor():
    """As `tf.io.serialize_tensor` writes 200,000 numbers of type `uint8`."""
    return b"\x08\x04\x12\x06\x12\x04\x08\xc0\x9a\x0c\x22\xc0\x9a\x0c" + random.bytes(200_000)


Kind("tfrecord of jpeg", each(".tfrecord", lambda path, number: write_records(path, jpeg)), read_images, is_whole=True)
Kind("tfrecord of tensors", each(".tfrecord", lambda path, number: write_records(path, tensor)), read_records, is_whole=True, is_decoded=False)


def tfds(folder):
    """The names of TensorFlow Datasets, whose test split is the smaller one."""
    for split, count in [("train", 2), ("test", 1)]:
        for number in range(count):
            write_examples(os.path.join(folder, f"my_ds-{split}.tfrecord-{number:05}-of-{count:05}"))
    for name in ["dataset_info.json", "features.json"]:
        with open(os.path.join(folder, name), "w") as file:
            file.write("{}")


Kind("tfrecord of TFDS", tfds, read_examples, "*train*", is_whole=True, left_out=1)
