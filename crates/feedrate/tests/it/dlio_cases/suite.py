"""Runs DLIO's own tests on feedrate's program: python suite.py PART PARTS RANKS PROGRAM [LAUNCHER...], in an empty folder.

The tests are those of PyPI's dlio-benchmark 2.0.0, which `cargo xtask setup` installs. Stubs here replace the modules that they import:
a configuration is what `PROGRAM --cfg job` prints, and a run is `LAUNCHER... PROGRAM OVERRIDES`. One process takes the part of all
ranks; the tests check the same on each. Runs every PARTS-th test from PART. Prints a line for each: name, `passed` or `failed`, error.
"""
import contextlib
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import types

import pytest
import yaml

TESTS = "tests/dlio_benchmark_test.py"
TESTS_SHA256 = "b88e761fc9d7a3ae355d9013fdcef96ab4ad72931b314e196eadade1f032b8ab"
OUTPUT = "output/"
# Instead of the long defaults, in tests that set no times.
TIMES = ["++workload.train.computation_time=0.001", "++workload.evaluation.eval_time=0.001"]

part, parts, ranks, program, *launcher = sys.argv[1:]
answers = sys.stdout


class Config(dict):
    """A part of a workload, with its keys as attributes."""

    __getattr__ = dict.__getitem__


def compose(config_name, overrides):
    """Returns the configuration that feedrate makes of the overrides."""
    printed = call([program, "--cfg", "job", "--resolve", *overrides])
    config = json.loads(json.dumps(yaml.safe_load(printed)), object_hook=Config)
    config["workload"]["overrides"] = overrides
    return config


class Benchmark:
    """DLIO's class of a run."""

    def __init__(self, workload):
        self.overrides = workload["overrides"]
        self.args = workload["dataset"]
        self.output_folder = OUTPUT
        self.comm_size = int(ranks)

    def run(self):
        call([*launcher, program, *TIMES, *self.overrides, f"++workload.output.folder={OUTPUT}"])

    def initialize(self):
        pass

    finalize = initialize


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"
    return done.stdout


class Plugin:
    """Selects the tests, and prints their results."""

    def pytest_collection_modifyitems(self, items):
        items[:] = items[int(part) :: int(parts)]

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            error = report.longrepr.reprcrash.message if report.failed else ""
            name = report.nodeid.split("::")[1]
            print(name, report.outcome, *error.splitlines()[:1], sep="\t", file=answers)


def install_stub(name, **members):
    sys.modules[name] = types.SimpleNamespace(**members)


def do_nothing(*_, **__):
    return contextlib.nullcontext()


instance = types.SimpleNamespace(initialize=do_nothing, finalize=do_nothing)
install_stub("hydra", compose=compose, initialize=do_nothing, initialize_config_dir=do_nothing)
install_stub("omegaconf", OmegaConf=types.SimpleNamespace(to_yaml=json.dumps, save=json.dump))
communicator = types.SimpleNamespace(rank=0, size=int(ranks), Barrier=do_nothing)
install_stub("mpi4py", MPI=types.SimpleNamespace(COMM_WORLD=communicator))
install_stub("dlio_benchmark", __file__=__file__)
install_stub("dlio_benchmark.main", DLIOBenchmark=Benchmark)
install_stub("dlio_benchmark.utils.config", ConfigArguments=types.SimpleNamespace(reset=do_nothing))
install_stub("dlio_benchmark.utils.utility", DLIOMPI=types.SimpleNamespace(get_instance=lambda: instance))

os.environ["PATH"] = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
tests = importlib.metadata.distribution("dlio-benchmark").locate_file(TESTS).read_bytes()
assert hashlib.sha256(tests).hexdigest() == TESTS_SHA256, "these are other tests than those of dlio-benchmark 2.0.0"
with open("dlio_benchmark_test.py", "wb") as file:
    file.write(tests)
options = ["--quiet", "--rootdir=.", "--config-file=/dev/null", "--disable-warnings", "--no-summary", "--capture=no", "-pno:cacheprovider"]
with contextlib.redirect_stdout(sys.stderr):
    code = pytest.main(["dlio_benchmark_test.py", *options], plugins=[Plugin()])
sys.exit(code > pytest.ExitCode.TESTS_FAILED)
