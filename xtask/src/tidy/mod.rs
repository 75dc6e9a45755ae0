//! The rules of the source tree that neither compiler nor clippy knows. A row of [`CHECKS`] is a rule.
//!
//! To add one: write a function from [`Repo`] to violations, add its row, and a bad snippet in `tests.rs`
//! that it must find.

mod repo;
mod tokens;
mod text;
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

/// One rule.
struct Check {
    /// The rule as a sentence.
    rule: &'static str,
    /// The remedy.
    advice: &'static str,
    /// Where it is broken.
    find: fn(&Repo) -> Vec<Violation>,
}

/// One place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Violation { path: path.to_string(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every rule, in the order ARCHITECTURE.md and STYLE.md give them.
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
    &text::FILES_SAY_WHAT_THEY_ARE,
    &text::SHORT_FILES,
    &text::NO_LOOSE_ENDS,
    &text::NO_MACHINE_PATHS,
    &docs::LINKS_LEAD_SOMEWHERE,
    &docs::THE_BOOK_IS_WHOLE,
];

/// Run every check on the tree at `root`.
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

/// The message of a broken rule; `None` where it holds.
fn report(check: &Check, repo: &Repo) -> Option<String> {
    let lines: Vec<String> = (check.find)(repo).iter().map(Violation::to_string).collect();
    let told = format!("tidy: {}\n{}\n  hint: {}", check.rule, lines.join("\n"), check.advice);
    (!lines.is_empty()).then_some(told)
}
