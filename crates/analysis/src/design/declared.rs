//! Factors as the CSV of a study has them: the order of their levels, and the baseline. Text in, names out; reads no file.

use super::Factor;
use feedrate_results::import::normalized_text;
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::run::{ROWS, factor};
use feedrate_results::setting::{by_number, pieces, unquoted};
use feedrate_results::table::{Table, TableEntry};
use std::collections::BTreeMap;

/// The factors of a study, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredFactors {
    factors: BTreeMap<String, DeclaredLevels>,
    /// How the rows were ordered, as a design of ours says: `a block is a replicate, random order in each block, seed 1`.
    pub order: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct DeclaredLevels {
    /// In the order of the CSV.
    names: Vec<String>,
    baseline: Option<Baseline>,
}

#[derive(Clone, Debug, PartialEq)]
enum Baseline {
    Level(String),
    /// The workload's own, which the rows of the baseline leave as it is.
    OfWorkload,
}

impl DeclaredFactors {
    /// Read the rows of a CSV, and the comments that say more: `# factor NAME (KEY): LEVEL (baseline), LEVEL` of a design of ours, and a comment that begins
    /// with `Baseline` above its rows.
    pub fn from_table(table: &Table) -> Self {
        let mut declared = DeclaredFactors::default();
        let mut baseline: Vec<BTreeMap<String, String>> = Vec::new();
        let mut is_baseline = false;
        for entry in table.entries() {
            match entry {
                TableEntry::Comment(comment) => {
                    is_baseline = comment.to_lowercase().starts_with("baseline");
                    declared.read_comment(comment);
                }
                TableEntry::Row(row) => {
                    let levels = levels_of_row(row);
                    levels.iter().for_each(|(name, level)| declared.add(name, level));
                    baseline.extend(is_baseline.then_some(levels));
                }
            }
        }
        if !baseline.is_empty() {
            declared.confirm(&baseline);
        }
        declared
    }

    fn read_comment(&mut self, comment: &str) {
        let seed = comment.rsplit_once(", seed ").map(|of| of.1.parse::<u64>());
        if matches!(seed, Some(Ok(_))) && comment.contains(" order") {
            self.order = Some(comment.into());
        }
        let parts = comment.strip_prefix("factor ").and_then(|rest| rest.split_once(':'));
        let Some((head, levels)) = parts else { return };
        let key = head.split_once(" (").map_or(head, |(_, key)| key.trim_end_matches(')'));
        let name = factor_name(key);
        for level in pieces(levels.trim_end_matches(", logarithmic"), |c| c == ',') {
            let marked = level.trim().strip_suffix(" (baseline)");
            let level = normal(marked.unwrap_or(level.trim()));
            self.add(&name, &level);
            if marked.is_some() {
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

    /// Take the levels that all rows of the baseline agree in.
    fn confirm(&mut self, rows: &[BTreeMap<String, String>]) {
        for (name, levels) in &mut self.factors {
            let first = rows[0].get(name);
            if levels.baseline.is_none() && rows.iter().all(|row| row.get(name) == first) {
                let baseline =
                    first.map_or(Baseline::OfWorkload, |own| Baseline::Level(own.clone()));
                levels.baseline = Some(baseline);
            }
        }
    }

    /// Put the levels of an overview in the order of the design; numbers ascend.
    pub fn order(&self, overview: &mut Overview) {
        for of in &mut overview.factors {
            let name = factor_name(&of.factor);
            of.levels.sort_by_key(|at| self.place(&name, &normal(&at.level)));
            of.levels.sort_by(|a, b| by_number(&a.level, &b.level));
        }
    }

    /// Whether the study sets this factor itself.
    pub(super) fn has(&self, name: &str) -> bool {
        self.factors.contains_key(name)
    }

    /// The place of a level; those that the CSV does not name are last.
    pub(super) fn place(&self, name: &str, level: &str) -> usize {
        let Some(levels) = self.factors.get(name) else { return 0 };
        let level = normalized_text(level);
        levels.names.iter().position(|known| *known == level).unwrap_or(levels.names.len())
    }

    /// The baseline among the levels of a factor, where the CSV tells.
    pub(super) fn baseline(&self, factor: &Factor) -> Option<usize> {
        let declared = self.factors.get(&factor.name)?;
        let mut levels = factor.levels.iter().map(|level| normalized_text(level));
        match declared.baseline.as_ref()? {
            Baseline::Level(of) => levels.position(|level| level == *of),
            Baseline::OfWorkload => {
                let own = levels.enumerate().filter(|(_, level)| !declared.names.contains(level));
                let own: Vec<usize> = own.map(|(at, _)| at).collect();
                if let [only] = own[..] { Some(only) } else { None }
            }
        }
    }
}

fn levels_of_row(row: &Row) -> BTreeMap<String, String> {
    let set = row.settings.iter();
    let set = set.filter_map(|one| Some((factor_name(&one.key), normal(one.value.as_deref()?))));
    let columns = [("processes", Some(row.accelerators)), ("epochs", row.epochs)];
    let columns =
        columns.into_iter().filter_map(|(name, value)| Some((name.into(), value?.to_string())));
    set.chain(columns).collect()
}

fn normal(level: &str) -> String {
    normalized_text(&unquoted(level))
}

/// The name that a key of a workload or of a plan has as a factor.
fn factor_name(key: &str) -> String {
    let leaf = key.rsplit_once('.').map_or(key, |(_, leaf)| leaf);
    let row = ROWS.iter().find(|(_, plan, dlio)| *plan == key || *dlio == key);
    let row = row.or_else(|| ROWS.iter().find(|(_, plan, _)| factor(plan) == leaf));
    row.map_or(key, |(_, plan, _)| factor(plan)).to_string()
}
