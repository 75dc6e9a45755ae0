//! A study as it stands: rows, what came of them, and what the records of its runs say. Read only.

use crate::machine::{RUN, RunnerHost, ThisMachine};
use crate::runner::{Plans, RunnerOptions, due};
use crate::select::is_wanted;
use crate::settings::{self, SettingsOptions};
use feedrate_results::files::StudyFiles;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{Attempt, Outcome, RowState, Status, StudySettings, StudyState};
use feedrate_spec::refusal::{Refusal, refuse};
use std::path::Path;

/// A study as it stands.
pub struct Ledger {
    /// The rows of its CSV.
    pub rows: Vec<Row>,
    /// Results and attempts of them.
    pub state: StudyState,
    /// How its runs are made.
    pub settings: StudySettings,
    /// This machine, which plans rows.
    pub machine: ThisMachine,
    /// Attempts of a runner that died.
    pub left: Vec<Attempt>,
}

impl Ledger {
    /// Read the study in this CSV, whose runs are made in this way.
    pub fn open(csv: &Path, options: &SettingsOptions, host: RunnerHost) -> anyhow::Result<Self> {
        let files = StudyFiles::new(csv)?;
        let rows: Vec<Row> = files.table()?.rows().cloned().collect();
        let mut state = StudyState::read(&files)?;
        let settings = settings::settings(options, &files.csv, &state)?;
        let mut left = Vec::new();
        if !files.is_locked() {
            // Where nobody runs, what is not at its end was broken off.
            for attempt in state.attempts.iter_mut().filter(|of| of.outcome == Outcome::Running) {
                left.push(attempt.clone());
                attempt.outcome = Outcome::Interrupted;
            }
        }
        settings::enter(&settings)?;
        let machine = ThisMachine::new(&files, host)?;
        Ok(Ledger { rows, state, settings, machine, left })
    }

    /// Where each row stands.
    pub fn places(&self) -> Vec<RowState<'_>> {
        self.state.row_states(&self.rows)
    }

    /// Stage of a row, in one word: of a run that is begun also what comes before it.
    pub fn stage(&self, place: &RowState) -> &'static str {
        let begun = if place.status == Status::Running { place.attempt } else { None };
        let has = |task| begun.is_some_and(|of| self.machine.files.task(of.number, task).is_dir());
        match begun {
            Some(_) if has(RUN) => "running",
            Some(_) => "preparing",
            None => place.status.name(),
        }
    }

    /// The label of a row.
    pub fn label(&self, index: usize) -> String {
        label(&self.rows[index], &self.rows)
    }

    /// How long all that is due takes, with its datasets; `None` where that cannot be told.
    pub fn left_s(&self) -> Option<f64> {
        let (machine, settings) = (&self.machine, &self.settings);
        let due = due(&self.rows, &self.state, &RunnerOptions::default());
        let mut plans = Plans::default();
        plans.make(&self.rows, &due, |row| Ok(machine.planned(row, settings)?.plan)).ok()?;
        let rows = due.iter().map(|index| &self.rows[*index]);
        Some(plans.expected_s(&self.state, rows, |row| {
            machine.planned(row, settings).is_ok_and(|of| of.is_whole)
        }))
    }
}

/// The rows that `wanted` names.
pub fn found(rows: &[Row], wanted: &[String]) -> Result<Vec<usize>, Refusal> {
    let is_wanted = |index: &usize| is_wanted(wanted, *index, &rows[*index], rows);
    let found: Vec<usize> = (0..rows.len()).filter(is_wanted).collect();
    if found.is_empty() {
        return refuse(
            format!("no row of the study is called `{}`", wanted.join(" ")),
            "name it by `#6`, its place, or as `feedrate study status` does",
        );
    }
    Ok(found)
}
