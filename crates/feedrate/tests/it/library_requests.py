"""Reads a file with the usual library of its format: python library_requests.py FILE."""
import sys

import numpy as np

path = sys.argv[1]
if path.endswith(".npz"):
    np.load(path)["x"]
elif path.endswith(".npy"):
    np.load(path)
elif path.endswith(".hdf5"):
    import h5py

    with h5py.File(path) as file:
        file["records_0"][0]
else:
    from PIL import Image

    np.asarray(Image.open(path))
