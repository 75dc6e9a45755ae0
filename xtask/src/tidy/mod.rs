//! Rules of the source tree that neither the compiler nor clippy checks. Each row of [`CHECKS`] is a rule.
//!
//! To add one: write a function from [`Repo`] to violations, add its row, and a test in `tests.rs` with a snippet that breaks the rule.

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
    /// Finds the places that break the rule.
    find: fn(&Repo) -> Vec<Violation>,
}

/// A place where a rule is broken.
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
    &places::ONLY_SOME_PLACES_MAY,
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
    let broken: Vec<String> = CHECKS.iter().filter_map(|check| report(check, &repo)).collect();
    if !broken.is_empty() {
        bail!("{}", broken.join("\n\n"));
    }
    eprintln!("{} rules hold in {} files", CHECKS.len(), repo.files().len());
    Ok(())
}

/// The message about a broken rule; `None` if it holds.
fn report(check: &Check, repo: &Repo) -> Option<String> {
    let lines: Vec<String> = (check.find)(repo).iter().map(Violation::to_string).collect();
    let message = format!("tidy: {}\n{}\n  hint: {}", check.rule, lines.join("\n"), check.advice);
    (!lines.is_empty()).then_some(message)
}
