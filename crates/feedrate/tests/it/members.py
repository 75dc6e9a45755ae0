"""Writes images in containers: python members.py FOLDER. feedrate cannot decode half of them, which are WebP."""
import io
import os
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

folder = sys.argv[1]
random = np.random.default_rng(1)


def image(kind):
    file = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(file, kind)
    return file.getvalue()


for kind in ["tar", "parquet"]:
    os.makedirs(f"{folder}/{kind}/train")
for shard in range(4):
    members = [("webp", image("WEBP")) if number % 2 else ("jpg", image("JPEG")) for number in range(6)]
    with tarfile.open(f"{folder}/tar/train/img_{shard}_of_4.tar", "w") as archive:
        for number, (extension, data) in enumerate(members):
            info = tarfile.TarInfo(f"{shard}_{number}.{extension}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    values = [{"bytes": data, "path": f"{number}.jpg"} for number, (_, data) in enumerate(members)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(values, kind)}), f"{folder}/parquet/train/img_{shard}_of_4.parquet")
