//! Tests packages as a user would: installs each package in a clean environment, and runs the programs.

use super::share::PROGRAMS;
use crate::setup;
use crate::shell::{output, run, run_with};
use anyhow::Result;
use std::path::Path;

/// The Debian release in which packages are tested.
const SUITE: &str = "bookworm";

/// Tests the archive, the wheel and the Debian package in a temporary Debian system, by running `trial.sh` there.
pub(super) fn test_in_fresh_debian(root: &Path) -> Result<()> {
    // mmdebstrap passes the root of the new system to these commands.
    let copy = "--customize-hook=cp target/dist/*.deb target/dist/*.whl target/dist/*-linux.tar.gz xtask/src/dist/trial.sh \"$1/tmp\"";
    let run_script = "--customize-hook=chroot \"$1\" sh /tmp/trial.sh";
    let system = ["--variant=apt", "--include=python3-venv", copy, run_script, SUITE, "/dev/null"];
    run(root, "mmdebstrap", &system)
}

/// Installs the source package with `pip`. It is built in a separate folder, and without optimisation to save time.
pub(super) fn test_source_package(root: &Path, sources: &Path) -> Result<()> {
    let tools = setup::program_folder(root);
    let prefix = root.join("target/dist/from-sources").display().to_string();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH")?);
    let python = tools.join("python3").display().to_string();
    let pip =
        ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"];
    let package = sources.display().to_string();
    let target = root.join("target/dist-sources").display().to_string();
    let variables = [
        ("PATH", path.as_str()),
        ("MATURIN_PEP517_ARGS", "--profile dev"),
        ("CARGO_TARGET_DIR", &target),
    ];
    run_with(root, &python, &[&pip[..], &["--prefix", &prefix, &package]].concat(), &variables)?;
    check_help(&Path::new(&prefix).join("bin"))
}

/// Unpacks a Debian package below `out`, and checks that programs, manual and completions work.
pub(super) fn test_unpacked(package: &Path, out: &Path) -> Result<()> {
    let package_path = package.display().to_string();
    output(out, "dpkg-deb", &["--extract", &package_path, "root"])?;
    check_help(&out.join("root/usr/bin"))?;
    output(out, "gzip", &["--test", "root/usr/share/man/man1/feedrate-run.1.gz"])?;
    let bash = ". root/usr/share/bash-completion/completions/feedrate && complete -p feedrate";
    output(out, "bash", &["-c", bash])?;
    Ok(())
}

/// Checks that all programs print their help.
fn check_help(folder: &Path) -> Result<()> {
    for program in PROGRAMS {
        output(folder, &format!("./{program}"), &["--help"])?;
    }
    Ok(())
}
