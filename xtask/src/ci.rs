//! The steps of CI, with cheap checks first, and `quick`, the checks after an edit.

use crate::shell::{output, run, run_with, succeeds};
use crate::{chaos, dist, setup, tidy};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;

/// Arguments that select all crates and the optional feature, so that lints and tests need one build each. `cargo doc` uses no feature.
const EVERYTHING: &[&str] = &["--workspace", "--features", "libhdf5"];

/// Runs all steps, and stops at the first failure.
pub(crate) fn ci(root: &Path) -> Result<()> {
    // Building the documentation needs none of the requirements, and keeps the processors busy while these are downloaded.
    thread::scope(|scope| {
        let documentation = scope.spawn(|| build_documentation(root));
        setup::install_for_tests(root)?;
        documentation.join().unwrap_or_else(|_| bail!("building the documentation panicked"))
    })?;
    check_sources(root)?;
    if has_nextest() {
        nextest(root, &[])?;
    } else {
        run(root, "cargo", &[&["test", "--all-targets"], EVERYTHING].concat())?;
    }
    chaos::check_briefly(root)?;
    dist::check_briefly(root)
}

fn build_documentation(root: &Path) -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run_with(root, "cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Checks the sources, and runs the short tests of the crates that changed since `revision` and of the crates that depend on them.
pub(crate) fn quick(root: &Path, revision: Option<&str>) -> Result<()> {
    if !has_nextest() {
        bail!("there is no `cargo nextest`\n  hint: `cargo install --locked cargo-nextest`");
    }
    let paths = changed_paths(root, revision)?;
    check_sources(root)?;
    let Some(tests) = tests_of(&paths) else { return Ok(()) };
    nextest(root, &["--profile", "quick", "--filterset", &tests])
}

fn check_sources(root: &Path) -> Result<()> {
    tidy::tidy(root)?;
    run(root, "cargo", &["fmt", "--all", "--check"])?;
    let lints = ["--all-targets", "--", "-D", "warnings"];
    run(root, "cargo", &[&["clippy"], EVERYTHING, &lints].concat())
}

fn has_nextest() -> bool {
    succeeds("cargo", &["nextest", "--version"])
}

fn nextest(root: &Path, extra_arguments: &[&str]) -> Result<()> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // A test occupies two threads, or one if it hardly uses a processor: see .config/nextest.toml. Most tests wait for half of their time.
    let test_threads = (3 * processors).to_string();
    let command = ["nextest", "run", "--test-threads", &test_threads];
    run(root, "cargo", &[&command[..], EVERYTHING, extra_arguments].concat())
}

/// Returns the paths of the files that differ from `revision`, committed or not. The default is the commit where the branch left `main`.
fn changed_paths(root: &Path, revision: Option<&str>) -> Result<String> {
    let base = match revision {
        Some(revision) => revision.to_string(),
        None => output(root, "git", &["merge-base", "HEAD", "main"])?,
    };
    let tracked = output(root, "git", &["diff", "--name-only", base.trim()])?;
    let untracked = output(root, "git", &["ls-files", "--others", "--exclude-standard"])?;
    Ok(tracked + &untracked)
}

/// Returns nextest's filter for the tests that depend on these files; `None` if no tests do.
fn tests_of(paths: &str) -> Option<String> {
    let packages: BTreeSet<String> = paths.lines().filter_map(package_of).collect();
    let filters: Vec<String> = packages.iter().map(|package| format!("rdeps({package})")).collect();
    (!filters.is_empty()).then(|| filters.join(" + "))
}

/// Returns nextest's pattern for the package of a file: `*` if tests of any package may read it, `None` if no test does.
fn package_of(path: &str) -> Option<String> {
    let (folder, rest) = path.split_once('/').unwrap_or(("", path));
    match folder {
        "crates" => match rest.split_once('/')?.0 {
            "feedrate" => Some("=feedrate".to_string()),
            name => Some(format!("=feedrate-{name}")),
        },
        "xtask" => Some("=xtask".to_string()),
        "bench" => None,
        "" if rest.ends_with(".md") => None,
        _ => Some("*".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_selects_the_tests_of_its_crate_and_dependents() {
        let check = |paths: &str, expected: Option<&str>| {
            assert_eq!(tests_of(paths).as_deref(), expected, "{paths}");
        };
        check("", None);
        check("README.md\nbench/run.py\n", None);
        check("crates/data/src/lib.rs\ncrates/data/src/tests.rs", Some("rdeps(=feedrate-data)"));
        check(
            "xtask/src/ci.rs\ncrates/feedrate/Cargo.toml",
            Some("rdeps(=feedrate) + rdeps(=xtask)"),
        );
        check("Cargo.lock", Some("rdeps(*)"));
        check("crates/spec/workloads/quickstart.yaml", Some("rdeps(=feedrate-spec)"));
    }
}
