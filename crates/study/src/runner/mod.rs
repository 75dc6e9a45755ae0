//! Runs what is pending in a study, one run after another, so that nothing is lost, doubled or marked wrongly whatever ends it.
//!
//! The order of writing is what makes it safe: an attempt is in the journal before it starts; its results are checked and on the disk
//! before the journal says `finished`; the journal says so before the CSV says `Y`; and only then does the journal say `marked`.

mod host;
mod select;
mod plans;
mod datasets;
mod replicates;
mod recover;
mod time;
#[cfg(test)]
mod tests;

pub use host::{DatasetPlan, Ended, Host, Job, News, Prepared, RowPlan, Task};
pub use plans::{Plans, generation_s};
pub use replicates::{Group, Wanted, groups};
pub use select::{due, in_order, is_wanted};

use crate::datasets::Policy;
use feedrate_measure::record::StudyRun;
use feedrate_results::experiment::Experiment;
use feedrate_results::files::{FilesError, Lock, StudyFiles};
use feedrate_results::place::{INCOMPLETE, SUPERSEDED, label};
use feedrate_results::row::Row;
use feedrate_results::setting::Setting;
use feedrate_results::state::{
    Checked, Event, History, Journal, JournalError, Outcome, Place, RowId, Settings, Status, places,
};
use feedrate_spec::plan::PlanDoubt;
use std::collections::BTreeSet;
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
    plans: Plans,
    /// What was told once.
    told: BTreeSet<String>,
    /// Attempts that this runner brought to a result.
    finished: BTreeSet<u64>,
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
    fn of(files: &StudyFiles, history: &History) -> Result<Self, FilesError> {
        let all: Vec<Row> = files.table()?.rows().cloned().collect();
        let ids = places(&all, history).into_iter().map(|place| place.id).collect();
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
        let (plans, told, finished, report) = Default::default();
        Runner {
            files,
            host,
            options,
            settings,
            journal,
            history,
            plans,
            told,
            finished,
            report,
            done: 0,
            started_s,
            _lock: lock,
        }
    }

    /// Run what is pending until nothing is, or until something says stop.
    ///
    /// # Errors
    /// The study's own files cannot be read or written, or rows are wrong.
    pub fn run(mut self) -> Result<(Report, History), RunnerError> {
        self.recover()?;
        while !self.host.is_stopped() && self.options.limit.is_none_or(|limit| self.done < limit) {
            let rows = Rows::of(self.files, &self.history)?;
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
    fn pending(&mut self, rows: &Rows) -> Vec<usize> {
        let mut due = due(&rows.all, &self.history, &self.options);
        let places = places(&rows.all, &self.history);
        let mut undone = Vec::new();
        due.retain(|&index| match places[index].status {
            // What has failed since this runner started is not tried again by it.
            Status::Failed(attempt, _) => !self.is_of_this_runner(attempt.number),
            // Nor is what it has done itself: an older CSV was saved over the one that says so.
            Status::SetBack(attempt) if self.finished.contains(&attempt.number) => {
                undone.push(rows.label(index));
                false
            }
            _ => true,
        });
        for label in undone {
            if self.told.insert(label.clone()) {
                self.host.tell(News::SetBackMeanwhile { label });
            }
        }
        due
    }

    fn is_of_this_runner(&self, attempt: u64) -> bool {
        self.history.attempts.iter().rev().take(self.done).any(|of| of.number == attempt)
    }

    /// Plans of all rows; what is wrong with any of `pending` is said before anything runs.
    fn plan_all(&mut self, rows: &Rows, pending: &[usize]) -> Result<(), RunnerError> {
        let (host, settings) = (&mut self.host, &self.settings);
        let made = self.plans.make(&rows.all, pending, |row| host.plan(row, settings));
        made.map_err(RunnerError::Rows)
    }

    fn plan_of(&self, rows: &Rows, index: usize) -> Option<&RowPlan> {
        self.plans.of_key(&rows.ids[index].key)
    }

    /// Whether the runner goes on.
    fn run_row(
        &mut self,
        rows: &Rows,
        index: usize,
        pending: &[usize],
    ) -> Result<bool, RunnerError> {
        let row = &rows.all[index];
        let Some(plan) = self.plan_of(rows, index).cloned() else { return Ok(false) };
        if self.history.settings.as_ref() != Some(&self.settings) {
            self.add(Event::Settings(self.settings.clone()))?;
        }
        let has_failed = self.supersede(rows, index)?;
        let attempt = self.history.next_attempt();
        let run_dir = self.begin((rows, index), attempt)?;
        let made = self.make_dataset((rows, index), (&plan, attempt), (pending, has_failed))?;
        let outcome = made.and_then(|()| {
            self.tell_of_start(rows, pending);
            self.host.prepare(&Job { row, plan: &plan, settings: &self.settings, attempt })
        });
        let outcome = outcome.and_then(|prepared| {
            let about = self.about((rows, index), attempt, prepared);
            let job = Job { row, plan: &plan, settings: &self.settings, attempt };
            let begun_s = self.host.now_s();
            self.host.execute(&job, Task::Run { run_dir: &run_dir, about: &about })?;
            let duration_s = self.host.now_s() - begun_s;
            let checked = self.host.check(&run_dir, row, &plan).map_err(Ended::Failed)?;
            Ok(Checked { duration_s, ..checked })
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

    /// The older result of a row that was set back counts no more. Says whether the last attempt at a row failed.
    fn supersede(&mut self, rows: &Rows, index: usize) -> Result<bool, RunnerError> {
        let places = places(&rows.all, &self.history);
        let Place { status, .. } = &places[index];
        let Status::SetBack(older) = status else {
            return Ok(matches!(status, Status::Failed(..)));
        };
        let (attempt, run_dir) = (older.number, older.run_dir.clone());
        let folder = aside(&run_dir, SUPERSEDED)?;
        self.add(Event::Superseded { attempt })?;
        self.host.tell(News::Superseded { label: rows.label(index), folder });
        Ok(false)
    }

    fn begin(
        &mut self,
        (rows, index): (&Rows, usize),
        attempt: u64,
    ) -> Result<PathBuf, RunnerError> {
        let row = &rows.all[index];
        let experiment =
            feedrate_results::place::experiment_dir(&self.settings.results, row, &rows.all);
        let made = feedrate_results::place::make_run_dir(&experiment, &self.host.stamp());
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
        mut result: Checked,
    ) -> Result<(), RunnerError> {
        feedrate_results::place::sync(run_dir, &self.settings.results).map_err(|source| {
            RunnerError::Io { doing: "sync", path: run_dir.to_path_buf(), source }
        })?;
        result.doubts.extend(replicates_differ(rows, index, &result.plan, &self.history));
        let doubts = result.doubts.iter().map(|doubt| doubt.name.clone()).collect();
        let duration_s = result.duration_s;
        self.add(Event::Finished { attempt, result })?;
        self.finished.insert(attempt);
        self.mark(attempt, &rows.label(index), run_dir)?;
        self.report.finished += 1;
        let (label, run_dir) = (rows.label(index), run_dir.to_path_buf());
        self.host.tell(News::Finished { label, run_dir, duration_s, doubts });
        Ok(())
    }

    /// Say in the CSV, as it is by now, that a row is done.
    fn mark(&mut self, attempt: u64, label: &str, run_dir: &Path) -> Result<(), RunnerError> {
        let mut table = self.files.table()?;
        let rows: Vec<Row> = table.rows().cloned().collect();
        let places = places(&rows, &self.history);
        let is_its = |place: &Place| place.status.attempt().is_some_and(|of| of.number == attempt);
        let Some(index) = places.iter().position(is_its) else {
            let (label, run_dir) = (label.to_string(), run_dir.to_path_buf());
            self.host.tell(News::RowIsGone { label, run_dir });
            return Ok(());
        };
        if !rows[index].done {
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
}

/// A run that replicates others by its row, and was made by another plan.
fn replicates_differ(
    rows: &Rows,
    index: usize,
    plan: &str,
    history: &History,
) -> Option<PlanDoubt> {
    let experiment = rows.all[index].experiment_key();
    let places = places(&rows.all, history);
    let others = rows.all.iter().zip(&places).filter(|(row, _)| row.experiment_key() == experiment);
    let mut others = others.filter_map(|(_, place)| match place.status {
        Status::Done(Some(attempt)) => Some(attempt),
        _ => None,
    });
    let other =
        others.find(|of| matches!(&of.outcome, Outcome::Finished(of) if of.plan != plan))?;
    Some(PlanDoubt {
        name: "replicates_differ".into(),
        evidence: format!("its plan is not that of `{}`", other.run_dir.display()),
        advice: "see with `feedrate compare` what changed in between, and set the older rows back to `N`".into(),
    })
}

/// See [`place::put_aside`].
fn aside(run_dir: &Path, under: &str) -> Result<PathBuf, RunnerError> {
    feedrate_results::place::put_aside(run_dir, under).map_err(|source| RunnerError::Io {
        doing: "put aside",
        path: run_dir.to_path_buf(),
        source,
    })
}
