//! The chooser of `run --rehearse`: the runs of a submission to MLPerf Storage, in their order, until one fails.

use super::{Chooser, History, RunState};
use feedrate_measure::metric::{AU_WINDOWED, Metric};
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;

pub(super) static MEMBER: Member = Member {
    name: "rehearse",
    summary: "`run --rehearse`: the warm-up and the scored runs of a submission to MLPerf Storage",
    abilities: &[],
};

/// Note of the row that warms up.
const WARM_UP: &str = "warm-up";

/// Chooser of the runs of a rehearsal. Results are never repeated because of their values, since the runs of a submission are consecutive.
#[derive(Clone, Debug)]
pub struct RehearsalRuns {
    /// The rows, in the order in which they run.
    rows: Vec<Row>,
}

impl RehearsalRuns {
    /// Creates the chooser of `runs` runs of `row`.
    pub fn new(row: &Row, runs: u64, has_warm_up: bool) -> Self {
        let numbers = 1..=u32::try_from(runs).unwrap_or(u32::MAX);
        let rows = numbers.map(|number| {
            let note = if has_warm_up && number == 1 { WARM_UP } else { "" };
            Row { replicate: Some(number), note: note.into(), ..row.clone() }
        });
        RehearsalRuns { rows: rows.collect() }
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
        let warm_ups = self.rows.iter().filter(|row| row.note == WARM_UP).count();
        match self.rows.len() - warm_ups {
            _ if row.note == WARM_UP => WARM_UP.into(),
            1 => "run".into(),
            scored => format!("run {} of {scored}", number - warm_ups),
        }
    }
}

/// State of a row; `None` if it is not in the CSV yet.
fn state<'h>(history: &'h History, row: &Row) -> Option<&'h RunState> {
    let key = row.key();
    history.runs.iter().find(|past| past.row.key() == key).map(|past| &past.state)
}

impl Chooser for RehearsalRuns {
    fn next(&mut self, history: &History) -> Option<Row> {
        let is_open = |row: &&Row| !matches!(state(history, row), Some(RunState::Done(_)));
        let next = self.rows.iter().find(is_open)?;
        let may_run = matches!(state(history, next), None | Some(RunState::Pending));
        may_run.then(|| next.clone())
    }

    fn reads_results(&self) -> bool {
        false
    }

    fn response(&self) -> &'static Metric {
        &AU_WINDOWED
    }

    fn label(&self, row: &Row, number: usize) -> Option<String> {
        Some(self.name(row, number))
    }
}
