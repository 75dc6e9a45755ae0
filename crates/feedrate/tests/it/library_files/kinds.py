"""The table of kinds, and what the libraries read in one epoch of each: every sample once, in the order of the files."""
import glob
import io
import os

import numpy as np

# Files of a kind, and samples of a file with several.
FILES = int(os.environ.get("LIBRARY_FILES", 4))
SAMPLES = int(os.environ.get("LIBRARY_SAMPLES", 16))
ELEMENTS = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split()
random = np.random.default_rng(1)
kinds = {}


class Kind:
    """A folder of files.

    write: writes the files below a folder.
    read: yields the samples of an opened file, as arrays or as values of any other type. If missing, a file is a sample.
    pattern: the files to train on.
    is_whole: whether the library reads whole files, which it opens by path.
    is_decoded: whether feedrate decodes the samples, or only reads their bytes; `None` if only some, or if nothing
        needs decoding.
    left_out: number of files that are broken, or not to train on; `None` if that is not checked.
    unread: a part of the doubt that bytes are left unread; `False` for no such doubt. `None` if only doubts that values are
        stored elsewhere are wrong.
    """

    def __init__(self, name, write, read=None, pattern="*", is_whole=False, is_decoded=True, left_out=None, unread=None):
        assert name not in kinds, name
        self.name, self.write, self.read, self.pattern = name, write, read, pattern
        self.is_whole = is_whole or read is None
        self.is_decoded, self.left_out, self.unread = is_decoded if read else False, left_out, unread
        kinds[name] = self

    def expect(self, folder):
        """What the library reads. Dimensions are `None` where samples are not arrays, or differ in shape.

        Libraries read some bytes several times, such as the end of a parquet file; `bytes_max` counts each time.
        """
        paths = sorted(glob.glob(os.path.join(folder, self.pattern), recursive=True))
        paths = [path for path in paths if os.path.isfile(path)]
        assert paths, f"{self.name}: no file is {self.pattern}"
        files, samples, read_bytes, bytes_max, shapes, elements = 0, 0, 0, 0, set(), set()
        for path in paths:
            file = CountedFile(path)
            source = path if self.is_whole else file
            samples_before = samples
            for sample in self.read(source) if self.read else [None]:
                samples += 1
                is_array = isinstance(sample, np.ndarray)
                shapes.add(sample.shape if is_array else None)
                elements.add(sample.dtype.newbyteorder("=").name if is_array else None)
            files += samples > samples_before
            read_bytes += os.path.getsize(path) if self.is_whole else file.bytes_read()
            bytes_max += os.path.getsize(path) if self.is_whole else sum(end - start for start, end in file.ranges)
        shape = shapes.pop() if len(shapes) == 1 else None
        element = elements.pop() if len(elements) == 1 else None
        return {
            "files": files,
            "samples": samples,
            "dims": shape,
            "element": element if element in ELEMENTS else None,
            "bytes": read_bytes,
            "bytes_max": max(read_bytes, bytes_max),
            "is_decoded": self.is_decoded,
            "left_out": self.left_out,
            "unread": self.unread,
        }


class CountedFile(io.RawIOBase):
    """A file that notes which bytes are read."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)
        self.ranges = []

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        return self.file.seek(offset, whence)

    def tell(self):
        return self.file.tell()

    def readinto(self, buffer):
        start = self.file.tell()
        self.ranges.append((start, start + self.file.readinto(buffer)))
        return self.ranges[-1][1] - start

    def bytes_read(self):
        """Number of bytes that were read at least once."""
        count, done = 0, 0
        for start, end in sorted(self.ranges):
            count += max(end - max(start, done), 0)
            done = max(end, done)
        return count


def each(extension, write, files=FILES):
    """Writes `files` files by `write(path, number)`."""

    def write_all(folder):
        for number in range(files):
            write(os.path.join(folder, f"part {number}{extension}"), number)

    return write_all


def noise(shape, dtype="uint8"):
    """Random values in the first half of each sample, and a constant in the rest, so that compression halves them."""
    array = random.integers(0, 256 if dtype == "uint8" else 100, shape).astype(dtype)
    array.reshape(shape[0], -1)[:, array[0].size // 2 :] = 7
    return array


def save(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
