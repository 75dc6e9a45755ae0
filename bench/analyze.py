"""Makes a tree of synthetic DLIO runs and times `feedrate analyze` on it: `python3 bench/analyze.py [RUNS] [FEEDRATE]`.

Files have realistic sizes: a rank's `output.json` contains /proc/meminfo once and again for each epoch. The tree is removed at the end."""

import json
import os
import subprocess
import sys
import tempfile
import time

RANKS, EPOCHS, STEPS = 4, 5, 6
MEMINFO = {f"Field{i}": f"{i * 12345} kB" for i in range(55)}
BASE = 1_700_000_000

CONFIG = """workload:
  model: {{name: synthetic, type: cnn}}
  framework: pytorch
  workflow: {{generate_data: {generate}, train: {train}, checkpoint: false, evaluation: true}}
  dataset:
    data_folder: data/synthetic/
    format: npz
    num_files_train: 168
    num_samples_per_file: 1
    record_length_bytes: {length}
    record_length_bytes_stdev: 68341808
  reader: {{data_loader: pytorch, batch_size: 7, read_threads: 4}}
  train: {{epochs: 5, computation_time: 0.323}}
"""


def stamp(seconds):
    full_seconds = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(full_seconds)) + f".{int((seconds - full_seconds) * 1e6):06d}"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def write_run(folder, number):
    os.makedirs(f"{folder}/.hydra")
    start = BASE + number * 200.0
    length = 146600628 + number % 7
    generate = number % 10 == 0
    words = {"generate": str(generate).lower(), "train": str(not generate).lower(), "length": length}
    write(f"{folder}/.hydra/config.yaml", CONFIG.format(**words))
    write(f"{folder}/.hydra/hydra.yaml", "hydra:\n" + "  filler: text\n" * 100)
    overrides = f"- workload=synthetic\n- ++workload.workflow.train={not generate}\n"
    write(f"{folder}/.hydra/overrides.yaml", overrides + f"- ++workload.dataset.record_length_bytes={length}\n")
    write(f"{folder}/dlio.log", f"[OUTPUT] {stamp(start)} Running DLIO [Training] with {RANKS} process(es)\n" * 60)
    if generate:
        return
    for rank in range(RANKS):
        output = {"host_memory_GB": 857.2, "host_meminfo": MEMINFO}
        stats = {}
        for epoch in range(1, EPOCHS + 1):
            load = [4.0 + 0.1 * rank + number * 1e-7] + [0.0004321 * (step + 1) for step in range(STEPS - 1)]
            compute = [0.3234567] * STEPS
            begin = start + epoch * 10.0
            end = begin + sum(load) + sum(compute) + 0.01
            output[str(epoch)] = {
                "load": {"block1": load},
                "proc": {"block1": [a + b for a, b in zip(load, compute)]},
                "throughput": {"block1": 17.2},
                "au": {"block1": 80.0},
                "compute": {"block1": compute},
                "host_meminfo": MEMINFO,
            }
            block = {"start": stamp(begin), "end": stamp(end), "duration": f"{end - begin:.2f}"}
            stats[str(epoch)] = {"start": stamp(begin), "block1": block, "end": stamp(end), "duration": "1.0"}
        write(f"{folder}/{rank}_output.json", json.dumps(output, indent=4))
        write(f"{folder}/{rank}_per_epoch_stats.json", json.dumps(stats, indent=4))
    metric = {"save_checkpoint_io_mean_GB_per_second": float("nan"), "train_au_percentage": [80.0] * EPOCHS}
    metric |= {"train_au_mean_percentage": 80.0, "train_throughput_mean_samples_per_second": 56.0}
    metric |= {"train_io_mean_MB_per_second": 56.0 * length / 2**20}
    summary = {"start": stamp(start), "num_accelerators": RANKS, "num_hosts": 1, "hostname": "node", "metric": metric}
    summary |= {"num_files_train": 168, "num_samples_per_file": 1, "host_meminfo": MEMINFO, "epochs": EPOCHS}
    write(f"{folder}/summary.json", json.dumps(summary, indent=4))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    program = sys.argv[2] if len(sys.argv) > 2 else "target/release/feedrate"
    with tempfile.TemporaryDirectory() as root:
        for number in range(runs):
            write_run(f"{root}/synthetic/{RANKS}_seed_{number % 50}/{number:05d}", number)
        for options in [[], ["--json"]]:
            start_s = time.monotonic()
            done = subprocess.run([program, "analyze", root, *options], stdout=subprocess.PIPE, check=True)
            duration_s = time.monotonic() - start_s
            print(f"{runs} runs, {' '.join(options) or 'text'}: {duration_s:.2f} s, {len(done.stdout)} bytes of output")


if __name__ == "__main__":
    main()
