//! Runs what is pending in a study, one run after another, so that nothing is lost, doubled or marked wrongly whatever ends it.
//!
//! The order of writing is what makes it safe: the folder of a run says from the start whose it is; its results are checked and on the
//! disk before the CSV says `Y`; and only then does the folder say that they were.

mod env;
mod select;
mod plans;
mod state;
mod datasets;
#[cfg(test)]
mod tests;

pub use env::{
    PreparedMachine, RowDataset, RowJob, RowPlace, RowPlan, RunnerEnv, RunnerEvent, RunnerTask,
    TaskEnd,
};
pub use plans::{Pace, Plans};
pub use select::due_rows;

use crate::chooser::{Chooser, History, Observation, RunState};
use crate::datasets::Policy;
use feedrate_measure::metric::AU_ALL_STEPS;
use feedrate_measure::record::file::RecordFileError;
use feedrate_results::files::{FilesError, Lock, StudyFiles};
use feedrate_results::place::{label, short_label, sync};
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Attempt, Checked, Outcome, StudySettings, StudyState};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

/// Options of one start of the runner.
#[derive(Clone, Debug, Default)]
pub struct RunnerOptions {
    /// Rows to run; all where it is empty. See [`crate::select::is_wanted`].
    pub only: Vec<String>,
    /// Runs, at most.
    pub limit: Option<usize>,
    /// No run is begun that would end later than so many seconds from the start.
    pub time_budget_s: Option<f64>,
    /// Run again what failed.
    pub retry: bool,
    /// Policy for datasets.
    pub datasets: Policy,
    /// Results count only for the plan that their row has now: others are set back at the start, and a run by another plan fails.
    pub same_plan: bool,
    /// Set back results at the start that say nothing about the storage.
    pub repeat_worthless: bool,
}

/// Result of one start of the runner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerReport {
    /// Runs that came to a result.
    pub finished: usize,
    /// Runs that did not, with why.
    pub failed: Vec<(String, String)>,
    /// The user wanted to stop.
    pub is_stopped: bool,
}

/// The study after one start of the runner.
#[derive(Clone, Debug)]
pub struct RunnerEnd {
    /// What this start did.
    pub report: RunnerReport,
    /// State of the study.
    pub state: StudyState,
    /// Its rows with their results, as the chooser saw them.
    pub history: History,
}

/// An error after which the runner cannot go on.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
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

/// The one runner of a study.
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
    /// Name of the row that is run, in progress lines.
    name: String,
    /// Its place; `None` where the chooser's label counts the runs.
    place: Option<RowPlace>,
    /// Values of finished runs, by folder.
    observations: BTreeMap<PathBuf, Observation>,
    started_s: f64,
    _lock: Lock,
}

/// A row among those of its study.
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

    /// As the chooser names it, in progress lines.
    fn label_by(self, chooser: &dyn Chooser) -> Option<String> {
        chooser.label(self.row(), self.index + 1)
    }

    fn name(self, chooser: &dyn Chooser) -> String {
        self.label_by(chooser).unwrap_or_else(|| short_label(self.row(), self.rows))
    }
}

/// An attempt without a result: it ended by itself, or the runner cannot go on.
enum Broken {
    Run(TaskEnd),
    Runner(RunnerError),
}

impl From<TaskEnd> for Broken {
    fn from(ended: TaskEnd) -> Self {
        Broken::Run(ended)
    }
}

impl From<RunnerError> for Broken {
    fn from(error: RunnerError) -> Self {
        Broken::Runner(error)
    }
}

impl<'a> Runner<'a> {
    /// `settings` come from the state where it has some: whoever calls has compared them with what was asked.
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

    /// Run the rows that `chooser` decides on, until it finds none or something stops the runner.
    ///
    /// # Errors
    /// The study's own files cannot be read or written, or rows are wrong.
    pub fn run(mut self, chooser: &mut dyn Chooser) -> Result<RunnerEnd, RunnerError> {
        self.recover(chooser)?;
        self.set_back_outdated(chooser)?;
        while !self.env.is_stopped() && self.options.limit.is_none_or(|limit| self.done < limit) {
            let rows = self.rows()?;
            let pending = self.pending(&rows);
            self.plan_all(&rows, &pending)?;
            let history = self.history(&rows, &pending, chooser);
            let chosen = chooser.next(&history);
            chooser.take_events().into_iter().for_each(|event| {
                self.env.tell(RunnerEvent::Chooser(event));
            });
            let Some(chosen) = chosen else { break };
            if !self.run_chosen(&chosen, rows, pending, chooser)? {
                break;
            }
        }
        self.report.is_stopped = self.env.is_stopped();
        let rows = self.rows()?;
        let pending = self.pending(&rows);
        let history = self.history(&rows, &pending, chooser);
        Ok(RunnerEnd { report: self.report, state: self.state, history })
    }

    /// Run a row that is pending, or append it to the CSV first. Returns whether the runner goes on.
    fn run_chosen(
        &mut self,
        chosen: &Row,
        rows: Vec<Row>,
        mut pending: Vec<usize>,
        chooser: &dyn Chooser,
    ) -> Result<bool, RunnerError> {
        let key = chosen.key();
        let known = pending.iter().position(|&index| rows[index].key() == key);
        let rows = match known {
            Some(place) => {
                pending[..=place].rotate_right(1);
                rows
            }
            None => {
                // A row that cannot be planned is not written down.
                self.plan_all(std::slice::from_ref(chosen), &[0])?;
                self.files.edit_table(|table| {
                    table.push(Row { done: false, ..chosen.clone() });
                    true
                })?;
                let rows = self.rows()?;
                let added = rows.iter().rposition(|row| !row.done && row.key() == key);
                pending.splice(0..0, added);
                rows
            }
        };
        self.prefer_free(&rows, &mut pending);
        let Some(&index) = pending.first() else { return Ok(false) };
        let next = RowRef { rows: &rows, index };
        let is_open_ended = known.is_none();
        Ok(self.fits_time(next) && self.run_row(next, &pending, is_open_ended, chooser)?)
    }

    /// The rows with their results, as `chooser` needs them.
    fn history(&mut self, rows: &[Row], pending: &[usize], chooser: &dyn Chooser) -> History {
        let (env, observations) = (&mut self.env, &mut self.observations);
        History::new(rows, &self.state, pending, |run_dir| {
            if !chooser.reads_results() {
                return Observation::default();
            }
            let known = observations.entry(run_dir.to_path_buf());
            known.or_insert_with(|| env.observe(run_dir)).clone()
        })
    }

    /// Set back rows whose results count no more, so that they are measured again.
    fn set_back_outdated(&mut self, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        let RunnerOptions { same_plan, repeat_worthless, .. } = self.options;
        if !same_plan && !repeat_worthless {
            return Ok(());
        }
        let rows = self.rows()?;
        self.plan_all(&rows, &[])?;
        let mut outdated: Vec<RowKey> = Vec::new();
        for past in self.history(&rows, &[], chooser).runs {
            let RunState::Done(measured) = &past.state else { continue };
            let planned = self.plans.get(&past.row).map(|plan| plan.settings.as_str());
            let is_other =
                planned.zip(measured.plan.as_deref()).is_some_and(|(now, then)| now != then);
            if same_plan && is_other || repeat_worthless && chooser.is_worthless(&past) {
                outdated.push(past.row.key());
            }
        }
        Ok(self.files.edit_table(|table| {
            let rows: Vec<Row> = table.rows().cloned().collect();
            let set_back = |row: &Row| row.done && outdated.contains(&row.key());
            let indices: Vec<usize> =
                (0..rows.len()).filter(|&index| set_back(&rows[index])).collect();
            indices.iter().for_each(|&index| table.mark(index, false));
            !indices.is_empty()
        })?)
    }

    /// The rows as they are now.
    fn rows(&self) -> Result<Vec<Row>, FilesError> {
        Ok(self.files.table()?.rows().cloned().collect())
    }

    /// Rows to run, in their order, but for those that this runner has run already.
    fn pending(&mut self, rows: &[Row]) -> Vec<usize> {
        let places = self.state.row_states(rows);
        let (mut pending, mut undone) = (Vec::new(), Vec::new());
        for index in due_rows(rows, &self.state, &self.options) {
            match places[index].attempt.filter(|of| self.attempts.contains(&of.number)) {
                // An older CSV was saved over the one that said `Y`.
                Some(attempt) if attempt.is_complete() => undone.push(label(&rows[index], rows)),
                Some(_) => {}
                None => pending.push(index),
            }
        }
        for label in undone {
            if self.reported.insert(label.clone()) {
                self.env.tell(RunnerEvent::MarkOverwritten { label });
            }
        }
        pending
    }

    /// Plan all rows; what is wrong with any of `pending` is said before anything runs.
    fn plan_all(&mut self, rows: &[Row], pending: &[usize]) -> Result<(), RunnerError> {
        let (env, settings) = (&mut self.env, &self.settings);
        let made = self.plans.make(rows, pending, |row| env.plan(row, settings));
        made.map_err(RunnerError::Rows)
    }

    /// Whether the next run, with its dataset, ends within the time that the user gave.
    fn fits_time(&mut self, next: RowRef) -> bool {
        let Some(budget_s) = self.options.time_budget_s else { return true };
        let expected_s = self.expected_s(next.rows, &[next.index]);
        let fits = self.env.now_s() - self.started_s + expected_s <= budget_s;
        if !fits {
            self.env.tell(RunnerEvent::OutOfTime { label: next.label(), expected_s });
        }
        fits
    }

    fn expected_s(&mut self, rows: &[Row], indices: &[usize]) -> f64 {
        let (env, settings) = (&mut self.env, &self.settings);
        let rows = indices.iter().map(|index| &rows[*index]);
        self.plans.expected_s(&self.state, rows, |row| env.has_complete_dataset(row, settings))
    }

    /// Run the first of `pending`. Says whether the runner goes on.
    fn run_row(
        &mut self,
        next: RowRef,
        pending: &[usize],
        is_open_ended: bool,
        chooser: &dyn Chooser,
    ) -> Result<bool, RunnerError> {
        let Some(plan) = self.plans.get(next.row()).cloned() else { return Ok(false) };
        if self.state.settings.as_ref() != Some(&self.settings) {
            self.settings.write(self.files)?;
            self.state.settings = Some(self.settings.clone());
        }
        self.report_start(next, pending, is_open_ended, chooser);
        let has_failed = self.set_aside_older(next)?;
        let at = self.begin(next)?;
        let made = self.make_dataset(next, &plan, at, pending, has_failed);
        let came = made.and_then(|()| self.measure(next, &plan, at));
        self.done += 1;
        match came {
            Ok(checked) => self.finish(next, at, checked, chooser).map(|()| true),
            Err(Broken::Runner(error)) => Err(error),
            Err(Broken::Run(TaskEnd::Stopped)) => {
                self.state.attempts[at].give_up(None)?;
                Ok(false)
            }
            Err(Broken::Run(TaskEnd::Failed(reason))) => {
                self.state.attempts[at].give_up(Some(reason.clone()))?;
                let (label, place) = (self.name.clone(), self.place);
                self.report.failed.push((next.label(), reason.clone()));
                self.env.tell(RunnerEvent::Failed { label, place, reason });
                Ok(true)
            }
        }
    }

    /// Run a row whose dataset is there, and check what it came to.
    fn measure(&mut self, next: RowRef, plan: &RowPlan, at: usize) -> Result<Checked, Broken> {
        let Attempt { number: attempt, run_dir, .. } = self.state.attempts[at].clone();
        let job = RowJob { row: next.row(), plan, settings: &self.settings, attempt };
        let prepared_from_s = self.env.now_s();
        let prepared = self.env.prepare(&job)?;
        self.env.tell(RunnerEvent::Running { label: self.name.clone(), place: self.place });
        self.write_about(next, attempt, &run_dir, prepared)?;
        let begun_s = self.env.now_s();
        let ended = self.env.execute(&job, RunnerTask::Run(&run_dir));
        let duration_s = self.env.now_s() - begun_s;
        ended?;
        let checked = self.env.check(&run_dir, next.row(), plan).map_err(TaskEnd::Failed)?;
        if self.options.same_plan && checked.plan != plan.settings {
            let reason = "the workload was changed while its runs were made";
            return Err(TaskEnd::Failed(reason.into()).into());
        }
        let setup_s = Some(self.env.now_s() - prepared_from_s - duration_s);
        Ok(Checked { duration_s, setup_s, ..checked })
    }

    fn report_start(
        &mut self,
        next: RowRef,
        pending: &[usize],
        is_open_ended: bool,
        chooser: &dyn Chooser,
    ) {
        let count = (!is_open_ended).then_some(self.done + pending.len());
        let place = RowPlace { number: self.done + 1, count };
        self.place = next.label_by(chooser).is_none().then_some(place);
        self.name = next.name(chooser);
        let left_s = self.expected_s(next.rows, pending);
        let (label, place) = (self.name.clone(), self.place);
        self.env.tell(RunnerEvent::Begun { label, place, left_s });
    }

    fn finish(
        &mut self,
        done: RowRef,
        at: usize,
        mut checked: Checked,
        chooser: &dyn Chooser,
    ) -> Result<(), RunnerError> {
        let Attempt { number, run_dir, .. } = self.state.attempts[at].clone();
        sync(&run_dir, &self.settings.results).map_err(|source| RunnerError::Io {
            doing: "sync",
            path: run_dir.clone(),
            source,
        })?;
        self.state.attempts[at].outcome = Outcome::Complete(None);
        self.attempts.insert(number);
        checked.doubts.extend(self.replicates_differ(done, &checked.plan));
        let doubts = checked.doubts.iter().map(|doubt| doubt.name.clone()).collect();
        let duration_s = checked.duration_s;
        self.mark(at, &done.label(), checked)?;
        self.report.finished += 1;
        let (label, place) = (self.name.clone(), self.place);
        let response = chooser.response();
        let value = self.env.value(&run_dir, response);
        let name = if response.id == AU_ALL_STEPS.id { "AU" } else { response.id.name() };
        let result = value.map(|value| {
            let verdict = chooser.verdict(value).map_or(String::new(), |says| format!(", {says}"));
            format!("{name} {}{verdict}", response.unit.text(value))
        });
        self.env.tell(RunnerEvent::Finished { label, place, duration_s, result, doubts });
        Ok(())
    }
}
