"""Reads each object of a prefix with a client of S3, from several threads: `objects_peer.py CLIENT BUCKET PREFIX WORKERS SECONDS`. Passes over all
objects are repeated for at least this time. Prints the counts and the CPU time of reading as JSON; the endpoint and keys come from the environment."""

import json
import os
import random
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
REGION = os.environ["AWS_REGION"]


def boto3_client():
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"}, max_pool_connections=64)
    return boto3.client("s3", config=config)


def in_threads(workers, read):
    pool = ThreadPoolExecutor(workers)
    return lambda keys: sum(pool.map(read, keys))


def boto3_reader(bucket, workers):
    s3 = boto3_client()
    return in_threads(workers, lambda key: len(s3.get_object(Bucket=bucket, Key=key)["Body"].read()))


def s3dlio_reader(bucket, workers):
    import s3dlio

    def read(keys):
        found = s3dlio.get_many([f"s3://{bucket}/{key}" for key in keys], max_in_flight=workers)
        return sum(len(body) for _, body in found)

    # All bodies of a call are kept, so a call has a part of the objects.
    return lambda keys: sum(read(keys[start : start + 256]) for start in range(0, len(keys), 256))


def crt_reader(bucket, workers):
    """The client below s3torchconnector."""
    from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

    client = MountpointS3Client(REGION, endpoint=ENDPOINT, force_path_style=True)
    return in_threads(workers, lambda key: sum(len(part) for part in client.get_object(bucket, key)))


def obstore_reader(bucket, workers):
    import obstore
    from obstore.store import S3Store

    store = S3Store(bucket, endpoint=ENDPOINT, region=REGION, virtual_hosted_style_request=False, client_options={"allow_http": True})
    return in_threads(workers, lambda key: len(obstore.get(store, key).bytes()))


READERS = {"boto3": boto3_reader, "s3dlio": s3dlio_reader, "s3torchconnector": crt_reader, "obstore": obstore_reader}


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(client, bucket, prefix, workers, seconds):
    pages = boto3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [found["Key"] for page in pages for found in page["Contents"] if "/train/" in found["Key"]]
    read = READERS[client](bucket, int(workers))
    read(keys[: 2 * int(workers)])
    order = random.Random(1)
    requests = moved = 0
    start_s, start_cpu_s = time.perf_counter(), cpu_s()
    while time.perf_counter() - start_s < float(seconds):
        order.shuffle(keys)
        moved += read(keys)
        requests += len(keys)
    wall_s, used_s = time.perf_counter() - start_s, cpu_s() - start_cpu_s
    print(json.dumps({"requests": requests, "bytes": moved, "seconds": wall_s, "cpu_s": used_s}))


main(*sys.argv[1:])
