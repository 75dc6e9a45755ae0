#!/usr/bin/env python3
"""Reads the same objects from a local SeaweedFS with feedrate and with other clients of S3, in turn: GETs per second, GB/s, and CPU seconds of the
client per GB.

Each client reads whole objects with 8 workers. Prints the medians over rounds and the ratios to the targets, and exits 1 if one is missed. Needs
`cargo xtask setup --bench`.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import FEEDRATE, ROOT, WORKLOADS, Failed, run_child

WORKERS = 8
BUCKET = "bench"
PEERS = ["s3dlio", "s3torchconnector", "obstore", "boto3"]
# Size of an object, and their number.
SETS = {"64 KiB": (64 << 10, 4000), "128 KiB": (128 << 10, 2000), "8 MiB": (8 << 20, 48)}
# Largest CPU time per byte relative to each of these clients.
CPU_MAX = {"128 KiB": 0.6, "8 MiB": 0.9}
CPU_PEERS = ["s3dlio", "s3torchconnector"]
# Sizes at which no client may be faster.
RATE_SETS = ["64 KiB", "8 MiB"]


@contextlib.contextmanager
def seaweedfs(python):
    """Runs SeaweedFS with an empty bucket, and yields nothing; its address is in the environment."""
    names = ["s3", "s3.grpc", "master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc"]
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    ports = {name: server.getsockname()[1] for name, server in zip(names, sockets)}
    for server in sockets:
        server.close()
    flags = [f"-{name.split('.')[0]}.port{'.grpc' if '.' in name else ''}={port}" for name, port in ports.items()]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        keys = {"accessKey": "key", "secretKey": "secret-of-the-bench"}
        identity = {"name": "bench", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
        Path(folder, "identities.json").write_text(json.dumps({"identities": [identity]}))
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3']}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": keys["accessKey"],
            "AWS_SECRET_ACCESS_KEY": keys["secretKey"],
        }
        program = str(Path(python).with_name("weed"))
        command = [program, "server", "-filer", "-s3", "-dir=.", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.config=identities.json", *flags]
        command += ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=16", "-master.volumeSizeLimitMB=1024"]
        with open(Path(folder, "log"), "wb") as log:
            server = subprocess.Popen(command, cwd=folder, env={**os.environ, "TMPDIR": folder}, stdout=log, stderr=log)
        try:
            create = "import boto3, contextlib; from botocore.config import Config\n"
            create += "s3 = boto3.client('s3', config=Config(s3={'addressing_style': 'path'}))\n"
            # An earlier attempt may have created the bucket.
            create += "with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou, s3.exceptions.BucketAlreadyExists):\n"
            create += f"    s3.create_bucket(Bucket='{BUCKET}')\n"
            create += f"s3.put_object(Bucket='{BUCKET}', Key='ready', Body=b'')"
            deadline = time.monotonic() + 60
            while subprocess.run([python, "-c", create], capture_output=True).returncode:
                if time.monotonic() > deadline:
                    raise Failed(f"SeaweedFS does not answer:\n{Path(folder, 'log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield
        finally:
            server.kill()
            server.wait()


def overrides(name):
    size, count = SETS[name]
    return [f"dataset.record_length_bytes={size}", f"dataset.num_files_train={count}", f"reader.read_threads={WORKERS}"]


def feedrate(name, epochs):
    """Runs feedrate, and returns its requests, bytes, seconds and CPU seconds of the epochs after the first."""
    argv = [FEEDRATE, "run", WORKLOADS / "objects.yaml", *overrides(name), f"train.epochs={epochs + 1}"]
    argv += ["--data", f"s3://{BUCKET}/{SETS[name][0]}", "--json", "--quiet"]
    with tempfile.TemporaryDirectory() as results:
        summary = json.loads(run_child([*argv, "--results", results]).stdout)
    measured = summary["per_epoch"][1:]
    seconds = sum(epoch["duration_s"] for epoch in measured)
    return {
        "requests": SETS[name][1] * len(measured),
        "bytes": sum(epoch["bytes"]["logical"] for epoch in measured),
        "seconds": seconds,
        "cpu_s": sum(epoch["host"]["process_cpu_s"] for epoch in measured),
    }


def peer(python, client, name, seconds):
    argv = [python, ROOT / "bench/objects_peer.py", client, BUCKET, f"{SETS[name][0]}/", WORKERS, seconds]
    return json.loads(run_child(argv).stdout)


def epochs_for(name, seconds):
    short = feedrate(name, 1)
    return max(1, round(seconds / short["seconds"]))


def compare(python, name, rounds, seconds):
    """Returns the medians of each client: GETs per second, bytes per second, and CPU seconds per GB."""
    size, _ = SETS[name]
    run_child([FEEDRATE, "generate", WORKLOADS / "objects.yaml", *overrides(name), "--data", f"s3://{BUCKET}/{size}", "--quiet"])
    epochs = epochs_for(name, seconds)
    measured = {client: [] for client in ["feedrate", *PEERS]}
    for number in range(rounds):
        # Each client is first, second and so on in turn.
        clients = [*measured][number % len(measured) :] + [*measured][: number % len(measured)]
        for client in clients:
            done = feedrate(name, epochs) if client == "feedrate" else peer(python, client, name, seconds)
            gets, rate = done["requests"] / done["seconds"], done["bytes"] / done["seconds"]
            measured[client].append((gets, rate, done["cpu_s"] / (done["bytes"] / 1e9)))
    return {client: [statistics.median(column) for column in zip(*rows)] for client, rows in measured.items()}


def missed_targets(name, medians):
    gets, rate, cpu_s = medians["feedrate"]
    for client in CPU_PEERS if name in CPU_MAX else []:
        ratio = cpu_s / medians[client][2]
        print(f"{name}: CPU relative to {client} {ratio:.2f}, target ≤ {CPU_MAX[name]}")
        yield ratio > CPU_MAX[name]
    if name in RATE_SETS:
        best = max(medians[client][1] for client in PEERS)
        print(f"{name}: rate relative to the fastest other client {rate / best:.2f}, target ≥ 1")
        yield rate < best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", nargs="+", choices=SETS, default=[*SETS])
    arguments = parser.parse_args()
    python = os.environ.get("FEEDRATE_PYTHON") or str(ROOT / ".venv/bin/python3")
    missed = []
    with seaweedfs(python):
        print("| objects | client | GET/s | GB/s | CPU s/GB |\n|---|---|---|---|---|")
        results = {}
        for name in arguments.only:
            results[name] = compare(python, name, arguments.rounds, arguments.seconds)
            for client, (gets, rate, cpu_s) in results[name].items():
                print(f"| {name} | {client} | {gets:,.0f} | {rate / 1e9:.2f} | {cpu_s:.2f} |", flush=True)
    for name, medians in results.items():
        missed += missed_targets(name, medians)
    sys.exit(any(missed))


if __name__ == "__main__":
    main()
