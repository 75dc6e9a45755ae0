//! How far a study is: its rows by state, by what they set, and by model and processes. Counts; draws nothing.

use crate::place::model_name;
use crate::row::Row;
use crate::state::{Attempt, History, Status, places};
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
    /// Of these rows.
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
    /// Of these rows.
    pub counts: Counts,
}

/// How far a study is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Of all rows.
    pub counts: Counts,
    /// What differs between rows, columns first.
    pub factors: Vec<Factor>,
    /// Models in the order of the file, each with its processes in theirs.
    pub matrix: Vec<Cell>,
}

impl Counts {
    /// All rows.
    pub fn all(&self) -> usize {
        self.done + self.running + self.pending + self.failed
    }

    fn add(&mut self, status: &Status) {
        match status {
            Status::Done(_) | Status::Unmarked(_) => self.done += 1,
            Status::Left(_) => self.running += 1,
            Status::Pending | Status::SetBack(_) => self.pending += 1,
            Status::Failed(..) => self.failed += 1,
        }
    }
}

impl Overview {
    /// Of a study's rows.
    pub fn of(rows: &[Row], history: &History) -> Self {
        let states: Vec<Status> =
            places(rows, history).into_iter().map(|place| place.status).collect();
        let count = |is_counted: &dyn Fn(&Row) -> bool| {
            let mut counts = Counts::default();
            let counted = rows.iter().zip(&states).filter(|(row, _)| is_counted(row));
            counted.for_each(|(_, status)| counts.add(status));
            counts
        };
        let factors = factors(rows).into_iter().filter_map(|factor| {
            let mut levels: Vec<String> = Vec::new();
            for level in rows.iter().map(|row| level(row, &factor)) {
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
            let counted = |name: &String| count(&|row| level(row, &factor) == *name);
            let of = levels.iter().map(|name| Level { level: name.clone(), counts: counted(name) });
            (levels.len() > 1).then(|| Factor { factor: factor.clone(), levels: of.collect() })
        });
        let factors = factors.collect();
        let mut models: Vec<&str> = Vec::new();
        rows.iter().for_each(|row| {
            if !models.contains(&&*row.model) {
                models.push(&row.model)
            }
        });
        let processes: BTreeSet<u32> = rows.iter().map(|row| row.processes).collect();
        let cells = models.iter().flat_map(|model| processes.iter().map(move |n| (*model, *n)));
        let cell = |(model, processes): (&str, u32)| Cell {
            model: model_name(model),
            processes,
            counts: count(&|row| row.model == model && row.processes == processes),
        };
        Overview { counts: count(&|_| true), factors, matrix: cells.map(cell).collect() }
    }
}

/// Columns and keys that rows may differ in.
fn factors(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> =
        ["model", "processes", "epochs", "scale", "seed"].map(String::from).to_vec();
    for setting in rows.iter().flat_map(|row| &row.settings) {
        if !names.contains(&setting.key) {
            names.push(setting.key.clone());
        }
    }
    names
}

fn level(row: &Row, factor: &str) -> String {
    let of_column = match factor {
        "model" => Some(model_name(&row.model)),
        "processes" => Some(row.processes.to_string()),
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
pub fn orphans<'a>(rows: &[Row], history: &'a History) -> Vec<&'a Attempt> {
    let places = places(rows, history);
    let has_row = |attempt: &Attempt| {
        places.iter().any(|place| place.status.attempt().is_some_and(|of| of == attempt))
    };
    let results = history.attempts.iter().filter(|of| of.is_finished() && !of.superseded);
    results.filter(|attempt| !has_row(attempt)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use crate::state::{Checked, Event};

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
        let overview = Overview::of(&rows, &History::default());
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
        let history = History::of(vec![
            Event::Begun {
                attempt: 1,
                key: row.key(),
                ordinal: 0,
                run_dir: "r".into(),
                at: String::new(),
            },
            Event::Finished { attempt: 1, result: Checked::default() },
        ]);
        assert_eq!(orphans(&[row], &history).len(), 0);
        assert_eq!(orphans(&[Row::new("w", 4)], &history).len(), 1);
    }
}
