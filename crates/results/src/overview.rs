//! Progress of a study: counts of its rows by status, in total, by level of each factor, and by model and processes.

use crate::place::model_name;
use crate::row::Row;
use crate::setting::compare_levels;
use crate::state::{Attempt, RowState, Status, StudyState};
use crate::table::field;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of rows by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "named after `Status`")]
pub struct StatusCounts {
    pub done: usize,
    pub running: usize,
    pub pending: usize,
    pub failed: usize,
}

/// Counts of the rows with one level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LevelCounts {
    /// Level as in the CSV; `-` for rows that use the workload's value.
    pub level: String,
    /// Counts of these rows.
    pub counts: StatusCounts,
}

/// Counts of the rows by level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactorCounts {
    /// Column or key that differs between rows.
    pub factor: String,
    /// Levels. Numbers ascend; other levels are in file order.
    pub levels: Vec<LevelCounts>,
}

/// Counts of the rows with one model and number of processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "two columns of the CSV")]
pub struct ModelCounts {
    pub model: String,
    pub processes: u32,
    /// Counts of these rows.
    pub counts: StatusCounts,
}

/// Progress of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Overview {
    /// Counts of all rows.
    pub counts: StatusCounts,
    /// Number of done rows that are marked with `Y` and have no result here.
    pub done_elsewhere: usize,
    /// Counts by factor; columns precede keys.
    pub factors: Vec<FactorCounts>,
    /// Counts by model, in file order, and by ascending number of processes.
    pub matrix: Vec<ModelCounts>,
}

impl StatusCounts {
    /// Returns the total number of rows.
    pub fn total(&self) -> usize {
        self.done + self.running + self.pending + self.failed
    }

    fn add(&mut self, status: Status) {
        match status {
            Status::Done => self.done += 1,
            Status::Running => self.running += 1,
            Status::Pending => self.pending += 1,
            Status::Failed => self.failed += 1,
        }
    }
}

impl Overview {
    /// Counts a study's rows.
    pub fn new(rows: &[Row], state: &StudyState) -> Self {
        let states = state.row_states(rows);
        let with_status: Vec<(&Row, Status)> =
            rows.iter().zip(states.iter().map(|row_state| row_state.status)).collect();
        let is_elsewhere =
            |state: &&RowState| state.status == Status::Done && state.attempt.is_none();
        Overview {
            done_elsewhere: states.iter().filter(is_elsewhere).count(),
            counts: count(&with_status),
            factors: factors(&with_status),
            matrix: matrix(&with_status),
        }
    }
}

fn count(rows: &[(&Row, Status)]) -> StatusCounts {
    let mut counts = StatusCounts::default();
    rows.iter().for_each(|(_, status)| counts.add(*status));
    counts
}

/// Counts rows by level for each column and key that differs between rows.
fn factors(rows: &[(&Row, Status)]) -> Vec<FactorCounts> {
    let mut names = vec!["model", "processes", "epochs", "scale", "seed"];
    names.extend(rows.iter().flat_map(|(row, _)| &row.settings).map(|setting| &*setting.key));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let mut factors = Vec::new();
    for name in names {
        let mut counts: BTreeMap<String, StatusCounts> = BTreeMap::new();
        for (row, status) in rows {
            counts.entry(level(row, name)).or_default().add(*status);
        }
        let levels = counts.into_iter().map(|(level, counts)| LevelCounts { level, counts });
        let mut levels: Vec<LevelCounts> = levels.collect();
        levels.sort_by(|a, b| compare_levels(&a.level, &b.level));
        if levels.len() > 1 {
            factors.push(FactorCounts { factor: name.into(), levels });
        }
    }
    factors
}

fn matrix(rows: &[(&Row, Status)]) -> Vec<ModelCounts> {
    let mut models: Vec<&str> = rows.iter().map(|(row, _)| &*row.model).collect();
    let mut seen = BTreeSet::new();
    models.retain(|model| seen.insert(*model));
    let accelerators: BTreeSet<u32> = rows.iter().map(|(row, _)| row.accelerators).collect();
    let mut counted: BTreeMap<(&str, u32), StatusCounts> = BTreeMap::new();
    for (row, status) in rows {
        counted.entry((&*row.model, row.accelerators)).or_default().add(*status);
    }
    let mut cells = Vec::new();
    for model in models {
        for &processes in &accelerators {
            let counts = counted.get(&(model, processes)).copied().unwrap_or_default();
            cells.push(ModelCounts { model: model_name(model), processes, counts });
        }
    }
    cells
}

/// Returns the level of a factor in a row.
fn level(row: &Row, factor: &str) -> String {
    let setting = row.settings.iter().find(|setting| setting.key == factor);
    match (factor, setting) {
        ("model", _) => model_name(&row.model),
        (_, Some(setting)) => setting.value.clone().unwrap_or_else(|| "deleted".into()),
        (column, None) => {
            Some(field(row, column)).filter(|level| !level.is_empty()).unwrap_or("-".into())
        }
    }
}

/// Returns complete attempts whose rows are no longer in the CSV.
pub fn orphans<'a>(rows: &[Row], state: &'a StudyState) -> Vec<&'a Attempt> {
    let states = state.row_states(rows);
    let has_row = |attempt: &&Attempt| states.iter().any(|state| state.attempt == Some(*attempt));
    let complete = state.attempts.iter().filter(|attempt| attempt.is_complete());
    complete.filter(|attempt| !has_row(attempt)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use crate::state::Outcome;

    #[test]
    fn rows_are_counted_by_factor_and_by_model_and_processes() {
        let row = |processes, threads: Option<&str>, done| Row {
            settings: threads.map(|n| Setting::new("reader.read_threads", n)).into_iter().collect(),
            done,
            ..Row::new("unet3d", processes)
        };
        let rows = [
            row(1, None, true),
            row(4, None, false),
            row(4, Some("8"), true),
            row(4, Some("8"), false),
        ];
        let overview = Overview::new(&rows, &StudyState::default());
        let counts = |done, pending| StatusCounts { done, pending, ..StatusCounts::default() };
        assert_eq!(overview.counts, counts(2, 2));
        let names: Vec<&str> =
            overview.factors.iter().map(|factor| factor.factor.as_str()).collect();
        assert_eq!(names, ["processes", "reader.read_threads"]);
        let levels: Vec<_> = overview.factors[1]
            .levels
            .iter()
            .map(|level| (level.level.as_str(), level.counts))
            .collect();
        assert_eq!(levels, [("8", counts(1, 1)), ("-", counts(1, 1))]);
        assert_eq!(overview.matrix[1].counts, counts(1, 2));
    }

    #[test]
    fn results_without_a_row_are_found() {
        let row = Row::new("w", 2);
        let attempt = Attempt {
            number: 1,
            key: row.key(),
            run_dir: "r".into(),
            outcome: Outcome::Complete(None),
        };
        let state = StudyState { attempts: vec![attempt], ..StudyState::default() };
        assert_eq!(orphans(&[row], &state).len(), 0);
        assert_eq!(orphans(&[Row::new("w", 4)], &state).len(), 1);
    }
}
