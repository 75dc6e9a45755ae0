//! Writes the state of attempts: the row of a folder, the outcome, and the mark in the CSV. Also completes the attempts of an earlier runner that died.

use super::env::{PreparedMachine, RunnerEvent};
use super::{RowRef, Runner, RunnerError};
use crate::chooser::Chooser;
use feedrate_measure::record::StudyRun;
use feedrate_results::experiment::Experiment;
use feedrate_results::place::{experiment_dir, make_mlperf_run_dir, make_run_dir};
use feedrate_results::row::Row;
use feedrate_results::setting::Setting;
use feedrate_results::state::{
    ADOPTED, Attempt, CheckResult, Outcome, Status, StudySettings, write_about,
};
use feedrate_spec::plan::PlanDoubt;
use std::path::Path;

impl Runner<'_> {
    /// Completes the attempts that an earlier runner left unfinished.
    pub(super) fn recover(&mut self, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        for index in 0..self.state.attempts.len() {
            match self.state.attempts[index].outcome {
                Outcome::Running | Outcome::Complete(None) => {
                    self.recover_attempt(index, chooser)?;
                }
                // The runner died before it moved the failed run.
                Outcome::Failed { .. } => self.state.attempts[index].put_aside_failed()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Finishes an attempt whose results are complete, and gives up other attempts.
    fn recover_attempt(&mut self, index: usize, chooser: &dyn Chooser) -> Result<(), RunnerError> {
        let rows = self.rows()?;
        let attempt = self.state.attempts[index].clone();
        let row = self.find_row(&attempt, &rows);
        let found = row.map(|index| RowRef { rows: &rows, index });
        let has_ended = attempt.is_complete();
        if has_ended && found.is_none() {
            // Without its row, the result cannot be checked.
            return Ok(());
        }
        let checked = match found {
            Some(found) if has_ended => {
                // Without a plan, it is unknown whether the result belongs to the row.
                let Ok(plan) = self.env.plan(found.row(), &self.settings) else { return Ok(()) };
                self.env.check_results(&attempt.run_dir, found.row(), &plan).ok()
            }
            _ => None,
        };
        let label = found.map_or_else(|| attempt.key.0.clone(), RowRef::label);
        let is_complete = checked.is_some();
        self.env.report(RunnerEvent::Recovered { label, is_complete });
        match (checked, found) {
            (Some(checked), Some(found)) => {
                self.name = found.name(chooser);
                self.finish(found, index, checked, chooser)
            }
            _ => Ok(self.state.attempts[index].give_up(None)?),
        }
    }

    /// Records that a row cannot be planned.
    pub(super) fn fail_unplanned(
        &mut self,
        failed: RowRef,
        reason: String,
        chooser: &dyn Chooser,
    ) -> Result<(), RunnerError> {
        self.store_settings()?;
        self.retire_older_attempt(failed, chooser)?;
        let attempt = self.start_attempt(failed)?;
        self.name = format!("row {} ({})", failed.index + 1, failed.name(chooser));
        self.place = None;
        self.fail(failed, attempt, reason)
    }

    /// Ends an attempt that failed, and reports its reason.
    pub(super) fn fail(
        &mut self,
        failed: RowRef,
        attempt: usize,
        reason: String,
    ) -> Result<(), RunnerError> {
        self.state.attempts[attempt].give_up(Some(reason.clone()))?;
        self.report.failed.push((failed.label(), reason.clone()));
        let label = self.name.clone();
        self.env.report(RunnerEvent::Failed { label, place: self.place, reason });
        Ok(())
    }

    /// Writes the settings of the study if they are new.
    pub(super) fn store_settings(&mut self) -> Result<(), RunnerError> {
        if self.state.settings.as_ref() != Some(&self.settings) {
            self.settings.write(self.files)?;
            self.state.settings = Some(self.settings.clone());
        }
        Ok(())
    }

    /// The row that an attempt belongs to.
    fn find_row(&self, attempt: &Attempt, rows: &[Row]) -> Option<usize> {
        let is_same = |other: &Attempt| other.number == attempt.number;
        self.state.row_states(rows).iter().position(|state| state.attempt.is_some_and(is_same))
    }

    /// Starts an attempt at a row and writes the row to its folder. Returns the index of the attempt in the state.
    pub(super) fn start_attempt(&mut self, next: RowRef) -> Result<usize, RunnerError> {
        let StudySettings { results, mlperf_folder, .. } = &self.settings;
        let experiment = match mlperf_folder {
            Some(folder) => results.join(folder),
            None => experiment_dir(results, next.row(), next.rows),
        };
        let make = if mlperf_folder.is_some() { make_mlperf_run_dir } else { make_run_dir };
        let run_dir = make(&experiment, &self.env.stamp()).map_err(|source| RunnerError::Io {
            doing: "make a folder in",
            path: experiment,
            source,
        })?;
        let last = self.state.attempts.last().map_or(0, |attempt| attempt.number);
        let number = last.max(self.files.last_attempt_with_task()).saturating_add(1);
        self.write_about(next, number, &run_dir, PreparedMachine::default())?;
        let key = next.row().key();
        self.state.attempts.push(Attempt { number, key, run_dir, outcome: Outcome::Running });
        self.attempts.insert(number);
        Ok(self.state.attempts.len() - 1)
    }

    /// Writes the row and the environment of a run to its folder.
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
            workload: self.plans.get(row).map(|plan| plan.workload.clone()),
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

    /// Moves the older result of a row that was set back, or marks a failed attempt as retried. Returns whether the last attempt failed.
    pub(super) fn retire_older_attempt(
        &mut self,
        next: RowRef,
        chooser: &dyn Chooser,
    ) -> Result<bool, RunnerError> {
        let row_state = self.state.row_states(next.rows)[next.index];
        let number = row_state.attempt.map(|attempt| attempt.number);
        // Results of other programs stay where they are.
        let Some(number) = number.filter(|number| *number != ADOPTED) else { return Ok(false) };
        let is_failed = row_state.status == Status::Failed;
        let mut attempts = self.state.attempts.iter_mut();
        let Some(older) = attempts.find(|attempt| attempt.number == number) else {
            return Ok(false);
        };
        if is_failed {
            older.retry()?;
        } else if older.is_complete() {
            older.supersede()?;
            let folder = older.run_dir.clone();
            let label = next.label_by(chooser).unwrap_or_else(|| next.label());
            self.env.report(RunnerEvent::Superseded { label, folder });
        }
        Ok(is_failed)
    }

    /// Marks a row as done in the current CSV, and then writes the check to the folder of its results. If the check exists but the row is `N`, the user
    /// has set it back.
    pub(super) fn mark_done(
        &mut self,
        index: usize,
        label: &str,
        checked: CheckResult,
    ) -> Result<(), RunnerError> {
        let attempt = &self.state.attempts[index];
        let mut found = None;
        self.files.edit_table(|table| {
            let rows: Vec<Row> = table.rows().cloned().collect();
            found = self.find_row(attempt, &rows);
            let open = found.filter(|&index| !rows[index].done);
            open.is_some_and(|index| {
                table.mark(index, true);
                true
            })
        })?;
        if found.is_none() {
            self.env.report(RunnerEvent::RowRemoved {
                label: label.to_string(),
                run_dir: attempt.run_dir.clone(),
            });
            return Ok(());
        }
        Ok(self.state.attempts[index].mark_checked(checked)?)
    }

    /// Returns a doubt if a replicate of the same experiment was run with another plan.
    pub(super) fn replicates_differ(&self, done: RowRef, plan: &str) -> Option<PlanDoubt> {
        let experiment = done.row().experiment_key();
        let states = self.state.row_states(done.rows);
        let mut replicates = done
            .rows
            .iter()
            .zip(&states)
            .filter(|(row, _)| row.experiment_key() == experiment)
            .filter_map(|(_, state)| state.result());
        let differs = |attempt: &&Attempt| {
            let checked = attempt.checked().filter(|checked| !checked.plan.is_empty());
            checked.is_some_and(|checked| checked.plan != plan)
        };
        let other = replicates.find(differs)?;
        Some(PlanDoubt {
            name: "replicates_differ".into(),
            evidence: format!("its plan differs from the plan of `{}`", other.run_dir.display()),
            advice: "find the change with `feedrate compare`, and set the older rows back to `N`"
                .into(),
        })
    }
}
