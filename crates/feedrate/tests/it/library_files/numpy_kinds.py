"""Files of numpy. A file is a sample; an epoch reads each array with at least a tenth of the largest one's bytes."""
import io
import zipfile

import numpy as np
from kinds import Kind, each, noise, save

SHAPE = (48, 64, 32)


def read_npy(source):
    yield np.load(source, allow_pickle=True)


def read_npz(*names):
    def read(source):
        with np.load(source, allow_pickle=True) as file:
            values = [file[name] for name in names]
            yield values[0] if len(values) == 1 else values

    return read


def npy(name, data, is_decoded=True, version=None):
    def write(path, number):
        with open(path, "wb") as file:
            np.lib.format.write_array(file, data(), version)

    Kind(f"npy {name}", each(".npy", write), read_npy, is_decoded=is_decoded)


npy("C", lambda: noise(SHAPE))
npy("float32", lambda: noise(SHAPE, "float32"))
npy("float16", lambda: noise(SHAPE, "float16"))
npy("Fortran", lambda: np.asfortranarray(noise(SHAPE, "float32")))
npy("big-endian", lambda: noise(SHAPE, ">f4"))
npy("big-endian Fortran", lambda: np.asfortranarray(noise(SHAPE, ">i2")))
npy("bool", lambda: noise(SHAPE) > 99)
npy("v2", lambda: noise(SHAPE, "int16"), version=(2, 0))
npy("v3", lambda: noise(SHAPE, "int16"), version=(3, 0))
npy("flat tokens", lambda: noise((100000,), "uint16"))
npy("one sample of many", lambda: noise((1, 200, 300)))
npy("nine dimensions", lambda: noise((2, 3, 2, 3, 2, 3, 8, 9, 10)), None)
npy("complex", lambda: noise(SHAPE, "complex64"), None)
npy("unicode", lambda: np.array(["word " * 20] * 500), None)
npy("bytes", lambda: np.array([b"word " * 40] * 500), None)
npy("structured", lambda: np.zeros(9000, dtype=[("x", "f4"), ("label", "i8")]), None)
npy("structured utf-8 v3", lambda: np.zeros(9000, dtype=[("größe", "f4"), ("label", "i8")]), None, (3, 0))
npy("datetime", lambda: np.arange(9000).astype("M8[s]"), None)
npy("longdouble", lambda: noise((90, 90), "longdouble"), None)
npy("objects", lambda: np.array([{"words": "word " * 20_000}], dtype=object), None)
npy("0-d", lambda: np.array(7.0), True)
npy("empty", lambda: np.zeros((0, 7)), None)
npy("empty along the last axis", lambda: np.zeros((7, 0)), None)


def npz(name, arrays, *names, is_decoded=True, write=np.savez):
    Kind(f"npz {name}", each(".npz", lambda path, number: write(path, **arrays())), read_npz(*names), is_decoded=is_decoded)


def labelled():
    return {"image": noise(SHAPE), "label": np.int64(3)}


def masked():
    return {"image": noise(SHAPE), "mask": noise(SHAPE)}


npz("stored", labelled, "image")
npz("deflated", labelled, "image", write=np.savez_compressed)
npz("images and masks", masked, "image", "mask")
npz("images and masks deflated", masked, "image", "mask", write=np.savez_compressed)
npz("label before image", lambda: {"a_label": np.int64(3), "image": noise(SHAPE)}, "image")
npz("several arrays", lambda: {f"arr_{number}": noise((64, 64, 32)) for number in range(4)}, *[f"arr_{number}" for number in range(4)])
npz("volume and segmentation", lambda: {"data": noise(SHAPE, "float32"), "seg": noise(SHAPE, "int8")}, "data", "seg", write=np.savez_compressed)
npz("Fortran", lambda: {"image": np.asfortranarray(noise(SHAPE, "float32"))}, "image")
npz("big-endian", lambda: {"image": noise(SHAPE, ">f4")}, "image")
npz("bool deflated", lambda: {"image": noise(SHAPE) > 99, "label": np.int64(3)}, "image", write=np.savez_compressed)
npz("complex", lambda: {"image": noise(SHAPE, "complex64")}, "image", is_decoded=None)
npz("objects beside an image", lambda: {"image": noise(SHAPE), "meta": np.array([{"age": 7}], dtype=object)}, "image")


def sparse():
    """A sparse matrix, as scipy.sparse.save_npz stores it."""
    return {
        "indices": noise((40000,), "int32"),
        "indptr": noise((2000,), "int32"),
        "format": np.array(b"csr"),
        "shape": np.array([1999, 100]),
        "data": noise((40000,), "float32"),
    }


npz("sparse", sparse, "indices", "data")


def other_methods(path, number):
    file = io.BytesIO()
    np.save(file, noise(SHAPE))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("image.npy", file.getvalue())


Kind("npz bzip2", each(".npz", other_methods), read_npz("image"), is_decoded=False)


def with_other_members(path, number):
    np.savez(path, image=noise(SHAPE))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("info.json", b"{}")


Kind("npz beside a json", each(".npz", with_other_members), read_npz("image"))
Kind("raw", each(".raw", lambda path, number: noise(SHAPE).tofile(path)))
Kind("raw tokens", each(".bin", lambda path, number: noise((100000,), "uint16").tofile(path)))
Kind("raw bytes named jpeg", each(".jpeg", lambda path, number: save(path, noise((1, 150_000)).tobytes())))
Kind("raw bytes named png", each(".png", lambda path, number: save(path, noise((1, 150_000)).tobytes())))
Kind("raw bytes of unequal length", each(".dcm", lambda path, number: save(path, noise((1, 150_000 + 999 * number)).tobytes())))
