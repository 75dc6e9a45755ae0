"""Lets DLIO generate datasets for feedrate to train on: python dlio.py VERSION WORKLOAD..., in the current folder.

`2.0.0` runs the generators of the installed package. `newer` makes the calls of later generators, which no package contains.
The generators need only a part of DLIO's dependencies. Stubs here replace the rest, which is not installed.
"""
import os
import struct
import sys
import types
import unittest.mock

import crc32c
import h5py
import numpy as np
import pandas as pd
import yaml
from tfrecord import example_pb2
from tfrecord.tools.tfrecord2idx import create_index


class Untraced:
    """Stub of dftracer's decorators. It traces nothing."""

    def __init__(self, *arguments, **options):
        pass

    def log(self, function):
        return function

    log_init = log_static = log

    def iter(self, items):
        return items


class RecordWriter:
    """Stub of TensorFlow's TFRecordWriter, which the `tfrecord` package does not contain."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, record):
        length = struct.pack("<Q", len(record))
        self.file.write(length + self.checksum(length) + record + self.checksum(record))

    def checksum(self, data):
        crc = crc32c.crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def install_stub(name, **members):
    sys.modules[name] = types.SimpleNamespace(**members)


install_stub("dftracer")
install_stub("dftracer.logger", dftracer=None, dft_fn=Untraced, DFTRACER_ENABLE=False)
install_stub("tensorflow", io=types.SimpleNamespace(TFRecordWriter=RecordWriter), train=example_pb2)
communicator = types.SimpleNamespace(rank=0, size=1, barrier=lambda: None, Barrier=lambda: None)
communicator.Split_type = lambda kind: communicator
install_stub("mpi4py", MPI=types.SimpleNamespace(COMM_WORLD=communicator, COMM_TYPE_SHARED=0, Is_initialized=lambda: True))
sys.modules["hydra"] = sys.modules["psutil"] = unittest.mock.MagicMock()

from dlio_benchmark.data_generator import tf_generator
from dlio_benchmark.data_generator.data_generator import DataGenerator
from dlio_benchmark.data_generator.generator_factory import GeneratorFactory
from dlio_benchmark.utils.config import ConfigArguments, LoadConfig
from dlio_benchmark.utils.utility import DLIOMPI

# DLIO calls DALI's script; `create_index` writes the same index.
tf_generator.call = lambda command: create_index(*command[1:])


class Newer(DataGenerator):
    """Generates files with the names and sizes of 2.0.0 in the layout of later versions."""

    def __init__(self, dataset):
        super().__init__()
        self.dataset = dataset
        self.dtype = np.dtype(dataset.get("record_element_type", "uint8"))

    def generate(self):
        super().generate()
        np.random.seed(10)
        sides = self.get_dimension(self.total_files_to_generate)
        for i, path in enumerate(self._file_list):
            dims = self.dataset.get("record_dims") or [int(side) for side in sides[2 * i : 2 * i + 2]]
            getattr(self, str(self.format))(path, dims)

    def array(self, *dims):
        return np.random.randint(100, size=dims).astype(self.dtype)

    def npz(self, path, dims):
        np.savez(path, x=self.array(*dims, self.num_samples), y=[0] * self.num_samples)

    def npy(self, path, dims):
        np.save(path, self.array(*dims, self.num_samples))

    def csv(self, path, dims):
        record = self.array(np.prod(dims))
        compression = self.dataset.get("compression")
        pd.DataFrame([record] * self.num_samples).to_csv(path, compression=compression, index=False, header=False)

    def hdf5(self, path, dims):
        options = self.dataset.get("hdf5", {})
        datasets = options.get("num_dset_per_record", 1)
        compression = self.dataset.get("compression")
        first = dims[0] // datasets
        x = self.array(self.num_samples, *([] if first == 1 else [first]), *dims[1:])
        with h5py.File(path, "w", libver="latest") as file:
            for i in range(datasets):
                file.create_dataset(
                    f"records_{i}",
                    data=x,
                    chunks=tuple(options["chunk_dims"]) if "chunk_dims" in options else None,
                    compression=compression,
                    compression_opts=4 if compression else None,
                )
            file.create_dataset("labels", data=[0] * self.num_samples)

    def tfrecord(self, path, dims):
        feature = lambda **values: example_pb2.Feature(**values)
        with RecordWriter(path) as writer:
            for _ in range(self.num_samples):
                x = self.array(*dims).tobytes()
                image = feature(bytes_list=example_pb2.BytesList(value=[x]))
                size = feature(int64_list=example_pb2.Int64List(value=[len(x)]))
                features = example_pb2.Features(feature={"image": image, "size": size})
                writer.write(example_pb2.Example(features=features).SerializeToString())
        split = "valid" if "valid" in path else "train"
        folder = os.path.join(self.data_dir, "index", split)
        os.makedirs(folder, exist_ok=True)
        create_index(path, os.path.join(folder, os.path.basename(path) + ".idx"))

    def indexed_binary(self, path, dims):
        x = self.array(self.num_samples, *dims)
        x.tofile(path)
        (np.arange(self.num_samples, dtype=np.uint64) * x[0].nbytes).tofile(path + ".off.idx")
        np.full(self.num_samples, x[0].nbytes, dtype=np.uint64).tofile(path + ".sz.idx")

    mmap_indexed_binary = indexed_binary


DLIOMPI.get_instance().initialize()
version, *workloads = sys.argv[1:]
for path in workloads:
    workload = yaml.safe_load(open(path))
    ConfigArguments.reset()
    arguments = ConfigArguments.get_instance()
    # The keys have the names of 2.0.0.
    options = {key.replace("length_bytes", "length"): value for key, value in workload["dataset"].items()}
    LoadConfig(arguments, {**workload, "dataset": options})
    arguments.framework = None
    uses_new_layout = version == "newer" and hasattr(Newer, str(arguments.format))
    generator = Newer(options) if uses_new_layout else GeneratorFactory.get_generator(arguments.format)
    generator.generate()
