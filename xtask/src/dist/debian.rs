//! The Debian package: the tree of the archive below `/usr`, packed by `dpkg-deb`.

use super::{GLIBC, VERSION};
use crate::shell::{output, run};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Packs the files of `tree`, and returns the path of the package.
pub(super) fn build_package(tree: &Path, out: &Path, compression: &str) -> Result<PathBuf> {
    let folder = out.join("debian");
    fs::create_dir_all(folder.join("DEBIAN"))?;
    let from = tree.display().to_string();
    output(&folder, "cp", &["-r", &from, "usr"])?;
    // Debian's zsh loads completions of packages from this folder.
    let zsh_folder = folder.join("usr/share/zsh");
    fs::rename(zsh_folder.join("site-functions"), zsh_folder.join("vendor-completions"))?;
    output(&folder, "gzip", &["-9nr", "usr/share/man"])?;

    let dpkg_output = output(out, "dpkg", &["--print-architecture"])?;
    let architecture = dpkg_output.trim();
    let du_output = output(&folder, "du", &["-sk", "usr"])?;
    let kibibytes = du_output.split_whitespace().next().unwrap_or_default();
    let control = format!(
        "\
Package: feedrate
Version: {VERSION}
Architecture: {architecture}
Maintainer: The authors of feedrate
Installed-Size: {kibibytes}
Depends: libc6 (>= {}.{})
Suggests: openmpi-bin | mpich, python3
Section: science
Priority: optional
Description: emulates the I/O of deep-learning training against real storage
 It answers one question: can this storage feed these accelerators, and if
 not, why not and what would help? It reads DLIO's workload files and writes
 DLIO's result files, and includes programs with the names of DLIO's
 programs.
",
        GLIBC.0, GLIBC.1
    );
    fs::write(folder.join("DEBIAN/control"), control)?;
    let file = format!("feedrate_{VERSION}_{architecture}.deb");
    let compress = format!("-Z{compression}");
    let arguments = ["--build", "--root-owner-group", &compress, "debian", &file];
    run(out, "dpkg-deb", &arguments)?;
    fs::remove_dir_all(folder)?;
    Ok(out.join(file))
}
