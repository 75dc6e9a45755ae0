//! All that CI does, in the order in which a mistake is cheapest to find.

use crate::shell::{run, run_with, works};
use crate::{setup, tidy};
use anyhow::Result;
use std::path::Path;

/// Stops at the first step that fails.
pub(crate) fn ci(root: &Path) -> Result<()> {
    setup::for_tests(root)?;
    tidy::tidy(root)?;
    run(root, "cargo", &["fmt", "--all", "--check"])?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(root, "cargo", &lints)?;
    if works("cargo", &["nextest", "--version"]) {
        run(root, "cargo", &["nextest", "run", "--workspace"])?;
    } else {
        run(root, "cargo", &["test", "--workspace", "--all-targets"])?;
    }
    run(root, "cargo", &["test", "--workspace", "--doc"])?;
    libhdf5(root)?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run_with(root, "cargo", &docs, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// The feature that the default build is without: its lints, HDF5's library beside our reader, and each format with it.
fn libhdf5(root: &Path) -> Result<()> {
    let feature = ["--features", "libhdf5"];
    let lints = ["clippy", "--package", "feedrate-data", "--package", "feedrate", "--all-targets"];
    run(root, "cargo", &[&lints[..], &feature, &["--", "-D", "warnings"]].concat())?;
    let library = ["test", "--package", "feedrate-data", "--lib", "--test", "interop"];
    run(root, "cargo", &[&library[..], &feature, &["--", "hdf5", "engine"]].concat())?;
    let pairs = ["test", "--package", "feedrate", "--test", "it"];
    run(root, "cargo", &[&pairs[..], &feature, &["--", "engine"]].concat())
}
