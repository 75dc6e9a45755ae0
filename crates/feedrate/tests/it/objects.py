"""Uses a bucket of S3 with boto3, at the endpoint of the environment.

ready                 waits for the server and creates the bucket
get PREFIX FOLDER     writes all objects below a prefix to files
put FOLDER PREFIX     writes all files of a folder to objects
list                  prints the names of all objects, then those of unfinished uploads
upload KEY            begins an upload of an object, and does not end it
"""

import contextlib
import pathlib
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "bucket"
START_S_MAX = 60


def client():
    attempts = {"max_attempts": 0}
    config = Config(s3={"addressing_style": "path"}, retries=attempts, connect_timeout=5)
    return boto3.client("s3", config=config)


def ready(s3):
    """Waits until the server stores an object."""
    deadline = time.monotonic() + START_S_MAX
    while True:
        try:
            # An earlier attempt may have created the bucket.
            with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou, s3.exceptions.BucketAlreadyExists):
                s3.create_bucket(Bucket=BUCKET)
            s3.put_object(Bucket=BUCKET, Key="ready", Body=b"ready")
            s3.delete_object(Bucket=BUCKET, Key="ready")
            return
        except (BotoCoreError, ClientError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def get(s3, prefix, folder):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    for page in pages:
        for found in page.get("Contents", []):
            name = found["Key"].removeprefix(prefix).lstrip("/")
            body = s3.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
            assert len(body) == found["Size"], name
            file = pathlib.Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)


def put(s3, folder, prefix):
    for file in pathlib.Path(folder).rglob("*"):
        if file.is_file():
            key = f"{prefix}/{file.relative_to(folder)}"
            s3.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())


def list_names(s3):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    for page in pages:
        for found in page.get("Contents", []):
            print("object", found["Key"])
    for found in s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        print("upload", found["Key"])


def upload(s3, key):
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key=key)
    body = b"part"
    s3.upload_part(Bucket=BUCKET, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=body)


command, *arguments = sys.argv[1:]
commands = {"ready": ready, "get": get, "put": put, "list": list_names, "upload": upload}
commands[command](client(), *arguments)
