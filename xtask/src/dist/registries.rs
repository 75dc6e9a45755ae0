//! Checks that crates.io, PyPI, Debian and GitHub accept what is published.

use crate::setup;
use crate::shell::{run, run_with};
use anyhow::Result;
use std::path::Path;

/// Files of GitHub and the schemas that they follow.
const SCHEMAS: &[(&str, &[&str])] = &[
    ("vendor.github-workflows", &[".github/workflows/ci.yml", ".github/workflows/release.yml"]),
    ("vendor.citation-file-format", &["CITATION.cff"]),
];

/// Packs all crates and builds them from their packages. This fails if a crate uses a file that is not in its package.
pub(super) fn check_crates(root: &Path) -> Result<()> {
    // All crates use one folder, so that each dependency is compiled once.
    let target = root.join("target/dist-sources").display().to_string();
    let publish = ["publish", "--workspace", "--dry-run", "--locked"];
    run_with(root, "cargo", &publish, &[("CARGO_TARGET_DIR", &target)])
}

/// Checks the metadata of wheels and source packages.
pub(super) fn check_python_packages(root: &Path, packages: &[&Path]) -> Result<()> {
    let paths: Vec<String> = packages.iter().map(|path| path.display().to_string()).collect();
    let words: Vec<&str> = paths.iter().map(String::as_str).collect();
    let twine = setup::program_folder(root).join("twine").display().to_string();
    run(root, &twine, &[&["check", "--strict"], &words[..]].concat())
}

/// Checks a package by Debian's policy. Warnings do not fail.
pub(super) fn check_debian_package(root: &Path, package: &Path) -> Result<()> {
    let path = package.display().to_string();
    run(root, "lintian", &["--allow-root", "--fail-on", "error", &path])
}

/// Checks the workflows and the citation.
pub(super) fn check_github_files(root: &Path) -> Result<()> {
    let program = setup::program_folder(root).join("check-jsonschema").display().to_string();
    for &(schema, files) in SCHEMAS {
        let options = ["--force-filetype", "yaml", "--builtin-schema", schema];
        run(root, &program, &[&options[..], files].concat())?;
    }
    Ok(())
}
