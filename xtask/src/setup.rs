//! Installs what the tests and the benchmarks need, or says what is missing. Never goes on without it.

use crate::shell::{run, run_with, works};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// A C compiler, Rust's own tools, and a `.venv` with the libraries that tests compare with.
pub(crate) fn for_tests(root: &Path) -> Result<()> {
    if !works("cc", &["--version"]) {
        bail!(
            "there is no C compiler `cc`\n  hint: `apt-get install gcc libc6-dev`, or your system's equal"
        );
    }
    rust_component(root, "fmt", "rustfmt")?;
    rust_component(root, "clippy", "clippy")?;
    torch()?;
    libhdf5()?;
    debian_mpis()?;
    programs()?;
    virtual_environment(root)?;
    python_mpis(root)
}

/// Open MPI and MPICH, with the compilers' wrappers that know their headers.
fn debian_mpis() -> Result<()> {
    for (wrapper, packages) in [
        ("mpicc.openmpi", ["openmpi-bin", "libopenmpi-dev"]),
        ("mpicc.mpich", ["mpich", "libmpich-dev"]),
    ] {
        if works(wrapper, &["--version"]) {
            continue;
        }
        for package in packages {
            apt_install(package)?;
        }
        if !works(wrapper, &["--version"]) {
            bail!("`{}` was installed, and `{wrapper}` does not start", packages[1]);
        }
    }
    Ok(())
}

/// The next releases of the same two. Each has a prefix of its own: their files have the same names.
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

/// HDF5's headers and library, for the feature that reads by them.
fn libhdf5() -> Result<()> {
    let is_there = || works("h5cc", &["-showconfig"]);
    if is_there() {
        return Ok(());
    }
    apt_install("libhdf5-dev")?;
    if !is_there() {
        bail!("`libhdf5-dev` was installed, and its `h5cc` does not start");
    }
    Ok(())
}

/// Programs that tests start, and their packages.
const PROGRAMS: &[(&str, &str)] = &[
    ("shellcheck", "shellcheck"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("munged", "munge"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("srun", "slurm-client"),
    ("chromium", "chromium"),
];

fn programs() -> Result<()> {
    for (program, package) in PROGRAMS {
        // Not all of them start without a configuration.
        let is_there = || works("sh", &["-c", &format!("command -v {program}")]);
        if is_there() {
            continue;
        }
        apt_install(package)?;
        if !is_there() {
            bail!("`{package}` was installed, and there is no `{program}`");
        }
    }
    Ok(())
}

/// Debian's torch: a tenth of what PyPI's takes.
fn torch() -> Result<()> {
    let imports = || works("/usr/bin/python3", &["-c", "import torch"]);
    if imports() {
        return Ok(());
    }
    apt_install("python3-torch")?;
    if !imports() {
        bail!("`python3-torch` was installed, and cannot be imported");
    }
    Ok(())
}

/// The peers that the benchmarks measure against: fio, and Python's libraries.
pub(crate) fn for_bench(root: &Path) -> Result<()> {
    if std::env::var_os("FEEDRATE_PYTHON").is_none() {
        virtual_environment(root)?;
    }
    if works("fio", &["--version"]) {
        return Ok(());
    }
    apt_install("fio")?;
    if !works("fio", &["--version"]) {
        bail!("`fio` was installed, and still does not start");
    }
    Ok(())
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
        apt_install("python3-venv")?;
        run(root, "python3", &arguments)?;
    }
    Ok(())
}

fn apt_install(package: &str) -> Result<()> {
    let here = Path::new(".");
    let advice =
        format!("`{package}` is missing\n  hint: install it by your system's package manager");
    if !works("apt-get", &["--version"]) {
        bail!(advice);
    }
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    run_with(here, "apt-get", &["update", "-qq"], &quiet).context(advice.clone())?;
    let install = ["install", "-y", "-qq", "--no-install-recommends", package];
    run_with(here, "apt-get", &install, &quiet).context(advice)
}
