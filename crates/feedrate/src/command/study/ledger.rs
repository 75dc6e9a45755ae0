//! A study as it stands: rows, journal, and what the records of its runs say. Read only.

use super::how;
use super::talk::Talk;
use super::world::World;
use crate::cli::StudyHow;
use crate::exit::UsageError;
use feedrate_measure::summary::Summary;
use feedrate_results::files::StudyFiles;
use feedrate_results::load_run;
use feedrate_results::place::label;
use feedrate_results::row::Row;
use feedrate_results::state::{
    Attempt, Event, History, Journal, Outcome, Place, Settings, Status, places,
};
use feedrate_study::runner::{Options, Plans, due, is_wanted};
use serde_json::{Value, json};
use std::path::Path;

/// A study as it stands.
pub(super) struct Ledger {
    pub(super) files: StudyFiles,
    pub(super) rows: Vec<Row>,
    pub(super) history: History,
    pub(super) settings: Settings,
    pub(super) world: World,
    /// What was begun by a runner that died.
    pub(super) left: Vec<Attempt>,
}

/// Where nobody runs, what nobody has told of was broken off.
fn break_off(history: &mut History) -> Vec<Attempt> {
    let left = history.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Unknown);
    let left: Vec<Attempt> = left.cloned().collect();
    for attempt in &left {
        history.add(Event::BrokenOff { attempt: attempt.number });
    }
    left
}

impl Ledger {
    /// Read the study in this CSV.
    pub(super) fn open(csv: &Path) -> anyhow::Result<Self> {
        let files = StudyFiles::of(csv)?;
        let rows: Vec<Row> = files.table()?.rows().cloned().collect();
        let mut history = History::of(Journal::read(&files.journal())?);
        how::along(&files, &mut history)?;
        let settings = how::settings(&StudyHow::default(), &files.csv, &history)?;
        let is_running = files.is_locked();
        let left = if is_running { Vec::new() } else { break_off(&mut history) };
        how::enter(&settings)?;
        let world = World::new(&files, Talk::new(true))?;
        Ok(Ledger { files, rows, history, settings, world, left })
    }

    /// Where each row stands.
    pub(super) fn places(&self) -> Vec<Place<'_>> {
        places(&self.rows, &self.history)
    }

    pub(super) fn label(&self, index: usize) -> String {
        label(&self.rows[index], &self.rows)
    }

    /// How long all that is due takes, with its datasets; `None` where that cannot be told.
    pub(super) fn left_s(&self) -> Option<f64> {
        let (world, settings) = (&self.world, &self.settings);
        let due = due(&self.rows, &self.history, &Options::default());
        let mut plans = Plans::default();
        let planned = |row: &Row| Ok(world.planned(row, settings)?.plan);
        plans.make(&self.rows, &due, planned).ok()?;
        let rows = due.iter().map(|index| &self.rows[*index]);
        let is_whole = |row: &Row| world.planned(row, settings).is_ok_and(|of| of.is_whole);
        Some(plans.expected_s(&self.history, rows, is_whole))
    }

    /// A row as JSON, with what its run came to.
    pub(super) fn json_of(&self, index: usize, status: &Status) -> Value {
        let row = &self.rows[index];
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
            "run_dir": result(status).map(|attempt| &attempt.run_dir),
            "summary": summary(status),
        })
    }
}

/// The attempt that a row's result is from.
pub(super) fn result<'a>(status: &Status<'a>) -> Option<&'a Attempt> {
    match *status {
        Status::Done(attempt) => attempt,
        Status::Unmarked(attempt) => Some(attempt),
        _ => None,
    }
}

/// What a row's run came to; `None` where there is no result, or it cannot be read.
pub(super) fn summary(status: &Status) -> Option<Summary> {
    let record = load_run(&result(status)?.run_dir).ok()?;
    Some(Summary::new(&record))
}

/// The rows that `wanted` names.
pub(super) fn found(rows: &[Row], wanted: &[String]) -> Result<Vec<usize>, UsageError> {
    let is_wanted = |index: &usize| is_wanted(wanted, *index, &rows[*index], rows);
    let found: Vec<usize> = (0..rows.len()).filter(is_wanted).collect();
    if found.is_empty() {
        return Err(UsageError {
            message: format!("no row of the study is called `{}`", wanted.join(" ")),
            hint: Some("name it by `#6`, its place, or as `feedrate study status` does".into()),
        });
    }
    Ok(found)
}
