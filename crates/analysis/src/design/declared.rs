//! The factors that the CSV of a study declares: the order of their levels, and the baseline.
//!
//! This module works on a parsed table and reads no file.

use super::Factor;
use feedrate_results::import::normalized_text;
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::run::{ROWS, factor};
use feedrate_results::setting::{compare_levels, split_outside_quotes, unquote};
use feedrate_results::table::{Table, TableEntry};
use std::collections::BTreeMap;

/// The declared factors of a study, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredFactors {
    factors: BTreeMap<String, DeclaredLevels>,
    /// The order of the rows, as described by a design of feedrate: `a block is a replicate, random order in each block, seed 1`.
    pub order: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct DeclaredLevels {
    /// Levels in the order of the CSV.
    names: Vec<String>,
    baseline: Option<Baseline>,
}

#[derive(Clone, Debug, PartialEq)]
enum Baseline {
    Level(String),
    /// The workload's default, which the baseline rows do not override.
    WorkloadDefault,
}

impl DeclaredFactors {
    /// Reads the rows of a CSV and two kinds of comments: `# factor NAME (KEY): LEVEL (baseline), LEVEL`, which designs of feedrate
    /// contain, and a comment that begins with `Baseline`, which marks the rows below it.
    pub fn from_table(table: &Table) -> Self {
        let mut declared = DeclaredFactors::default();
        let mut baseline_rows: Vec<BTreeMap<String, String>> = Vec::new();
        let mut is_baseline = false;
        for entry in table.entries() {
            match entry {
                TableEntry::Comment(comment) => {
                    is_baseline = comment.to_lowercase().starts_with("baseline");
                    declared.read_comment(comment);
                }
                TableEntry::Row(row) => {
                    let levels = row_levels(row);
                    levels.iter().for_each(|(name, level)| declared.add(name, level));
                    baseline_rows.extend(is_baseline.then_some(levels));
                }
            }
        }
        if !baseline_rows.is_empty() {
            declared.set_baselines(&baseline_rows);
        }
        declared
    }

    fn read_comment(&mut self, comment: &str) {
        let seed = comment.rsplit_once(", seed ").map(|(_, seed)| seed.parse::<u64>());
        if matches!(seed, Some(Ok(_))) && comment.contains(" order") {
            self.order = Some(comment.into());
        }
        let parts = comment.strip_prefix("factor ").and_then(|rest| rest.split_once(':'));
        let Some((head, levels)) = parts else { return };
        let key = head.split_once(" (").map_or(head, |(_, key)| key.trim_end_matches(')'));
        let name = factor_name(key);
        for text in split_outside_quotes(levels.trim_end_matches(", logarithmic"), |c| c == ',') {
            let baseline_text = text.trim().strip_suffix(" (baseline)");
            let level = normalized_level(baseline_text.unwrap_or(text.trim()));
            self.add(&name, &level);
            if baseline_text.is_some() {
                let baseline = Some(Baseline::Level(level));
                self.factors.entry(name.clone()).or_default().baseline = baseline;
            }
        }
    }

    fn add(&mut self, name: &str, level: &str) {
        let names = &mut self.factors.entry(name.into()).or_default().names;
        if !names.iter().any(|known| known == level) {
            names.push(level.into());
        }
    }

    /// For each factor without a declared baseline, makes the level that all baseline rows share the baseline.
    fn set_baselines(&mut self, rows: &[BTreeMap<String, String>]) {
        for (name, levels) in &mut self.factors {
            let first = rows[0].get(name);
            if levels.baseline.is_none() && rows.iter().all(|row| row.get(name) == first) {
                levels.baseline = Some(match first {
                    Some(level) => Baseline::Level(level.clone()),
                    None => Baseline::WorkloadDefault,
                });
            }
        }
    }

    /// Sorts the levels of an overview in the declared order; numbers ascend.
    pub fn sort_levels(&self, overview: &mut Overview) {
        for factor in &mut overview.factors {
            let name = factor_name(&factor.factor);
            factor.levels.sort_by_key(|row| self.position(&name, &normalized_level(&row.level)));
            factor.levels.sort_by(|a, b| compare_levels(&a.level, &b.level));
        }
    }

    /// Whether the study declares this factor.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.factors.contains_key(name)
    }

    /// Position of a level in the declared order. Levels that are not declared come last.
    pub(super) fn position(&self, name: &str, level: &str) -> usize {
        let Some(levels) = self.factors.get(name) else { return 0 };
        let text = normalized_text(level);
        levels.names.iter().position(|known| *known == text).unwrap_or(levels.names.len())
    }

    /// The index of the declared baseline among the levels of a factor.
    pub(super) fn baseline(&self, factor: &Factor) -> Option<usize> {
        let declared = self.factors.get(&factor.name)?;
        let mut levels = factor.levels.iter().map(|level| normalized_text(level));
        match declared.baseline.as_ref()? {
            Baseline::Level(baseline) => levels.position(|level| level == *baseline),
            // The default is the only level that no row declares.
            Baseline::WorkloadDefault => {
                let undeclared: Vec<usize> = levels
                    .enumerate()
                    .filter(|(_, level)| !declared.names.contains(level))
                    .map(|(index, _)| index)
                    .collect();
                if let [only] = undeclared[..] { Some(only) } else { None }
            }
        }
    }
}

/// The levels that a row sets, by the names of their factors.
fn row_levels(row: &Row) -> BTreeMap<String, String> {
    let mut levels = BTreeMap::new();
    for setting in &row.settings {
        if let Some(value) = setting.value.as_deref() {
            levels.insert(factor_name(&setting.key), normalized_level(value));
        }
    }
    for (name, value) in [("processes", Some(row.accelerators)), ("epochs", row.epochs)] {
        if let Some(number) = value {
            levels.insert(name.into(), number.to_string());
        }
    }
    levels
}

fn normalized_level(level: &str) -> String {
    normalized_text(&unquote(level))
}

/// The factor name of a key of a workload or of a plan.
fn factor_name(key: &str) -> String {
    let leaf = key.rsplit_once('.').map_or(key, |(_, leaf)| leaf);
    let row = ROWS
        .iter()
        .find(|(_, plan, dlio)| *plan == key || *dlio == key)
        .or_else(|| ROWS.iter().find(|(_, plan, _)| factor(plan) == leaf));
    row.map_or(key, |(_, plan, _)| factor(plan)).to_string()
}
