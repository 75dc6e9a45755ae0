//! Read-only view of a study: its rows, their results, and the values in the records of its runs.

use crate::machine::{RUN, RunnerHost, ThisMachine};
use crate::runner::{Plans, RowPlan, RunnerOptions, due_rows};
use crate::select::is_selected;
use crate::settings::{self, SettingsOptions};
use feedrate_results::files::StudyFiles;
use feedrate_results::place::{label, short_label};
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Attempt, Outcome, RowState, Status, StudySettings, StudyState};
use feedrate_spec::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of experiments that are planned to estimate the time left.
const EXPERIMENTS_MAX: usize = 200;

/// The current state of a study.
pub struct Ledger {
    /// The rows of its CSV.
    pub rows: Vec<Row>,
    /// Attempts and results of the rows.
    pub state: StudyState,
    /// Settings of its runs.
    pub settings: StudySettings,
    /// This machine, which plans rows.
    pub machine: ThisMachine,
    /// Attempts that a runner left unfinished when it died.
    pub interrupted: Vec<Attempt>,
}

/// The due rows of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StudyRest {
    /// Expected time to run all rows that can be planned and generate their datasets, in seconds; `None` if unknown, or if none can be planned.
    pub left_s: Option<f64>,
    /// Number of rows that cannot be planned.
    pub refused: usize,
}

impl Ledger {
    /// Reads the study in `csv` and changes to the folder in which it was started.
    ///
    /// # Errors
    /// A file of the study cannot be read, or `options` contradict its settings.
    pub fn open(csv: &Path, options: &SettingsOptions, host: RunnerHost) -> anyhow::Result<Self> {
        let files = StudyFiles::new(csv)?;
        let rows: Vec<Row> = files.table()?.rows().cloned().collect();
        let mut state = StudyState::read(&files)?;
        let settings = settings::resolve(options, &files.csv, &state)?;
        let mut interrupted = Vec::new();
        if !files.is_locked() {
            // Without a runner, attempts that are marked as running were interrupted.
            let running = |attempt: &&mut Attempt| attempt.outcome == Outcome::Running;
            for attempt in state.attempts.iter_mut().filter(running) {
                interrupted.push(attempt.clone());
                attempt.outcome = Outcome::Interrupted;
            }
        }
        settings::change_to_start_folder(&settings)?;
        let machine = ThisMachine::new(&files, host)?;
        Ok(Ledger { rows, state, settings, machine, interrupted })
    }

    /// The state of each row.
    pub fn row_states(&self) -> Vec<RowState<'_>> {
        self.state.row_states(&self.rows)
    }

    /// Stage of a row in one word. A row that is running is `preparing` until its run starts.
    pub fn stage(&self, row_state: &RowState) -> &'static str {
        if row_state.status != Status::Running {
            return row_state.status.name();
        }
        let Some(attempt) = row_state.attempt else { return row_state.status.name() };
        let is_run_started = self.machine.files.task_folder(attempt.number, RUN).is_dir();
        if is_run_started { "running" } else { "preparing" }
    }

    /// The label of a row.
    pub fn label(&self, index: usize) -> String {
        label(&self.rows[index], &self.rows)
    }

    /// Estimates the rest of the study. There is no estimate if there are too many experiments.
    pub fn rest(&self) -> StudyRest {
        let machine = &self.machine;
        let settings = &self.settings;
        let due = due_rows(&self.rows, &self.state, &RunnerOptions::default());
        let mut plans = Plans::default();
        let mut experiments: BTreeMap<RowKey, Result<RowPlan, String>> = BTreeMap::new();
        let refused = plans.plan_rows(&self.rows, &due, |row| {
            // Replicates take as long as the first run of their experiment.
            let key = row.experiment_key();
            if EXPERIMENTS_MAX < experiments.len() {
                return Err("too many experiments".into());
            }
            let planned = experiments.entry(key);
            planned.or_insert_with(|| Ok(machine.plan_row(row, settings)?.plan)).clone()
        });
        let Some(refused) = refused.ok().filter(|_| experiments.len() <= EXPERIMENTS_MAX) else {
            return StudyRest::default();
        };
        let rows = due.iter().map(|index| &self.rows[*index]);
        let left_s = || {
            plans.expected_s(&self.state, rows, |row| {
                machine.plan_row(row, settings).is_ok_and(|planned| planned.is_complete)
            })
        };
        let can_run = due.is_empty() || refused.len() < due.len();
        StudyRest { left_s: can_run.then(left_s), refused: refused.len() }
    }
}

/// Returns the indices of the rows that the patterns in `wanted` match.
///
/// # Errors
/// No row matches.
pub fn select_rows(rows: &[Row], wanted: &[String]) -> Result<Vec<usize>, Refusal> {
    let matches = |index: &usize| is_selected(wanted, *index, &rows[*index], rows);
    let selected: Vec<usize> = (0..rows.len()).filter(matches).collect();
    if selected.is_empty() {
        let names: BTreeSet<String> =
            rows.iter().flat_map(|row| [label(row, rows), short_label(row, rows)]).collect();
        return Err(Refusal::unknown_name(
            format!("no row of the study is called `{}`", wanted.join(" ")),
            wanted.first().map_or("", String::as_str),
            names.iter().map(String::as_str),
            "use its number in the file, as in `#6`, or its name in `feedrate study status`",
        ));
    }
    Ok(selected)
}
