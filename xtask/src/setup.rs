//! Installs what the tests and the benchmarks need, or says what is missing. Never goes on without it.

use crate::shell::{run, run_with, works};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Duration;

/// A C compiler, Rust's own tools, and a `.venv` with the libraries that tests compare with.
pub(crate) fn for_tests(root: &Path) -> Result<()> {
    if !works("cc", &["--version"]) {
        bail!(
            "there is no C compiler `cc`\n  hint: `apt-get install gcc libc6-dev`, or your system's equal"
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
    /// A command that succeeds once it is there. Not every program starts without a configuration.
    check: &'static [&'static str],
}

const PACKAGES: &[Needed] = &[
    // Debian's torch: a tenth of what PyPI's takes.
    Needed { packages: &["python3-torch"], check: &["/usr/bin/python3", "-c", "import torch"] },
    Needed { packages: &["libhdf5-dev"], check: &["h5cc", "-showconfig"] },
    // The compilers' wrappers know the headers.
    Needed { packages: &["openmpi-bin", "libopenmpi-dev"], check: &["mpicc.openmpi", "--version"] },
    Needed { packages: &["mpich", "libmpich-dev"], check: &["mpicc.mpich", "--version"] },
    Needed { packages: &["shellcheck"], check: &["sh", "-c", "command -v shellcheck"] },
    Needed { packages: &["iproute2"], check: &["sh", "-c", "command -v ip"] },
    Needed { packages: &["util-linux"], check: &["sh", "-c", "command -v unshare"] },
    Needed { packages: &["munge"], check: &["sh", "-c", "command -v munged"] },
    Needed { packages: &["slurmctld"], check: &["sh", "-c", "command -v slurmctld"] },
    Needed { packages: &["slurmd"], check: &["sh", "-c", "command -v slurmd"] },
    Needed { packages: &["slurm-client"], check: &["sh", "-c", "command -v srun"] },
    Needed { packages: &["chromium"], check: &["sh", "-c", "command -v chromium"] },
];

const FIO: &[Needed] = &[Needed { packages: &["fio"], check: &["fio", "--version"] }];

impl Needed {
    fn is_there(&self) -> bool {
        works(self.check[0], &self.check[1..])
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
            bail!("`{}` was installed, and `{}` still fails", packages.join(" "), check.join(" "))
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
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == *version) {
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

fn rust_component(root: &Path, command: &str, component: &str) -> Result<()> {
    if works("cargo", &[command, "--version"]) {
        return Ok(());
    }
    run(root, "rustup", &["component", "add", component])
        .with_context(|| format!("`cargo {command}` is missing\n  hint: install `{component}`"))
}

fn virtual_environment(root: &Path) -> Result<()> {
    let folder = root.join(".venv");
    let mut wanted = String::new();
    for list in ["xtask/requirements.txt", "xtask/requirements-alone.txt"] {
        let text = std::fs::read_to_string(root.join(list));
        wanted += &text.with_context(|| format!("cannot read `{list}`"))?;
    }
    let stamp = folder.join("requirements.installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if !works("python3", &["--version"]) {
        bail!("there is no `python3`\n  hint: install Python 3.10 or newer");
    }
    let python = folder.join("bin/python3").display().to_string();
    if !works(&python, &["-m", "pip", "--version"]) {
        make_virtual_environment(root)?;
    }
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r"];
    run(root, &python, &[&pip[..], &["xtask/requirements.txt"]].concat())?;
    run(root, &python, &[&pip[..], &["xtask/requirements-alone.txt", "--no-deps"]].concat())?;
    if !works(
        &python,
        &[
            "-c",
            "import numpy, h5py, pandas, PIL, playwright, pyarrow, safetensors, tfrecord, webdataset, matplotlib, nbconvert, ipykernel, dlio_benchmark",
        ],
    ) {
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
