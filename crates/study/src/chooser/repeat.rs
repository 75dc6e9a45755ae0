//! The chooser of `run --repeat` and `run --rehearse`: warm-ups and a fixed number of runs of one row, in their order, until one fails.

use super::{Chooser, History, RunState};
use feedrate_measure::metric::{AU_WINDOWED, Metric};
use feedrate_results::row::{Row, UNCOUNTED_WARM_UP, WARM_UP};
use feedrate_spec::catalog::Member;
use std::path::PathBuf;

pub(super) static MEMBER: Member = Member {
    name: "repeated_runs",
    summary: "`run --repeat` and `run --rehearse`: warm-ups, then a fixed number of runs",
    abilities: &[],
};

/// Chooser of a fixed number of runs. Results are never repeated because of their values.
#[derive(Clone, Debug)]
pub struct RepeatedRuns {
    /// The rows, in the order in which they run.
    rows: Vec<Row>,
    /// The reported metric; `None` for the deciding utilisation.
    response: Option<&'static Metric>,
}

impl RepeatedRuns {
    /// Creates the chooser of a submission to MLPerf Storage: `runs` runs of `row`, of which the first may be a warm-up.
    pub fn for_submission(row: &Row, runs: u64, has_warm_up: bool) -> Self {
        let warm_ups = u64::from(has_warm_up);
        RepeatedRuns {
            response: Some(&AU_WINDOWED),
            ..Self::with_note(row, runs.saturating_sub(warm_ups), warm_ups, WARM_UP)
        }
    }

    /// Creates the chooser of `runs` runs of `row` after `warm_ups` that do not count.
    pub fn new(row: &Row, runs: u64, warm_ups: u64) -> Self {
        Self::with_note(row, runs, warm_ups, UNCOUNTED_WARM_UP)
    }

    fn with_note(row: &Row, runs: u64, warm_ups: u64, note: &str) -> Self {
        let numbers = 1..=u32::try_from(warm_ups.saturating_add(runs)).unwrap_or(u32::MAX);
        let rows = numbers.map(|number| {
            let note = if u64::from(number) <= warm_ups { note } else { "" };
            Row { replicate: Some(number), note: note.into(), ..row.clone() }
        });
        RepeatedRuns { rows: rows.collect(), response: None }
    }

    /// Folders of the finished runs that count, in their order.
    pub fn counted_run_dirs(&self, history: &History) -> Vec<PathBuf> {
        let counted = self.rows.iter().filter(|row| row.note.is_empty());
        let run_dirs = counted.filter_map(|row| match state(history, row)? {
            RunState::Done(run) => Some(run.run_dir.clone()),
            _ => None,
        });
        run_dirs.collect()
    }

    /// Number of rows that have results.
    pub fn finished(&self, history: &History) -> usize {
        let is_done = |row: &&Row| matches!(state(history, row), Some(RunState::Done(_)));
        self.rows.iter().filter(is_done).count()
    }

    /// The first row that failed, with the reason.
    pub fn failure<'h>(&self, history: &'h History) -> Option<(String, &'h str)> {
        self.rows.iter().enumerate().find_map(|(index, row)| match state(history, row) {
            Some(RunState::Failed(reason)) => Some((self.name(row, index + 1), reason.as_str())),
            _ => None,
        })
    }

    /// `warm-up`, or `run 2 of 5`.
    fn name(&self, row: &Row, number: usize) -> String {
        let warm_ups = self.rows.iter().filter(|row| !row.note.is_empty()).count();
        match (row.note.is_empty(), self.rows.len() - warm_ups) {
            (false, _) if warm_ups == 1 => WARM_UP.into(),
            (false, _) => format!("{WARM_UP} {number} of {warm_ups}"),
            (true, 1) => "run".into(),
            (true, counted) => format!("run {} of {counted}", number - warm_ups),
        }
    }
}

/// State of a row; `None` if it is not in the CSV yet.
fn state<'h>(history: &'h History, row: &Row) -> Option<&'h RunState> {
    let key = row.key();
    history.runs.iter().find(|past| past.row.key() == key).map(|past| &past.state)
}

impl Chooser for RepeatedRuns {
    fn next(&mut self, history: &History) -> Option<Row> {
        let is_open = |row: &&Row| !matches!(state(history, row), Some(RunState::Done(_)));
        let next = self.rows.iter().find(is_open)?;
        let may_run = matches!(state(history, next), None | Some(RunState::Pending));
        may_run.then(|| next.clone())
    }

    fn reads_results(&self) -> bool {
        false
    }

    fn response(&self) -> Option<&'static Metric> {
        self.response
    }

    fn rows_after(&self, number: usize) -> usize {
        self.rows.len().saturating_sub(number)
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        Some(self.name(row, number))
    }
}
