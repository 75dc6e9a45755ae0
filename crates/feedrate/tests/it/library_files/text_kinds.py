"""Text, tokens and other records. JSON lines hold a sample a line, tables a sample a row."""
import csv
import gzip
import io
import json
import os
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
from kinds import FILES, SAMPLES, Kind, each, noise, random, save

ROWS = 12 * SAMPLES


def words(row):
    return " ".join(f"word{number}" for number in random.integers(0, 9999, 80))


def lines(path, open_file=open):
    with open_file(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def text_lines(path):
    with open(path, encoding="utf-8") as file:
        yield from map(len, file)


def gzip_lines(path):
    return lines(path, gzip.open)


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def zstd_lines(path):
    return map(json.loads, pa.input_stream(path, compression="zstd").read().splitlines())


def records(number=0):
    return "".join(json.dumps({"text": words(row), "meta": {"row": row}}) + "\n" for row in range(ROWS - 9 * number)).encode()


Kind("jsonl", each(".jsonl", lambda path, number: save(path, records())), lines, is_whole=True)
Kind("jsonl uneven", each(".jsonl", lambda path, number: save(path, records(number))), lines, is_whole=True)
Kind("jsonl without a last newline", each(".jsonl", lambda path, number: save(path, records()[:-1])), lines, is_whole=True)
Kind("jsonl of long lines", each(".jsonl", lambda path, number: save(path, b'{"text": "' + b"words " * 20_000 + b'"}\n' + records())), lines, is_whole=True)
Kind("json lines named json", each(".json", lambda path, number: save(path, records())), lines, is_whole=True)
Kind("ndjson", each(".ndjson", lambda path, number: save(path, records())), lines, is_whole=True)
Kind("jsonl gzip", each(".jsonl.gz", lambda path, number: save(path, gzip.compress(records()))), gzip_lines, is_whole=True)
Kind("jsonl zstd", each(".jsonl.zst", lambda path, number: save(path, zstd(records()))), zstd_lines, is_whole=True)
Kind("json of one object", each(".json", lambda path, number: save(path, json.dumps({"text": [words(row) for row in range(ROWS)]}, indent=1).encode())))
Kind("json list of objects", each(".json", lambda path, number: save(path, json.dumps([{"text": words(row)} for row in range(ROWS)]).encode())), lambda path: [None], is_whole=True, is_decoded=None)


def rows(path, header, **options):
    for _ in range(len(pd.read_csv(path, header=header, **options))):
        yield None


def with_header(path):
    return rows(path, 0)


def without_header(path):
    return rows(path, None)


def numbers(path, number):
    np.savetxt(path, noise((ROWS, 64), "float32"), delimiter=",", fmt="%.4f")


def table(path, number, **options):
    pd.DataFrame({"id": range(ROWS), "x": random.random(ROWS), "text": [words(row) for row in range(ROWS)]}).to_csv(path, index=False, **options)


def numeric_table(path, number):
    pd.DataFrame(noise((ROWS, 64)), columns=[f"pixel{column}" for column in range(64)]).to_csv(path, index=False)


def numbered_table(path, number):
    pd.DataFrame(noise((ROWS, 64))).to_csv(path, index=False)


def marked_numbers(path, number):
    pd.DataFrame(random.random((ROWS, 64))).to_csv(path, index=False, header=False, encoding="utf-8-sig")


def marked_lines(path):
    return lines(path, lambda path, mode, encoding: open(path, mode, encoding="utf-8-sig"))


def missing_numbers(path, number):
    table = pd.DataFrame(random.random((ROWS, 64)))
    table.iloc[1:, 3] = table.iloc[1:, 3].where(random.random(ROWS - 1) < 0.7)
    table.to_csv(path, index=False, header=False, na_rep="NA")


def quoted(path, number):
    pd.DataFrame({"text": [f'{words(row)}, "quoted"\nsecond line' for row in range(ROWS)], "label": 1}).to_csv(path, index=False, quoting=csv.QUOTE_ALL)


Kind("csv of numbers", each(".csv", numbers), without_header, is_whole=True)
Kind("csv with a header", each(".csv", table), with_header, is_whole=True)
Kind("csv of numbers with a header", each(".csv", numeric_table), with_header, is_whole=True)
Kind("csv with column numbers", each(".csv", numbered_table), with_header, is_whole=True)
Kind("csv of numbers with a byte order mark", each(".csv", marked_numbers), without_header, is_whole=True)
Kind("jsonl with a byte order mark", each(".jsonl", lambda path, number: save(path, "\ufeff".encode() + records())), marked_lines, is_whole=True)
Kind("csv of numbers and NA", each(".csv", missing_numbers), without_header, is_whole=True, is_decoded=False)
Kind("csv with quoted lines", each(".csv", quoted), with_header, is_whole=True)
Kind("csv with quotes inside fields", each(".csv", lambda path, number: save(path, b"id,size,name\n" + b"".join(b'%d,%d" nail,%s\n' % (row, row % 9, words(row).encode()) for row in range(ROWS)))), with_header, is_whole=True)
Kind("csv crlf", each(".csv", lambda path, number: table(path, number, lineterminator="\r\n")), with_header, is_whole=True)
Kind("csv gzip", each(".csv.gz", table), with_header, is_whole=True)
Kind("tsv", each(".tsv", lambda path, number: table(path, number, sep="\t")), lambda path: rows(path, 0, sep="\t"), is_whole=True)
Kind("txt", each(".txt", lambda path, number: save(path, "\n".join(words(row) for row in range(ROWS)).encode())), text_lines, is_whole=True)
Kind("txt of one long line", each(".txt", lambda path, number: save(path, "".join(words(row) for row in range(ROWS)).encode())), text_lines, is_whole=True)
Kind("xml", each(".xml", lambda path, number: save(path, f"<page>{words(3) * 50}</page>".encode())))
Kind("wav", each(".wav", lambda path, number: save(path, b"RIFF\0\0\0\0WAVEfmt " + random.bytes(90_000))))
Kind("nifti gzip", each(".nii.gz", lambda path, number: save(path, gzip.compress(random.bytes(90_000)))))
Kind("pickle", each(".pt", lambda path, number: save(path, b"PK\3\4" + random.bytes(90_000))))


def megatron(folder):
    """Documents of tokens, by the layout of Megatron-LM's `indexed_dataset.py`: lengths and offsets in the index."""
    for number in range(FILES):
        lengths = random.integers(200, 900, ROWS)
        path = os.path.join(folder, f"corpus_{number}_text_document")
        save(f"{path}.bin", random.integers(0, 50_000, lengths.sum(), dtype=np.uint16).tobytes())
        offsets = np.concatenate([[0], 2 * lengths.cumsum()[:-1]])
        header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, ROWS, ROWS + 1)
        index = lengths.astype("<i4").tobytes() + offsets.astype("<i8").tobytes() + np.arange(ROWS + 1).astype("<i8").tobytes()
        save(f"{path}.idx", header + index)


def read_megatron(path):
    """Yields the documents; reads the index too."""
    with open(path.replace(".bin", ".idx"), "rb") as file:
        magic, version, dtype, count, _ = struct.unpack("<9sQBQQ", file.read(34))
        lengths = np.frombuffer(file.read(4 * count), "<i4")
    assert (magic, version, dtype) == (b"MMIDIDX\0\0", 1, 8)
    with open(path, "rb") as file:
        for length in lengths:
            assert len(file.read(2 * int(length))) == 2 * length
            yield int(length)


def one_index_alone(folder):
    megatron(folder)
    os.remove(os.path.join(folder, "corpus_1_text_document.bin"))


def one_other_file(folder):
    megatron(folder)
    save(os.path.join(folder, "other.bin"), random.bytes(5000))


Kind("megatron", megatron, read_megatron, "*.bin", is_whole=True)
Kind("megatron one index alone", one_index_alone, read_megatron, "*.bin", is_whole=True, left_out=1)
Kind("megatron one other file", one_other_file, read_megatron, "corpus*.bin", is_whole=True, left_out=1)


def mds(compress=None):
    """Shards by the layout of MosaicML's MDSWriter: the number of samples, their offsets, the columns as JSON, samples."""
    columns = {"image": "bytes", "label": "int"}
    sizes = [None, 8]

    def write(folder):
        shards = []
        for shard in range(FILES):
            config = {"column_encodings": list(columns.values()), "column_names": list(columns), "column_sizes": sizes, "compression": compress and "zstd", "format": "mds", "hashes": [], "size_limit": 1 << 26}
            samples = []
            for row in range(30 - 3 * shard):
                image = random.bytes(2000 + row) + bytes(2000)
                samples.append(struct.pack("<I", len(image)) + image + struct.pack("<q", row))
            header = json.dumps({key: config[key] for key in ["column_encodings", "column_names", "column_sizes", "format", "hashes", "size_limit", "compression"]}, sort_keys=True).encode()
            start = 4 + 4 * (len(samples) + 1) + len(header)
            offsets = start + np.concatenate([[0], np.cumsum([len(sample) for sample in samples])])
            data = struct.pack("<I", len(samples)) + offsets.astype("<u4").tobytes() + header + b"".join(samples)
            name = f"shard.{shard:05}.mds"
            files = {"raw_data": {"basename": name, "bytes": len(data), "hashes": {}}, "zip_data": None}
            if compress:
                packed = compress(data)
                files["zip_data"] = {"basename": f"{name}.zstd", "bytes": len(packed), "hashes": {}}
                save(os.path.join(folder, f"{name}.zstd"), packed)
            else:
                save(os.path.join(folder, name), data)
            shards.append(config | files | {"samples": len(samples), "version": 2})
        save(os.path.join(folder, "index.json"), json.dumps({"shards": shards, "version": 2}, sort_keys=True).encode())

    return write


def read_mds(path):
    """As MDSReader does: the offsets of a sample, then the sample, from a decompressed copy."""
    with open(os.path.join(os.path.dirname(path), "index.json")) as file:
        shards = json.load(file)["shards"]
    packed = path.endswith(".zstd")
    name = os.path.basename(path).removesuffix(".zstd")
    shard = next(shard for shard in shards if shard["raw_data"]["basename"] == name)
    if packed:
        with open(path, "rb") as file:
            whole = pa.decompress(file.read(), shard["raw_data"]["bytes"], "zstd", asbytes=True)
    for number in range(shard["samples"]):
        with io.BytesIO(whole) if packed else open(path, "rb") as file:
            file.seek(4 + 4 * number)
            start, end = struct.unpack("<II", file.read(8))
            file.seek(start)
            yield file.read(end - start)


Kind("mds", mds(), read_mds, "shard*", is_whole=True)
Kind("mds zstd", mds(zstd), read_mds, "shard*", is_whole=True, left_out=0)


def zarr(folder):
    """A Zarr array of version 2: a file for each chunk, beside hidden files."""
    for chunk in range(24):
        save(os.path.join(folder, "images", f"{chunk // 4}.{chunk % 4}.0"), random.bytes(20_000))
    for name in [".zarray", ".zattrs"]:
        save(os.path.join(folder, "images", name), b"{}")


Kind("zarr", zarr, None, "images/*", left_out=2)
