"""Print the parts of a Darshan log that feedrate reads, formatted like the output of darshan-parser and darshan-dxt-parser. Needs the PyPI package `darshan`."""
import sys

import darshan.backend.cffi_backend as backend

log = backend.log_open(sys.argv[1])
if not log or not log["handle"]:
    sys.exit("not a Darshan log, or a damaged one")
modules = backend.log_get_modules(log)
names = backend.log_get_name_records(log)
job = backend.log_get_job(log)
print("# jobid:", job["jobid"])
seconds, nanoseconds = job.get("start_time_sec", job.get("start_time", 0)), job.get("start_time_nsec", 0)
print(f"# start_time: {seconds}" + (f".{nanoseconds:09}" if nanoseconds else ""))
print("# nprocs:", job["nprocs"])
if "fork_parent" in job["metadata"]:
    print("# metadata: fork_parent =", job["metadata"]["fork_parent"])
for module in ("POSIX", "STDIO"):
    if modules.get(module, {}).get("partial_flag"):
        print("# *WARNING*: incomplete data in module", module)
    counters = [backend.counter_names(module), backend.fcounter_names(module)]
    while module in modules and (record := backend.log_get_record(log, module)):
        name = names.get(record["id"], "").replace("\n", " ").replace("\t", " ")
        values = list(zip(counters[0], record["counters"])) + list(zip(counters[1], record["fcounters"]))
        for counter, value in values:
            print(module, record["rank"], record["id"], counter, value, name, "", "", sep="\t")
while "DXT_POSIX" in modules and (record := backend.log_get_record(log, "DXT_POSIX", dtype="dict")):
    print(f"# DXT, file_id: {record['id']}, file_name: {names.get(record['id'], '')}")
    for index, segment in enumerate(record["read_segments"]):
        print(" X_POSIX", record["rank"], "read", index, segment["offset"], segment["length"], segment["start_time"], segment["end_time"])
