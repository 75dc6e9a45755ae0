//! The campaigns that take longer than CI may. Each step runs even if an earlier one failed.

use crate::shell::{run_with, this_program};
use crate::{chaos, setup};
use anyhow::{Result, bail};
use std::path::Path;

/// Runs all campaigns, and reports every failure.
pub(crate) fn long(root: &Path) -> Result<()> {
    setup::install_for_tests(root)?;
    let outcomes = [
        ("corpus", mutate_corpora(root)),
        ("DLIO's tests", run_tests(root, "dlio")),
        ("tests of stores", run_tests(root, "objects")),
        ("chaos", run_chaos(root)),
    ];
    let mut failures = Vec::new();
    for (name, outcome) in outcomes {
        if let Err(error) = outcome {
            eprintln!("error: {name}: {error:#}");
            failures.push(name);
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failures.join(", "))
}

/// Reads many mutations of the files of each format.
fn mutate_corpora(root: &Path) -> Result<()> {
    let test = ["test", "--profile", "checked", "--package", "feedrate-data", "--test", "corpus"];
    run_with(root, "cargo", &test, &[("FEEDRATE_MUTATIONS", "3000")])
}

/// Runs the tests whose names contain a word, including those that CI leaves out, one after another because some take times.
fn run_tests(root: &Path, word: &str) -> Result<()> {
    let tests = ["test", "--package", "feedrate", "--features", "libhdf5", "--test", "it"];
    let selection = ["--", "--include-ignored", "--test-threads=1", word];
    run_with(root, "cargo", &[&tests[..], &selection].concat(), &[])
}

/// Runs all classes with all their cases, and many hostile files.
fn run_chaos(root: &Path) -> Result<()> {
    let build = ["build", "--profile", "checked", "--package", "feedrate", "--features", "libhdf5"];
    run_with(root, "cargo", &build, &[])?;
    let programs = chaos::built_programs()?.with_file_name("checked").display().to_string();
    let here = this_program()?.display().to_string();
    let chaos = ["chaos", "--programs", &programs];
    run_with(root, &here, &chaos, &[("FEEDRATE_CHAOS_FILES", "300")])
}
