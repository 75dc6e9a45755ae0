//! Rules of the source tree that neither the compiler nor clippy checks. Each row of [`CHECKS`] is a rule.
//!
//! To add a rule: write a function that finds its violations in a [`Repo`], add its row, and add a test in `tests.rs` with a snippet that
//! violates the rule.

mod repo;
mod tokens;
mod text;
mod language;
mod docs;
mod layout;
mod modules;
mod circles;
mod families;
mod places;
#[cfg(test)]
mod tests;

use anyhow::{Result, bail};
use repo::Repo;
use std::fmt;
use std::path::Path;

/// A rule of the source tree.
struct Check {
    /// The rule as a sentence.
    rule: &'static str,
    /// The remedy.
    advice: &'static str,
    /// Finds the violations of the rule.
    find: fn(&Repo) -> Vec<Violation>,
}

/// A line that violates a rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    line: usize,
    description: String,
}

impl Violation {
    fn new(path: &str, line: usize, description: impl Into<String>) -> Self {
        Violation { path: path.to_string(), line, description: description.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}:{}: {}", self.path, self.line, self.description)
    }
}

/// All rules, in the order of ARCHITECTURE.md and STYLE.md.
static CHECKS: &[&Check] = &[
    &layout::CRATE_DIRECTIONS,
    &modules::MODULE_ORDER,
    &modules::SIBLING_ORDER,
    &modules::NO_DEAD_FILE,
    &circles::NO_FILE_CIRCLES,
    &families::MEMBERS_APART,
    &families::NAMES_NOT_COMPARED,
    &families::FORMAT_AND_STORAGE_APART,
    &places::RESERVED_ACCESS,
    &text::FILES_HAVE_HEADERS,
    &text::SHORT_FILES,
    &text::NO_LOOSE_ENDS,
    &text::NO_MACHINE_PATHS,
    &language::PLAIN_LANGUAGE,
    &docs::LINKS_HAVE_TARGETS,
    &docs::THE_BOOK_IS_COMPLETE,
];

/// Checks all rules on the tree at `root`.
pub(crate) fn tidy(root: &Path) -> Result<()> {
    eprintln!("\n$ tidy");
    let repo = Repo::read(root)?;
    let messages: Vec<String> = CHECKS.iter().filter_map(|check| report(check, &repo)).collect();
    if !messages.is_empty() {
        bail!("{}", messages.join("\n\n"));
    }
    eprintln!("{} rules are met in {} files", CHECKS.len(), repo.files().len());
    Ok(())
}

/// Returns the message about a violated rule; `None` if there are no violations.
fn report(check: &Check, repo: &Repo) -> Option<String> {
    let lines: Vec<String> = (check.find)(repo).iter().map(Violation::to_string).collect();
    let message = format!("tidy: {}\n{}\n  hint: {}", check.rule, lines.join("\n"), check.advice);
    (!lines.is_empty()).then_some(message)
}
