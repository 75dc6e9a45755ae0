//! Writes about attempts: whose a folder is, what came of it, and the mark in the CSV; and brings to an end what is left of an earlier
//! runner that died.

use super::env::{PreparedMachine, RunnerEvent};
use super::{RowRef, Runner, RunnerError};
use crate::chooser::Chooser;
use feedrate_measure::record::StudyRun;
use feedrate_results::experiment::Experiment;
use feedrate_results::place::{experiment_dir, make_run_dir};
use feedrate_results::row::Row;
use feedrate_results::setting::Setting;
use feedrate_results::state::{Attempt, Checked, Outcome, Status, write_about};
use feedrate_spec::plan::PlanDoubt;
use std::path::Path;

impl Runner<'_> {
    /// Bring to an end what an earlier runner could not.
    pub(super) fn recover(&mut self, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        for at in 0..self.state.attempts.len() {
            match self.state.attempts[at].outcome {
                Outcome::Running | Outcome::Complete(None) => self.recover_attempt(at, chooser)?,
                // Its runner died before it was put aside.
                Outcome::Failed { .. } => self.state.attempts[at].put_aside_failed()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn recover_attempt(&mut self, at: usize, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        let rows = self.rows()?;
        let attempt = self.state.attempts[at].clone();
        let index = self.row_of(&attempt, &rows);
        let found = index.map(|index| RowRef { rows: &rows, index });
        let has_ended = attempt.is_complete();
        if has_ended && found.is_none() {
            // Its row was deleted, and its result is nobody's to judge.
            return Ok(());
        }
        let checked = match found {
            Some(found) if has_ended => {
                // Without a plan nobody can tell whether it is the row's.
                let Ok(plan) = self.env.plan(found.row(), &self.settings) else { return Ok(()) };
                self.env.check(&attempt.run_dir, found.row(), &plan).ok()
            }
            _ => None,
        };
        let label = found.map_or_else(|| attempt.key.0.clone(), RowRef::label);
        let is_complete = checked.is_some();
        self.env.tell(RunnerEvent::Recovered { label, is_complete });
        match (checked, found) {
            (Some(checked), Some(found)) => {
                self.name = found.name(chooser);
                self.finish(found, at, checked, chooser)
            }
            _ => Ok(self.state.attempts[at].give_up(None)?),
        }
    }

    /// The row that an attempt belongs to.
    fn row_of(&self, attempt: &Attempt, rows: &[Row]) -> Option<usize> {
        let places = self.state.row_states(rows);
        places.iter().position(|place| place.attempt.is_some_and(|of| of.number == attempt.number))
    }

    /// Make an attempt at a row; says which it is. Its folder says from now on whose it is.
    pub(super) fn begin(&mut self, next: RowRef) -> Result<usize, RunnerError> {
        let experiment = experiment_dir(&self.settings.results, next.row(), next.rows);
        let run_dir = make_run_dir(&experiment, &self.env.stamp()).map_err(|source| {
            RunnerError::Io { doing: "make a folder in", path: experiment, source }
        })?;
        let last = self.state.attempts.last().map_or(0, |attempt| attempt.number);
        let number = last.max(self.files.last_task()).saturating_add(1);
        self.write_about(next, number, &run_dir, PreparedMachine::default())?;
        let (key, outcome) = (next.row().key(), Outcome::Running);
        self.state.attempts.push(Attempt { number, key, run_dir, outcome });
        self.attempts.insert(number);
        Ok(self.state.attempts.len() - 1)
    }

    pub(super) fn write_about(
        &self,
        next: RowRef,
        attempt: u64,
        run_dir: &Path,
        prepared: PreparedMachine,
    ) -> Result<(), RunnerError> {
        let row = next.row();
        let about = StudyRun {
            study: self.files.csv.display().to_string(),
            id: Some(self.settings.id.clone()),
            key: Some(row.key().0),
            experiment: Experiment::new(row, next.rows).id(),
            overrides: row.settings.iter().map(Setting::text).collect(),
            replicate: row.replicate,
            block: row.block,
            order: row.order,
            attempt,
            note: row.note.clone(),
            environment: prepared.environment,
            doubts: prepared.doubts,
        };
        Ok(write_about(run_dir, &about)?)
    }

    /// Put aside the result of a row that was set back, and note that a failed one is begun again. Says whether it failed.
    pub(super) fn set_aside_older(&mut self, next: RowRef) -> Result<bool, RunnerError> {
        let place = self.state.row_states(next.rows)[next.index];
        let Some(number) = place.attempt.map(|attempt| attempt.number) else { return Ok(false) };
        let is_failed = place.status == Status::Failed;
        let older = self.state.attempts.iter_mut().find(|attempt| attempt.number == number);
        let Some(older) = older else { return Ok(false) };
        if is_failed {
            older.retry()?;
        } else if older.is_complete() {
            older.supersede()?;
            let folder = older.run_dir.clone();
            self.env.tell(RunnerEvent::Superseded { label: next.label(), folder });
        }
        Ok(is_failed)
    }

    /// Say in the CSV, as it is by now, that a row is done, and then in the folder of its results that the CSV says so: a row that is
    /// `N` after that was set back by the user.
    pub(super) fn mark(
        &mut self,
        at: usize,
        label: &str,
        checked: Checked,
    ) -> Result<(), RunnerError> {
        let attempt = &self.state.attempts[at];
        let mut found = None;
        self.files.edit_table(|table| {
            let rows: Vec<Row> = table.rows().cloned().collect();
            found = self.row_of(attempt, &rows);
            let open = found.filter(|&index| !rows[index].done);
            open.is_some_and(|index| {
                table.mark(index, true);
                true
            })
        })?;
        if found.is_none() {
            let (label, run_dir) = (label.to_string(), attempt.run_dir.clone());
            self.env.tell(RunnerEvent::RowRemoved { label, run_dir });
            return Ok(());
        }
        Ok(self.state.attempts[at].mark_checked(checked)?)
    }

    /// Doubt a run that replicates others by its row, and was made by another plan.
    pub(super) fn replicates_differ(&self, done: RowRef, plan: &str) -> Option<PlanDoubt> {
        let experiment = done.row().experiment_key();
        let places = self.state.row_states(done.rows);
        let others = done.rows.iter().zip(&places);
        let mut others = others
            .filter(|(row, _)| row.experiment_key() == experiment)
            .filter_map(|(_, place)| place.result());
        let other = others.find(|of| of.checked().is_some_and(|checked| checked.plan != plan))?;
        Some(PlanDoubt {
            name: "replicates_differ".into(),
            evidence: format!("its plan is not that of `{}`", other.run_dir.display()),
            advice: "see with `feedrate compare` what changed in between, and set the older rows back to `N`".into(),
        })
    }
}
