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
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run_with(root, "cargo", &docs, &[("RUSTDOCFLAGS", "-D warnings")])
}
