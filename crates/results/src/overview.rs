//! How far a study is: its rows by state, by what they set, and by model and processes. Counts; draws nothing.

use crate::place::model_name;
use crate::row::Row;
use crate::state::{Attempt, Status, StudyState};
use serde::Serialize;
use std::collections::BTreeSet;

/// How many rows are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the states of rows")]
pub struct Counts {
    pub done: usize,
    pub running: usize,
    pub pending: usize,
    pub failed: usize,
}

/// The rows that set one thing to one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// As in the CSV; `-` where rows leave it to the workload.
    pub level: String,
    /// Counts of its rows.
    pub counts: Counts,
}

/// Something that differs between rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Factor {
    /// A column, or a key.
    pub factor: String,
    /// In the order of the file.
    pub levels: Vec<Level>,
}

/// A cell of the matrix of models and processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "two columns of the CSV")]
pub struct Cell {
    pub model: String,
    pub processes: u32,
    /// Counts of its rows.
    pub counts: Counts,
}

/// How far a study is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Counts of all rows.
    pub counts: Counts,
    /// Columns and keys that differ between rows, columns first.
    pub factors: Vec<Factor>,
    /// Models in the order of the file, each with its processes in theirs.
    pub matrix: Vec<Cell>,
}

impl Counts {
    /// All rows.
    pub fn all(&self) -> usize {
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
    /// Count a study's rows.
    pub fn new(rows: &[Row], state: &StudyState) -> Self {
        let places = state.places(rows);
        let rows: Vec<(&Row, Status)> =
            rows.iter().zip(places.iter().map(|place| place.status)).collect();
        Overview { counts: count(&rows, |_| true), factors: factors(&rows), matrix: matrix(&rows) }
    }
}

fn count(rows: &[(&Row, Status)], is_counted: impl Fn(&Row) -> bool) -> Counts {
    let mut counts = Counts::default();
    for (_, status) in rows.iter().filter(|(row, _)| is_counted(row)) {
        counts.add(*status);
    }
    counts
}

fn factors(rows: &[(&Row, Status)]) -> Vec<Factor> {
    let mut factors = Vec::new();
    for factor in names(rows) {
        let mut levels: Vec<Level> = Vec::new();
        for (row, status) in rows {
            let name = level(row, &factor);
            let at = levels.iter().position(|level| level.level == name).unwrap_or_else(|| {
                levels.push(Level { level: name, counts: Counts::default() });
                levels.len() - 1
            });
            levels[at].counts.add(*status);
        }
        if levels.len() > 1 {
            factors.push(Factor { factor, levels });
        }
    }
    factors
}

fn matrix(rows: &[(&Row, Status)]) -> Vec<Cell> {
    let mut models: Vec<&str> = Vec::new();
    for (row, _) in rows {
        if !models.contains(&&*row.model) {
            models.push(&row.model);
        }
    }
    let accelerators: BTreeSet<u32> = rows.iter().map(|(row, _)| row.accelerators).collect();
    let mut cells = Vec::new();
    for model in models {
        for &processes in &accelerators {
            let is_its = |row: &Row| row.model == model && row.accelerators == processes;
            cells.push(Cell { model: model_name(model), processes, counts: count(rows, is_its) });
        }
    }
    cells
}

/// Columns and keys that rows may differ in.
fn names(rows: &[(&Row, Status)]) -> Vec<String> {
    let mut names: Vec<String> =
        ["model", "processes", "epochs", "scale", "seed"].map(String::from).to_vec();
    for setting in rows.iter().flat_map(|(row, _)| &row.settings) {
        if !names.contains(&setting.key) {
            names.push(setting.key.clone());
        }
    }
    names
}

fn level(row: &Row, factor: &str) -> String {
    let of_column = match factor {
        "model" => Some(model_name(&row.model)),
        "processes" => Some(row.accelerators.to_string()),
        "epochs" => row.epochs.map(|epochs| epochs.to_string()),
        "scale" => row.scale.map(|scale| scale.to_string()),
        "seed" => row.seed.map(|seed| seed.to_string()),
        key => row
            .settings
            .iter()
            .find(|setting| setting.key == key)
            .map(|setting| setting.value.clone().unwrap_or_else(|| "deleted".into())),
    };
    of_column.unwrap_or_else(|| "-".into())
}

/// Results whose rows are no longer in the CSV.
pub fn orphans<'a>(rows: &[Row], state: &'a StudyState) -> Vec<&'a Attempt> {
    let places = state.places(rows);
    let has_row = |of: &Attempt| places.iter().any(|place| place.attempt == Some(of));
    state.attempts.iter().filter(|of| of.is_complete() && !has_row(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use crate::state::Outcome;

    #[test]
    fn rows_are_counted_by_what_they_set_and_by_model_and_processes() {
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
        let counts = |done, pending| Counts { done, pending, ..Counts::default() };
        assert_eq!(overview.counts, counts(2, 2));
        let names: Vec<&str> =
            overview.factors.iter().map(|factor| factor.factor.as_str()).collect();
        assert_eq!(names, ["processes", "reader.read_threads"]);
        let levels: Vec<_> = overview.factors[1]
            .levels
            .iter()
            .map(|level| (level.level.as_str(), level.counts))
            .collect();
        assert_eq!(levels, [("-", counts(1, 1)), ("8", counts(1, 1))]);
        assert_eq!(overview.matrix[1].counts, counts(1, 2));
    }

    #[test]
    fn a_result_without_a_row_is_told() {
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
