//! The factors that the CSV of a study declares: the order of their levels, and the baseline.
//!
//! This module works on a parsed table and reads no file.

use super::{Factor, UNSET};
use feedrate_results::import::normalized_text;
use feedrate_results::overview::Overview;
use feedrate_results::row::Row;
use feedrate_results::run::{ROWS, Run, Settings, factor};
use feedrate_results::setting::{Setting, compare_levels, split_outside_quotes, unquote};
use feedrate_results::table::{Table, TableEntry};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The declared factors of a study, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredFactors {
    factors: BTreeMap<String, DeclaredLevels>,
    /// The order of the rows, as described by a design of feedrate: `a block is a replicate, random order in each block, seed 1`.
    pub order: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct DeclaredLevels {
    /// Key of the workload, or name of the column.
    key: String,
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
                    levels.iter().for_each(|(key, level)| declared.add(key, level));
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
        for text in split_outside_quotes(levels.trim_end_matches(", logarithmic"), |c| c == ',') {
            let baseline_text = text.trim().strip_suffix(" (baseline)");
            let level = normalized_level(baseline_text.unwrap_or(text.trim()));
            self.add(key, &level);
            if baseline_text.is_some() {
                let baseline = Some(Baseline::Level(level));
                self.factors.entry(factor_name(key)).or_default().baseline = baseline;
            }
        }
    }

    fn add(&mut self, key: &str, level: &str) {
        let declared = self.factors.entry(factor_name(key)).or_default();
        declared.key = key.into();
        let names = &mut declared.names;
        if !names.iter().any(|known| known == level) {
            names.push(level.into());
        }
    }

    /// For each factor without a declared baseline, makes the level that all baseline rows share the baseline.
    fn set_baselines(&mut self, rows: &[BTreeMap<String, String>]) {
        for levels in self.factors.values_mut() {
            let key = &levels.key;
            let first = rows[0].get(key);
            if levels.baseline.is_none() && rows.iter().all(|row| row.get(key) == first) {
                levels.baseline = Some(match first {
                    Some(level) => Baseline::Level(level.clone()),
                    None => Baseline::WorkloadDefault,
                });
            }
        }
    }

    /// Names factors and levels as the settings of `runs` do: `throttle_bytes_per_second` for the key `storage.throttle.bytes_per_second`, and
    /// 100000000 for its level `100MB/s`. The setting of a factor is the one that changes with the overrides of the rows.
    pub fn with_settings(self, runs: &[&Run]) -> Self {
        let rows = runs.iter().filter_map(|run| {
            let overrides = run.study.as_ref()?.overrides.iter();
            let settings: Vec<Setting> =
                overrides.filter_map(|text| Setting::parse(text).ok()).collect();
            Some((setting_levels(&settings), &run.settings))
        });
        let rows: Vec<RowSettings> = rows.collect();
        let factors = self.factors.into_iter();
        DeclaredFactors {
            factors: factors.map(|(name, levels)| levels.with_setting(name, &rows)).collect(),
            order: self.order,
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

/// The levels of a run's row by key, with the run's settings.
type RowSettings<'a> = (BTreeMap<String, String>, &'a Settings);

impl DeclaredLevels {
    /// The factor by the name and the levels of the setting that changes with it in all `rows`; unchanged if there is no such setting.
    fn with_setting(self, name: String, rows: &[RowSettings]) -> (String, Self) {
        let is_varied = rows.iter().any(|(levels, _)| levels.contains_key(&self.key));
        let settings: BTreeSet<&String> =
            rows.iter().filter(|_| is_varied).flat_map(|(_, settings)| settings.keys()).collect();
        let found = settings
            .into_iter()
            .filter_map(|setting| Some((setting, level_texts(&self.key, setting, rows)?)));
        let rank = |setting: &str| {
            let position = ROWS.iter().position(|(_, plan, _)| *plan == setting);
            let shared = shared_words(&self.key, setting);
            (factor(setting) != name, Reverse(shared), position.unwrap_or(ROWS.len()))
        };
        let Some((setting, texts)) = found.min_by_key(|(setting, _)| rank(setting)) else {
            return (name, self);
        };
        let text = |level: String| {
            let known = texts.get(&Some(level.as_str()));
            known.map_or(level.clone(), |text| normalized_text(text))
        };
        let baseline = self.baseline.map(|baseline| match baseline {
            Baseline::Level(level) => Baseline::Level(text(level)),
            Baseline::WorkloadDefault => Baseline::WorkloadDefault,
        });
        let names = self.names.into_iter().map(text).collect();
        (factor(setting).into(), DeclaredLevels { key: self.key, names, baseline })
    }
}

/// The value of a setting for each level of a key; `None` if it does not follow from the level, or two levels share it.
fn level_texts<'a>(
    key: &str,
    setting: &str,
    rows: &'a [RowSettings],
) -> Option<BTreeMap<Option<&'a str>, &'a str>> {
    let mut texts: BTreeMap<Option<&str>, &str> = BTreeMap::new();
    for (levels, settings) in rows {
        let text = settings.get(setting).map_or(UNSET, String::as_str);
        let level = levels.get(key).map(String::as_str);
        if *texts.entry(level).or_insert(text) != text {
            return None;
        }
    }
    let distinct = texts.values().collect::<BTreeSet<_>>().len();
    (1 < distinct && distinct == texts.len()).then_some(texts)
}

/// Number of words that two keys share.
fn shared_words(a: &str, b: &str) -> usize {
    let words = |key| str::split(key, ['.', '_']).collect::<BTreeSet<&str>>();
    words(a).intersection(&words(b)).count()
}

/// The levels that a row sets, by their keys.
fn row_levels(row: &Row) -> BTreeMap<String, String> {
    let mut levels = setting_levels(&row.settings);
    for (name, value) in [("processes", Some(row.accelerators)), ("epochs", row.epochs)] {
        if let Some(number) = value {
            levels.insert(name.into(), number.to_string());
        }
    }
    levels
}

fn setting_levels<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> BTreeMap<String, String> {
    let levels = settings.into_iter().filter_map(|setting| {
        Some((setting.key.clone(), normalized_level(setting.value.as_deref()?)))
    });
    levels.collect()
}

fn normalized_level(level: &str) -> String {
    normalized_text(&unquote(level))
}

/// Returns the factor name of a key of a workload or of a plan.
pub fn factor_name(key: &str) -> String {
    let leaf = key.rsplit_once('.').map_or(key, |(_, leaf)| leaf);
    let row = ROWS
        .iter()
        .find(|(_, plan, dlio)| *plan == key || *dlio == key)
        .or_else(|| ROWS.iter().find(|(_, plan, _)| factor(plan) == leaf));
    row.map_or(key, |(_, plan, _)| factor(plan)).to_string()
}
