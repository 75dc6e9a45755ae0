//! Places where a rule is still broken, counted by crate in `xtask/budgets.txt`. The numbers may only fall.

use super::repo::Repo;
use super::{Check, Violation};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Lines `RULE | CRATE | PLACES`.
const PATH: &str = "xtask/budgets.txt";

/// Lines about crates in which a rule is broken more often than its budget allows, or less often.
pub(super) fn off_budget(check: &Check, repo: &Repo) -> Vec<String> {
    let broken = findings_by_crate(check, repo);
    let budgets = budgets(check, repo);
    let mut lines = Vec::new();
    for (package, findings) in &broken {
        let allowed = budgets.get(package).copied().unwrap_or(0);
        if findings.len() > allowed {
            lines.extend(findings.iter().map(Violation::to_string));
        }
        if findings.len() > allowed && allowed > 0 {
            lines.push(format!("  {PATH}: {} in {package}, {allowed} allowed", findings.len()));
        }
    }
    for (package, allowed) in budgets {
        let left = broken.get(package).map_or(0, Vec::len);
        if left < allowed {
            lines.push(format!(
                "  {PATH}: {allowed} allowed in {package}, {left} left: lower it by `cargo xtask tidy --lower`"
            ));
        }
    }
    lines
}

/// Writes the budgets of a tree that became better.
pub(super) fn lower(root: &Path, repo: &Repo, checks: &[&Check]) -> Result<()> {
    let mut text = String::from(
        "# RULE | CRATE | PLACES where it is still broken. These numbers may only fall.\n",
    );
    for check in checks {
        let broken = findings_by_crate(check, repo);
        for (package, allowed) in budgets(check, repo) {
            let left = broken.get(package).map_or(0, Vec::len).min(allowed);
            if left > 0 {
                text += &format!("{} | {package} | {left}\n", check.rule);
            }
        }
    }
    std::fs::write(root.join(PATH), text).with_context(|| format!("cannot write `{PATH}`"))
}

fn findings_by_crate<'a>(check: &Check, repo: &'a Repo) -> BTreeMap<&'a str, Vec<Violation>> {
    let mut by_crate: BTreeMap<&str, Vec<Violation>> = BTreeMap::new();
    for finding in (check.find)(repo) {
        let package = repo.file(&finding.path).map_or("", |file| file.package());
        by_crate.entry(package).or_default().push(finding);
    }
    by_crate
}

fn budgets<'a>(check: &Check, repo: &'a Repo) -> BTreeMap<&'a str, usize> {
    let lines = repo.file(PATH).map_or("", |file| &file.text).lines();
    lines
        .filter_map(|line| {
            let (package, places) =
                line.strip_prefix(check.rule)?.strip_prefix(" | ")?.split_once(" | ")?;
            Some((package, places.parse().ok()?))
        })
        .collect()
}
