//! A study as it stands: rows, journal, and what the records of its runs say. Read only.

use super::how;
use super::talk::Talk;
use super::world::World;
use crate::cli::StudyHow;
use crate::exit::UsageError;
use feedrate_measure::summary::Summary;
use feedrate_study::load_run;
use feedrate_study::row::Row;
use feedrate_study::runner::{StudyFiles, label};
use feedrate_study::state::{
    Attempt, History, Journal, Outcome, RowId, Settings, Status, row_ids, status,
};
use serde_json::{Value, json};
use std::path::Path;

/// A study as it stands.
pub(super) struct Ledger {
    pub(super) files: StudyFiles,
    pub(super) rows: Vec<Row>,
    pub(super) ids: Vec<RowId>,
    pub(super) history: History,
    pub(super) settings: Settings,
    pub(super) world: World,
}

impl Ledger {
    /// Read the study in this CSV.
    pub(super) fn open(csv: &Path) -> anyhow::Result<Self> {
        let files = StudyFiles::of(csv)?;
        let rows: Vec<Row> = files.table()?.rows().cloned().collect();
        let history = History::of(Journal::read(&files.journal())?);
        let settings = how::settings(&StudyHow::default(), &history)?;
        how::enter(&settings)?;
        let world = World::new(&files, Talk::new(true))?;
        Ok(Ledger { ids: row_ids(&rows), files, rows, history, settings, world })
    }

    pub(super) fn status(&self, index: usize) -> Status<'_> {
        status(&self.rows[index], &self.ids[index], &self.history)
    }

    pub(super) fn label(&self, index: usize) -> String {
        label(&self.rows[index], &self.rows)
    }

    /// The attempt that a row's result is from.
    pub(super) fn result(&self, index: usize) -> Option<&Attempt> {
        match self.status(index) {
            Status::Done(attempt) => attempt,
            Status::Unmarked(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// What a row's run came to; `None` where there is no result, or it cannot be read.
    pub(super) fn summary(&self, index: usize) -> Option<Summary> {
        let record = load_run(&self.result(index)?.run_dir).ok()?;
        Some(Summary::of(&record))
    }

    /// How long each row takes by its plan, at the pace of the runs that are done.
    pub(super) fn expected_s(&mut self) -> Vec<Option<f64>> {
        let planned: Vec<Option<f64>> = self
            .rows
            .iter()
            .map(|row| Some(self.world.planned(row, &self.settings).ok()?.plan.run_s))
            .collect();
        let took = self.ids.iter().zip(&planned).filter_map(|(id, planned)| {
            match self.history.last_of(id)?.outcome {
                Outcome::Finished { duration_s, .. } => Some(((*planned)?, duration_s)),
                _ => None,
            }
        });
        let pace = feedrate_study::runner::pace(&took.collect::<Vec<_>>());
        planned.iter().map(|run_s| run_s.map(|run_s| run_s * pace)).collect()
    }

    /// A row as JSON, with what its run came to.
    pub(super) fn json_of(&self, index: usize) -> Value {
        let row = &self.rows[index];
        let status = self.status(index);
        let reason = if let Status::Failed(_, reason) = status { Some(reason) } else { None };
        json!({
            "row": index + 1,
            "label": self.label(index),
            "model": row.model,
            "epochs": row.epochs,
            "processes": row.processes,
            "overrides": row.settings.iter().map(|setting| setting.text()).collect::<Vec<_>>(),
            "replicate": row.replicate,
            "block": row.block,
            "order": row.order,
            "status": status.name(),
            "reason": reason,
            "run_dir": self.result(index).map(|attempt| &attempt.run_dir),
            "summary": self.summary(index),
        })
    }
}

/// The rows that `wanted` names.
pub(super) fn found(ledger: &Ledger, wanted: &[String]) -> Result<Vec<usize>, UsageError> {
    let is_wanted = |index: &usize| {
        feedrate_study::runner::is_wanted(wanted, *index, &ledger.rows[*index], &ledger.rows)
    };
    let found: Vec<usize> = (0..ledger.rows.len()).filter(is_wanted).collect();
    if found.is_empty() {
        return Err(UsageError {
            message: format!("no row of the study is called `{}`", wanted.join(" ")),
            hint: Some("name it by `#6`, its place, or as `feedrate study status` does".into()),
        });
    }
    Ok(found)
}
