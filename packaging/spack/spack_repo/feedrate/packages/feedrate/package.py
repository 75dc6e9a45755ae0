# From a checkout: spack repo add packaging/spack/spack_repo/feedrate && spack install feedrate

from pathlib import Path

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Feedrate(Package):
    """Emulates the I/O of deep-learning training against real storage, and reports whether the storage keeps up."""

    # The checkout that contains this recipe.
    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0", checked_by="feedrate")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("install", "--locked", "--no-track", "--path", "crates/feedrate", "--root", prefix)
        cargo("xtask", "share", prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.feedrate)("run", "quickstart", "--scale", "0.1")
        Executable(self.prefix.bin.dlio_benchmark)("--help")
