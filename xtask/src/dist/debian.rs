//! The Debian package: the tree of the archive below `/usr`, with the documents of Debian's policy, packed by `dpkg-deb`.

use super::{GLIBC, VERSION};
use crate::shell::{output, run};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginning of the file `copyright`; the license of the font follows. Debian forbids a copy of the Apache License there.
const COPYRIGHT: &str = "\
feedrate: Copyright the authors of feedrate

Licensed under the Apache License, Version 2.0. On Debian systems, its text is
in /usr/share/common-licenses/Apache-2.0.

The programs contain a font:

";

/// Packs the files of `tree`, and returns the path of the package. The author of the last commit is the maintainer.
pub(super) fn build_package(tree: &Path, out: &Path, compression: &str) -> Result<PathBuf> {
    let folder = out.join("debian");
    fs::create_dir_all(folder.join("DEBIAN"))?;
    let from = tree.display().to_string();
    output(&folder, "cp", &["-r", &from, "usr"])?;
    // Debian's zsh loads completions of packages from this folder.
    let zsh_folder = folder.join("usr/share/zsh");
    fs::rename(zsh_folder.join("site-functions"), zsh_folder.join("vendor-completions"))?;
    let maintainer = last_commit(out, "%an <%ae>")?;
    let date = last_commit(out, "%aD")?;
    write_documents(&folder.join("usr/share/doc/feedrate"), &maintainer, &date)?;
    output(&folder, "gzip", &["-9nr", "usr/share/man", "usr/share/doc/feedrate/changelog"])?;
    let sums = output(&folder, "find", &["usr", "-type", "f", "-exec", "md5sum", "{}", "+"])?;
    fs::write(folder.join("DEBIAN/md5sums"), sums)?;

    let dpkg_output = output(out, "dpkg", &["--print-architecture"])?;
    let architecture = dpkg_output.trim();
    let du_output = output(&folder, "du", &["-sk", "usr"])?;
    let kibibytes = du_output.split_whitespace().next().unwrap_or_default();
    let control = format!(
        "\
Package: feedrate
Version: {VERSION}
Architecture: {architecture}
Maintainer: {maintainer}
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

/// Replaces the licenses by the file `copyright`, and adds the changelog of the package.
fn write_documents(folder: &Path, maintainer: &str, date: &str) -> Result<()> {
    let font = folder.join("copyright-font");
    fs::write(folder.join("copyright"), format!("{COPYRIGHT}{}", fs::read_to_string(&font)?))?;
    fs::remove_file(font)?;
    let changelog = format!(
        "\
feedrate ({VERSION}) unstable; urgency=medium

  * CHANGELOG.md lists the changes.

 -- {maintainer}  {date}
"
    );
    Ok(fs::write(folder.join("changelog"), changelog)?)
}

/// Returns a property of the last commit, in the placeholders of `git log --format`.
fn last_commit(folder: &Path, format: &str) -> Result<String> {
    let line = output(folder, "git", &["log", "-1", &format!("--format={format}")])?;
    Ok(line.trim().to_string())
}
