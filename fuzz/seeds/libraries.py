"""Collects the small files that the libraries of the formats write for the tests: python libraries.py FOLDER."""
import json
import pathlib
import subprocess
import sys
import tempfile

MARK = b"\n=part=\n"
BYTES_MAX = 8 << 10
out = pathlib.Path(sys.argv[1])
scripts = pathlib.Path(__file__).parent.parent.parent / "crates/data/tests/interop"

for script in sorted(scripts.glob("write_*.py")):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, script, folder], check=True, stdout=subprocess.DEVNULL)
        for case in json.loads(pathlib.Path(folder, "cases.json").read_text()):
            path = pathlib.Path(folder, case["path"])
            data = path.read_bytes() if path.exists() else b""
            if case["format"] == "webdataset":
                # Tar files are padded to 20 blocks; two empty blocks are enough to end them.
                data = data.rstrip(b"\0") + bytes(1024)
                data += bytes(-len(data) % 512)
            if "plan" in case:
                plan = case["plan"]
                words = [plan["dtype"], case["samples"] or 1, *plan["dims"]]
                data += MARK + " ".join(map(str, words)).encode()
            if 0 < len(data) <= BYTES_MAX:
                folder_of_format = out / case["format"]
                folder_of_format.mkdir(parents=True, exist_ok=True)
                (folder_of_format / f"library_{path.name}").write_bytes(data)
