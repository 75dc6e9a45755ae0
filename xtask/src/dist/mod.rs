//! Builds packages: an archive, a wheel and a Debian package from one portable build, and a source package. Each package is installed and
//! tested in a clean environment, and by the rules of the registry that publishes it. `share.rs` lists the installed files.

mod share;
mod limits;
mod debian;
mod registries;
mod trial;
#[cfg(test)]
mod tests;

pub(crate) use share::install_shared_files;

use crate::setup;
use crate::shell::{output, run_with, this_program};
use anyhow::{Context, Result};
use share::PROGRAMS;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The oldest supported glibc, as in Debian 10 and RHEL 8. Programs with musl instead of glibc could not load MPI or NVIDIA's library.
const GLIBC: (u32, u32) = (2, 28);

/// Builds all packages into `target/dist` and tests each of them.
pub(crate) fn dist(root: &Path) -> Result<()> {
    setup::install_for_dist(root)?;
    let out = empty_folder(root.join("target/dist"))?;
    let platform = format!("manylinux_{}_{}", GLIBC.0, GLIBC.1);
    let build = ["build", "--release", "--locked", "--zig", "--compatibility", &platform];
    let wheel = build_python_package(root, &out, &build)?;
    let sources = build_python_package(root, &out, &["sdist"])?;

    let name = format!("feedrate-{VERSION}-{}-linux", std::env::consts::ARCH);
    let tree = out.join(&name);
    move_programs(&wheel, &out.join("wheel"), &tree)?;
    limits::check(&tree)?;
    install_shared_files(root, &tree)?;
    let archive = pack_archive(&out, &name)?;
    let debian = debian::build_package(&tree, &out, "xz")?;

    registries::check_python_packages(root, &[&wheel, &sources])?;
    registries::check_debian_package(root, &debian)?;
    registries::check_crates(root)?;
    trial::test_in_fresh_debian(root)?;
    trial::test_source_package(root, &sources)?;
    for package in [archive, wheel, sources, debian] {
        println!("{:5.1} MB  {}", megabytes(&package)?, package.display());
    }
    Ok(())
}

/// Checks what needs no build for release: the installed files, using the programs that CI has built for its tests, and the metadata of
/// packages.
pub(crate) fn check_briefly(root: &Path) -> Result<()> {
    registries::check_github_files(root)?;
    let out = empty_folder(root.join("target/dist-short"))?;
    let built = this_program()?;
    let tree = out.join("tree");
    fs::create_dir_all(tree.join("bin"))?;
    for program in PROGRAMS {
        let to = tree.join("bin").join(program).display().to_string();
        let from = built.with_file_name(program).display().to_string();
        output(root, "strip", &["-o", &to, &from])?;
    }
    install_shared_files(root, &tree)?;
    let sources = build_python_package(root, &out, &["sdist"])?;
    registries::check_python_packages(root, &[&sources])?;
    let package = debian::build_package(&tree, &out, "none")?;
    trial::test_unpacked(&package, &out)
}

/// Creates an empty folder, replacing an existing one.
fn empty_folder(folder: PathBuf) -> Result<PathBuf> {
    let path = folder.display();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove `{path}`"))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create `{path}`"))?;
    Ok(folder)
}

/// Runs maturin, and returns the path of the package that it writes.
fn build_python_package(root: &Path, out: &Path, words: &[&str]) -> Result<PathBuf> {
    let to = out.join(words[0]);
    let to_path = to.display().to_string();
    let arguments = [words, &["--out", &to_path]].concat();
    let tools = setup::program_folder(root);
    let path = format!("{}:{}", tools.display(), std::env::var("PATH")?);
    let maturin = tools.join("maturin").display().to_string();
    run_with(root, &maturin, &arguments, &[("PATH", &path)])?;
    let written = fs::read_dir(&to)?.next().context("maturin wrote nothing")??;
    let package = out.join(written.file_name());
    fs::rename(written.path(), &package)?;
    fs::remove_dir(to)?;
    Ok(package)
}

/// Moves the stripped programs from the wheel into `tree/bin`.
fn move_programs(wheel: &Path, unpacked: &Path, tree: &Path) -> Result<()> {
    let wheel_path = wheel.display().to_string();
    let folder = unpacked.display().to_string();
    let extract = ["-m", "zipfile", "--extract", &wheel_path, &folder];
    output(Path::new("."), "python3", &extract)?;
    let scripts = unpacked.join(format!("feedrate-{VERSION}.data/scripts"));
    fs::create_dir_all(tree.join("bin"))?;
    for program in PROGRAMS {
        let to = tree.join("bin").join(program);
        fs::rename(scripts.join(program), &to)
            .with_context(|| format!("the wheel has no `{program}`"))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    Ok(fs::remove_dir_all(unpacked)?)
}

/// Packs the portable archive, which can be unpacked into any prefix.
fn pack_archive(out: &Path, name: &str) -> Result<PathBuf> {
    let file = format!("{name}.tar.gz");
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
    output(out, "tar", &[&["--create", "--gzip", "--file", &file], &owner[..], &[name]].concat())?;
    Ok(out.join(file))
}

fn megabytes(file: &Path) -> Result<f64> {
    Ok(fs::metadata(file)?.len() as f64 / 1e6)
}
