"""Writes HDF5 files as DLIO does, or reads a file with the usual library of its format: python library_requests.py write FOLDER | read FILE."""
import os
import sys

import numpy as np

task, path = sys.argv[1:]
if task == "write":
    import h5py

    os.makedirs(path)
    for number in range(4):
        with h5py.File(f"{path}/{number}.hdf5", "w") as file:
            file.create_dataset("records", data=np.zeros((1, 1000, 1000), np.uint8))
            file.create_dataset("labels", data=np.zeros(1, np.int64))
elif path.endswith(".npz"):
    np.load(path)["x"]
elif path.endswith(".npy"):
    np.load(path)
elif path.endswith(".hdf5"):
    import h5py

    with h5py.File(path) as file:
        file["records"][0]
else:
    from PIL import Image

    np.asarray(Image.open(path))
