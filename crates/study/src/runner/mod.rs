//! Runs what is pending in a study, one run after another, so that nothing is lost, doubled or marked wrongly whatever ends it.
//!
//! The order of writing is what makes it safe: an attempt is in the journal before it starts; its results are checked and on the disk
//! before the journal says `finished`; the journal says so before the CSV says `Y`; and only then does the journal say `marked`.

mod files;
mod host;
mod place;
mod select;
mod datasets;
mod replicates;
#[cfg(test)]
mod tests;

pub use files::{FilesError, Lock, StudyFiles, sync_folder};
pub use host::{Checked, DatasetPlan, Ended, Host, Job, News, Prepared, RowPlan, Task};
pub use place::{INCOMPLETE, SUPERSEDED, model_name};
pub use replicates::{Group, Wanted, groups};
pub use select::{in_order, is_wanted, label, pace};

use crate::datasets::Policy;
use crate::experiment::Experiment;
use crate::row::Row;
use crate::setting::Setting;
use crate::state::{
    Event, History, Journal, JournalError, Outcome, RowId, Settings, Status, row_ids, status,
};
use feedrate_measure::record::StudyRun;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// What is wanted of one start of the runner.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rows to run; all where it is empty. See [`is_wanted`].
    pub only: Vec<String>,
    /// Runs, at most.
    pub limit: Option<usize>,
    /// No run is begun that would end later than so many seconds from the start.
    pub time_budget_s: Option<f64>,
    /// Run again what failed.
    pub retry: bool,
    /// What becomes of datasets.
    pub datasets: Policy,
    /// Add replicates until the response is known so well.
    pub until: Option<Wanted>,
}

/// What one start of the runner came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs that came to a result.
    pub finished: usize,
    /// Runs that did not, with why.
    pub failed: Vec<(String, String)>,
    /// The user wanted to stop.
    pub is_stopped: bool,
}

/// Why the runner cannot go on.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunnerError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot {doing} `{path}`: {source}")]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{}", .0.join("\n"))]
    Rows(Vec<String>),
}

/// The one runner of a study.
pub struct Runner<'a> {
    files: &'a StudyFiles,
    host: &'a mut dyn Host,
    options: Options,
    settings: Settings,
    journal: Journal,
    history: History,
    plans: BTreeMap<RowId, RowPlan>,
    /// Experiments whose end was told.
    told: BTreeSet<String>,
    report: Report,
    done: usize,
    started_s: f64,
    _lock: Lock,
}

/// The rows of a study as they are now.
struct Rows {
    all: Vec<Row>,
    ids: Vec<RowId>,
}

impl Rows {
    fn of(files: &StudyFiles) -> Result<Self, FilesError> {
        let all: Vec<Row> = files.table()?.rows().cloned().collect();
        let ids = row_ids(&all);
        Ok(Rows { all, ids })
    }

    fn label(&self, index: usize) -> String {
        label(&self.all[index], &self.all)
    }
}

impl<'a> Runner<'a> {
    /// `settings` come from the history where it has some: whoever calls has compared them with what was asked.
    pub fn new(
        files: &'a StudyFiles,
        lock: Lock,
        (journal, history): (Journal, History),
        settings: Settings,
        (host, options): (&'a mut dyn Host, Options),
    ) -> Self {
        let started_s = host.now_s();
        let (plans, told, report) = Default::default();
        Runner {
            files,
            host,
            options,
            settings,
            journal,
            history,
            plans,
            told,
            report,
            done: 0,
            started_s,
            _lock: lock,
        }
    }

    /// Run what is pending until nothing is, or until something says stop.
    ///
    /// # Errors
    /// The study's own files cannot be read or written, rows are wrong, or a dataset has no room.
    pub fn run(mut self) -> Result<(Report, History), RunnerError> {
        if self.history.settings.as_ref() != Some(&self.settings) {
            self.add(Event::Settings(self.settings.clone()))?;
        }
        self.recover()?;
        self.plan_done()?;
        while !self.host.is_stopped() && self.options.limit.is_none_or(|limit| self.done < limit) {
            let rows = Rows::of(self.files)?;
            let pending = self.pending(&rows);
            self.plan_all(&rows, &pending)?;
            let Some(&next) = pending.first() else {
                if self.add_replicates(&rows)? { continue } else { break }
            };
            if !self.fits_time(&rows, &pending) || !self.run_row(&rows, next, &pending)? {
                break;
            }
        }
        self.report.is_stopped = self.host.is_stopped();
        if !self.report.is_stopped {
            self.delete_unneeded()?;
        }
        Ok((self.report, self.history))
    }

    fn add(&mut self, event: Event) -> Result<(), JournalError> {
        self.journal.add(&event)?;
        self.history.add(event);
        Ok(())
    }

    /// Rows to run, in their order.
    fn pending(&self, rows: &Rows) -> Vec<usize> {
        let is_pending = |index: &usize| {
            let row = &rows.all[*index];
            let is_due = match status(row, &rows.ids[*index], &self.history) {
                Status::Pending | Status::SetBack(_) => true,
                // What has failed since this runner started is not tried again by it.
                Status::Failed(..) => self.options.retry && !self.has_failed_now(&rows.ids[*index]),
                Status::Done(_) | Status::Unmarked(_) | Status::Left(_) => false,
            };
            is_due && is_wanted(&self.options.only, *index, row, &rows.all)
        };
        in_order(&rows.all).into_iter().filter(is_pending).collect()
    }

    fn has_failed_now(&self, id: &RowId) -> bool {
        let now = self.history.attempts.iter().rev().take(self.done);
        now.into_iter().any(|attempt| attempt.row == *id)
    }

    /// Plans of all `indices`; what is wrong with any is said before anything runs.
    fn plan_all(&mut self, rows: &Rows, indices: &[usize]) -> Result<(), RunnerError> {
        let mut problems = Vec::new();
        for &index in indices {
            let id = &rows.ids[index];
            if self.plans.contains_key(id) {
                continue;
            }
            match self.host.plan(&rows.all[index], &self.settings) {
                Ok(plan) => _ = self.plans.insert(id.clone(), plan),
                Err(problem) => {
                    problems.push(format!("row {} ({}): {problem}", index + 1, rows.label(index)));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(RunnerError::Rows(problems)) }
    }

    /// Plans of rows that are done, which tell the pace of those that are not.
    fn plan_done(&mut self) -> Result<(), RunnerError> {
        let rows = Rows::of(self.files)?;
        for (row, id) in rows.all.iter().zip(&rows.ids).filter(|(row, _)| row.done) {
            // One that can no longer be planned tells nothing.
            if let Ok(plan) = self.host.plan(row, &self.settings) {
                self.plans.insert(id.clone(), plan);
            }
        }
        Ok(())
    }

    /// What the plan of a row says, at the pace of the runs that are done.
    fn expected_s(&self, rows: &Rows, index: usize, pace: f64) -> f64 {
        self.plans.get(&rows.ids[index]).map_or(0.0, |plan| plan.run_s * pace)
    }

    fn pace(&self) -> f64 {
        let done = self.history.attempts.iter().filter_map(|attempt| match &attempt.outcome {
            Outcome::Finished { duration_s, .. } => {
                Some((self.plans.get(&attempt.row)?.run_s, *duration_s))
            }
            _ => None,
        });
        pace(&done.collect::<Vec<_>>())
    }

    fn fits_time(&mut self, rows: &Rows, pending: &[usize]) -> bool {
        let Some(budget_s) = self.options.time_budget_s else { return true };
        let expected_s = self.expected_s(rows, pending[0], self.pace());
        let fits = self.host.now_s() - self.started_s + expected_s <= budget_s;
        if !fits {
            self.host.tell(News::OutOfTime { label: rows.label(pending[0]), expected_s });
        }
        fits
    }

    /// Whether the runner goes on.
    fn run_row(
        &mut self,
        rows: &Rows,
        index: usize,
        pending: &[usize],
    ) -> Result<bool, RunnerError> {
        let row = &rows.all[index];
        let Some(plan) = self.plans.get(&rows.ids[index]).cloned() else { return Ok(false) };
        self.supersede(rows, index)?;
        let attempt = self.history.next_attempt();
        let made = self.make_dataset((rows, index), (&plan, attempt), pending)?;
        let outcome = match made {
            Ok(()) => {
                let (pace, of) = (self.pace(), self.done + pending.len());
                let left = pending.iter().map(|&i| self.expected_s(rows, i, pace));
                let running = News::Running {
                    label: rows.label(index),
                    number: self.done + 1,
                    of,
                    expected_s: plan.run_s * pace,
                    left_s: left.sum(),
                };
                self.host.tell(running);
                self.host.prepare(&Job { row, plan: &plan, settings: &self.settings, attempt })
            }
            Err(ended) => Err(ended),
        };
        let run_dir = self.begin((rows, index), attempt)?;
        let outcome = outcome.and_then(|prepared| {
            let about = self.about((rows, index), attempt, prepared);
            let job = Job { row, plan: &plan, settings: &self.settings, attempt };
            self.host.execute(&job, Task::Run { run_dir: &run_dir, about: &about })?;
            self.host.check(&run_dir, row, &plan).map_err(Ended::Failed)
        });
        self.done += 1;
        match outcome {
            Ok(checked) => {
                self.finish((rows, index), attempt, &run_dir, checked)?;
                Ok(true)
            }
            Err(ended) => self.give_up((rows, index), attempt, &run_dir, ended),
        }
    }

    /// The older result of a row that was set back counts no more.
    fn supersede(&mut self, rows: &Rows, index: usize) -> Result<(), RunnerError> {
        let found = status(&rows.all[index], &rows.ids[index], &self.history);
        let Status::SetBack(older) = found else { return Ok(()) };
        let (attempt, run_dir) = (older.number, older.run_dir.clone());
        let folder = aside(&run_dir, SUPERSEDED)?;
        self.add(Event::Superseded { attempt })?;
        self.host.tell(News::Superseded { label: rows.label(index), folder });
        Ok(())
    }

    fn begin(
        &mut self,
        (rows, index): (&Rows, usize),
        attempt: u64,
    ) -> Result<PathBuf, RunnerError> {
        let row = &rows.all[index];
        let experiment = place::experiment_dir(&self.settings.results, row, &rows.all);
        let made = place::make_run_dir(&experiment, &self.host.stamp());
        let run_dir = made.map_err(|source| RunnerError::Io {
            doing: "make a folder in",
            path: experiment,
            source,
        })?;
        let RowId { key, ordinal } = rows.ids[index].clone();
        let at = self.host.stamp();
        self.add(Event::Begun { attempt, key, ordinal, run_dir: run_dir.clone(), at })?;
        Ok(run_dir)
    }

    fn about(&self, (rows, index): (&Rows, usize), attempt: u64, prepared: Prepared) -> StudyRun {
        let row = &rows.all[index];
        StudyRun {
            study: self.files.csv.display().to_string(),
            experiment: Experiment::of(row, &rows.all).id(),
            overrides: row.settings.iter().map(Setting::text).collect(),
            replicate: row.replicate,
            block: row.block,
            order: row.order,
            attempt,
            note: row.note.clone(),
            environment: prepared.environment,
            doubts: prepared.doubts,
        }
    }

    fn finish(
        &mut self,
        (rows, index): (&Rows, usize),
        attempt: u64,
        run_dir: &Path,
        Checked { duration_s, doubts }: Checked,
    ) -> Result<(), RunnerError> {
        place::sync(run_dir, &self.settings.results).map_err(|source| RunnerError::Io {
            doing: "sync",
            path: run_dir.to_path_buf(),
            source,
        })?;
        let names = doubts.iter().map(|doubt| doubt.name.clone()).collect();
        self.add(Event::Finished { attempt, duration_s, doubts })?;
        self.mark(&rows.ids[index], attempt, &rows.label(index), run_dir)?;
        self.report.finished += 1;
        let (label, run_dir) = (rows.label(index), run_dir.to_path_buf());
        self.host.tell(News::Finished { label, run_dir, duration_s, doubts: names });
        Ok(())
    }

    /// Say in the CSV, as it is by now, that a row is done.
    fn mark(
        &mut self,
        id: &RowId,
        attempt: u64,
        label: &str,
        run_dir: &Path,
    ) -> Result<(), RunnerError> {
        let mut table = self.files.table()?;
        let ids = row_ids(table.rows());
        let Some(index) = ids.iter().position(|other| other == id) else {
            let (label, run_dir) = (label.to_string(), run_dir.to_path_buf());
            self.host.tell(News::RowIsGone { label, run_dir });
            return Ok(());
        };
        if table.rows().nth(index).is_some_and(|row| !row.done) {
            table.mark(index, true);
            self.files.write_table(&table)?;
        }
        Ok(self.add(Event::Marked { attempt })?)
    }

    fn give_up(
        &mut self,
        (rows, index): (&Rows, usize),
        attempt: u64,
        run_dir: &Path,
        ended: Ended,
    ) -> Result<bool, RunnerError> {
        aside(run_dir, INCOMPLETE)?;
        match ended {
            Ended::Stopped => self.add(Event::BrokenOff { attempt })?,
            Ended::Failed(reason) => {
                self.add(Event::Failed { attempt, reason: reason.clone() })?;
                let label = rows.label(index);
                self.report.failed.push((label.clone(), reason.clone()));
                self.host.tell(News::Failed { label, reason });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Bring to an end what an earlier runner could not.
    fn recover(&mut self) -> Result<(), RunnerError> {
        self.remove_half_deleted()?;
        let rows = Rows::of(self.files)?;
        let attempts: Vec<_> = self.history.attempts.iter().map(|attempt| attempt.number).collect();
        for number in attempts {
            self.recover_attempt(&rows, number)?;
        }
        Ok(())
    }

    fn recover_attempt(&mut self, rows: &Rows, number: u64) -> Result<(), RunnerError> {
        let found = self.history.attempts.iter().find(|attempt| attempt.number == number);
        let Some(attempt) = found.cloned() else { return Ok(()) };
        let index = rows.ids.iter().position(|id| *id == attempt.row);
        let label = index.map_or_else(|| attempt.row.key.0.clone(), |index| rows.label(index));
        match &attempt.outcome {
            Outcome::Unknown => {
                let checked =
                    index.and_then(|index| self.check_left(rows, index, &attempt.run_dir));
                self.host.tell(News::Recovered { label, is_whole: checked.is_some() });
                match (checked, index) {
                    (Some(checked), Some(index)) => {
                        self.finish((rows, index), number, &attempt.run_dir, checked)?;
                    }
                    _ => {
                        aside(&attempt.run_dir, INCOMPLETE)?;
                        self.add(Event::BrokenOff { attempt: number })?;
                    }
                }
            }
            Outcome::Finished { .. }
                if !attempt.marked && !attempt.superseded && index.is_some() =>
            {
                self.mark(&attempt.row, number, &label, &attempt.run_dir)?;
            }
            Outcome::Finished { .. } | Outcome::Failed { .. } | Outcome::BrokenOff => {}
        }
        Ok(())
    }

    /// What an attempt came to whose runner did not live to tell.
    fn check_left(&mut self, rows: &Rows, index: usize, run_dir: &Path) -> Option<Checked> {
        let row = &rows.all[index];
        let plan = self.host.plan(row, &self.settings).ok()?;
        self.host.check(run_dir, row, &plan).ok()
    }
}

/// See [`place::put_aside`].
fn aside(run_dir: &Path, under: &str) -> Result<PathBuf, RunnerError> {
    place::put_aside(run_dir, under).map_err(|source| RunnerError::Io {
        doing: "put aside",
        path: run_dir.to_path_buf(),
        source,
    })
}
