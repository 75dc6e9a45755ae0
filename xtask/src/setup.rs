//! Installs what the tests and the benchmarks need, or says what is missing. Never goes on without it.

use crate::shell::{run, run_with, works};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A C compiler, Rust's own tools, and a `.venv` with the libraries that tests compare with.
pub(crate) fn for_tests(root: &Path) -> Result<()> {
    let c = Check::Compiles { compiler: "cc", program: C_PROGRAM, launcher: "" };
    if !c.succeeds() {
        bail!(
            "there is no C compiler `cc`, or no library for it\n  hint: `apt-get install gcc libc6-dev`, or your system's equal"
        );
    }
    rust_component(root, "fmt", "rustfmt")?;
    rust_component(root, "clippy", "clippy")?;
    debian(PACKAGES)?;
    virtual_environment(root)?;
    python_mpis(root)
}

/// Something that tests need, and the packages of Debian that bring it.
struct Needed {
    packages: &'static [&'static str],
    check: Check,
}

/// A test that succeeds once all of it is there, in the way in which tests need it: half of the packages is not enough.
enum Check {
    /// A command.
    Runs(&'static [&'static str]),
    /// A program is there. Not every one starts without a configuration.
    Found(&'static str),
    /// A program in C is compiled by this compiler, and then runs under this launcher.
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

const PACKAGES: &[Needed] = &[
    // Debian's torch: a tenth of what PyPI's takes.
    Needed {
        packages: &["python3-torch"],
        check: Check::Runs(&["/usr/bin/python3", "-c", "import torch"]),
    },
    Needed {
        packages: &["libhdf5-dev"],
        check: Check::Compiles { compiler: "h5cc", program: HDF5_PROGRAM, launcher: "" },
    },
    Needed {
        packages: &["openmpi-bin", "libopenmpi-dev"],
        check: Check::Compiles {
            compiler: "mpicc.openmpi",
            program: MPI_PROGRAM,
            launcher: "mpirun.openmpi --allow-run-as-root --oversubscribe -np 2",
        },
    },
    Needed {
        packages: &["mpich", "libmpich-dev"],
        check: Check::Compiles {
            compiler: "mpicc.mpich",
            program: MPI_PROGRAM,
            launcher: "mpiexec.hydra -np 2",
        },
    },
    // Slurm opens it by this name for `srun --mpi=pmix`, and without it knows no PMIx.
    Needed {
        packages: &["libpmix-dev"],
        check: Check::Runs(&["python3", "-c", "import ctypes; ctypes.CDLL('libpmix.so')"]),
    },
    Needed { packages: &["shellcheck"], check: Check::Runs(&["shellcheck", "--version"]) },
    Needed { packages: &["iproute2"], check: Check::Runs(&["ip", "-V"]) },
    Needed { packages: &["util-linux"], check: Check::Runs(&["unshare", "--version"]) },
    Needed { packages: &["bindfs"], check: Check::Runs(&["bindfs", "--version"]) },
    Needed { packages: &["munge"], check: Check::Runs(&["munged", "--version"]) },
    Needed { packages: &["slurmctld"], check: Check::Runs(&["slurmctld", "-V"]) },
    Needed { packages: &["slurmd"], check: Check::Runs(&["slurmd", "-V"]) },
    Needed { packages: &["slurm-client"], check: Check::Found("srun") },
    Needed { packages: &["chromium"], check: Check::Runs(&["chromium", "--version"]) },
];

const FIO: &[Needed] = &[Needed { packages: &["fio"], check: Check::Runs(&["fio", "--version"]) }];

const FRESH_DEBIAN: &[Needed] =
    &[Needed { packages: &["mmdebstrap"], check: Check::Runs(&["mmdebstrap", "--version"]) }];

impl Needed {
    fn is_there(&self) -> bool {
        self.check.succeeds()
    }
}

impl Check {
    fn succeeds(&self) -> bool {
        match *self {
            Check::Runs(words) => works(words[0], &words[1..]),
            Check::Found(program) => works("sh", &["-c", &format!("command -v {program}")]),
            Check::Compiles { compiler, program, launcher } => {
                let script = "folder=$(mktemp -d) && trap 'rm -r \"$folder\"' EXIT && cd \"$folder\" \\
                    && printf %s \"$1\" > a.c && $0 a.c -o a && $2 ./a";
                works("sh", &["-c", script, compiler, program, launcher])
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
                write!(f, "what `{compiler}` compiles does not run")?;
                if launcher.is_empty() { Ok(()) } else { write!(f, " under `{launcher}`") }
            }
        }
    }
}

/// Install what is missing of `needed`, all of it at once.
fn debian(needed: &[Needed]) -> Result<()> {
    let missing: Vec<&Needed> = needed.iter().filter(|needed| !needed.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|needed| needed.packages).copied().collect();
    apt_install(&packages)?;
    match missing.iter().find(|needed| !needed.is_there()) {
        Some(Needed { packages, check }) => {
            bail!("`{}` was installed, and {check}", packages.join(" "))
        }
        None => Ok(()),
    }
}

/// The next releases of Debian's two. Each has a prefix of its own: their files have the same names.
const PYTHON_MPIS: &[(&str, &str)] = &[("openmpi", "5.0.11"), ("mpich", "5.0.2")];

fn python_mpis(root: &Path) -> Result<()> {
    let python = root.join(".venv/bin/python3").display().to_string();
    for (name, version) in PYTHON_MPIS {
        let prefix = root.join(".venv/mpi").join(name);
        let stamp = prefix.join("installed");
        let is_there = prefix.join("bin/mpirun").exists() && prefix.join("lib/libmpi.so").exists();
        if is_there && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == *version)
        {
            continue;
        }
        let (prefix, wanted) = (prefix.display().to_string(), format!("{name}=={version}"));
        let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"];
        let place = ["--force-reinstall", "--prefix", &prefix, &wanted];
        run(root, &python, &[&pip[..], &place[..]].concat())?;
        std::fs::write(&stamp, version)
            .with_context(|| format!("cannot write `{}`", stamp.display()))?;
    }
    Ok(())
}

/// The peers that the benchmarks measure against: fio, and Python's libraries.
pub(crate) fn for_bench(root: &Path) -> Result<()> {
    if std::env::var_os("FEEDRATE_PYTHON").is_none() {
        virtual_environment(root)?;
    }
    debian(FIO)
}

/// The tools that build packages, and the one that makes a fresh Debian to try them in.
pub(crate) fn for_dist(root: &Path) -> Result<()> {
    virtual_environment(root)?;
    let python = tools(root).join("python3").display().to_string();
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r"];
    run(root, &python, &[&pip[..], &["xtask/requirements-dist.txt"]].concat())?;
    debian(FRESH_DEBIAN)
}

/// The programs of the virtual environment.
pub(crate) fn tools(root: &Path) -> PathBuf {
    root.join(".venv/bin")
}

fn rust_component(root: &Path, command: &str, component: &str) -> Result<()> {
    if works("cargo", &[command, "--version"]) {
        return Ok(());
    }
    run(root, "rustup", &["component", "add", component])
        .with_context(|| format!("`cargo {command}` is missing\n  hint: install `{component}`"))
}

/// All that `.venv` is for.
const IMPORTS: &[&str] = &[
    "-c",
    "import numpy, h5py, pandas, PIL, playwright, pyarrow, safetensors, tfrecord, webdataset, jsonschema, matplotlib, nbconvert, ipykernel, dlio_benchmark",
];

fn virtual_environment(root: &Path) -> Result<()> {
    let folder = root.join(".venv");
    let mut wanted = String::new();
    for list in ["xtask/requirements.txt", "xtask/requirements-alone.txt"] {
        let text = std::fs::read_to_string(root.join(list));
        wanted += &text.with_context(|| format!("cannot read `{list}`"))?;
    }
    let stamp = folder.join("requirements.installed");
    let python = folder.join("bin/python3").display().to_string();
    let is_installed = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if is_installed && works(&python, IMPORTS) {
        return Ok(());
    }
    if !works("python3", &["--version"]) {
        bail!("there is no `python3`\n  hint: install Python 3.10 or newer");
    }
    // What is there and cannot be imported is taken for installed by pip.
    if is_installed || !works(&python, &["-m", "pip", "--version"]) {
        make_virtual_environment(root)?;
    }
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r"];
    run(root, &python, &[&pip[..], &["xtask/requirements.txt"]].concat())?;
    run(root, &python, &[&pip[..], &["xtask/requirements-alone.txt", "--no-deps"]].concat())?;
    if !works(&python, IMPORTS) {
        bail!(
            "what xtask/requirements.txt names was installed into `.venv`, and cannot be imported"
        );
    }
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write `{}`", stamp.display()))
}

/// Debian's python3 comes without `venv`; it is installed where apt is there.
fn make_virtual_environment(root: &Path) -> Result<()> {
    let arguments = ["-m", "venv", "--clear", ".venv"];
    if run(root, "python3", &arguments).is_err() {
        apt_install(&["python3-venv"])?;
        run(root, "python3", &arguments)?;
    }
    Ok(())
}

/// Wait so long for another apt, of which there can be one at a time.
const LOCK_WAIT: &str = "DPkg::Lock::Timeout=600";
/// Attempts at `apt-get update`; after the last the lists are taken as they are.
const UPDATES: u32 = 6;
const UPDATE_WAIT: Duration = Duration::from_secs(10);

fn apt_install(packages: &[&str]) -> Result<()> {
    let advice = format!(
        "`{}` is missing\n  hint: install it by your system's package manager",
        packages.join(" ")
    );
    if !works("apt-get", &["--version"]) {
        bail!(advice);
    }
    let here = Path::new(".");
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    // `update` does not wait for another one, whatever it is told.
    let update = ["update", "-qq"];
    for _ in 0..UPDATES {
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

    /// A compiler's wrapper starts without the headers, and a library may be there without its launcher.
    #[test]
    fn half_of_what_is_needed_is_not_enough() {
        let compiles = |compiler, program, launcher| {
            Check::Compiles { compiler, program, launcher }.succeeds()
        };
        assert!(compiles("cc", C_PROGRAM, ""));
        assert!(!compiles("cc", "#include <no/such/header.h>\n", ""));
        assert!(!compiles("no-such-compiler", C_PROGRAM, ""));
        assert!(!compiles("cc", C_PROGRAM, "no-such-launcher -np 2"));
        assert!(!Check::Found("no-such-program").succeeds());
        let missing = PACKAGES.iter().filter(|needed| !needed.is_there());
        let missing: Vec<String> = missing.map(|needed| needed.check.to_string()).collect();
        assert!(missing.is_empty(), "{missing:?}\n  hint: run `cargo xtask setup`");
    }
}
