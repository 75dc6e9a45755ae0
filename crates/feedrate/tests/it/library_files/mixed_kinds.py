"""Folders in which one file differs from the others. A sound file is read; a broken one is left out and named."""
import os

import h5py
import hdf5plugin
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tarfile
from archive_kinds import read_tar, write_examples, read_examples
from arrow_kinds import ROWS, blobs, read_parquet
from hdf5_kinds import CHUNK, SHAPE, read as read_hdf5
from image_data import encode, image, jpeg
from image_kinds import read as read_image
from kinds import Kind, noise, save
from numpy_kinds import read_npy, read_npz
from text_kinds import lines
import webdataset

FILES = 8


def mixed(name, extension, write, odd, read, odd_number=3, is_whole=False, is_decoded=True, is_broken=False):
    def write_all(folder):
        for number in range(FILES):
            path = os.path.join(folder, f"part {number}{extension}")
            is_odd = number == odd_number
            if is_odd and isinstance(odd, bytes):
                save(path, odd)
            else:
                (odd if is_odd else write)(path)
            if is_odd and is_broken:
                os.rename(path, os.path.join(folder, f"odd{extension}"))

    pattern = f"part*{extension}" if is_broken else "*"
    Kind(f"mixed {name}", write_all, read, pattern, is_whole, is_decoded, left_out=1 if is_broken else None)


def hdf5(name="images", **options):
    def write(path):
        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=noise(SHAPE), chunks=CHUNK, **options)

    return write


def truncated(write, share=0.5):
    def write_part(path):
        write(path)
        os.truncate(path, int(os.path.getsize(path) * share))

    return write_part


mixed("hdf5 one lzf", ".h5", hdf5(compression="gzip"), hdf5(compression="lzf"), read_hdf5("images"), is_decoded=None)
mixed("hdf5 first lzf", ".h5", hdf5(compression="gzip"), hdf5(compression="lzf"), read_hdf5("images"), 0, is_decoded=None)
mixed("hdf5 one plain", ".h5", hdf5(compression="gzip"), hdf5(), read_hdf5("images"))
mixed("hdf5 one truncated", ".h5", hdf5(), truncated(hdf5()), read_hdf5("images"), is_broken=True)
mixed("hdf5 one text", ".h5", hdf5(), b"words " * 900, read_hdf5("images"), is_broken=True)


def npy(dtype="float32", order="C"):
    return lambda path: np.save(path, np.array(noise((48, 64, 32), dtype), order=order))


mixed("npy one Fortran", ".npy", npy(), npy(order="F"), read_npy)
mixed("npy one complex", ".npy", npy(), npy("complex64"), read_npy, is_decoded=None)
mixed("npy first complex", ".npy", npy(), npy("complex64"), read_npy, 0, is_decoded=None)
mixed("npy one of another type", ".npy", npy(), npy("int16"), read_npy)
mixed("npy one truncated", ".npy", npy(), truncated(npy()), read_npy, is_broken=True)
mixed("npy one empty", ".npy", npy(), lambda path: np.save(path, np.zeros((0, 3), "float32")), read_npy)
mixed("npz one deflated", ".npz", lambda path: np.savez(path, x=noise((48, 64, 32))), lambda path: np.savez_compressed(path, x=noise((48, 64, 32))), read_npz("x"))
mixed("npz one truncated", ".npz", lambda path: np.savez(path, x=noise((48, 64, 32))), truncated(lambda path: np.savez(path, x=noise((48, 64, 32)))), read_npz("x"), is_broken=True)


def damaged(write, position, content=b"\xff" * 64):
    def write_damaged(path):
        write(path)
        with open(path, "r+b") as file:
            file.seek(position)
            file.write(content)

    return write_damaged


def read_arrays(path):
    """All arrays of an archive are one sample, also if they are damaged."""
    yield path


def arrays(*names):
    return lambda path: np.savez(path, **{name: noise((48, 64, 32)) for name in names})


mixed("npz one damaged", ".npz", arrays("x"), damaged(arrays("x"), 30_000), read_arrays, is_whole=True, is_decoded=None)
mixed("npz one without an array", ".npz", arrays("image", "mask"), arrays("image"), read_arrays, is_whole=True, is_decoded=None)
mixed("npz one of other arrays", ".npz", arrays("image", "mask"), arrays("data"), read_arrays, is_whole=True, is_decoded=None)


def parquet(**options):
    return lambda path: pq.write_table(pa.table({"image": pa.array(blobs(), pa.binary())}), path, row_group_size=16, **options)


mixed("parquet one brotli", ".parquet", parquet(), parquet(compression="brotli"), read_parquet, is_decoded=None)
mixed("parquet first brotli", ".parquet", parquet(), parquet(compression="brotli"), read_parquet, 0, is_decoded=None)
mixed("parquet one with a column more", ".parquet", parquet(), lambda path: pq.write_table(pa.table({"image": pa.array(blobs(), pa.binary()), "caption": ["words"] * ROWS}), path, row_group_size=16), read_parquet)
mixed("parquet one truncated", ".parquet", parquet(), truncated(parquet()), read_parquet, is_broken=True)


def read_rows(source):
    """Reads what `read_parquet` reads of an undamaged file: the end, then all bytes."""
    source.seek(-(64 << 10), os.SEEK_END)
    source.read()
    source.seek(0)
    source.read()
    yield from range(ROWS)


mixed("parquet one damaged", ".parquet", parquet(), damaged(parquet(), 4), read_rows, is_decoded=None)


def tar(path):
    with webdataset.TarWriter(path) as writer:
        for number in range(16):
            writer.write({"__key__": f"{number:06}", "jpg": jpeg(), "cls": 3})


def tar_of_webp(path):
    with webdataset.TarWriter(path) as writer:
        for number in range(16):
            writer.write({"__key__": f"{number:06}", "webp": encode(image("RGB", (40, 30)), "WEBP")})


mixed("tar one webp", ".tar", tar, tar_of_webp, read_tar, is_whole=True, is_decoded=None)
mixed("tar one of random bytes", ".tar", tar, b"\xa5" * 20_000, read_tar, is_whole=True, is_broken=True)
mixed("tfrecord one of random bytes", ".tfrecord", write_examples, b"\xa5" * 20_000, read_examples, is_whole=True, is_broken=True)


def picture(mode, kind, **options):
    return lambda path: save(path, encode(image(mode), kind, **options))


def read_path(path):
    """A picture that cannot be decoded is read too."""
    yield path


mixed("jpeg one cmyk", ".jpg", picture("RGB", "JPEG"), picture("CMYK", "JPEG"), read_image, is_whole=True)
mixed("jpeg one webp", ".jpg", picture("RGB", "JPEG"), picture("RGB", "WEBP"), read_image, is_whole=True, is_decoded=None)
mixed("jpeg one png", ".jpg", picture("RGB", "JPEG"), picture("RGB", "PNG"), read_image, is_whole=True, is_decoded=None)
mixed("jpeg one of random bytes", ".jpg", picture("RGB", "JPEG"), noise((1, 9000)).tobytes(), read_path, is_whole=True, is_decoded=None)
mixed("jpeg one truncated", ".jpg", picture("RGB", "JPEG"), truncated(picture("RGB", "JPEG")), read_path, is_whole=True, is_decoded=None)
mixed("png one grey with alpha", ".png", picture("RGB", "PNG"), picture("LA", "PNG"), read_image, is_whole=True)
mixed("png one 16 bit", ".png", picture("RGB", "PNG"), picture("I;16", "PNG"), read_image, is_whole=True)
mixed("raw one empty", ".raw", lambda path: save(path, noise((1, 90_000)).tobytes()), b"", None, is_broken=True)
mixed("jsonl one of random bytes", ".jsonl", lambda path: save(path, b'{"text": "words"}\n' * 960), noise((1, 9000)).tobytes(), lines, is_whole=True, is_broken=True)
