"""Typical training loops, for jobs.py. Each loop runs in a Python that has its libraries.

`job_loops.py NAME FOLDER` trains on the files that `--make` generated in FOLDER; with `--watch RESULTS`, `feedrate.watch` watches the loop.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

BATCH = 8
WORKERS = 2
EPOCHS = 2
STEP_SECONDS = 0.05
ARRAYS = 320
PICTURES = 400
SHARDS = 8


def pictures():
    from folder import picture

    random = np.random.default_rng(1)
    return (picture(random, (250, 500)) for _ in range(PICTURES))


def make_torch_npz(folder):
    random = np.random.default_rng(1)
    for number in range(ARRAYS):
        np.savez(folder / f"scan_{number:04}.npz", volume=random.random((32, 64, 64), dtype=np.float32), label=np.int64(number % 7))


def torch_npz(folder):
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Scans(Dataset):
        def __init__(self):
            self.paths = sorted(folder.glob("*.npz"))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            with np.load(self.paths[index]) as scan:
                return torch.from_numpy(scan["volume"]), int(scan["label"])

    return DataLoader(Scans(), batch_size=BATCH, shuffle=True, num_workers=WORKERS)


def make_torch_jpeg(folder):
    for number, data in enumerate(pictures()):
        path = folder / f"n{number % 10:03}" / f"{number}.JPEG"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def torch_jpeg(folder):
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    class Photos(Dataset):
        def __init__(self):
            self.paths = sorted(folder.glob("*/*.JPEG"))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            with open(self.paths[index], "rb") as file:
                image = Image.open(file).convert("RGB").resize((224, 224))
            return torch.from_numpy(np.array(image)), int(self.paths[index].parent.name[1:])

    return DataLoader(Photos(), batch_size=BATCH, shuffle=True, num_workers=WORKERS)


def make_tf_data(folder):
    import tensorflow as tf

    data, each = list(pictures()), PICTURES // SHARDS
    for shard in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"train-{shard:05}-of-{SHARDS:05}.tfrecord")) as writer:
            for image in data[shard * each : (shard + 1) * each]:
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[shard])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def tf_data(folder):
    import tensorflow as tf

    def parse(record):
        keys = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        example = tf.io.parse_single_example(record, keys)
        return tf.image.resize(tf.io.decode_jpeg(example["image"], channels=3), (224, 224)), example["label"]

    shards = tf.data.Dataset.list_files(str(folder / "*.tfrecord"), shuffle=True)
    records = shards.interleave(tf.data.TFRecordDataset, cycle_length=WORKERS, num_parallel_calls=WORKERS)
    samples = records.shuffle(64).map(parse, num_parallel_calls=WORKERS)
    return samples.batch(BATCH, drop_remainder=True).prefetch(WORKERS)


def make_webdataset(folder):
    import webdataset

    data, each = list(pictures()), PICTURES // SHARDS
    for shard in range(SHARDS):
        with webdataset.TarWriter(str(folder / f"train-{shard:06}.tar")) as writer:
            for number, image in enumerate(data[shard * each : (shard + 1) * each]):
                writer.write({"__key__": f"{shard:03}-{number:06}", "jpg": image, "cls": shard})


def webdataset(folder):
    import webdataset

    def resize(sample):
        return np.array(sample[0].convert("RGB").resize((224, 224))), sample[1]

    shards = [str(path) for path in sorted(folder.glob("*.tar"))]
    samples = webdataset.WebDataset(shards, shardshuffle=SHARDS).shuffle(64).decode("pil").to_tuple("jpg", "cls").map(resize)
    return webdataset.WebLoader(samples.batched(BATCH), batch_size=None, num_workers=WORKERS)


LOOPS = {"torch_npz": torch_npz, "torch_jpeg": torch_jpeg, "tf_data": tf_data, "webdataset": webdataset}


def train(loader):
    for _ in loader:
        time.sleep(STEP_SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=LOOPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--watch", type=Path)
    arguments = parser.parse_args()
    if arguments.make:
        arguments.folder.mkdir(parents=True)
        return globals()[f"make_{arguments.name}"](arguments.folder)
    loader = LOOPS[arguments.name](arguments.folder)
    if arguments.watch:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python/src"))
        import feedrate

        loader = feedrate.watch(loader, name=arguments.name, results=arguments.watch, data=arguments.folder, batch=BATCH)
    for _ in range(EPOCHS):
        train(loader)


if __name__ == "__main__":
    main()
