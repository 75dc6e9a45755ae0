//! Runs the pending rows of a study, one after another. No result is lost, duplicated or marked wrongly if the runner is killed at any moment.
//!
//! This depends on the order of writes. The folder of a run identifies its row from the start. Results are checked and synced before the CSV marks the row
//! with `Y`, and only then is the check written to the folder.

mod env;
mod select;
mod plans;
mod state;
mod datasets;
#[cfg(test)]
mod tests;

pub use env::{
    MetricValue, PreparedMachine, RowDataset, RowJob, RowPlace, RowPlan, RunnerEnv, RunnerEvent,
    RunnerTask, TaskEnd,
};
pub use plans::{Pace, Plans, RowProblem};
pub use select::due_rows;

use crate::chooser::{Chooser, History, Observation, RunState};
use crate::datasets::Policy;
use feedrate_measure::record::file::RecordFileError;
use feedrate_results::files::{FilesError, Lock, StudyFiles};
use feedrate_results::place::{label, short_label, sync};
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Attempt, CheckResult, Outcome, StudySettings, StudyState};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

/// Options of one start of the runner.
#[derive(Clone, Debug, Default)]
pub struct RunnerOptions {
    /// Patterns of the rows to run; all if empty. See [`crate::select::is_selected`].
    pub only: Vec<String>,
    /// Maximum number of runs.
    pub limit: Option<usize>,
    /// Time limit in seconds from the start. A run that would probably end later is not started.
    pub time_budget_s: Option<f64>,
    /// Run failed rows again.
    pub retry: bool,
    /// Policy for datasets.
    pub datasets: Policy,
    /// Require results of the current plan: rows with results of another plan are set back at the start, and a run by another plan fails.
    pub same_plan: bool,
    /// At the start, set back rows whose results do not measure the storage, for example because memory served the data.
    pub repeat_invalid: bool,
}

/// Result of one start of the runner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerReport {
    /// Number of runs with a result.
    pub finished: usize,
    /// Labels of failed runs, each with its reason.
    pub failed: Vec<(String, String)>,
    /// Whether the user stopped the runner.
    pub is_stopped: bool,
    /// Whether a run was stopped with it, which has no result.
    pub is_interrupted: bool,
}

/// The study after one start of the runner.
#[derive(Clone, Debug)]
pub struct RunnerEnd {
    /// Results of this start.
    pub report: RunnerReport,
    /// State of the study.
    pub state: StudyState,
    /// Its rows with their results, as the chooser saw them.
    pub history: History,
}

/// An error that ends the runner.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum RunnerError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("cannot {doing} `{path}`: {source}")]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{}", .0.join("\n"))]
    Rows(Vec<String>),
}

impl From<RecordFileError> for RunnerError {
    fn from(error: RecordFileError) -> Self {
        RunnerError::Files(error.into())
    }
}

/// The runner of a study, which holds its lock.
pub struct Runner<'a> {
    files: &'a StudyFiles,
    env: &'a mut dyn RunnerEnv,
    options: RunnerOptions,
    settings: StudySettings,
    state: StudyState,
    plans: Plans,
    /// Events that are reported only once.
    reported: BTreeSet<String>,
    /// Attempts of this runner.
    attempts: BTreeSet<u64>,
    report: RunnerReport,
    done: usize,
    /// Name of the current row in progress lines.
    name: String,
    /// Position of the current row; `None` if the chooser's label has the number of the run.
    place: Option<RowPlace>,
    /// Values of finished runs, by folder.
    observations: BTreeMap<PathBuf, Observation>,
    started_s: f64,
    _lock: Lock,
}

/// A row of a study.
#[derive(Clone, Copy)]
struct RowRef<'r> {
    rows: &'r [Row],
    index: usize,
}

impl<'r> RowRef<'r> {
    fn row(self) -> &'r Row {
        &self.rows[self.index]
    }

    fn label(self) -> String {
        label(self.row(), self.rows)
    }

    /// The chooser's name of the row in progress lines.
    fn label_by(self, chooser: &dyn Chooser) -> Option<String> {
        chooser.label(self.row(), self.index + 1)
    }

    fn name(self, chooser: &dyn Chooser) -> String {
        self.label_by(chooser).unwrap_or_else(|| short_label(self.row(), self.rows))
    }
}

/// The reason why an attempt has no result: its task ended, or the runner cannot continue.
enum AttemptError {
    Run(TaskEnd),
    Runner(RunnerError),
}

impl From<TaskEnd> for AttemptError {
    fn from(ended: TaskEnd) -> Self {
        AttemptError::Run(ended)
    }
}

impl From<RunnerError> for AttemptError {
    fn from(error: RunnerError) -> Self {
        AttemptError::Runner(error)
    }
}

impl<'a> Runner<'a> {
    /// Creates a runner. If `state` has settings, `settings` must be equal: the caller has compared them with the command's options.
    pub fn new(
        files: &'a StudyFiles,
        lock: Lock,
        state: StudyState,
        settings: StudySettings,
        env: &'a mut dyn RunnerEnv,
        options: RunnerOptions,
    ) -> Self {
        let started_s = env.now_s();
        Runner {
            files,
            env,
            options,
            settings,
            state,
            plans: Plans::default(),
            reported: BTreeSet::new(),
            attempts: BTreeSet::new(),
            report: RunnerReport::default(),
            done: 0,
            name: String::new(),
            place: None,
            observations: BTreeMap::new(),
            started_s,
            _lock: lock,
        }
    }

    /// Runs the rows that `chooser` selects, until none is left or the runner is stopped.
    ///
    /// # Errors
    /// A file of the study cannot be read or written, or a row is invalid.
    pub fn run(mut self, chooser: &mut dyn Chooser) -> Result<RunnerEnd, RunnerError> {
        self.recover(chooser)?;
        self.reset_outdated_rows(chooser)?;
        while !self.env.is_stopped() && self.options.limit.is_none_or(|limit| self.done < limit) {
            let rows = self.rows()?;
            let mut pending = self.pending(&rows);
            let refused = self.plan_all(&rows, &pending)?;
            // They probably have a common cause, such as a variable that is not set.
            let is_start = self.attempts.is_empty() && !self.options.retry;
            if is_start && refused.len() == pending.len() {
                self.refuse(&refused, &rows)?;
            }
            if !refused.is_empty() {
                let others = pending.len() - refused.len();
                self.env.report(RunnerEvent::Unplanned { count: refused.len(), others });
            }
            for RowProblem { index, reason } in refused {
                pending.retain(|other| *other != index);
                self.fail_unplanned(RowRef { rows: &rows, index }, reason, chooser)?;
            }
            let history = self.history(&rows, &pending, chooser);
            let chosen = chooser.next(&history);
            chooser.take_events().into_iter().for_each(|event| {
                self.env.report(RunnerEvent::Chooser(event));
            });
            let Some(chosen) = chosen else { break };
            if !self.run_selected(&chosen, rows, pending, chooser)? {
                break;
            }
        }
        self.report.is_stopped = self.env.is_stopped();
        let rows = self.rows()?;
        let pending = self.pending(&rows);
        let history = self.history(&rows, &pending, chooser);
        Ok(RunnerEnd { report: self.report, state: self.state, history })
    }

    /// Runs a row. A row that is not pending is appended to the CSV first. Returns whether the runner continues.
    fn run_selected(
        &mut self,
        chosen: &Row,
        rows: Vec<Row>,
        mut pending: Vec<usize>,
        chooser: &dyn Chooser,
    ) -> Result<bool, RunnerError> {
        let key = chosen.key();
        let known = pending.iter().position(|&index| rows[index].key() == key);
        let current_rows = match known {
            Some(position) => {
                pending[..=position].rotate_right(1);
                rows
            }
            None => {
                // A row that cannot be planned must not be appended.
                let refused = self.plan_all(std::slice::from_ref(chosen), &[0])?;
                self.refuse(&refused, std::slice::from_ref(chosen))?;
                self.files.edit_table(|table| {
                    table.push(Row { done: false, ..chosen.clone() });
                    true
                })?;
                let extended = self.rows()?;
                let added = extended.iter().rposition(|row| !row.done && row.key() == key);
                pending.splice(0..0, added);
                extended
            }
        };
        self.prefer_available_dataset(&current_rows, &mut pending);
        let Some(&index) = pending.first() else { return Ok(false) };
        let next = RowRef { rows: &current_rows, index };
        let chooser_adds_rows = known.is_none();
        Ok(self.fits_time(next) && self.run_row(next, &pending, chooser_adds_rows, chooser)?)
    }

    fn refuse(&self, problems: &[RowProblem], rows: &[Row]) -> Result<(), RunnerError> {
        let scale_min = |row: &Row| self.env.scale_min(row, &self.settings);
        RowProblem::refuse(problems, rows, scale_min).map_err(RunnerError::Rows)
    }

    /// The rows with their results, as `chooser` needs them.
    fn history(&mut self, rows: &[Row], pending: &[usize], chooser: &dyn Chooser) -> History {
        let env = &mut self.env;
        let observations = &mut self.observations;
        History::new(rows, &self.state, pending, |run_dir| {
            if !chooser.reads_results() {
                return Observation::default();
            }
            let known = observations.entry(run_dir.to_path_buf());
            known.or_insert_with(|| env.observe(run_dir)).clone()
        })
    }

    /// Sets back rows whose results no longer count, so that they run again.
    fn reset_outdated_rows(&mut self, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        let RunnerOptions { same_plan, repeat_invalid, .. } = self.options;
        if !same_plan && !repeat_invalid {
            return Ok(());
        }
        let rows = self.rows()?;
        self.plan_all(&rows, &[])?;
        let mut outdated: Vec<RowKey> = Vec::new();
        for past in self.history(&rows, &[], chooser).runs {
            let RunState::Done(measured) = &past.state else { continue };
            let planned = self.plans.get(&past.row).map(|plan| plan.fingerprint.as_str());
            let is_other =
                planned.zip(measured.plan.as_deref()).is_some_and(|(now, then)| now != then);
            if same_plan && is_other || repeat_invalid && chooser.is_invalid(&past) {
                outdated.push(past.row.key());
            }
        }
        Ok(self.files.edit_table(|table| {
            let is_outdated = |row: &Row| row.done && outdated.contains(&row.key());
            let indexed = table.rows().enumerate();
            let indices: Vec<usize> =
                indexed.filter(|(_, row)| is_outdated(row)).map(|(index, _)| index).collect();
            indices.iter().for_each(|&index| table.mark(index, false));
            !indices.is_empty()
        })?)
    }

    /// The current rows of the CSV.
    fn rows(&self) -> Result<Vec<Row>, FilesError> {
        Ok(self.files.table()?.rows().cloned().collect())
    }

    /// Indices of the rows to run, in order, without those that this runner has already run.
    fn pending(&mut self, rows: &[Row]) -> Vec<usize> {
        let states = self.state.row_states(rows);
        let mut pending = Vec::new();
        let mut overwritten = Vec::new();
        for index in due_rows(rows, &self.state, &self.options) {
            let attempt = states[index].attempt;
            match attempt.filter(|attempt| self.attempts.contains(&attempt.number)) {
                // An older CSV was saved over the one with the mark `Y`.
                Some(attempt) if attempt.is_complete() => {
                    overwritten.push(label(&rows[index], rows));
                }
                Some(_) => {}
                None => pending.push(index),
            }
        }
        for label in overwritten {
            if self.reported.insert(label.clone()) {
                self.env.report(RunnerEvent::MarkOverwritten { label });
            }
        }
        pending
    }

    /// Plans all rows. Returns the `pending` rows that cannot be planned.
    fn plan_all(
        &mut self,
        rows: &[Row],
        pending: &[usize],
    ) -> Result<Vec<RowProblem>, RunnerError> {
        let env = &mut self.env;
        let settings = &self.settings;
        let planned = self.plans.plan_rows(rows, pending, |row| env.plan(row, settings));
        planned.map_err(RunnerError::Rows)
    }

    /// Whether the next run and its dataset fit the remaining time.
    fn fits_time(&mut self, next: RowRef) -> bool {
        let Some(budget_s) = self.options.time_budget_s else { return true };
        let expected_s = self.expected_s(next.rows, &[next.index]);
        let fits = self.env.now_s() - self.started_s + expected_s <= budget_s;
        if !fits {
            self.env.report(RunnerEvent::OutOfTime { label: next.label(), expected_s });
        }
        fits
    }

    fn expected_s(&mut self, rows: &[Row], indices: &[usize]) -> f64 {
        let env = &mut self.env;
        let settings = &self.settings;
        let selected = indices.iter().map(|index| &rows[*index]);
        self.plans.expected_s(&self.state, selected, |row| env.has_complete_dataset(row, settings))
    }

    /// Runs the first row of `pending`. Returns whether the runner continues.
    fn run_row(
        &mut self,
        next: RowRef,
        pending: &[usize],
        chooser_adds_rows: bool,
        chooser: &dyn Chooser,
    ) -> Result<bool, RunnerError> {
        let Some(plan) = self.plans.get(next.row()).cloned() else { return Ok(false) };
        self.store_settings()?;
        self.report_start(next, pending, chooser_adds_rows, chooser);
        let has_failed = self.retire_older_attempt(next, chooser)?;
        let attempt = self.start_attempt(next)?;
        let generated = self.generate_dataset(next, &plan, attempt, pending, has_failed);
        let measured = generated.and_then(|()| self.measure(next, &plan, attempt));
        self.done += 1;
        match measured {
            Ok(checked) => self.finish(next, attempt, checked, chooser).map(|()| true),
            Err(AttemptError::Runner(error)) => Err(error),
            Err(AttemptError::Run(TaskEnd::Stopped)) => {
                self.env.report(RunnerEvent::Interrupted);
                self.report.is_interrupted = true;
                self.state.attempts[attempt].give_up(None)?;
                Ok(false)
            }
            Err(AttemptError::Run(TaskEnd::Failed(reason))) => {
                self.fail(next, attempt, reason).map(|()| true)
            }
        }
    }

    /// Runs a row whose dataset is complete, and checks its results.
    fn measure(
        &mut self,
        next: RowRef,
        plan: &RowPlan,
        place: usize,
    ) -> Result<CheckResult, AttemptError> {
        let Attempt { number: attempt, run_dir, .. } = self.state.attempts[place].clone();
        let job = RowJob { row: next.row(), plan, settings: &self.settings, attempt };
        let prepared_from_s = self.env.now_s();
        let prepared = self.env.prepare(&job)?;
        self.env.report(RunnerEvent::Running { label: self.name.clone(), place: self.place });
        self.write_about(next, attempt, &run_dir, prepared)?;
        let started_s = self.env.now_s();
        let ended = self.env.execute(&job, RunnerTask::Run(&run_dir));
        let duration_s = self.env.now_s() - started_s;
        ended?;
        let checked =
            self.env.check_results(&run_dir, next.row(), plan).map_err(TaskEnd::Failed)?;
        if self.options.same_plan && checked.plan != plan.fingerprint {
            let reason = "the workload changed during the study";
            return Err(TaskEnd::Failed(reason.into()).into());
        }
        let setup_s = Some(self.env.now_s() - prepared_from_s - duration_s);
        Ok(CheckResult { duration_s, setup_s, ..checked })
    }

    /// Reports that work on a row starts, with the expected time of all rows that this runner will run.
    fn report_start(
        &mut self,
        next: RowRef,
        pending: &[usize],
        chooser_adds_rows: bool,
        chooser: &dyn Chooser,
    ) {
        let left =
            self.options.limit.map_or(pending.len(), |limit| limit.saturating_sub(self.done));
        let pending = &pending[..pending.len().min(left)];
        let count = (!chooser_adds_rows).then_some(self.done + pending.len());
        let place = RowPlace { number: self.done + 1, count };
        self.place = next.label_by(chooser).is_none().then_some(place);
        self.name = next.name(chooser);
        let mut left_s = self.expected_s(next.rows, pending);
        if let Some(plan) = self.plans.get(next.row()) {
            let row_s = self.plans.pace(&self.state).row_s(plan);
            left_s += chooser.rows_after(next.index + 1) as f64 * row_s;
        }
        let label = self.name.clone();
        self.env.report(RunnerEvent::RowStarted { label, place: self.place, left_s });
    }

    /// Marks a row whose results were checked, and reports its response.
    fn finish(
        &mut self,
        done: RowRef,
        attempt: usize,
        mut checked: CheckResult,
        chooser: &dyn Chooser,
    ) -> Result<(), RunnerError> {
        let Attempt { number, run_dir, .. } = self.state.attempts[attempt].clone();
        sync(&run_dir, &self.settings.results).map_err(|source| RunnerError::Io {
            doing: "sync",
            path: run_dir.clone(),
            source,
        })?;
        self.state.attempts[attempt].outcome = Outcome::Complete(None);
        self.attempts.insert(number);
        checked.doubts.extend(self.replicates_differ(done, &checked.plan));
        let doubts = checked.doubts.iter().map(|doubt| doubt.name.clone()).collect();
        let duration_s = checked.duration_s;
        self.mark_done(attempt, &done.label(), checked)?;
        self.report.finished += 1;
        let label = self.name.clone();
        let place = self.place;
        let response = self.env.value(&run_dir, chooser.response());
        let result = response.map(|response| {
            let verdict = chooser.verdict(response.value);
            let verdict = verdict.map_or(String::new(), |verdict| format!(", {verdict}"));
            format!("{}{verdict}", response.text())
        });
        self.env.report(RunnerEvent::Finished { label, place, duration_s, result, doubts });
        Ok(())
    }
}
