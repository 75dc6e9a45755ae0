//! What a journal's events come to: attempts with their outcomes, datasets that the study made. Reads no file.

use super::event::{Event, Settings};
use crate::row::{Row, RowKey};
use feedrate_spec::plan::PlanDoubt;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which row: rows may ask for the same run several times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// What is run.
    pub key: RowKey,
    /// Which of the rows with this key, from 0.
    pub ordinal: u32,
}

/// The identities of rows, in their order.
pub fn row_ids<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<RowId> {
    let mut seen: BTreeMap<RowKey, u32> = BTreeMap::new();
    let id = |row: &Row| {
        let key = row.key();
        let next = seen.entry(key.clone()).or_default();
        let ordinal = *next;
        *next += 1;
        RowId { key, ordinal }
    };
    rows.into_iter().map(id).collect()
}

/// One start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Counted over the study, from 1.
    pub number: u64,
    /// Of which row.
    pub row: RowId,
    /// The folder of its results.
    pub run_dir: PathBuf,
    /// When it began, local wall-clock time.
    pub at: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The CSV said that it is done.
    pub marked: bool,
    /// Its row was set back since.
    pub superseded: bool,
}

impl Attempt {
    /// Whether it came to a result.
    pub fn is_finished(&self) -> bool {
        matches!(self.outcome, Outcome::Finished { .. })
    }
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nobody has told yet.
    Unknown,
    /// Results are whole and on the disk.
    Finished {
        /// Of the run alone.
        duration_s: f64,
        /// Seen around the run.
        doubts: Vec<PlanDoubt>,
    },
    /// It came to no result.
    Failed {
        /// In words.
        reason: String,
    },
    /// Broken off from outside.
    BrokenOff,
}

/// A dataset that the study made or began to make, and did not delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Of its settings.
    pub fingerprint: String,
    /// On the storage.
    pub bytes: u64,
    /// How long it took to make; `None` if that was not finished.
    pub duration_s: Option<f64>,
}

/// All that happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// How the runs are made; `None` before the first.
    pub settings: Option<Settings>,
    /// In the order of their starts.
    pub attempts: Vec<Attempt>,
    /// By folder.
    pub datasets: BTreeMap<PathBuf, Dataset>,
}

impl History {
    /// Of a journal.
    pub fn of(events: Vec<Event>) -> Self {
        let mut history = History::default();
        for event in events {
            history.add(event);
        }
        history
    }

    /// One more event.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Settings(settings) => self.settings = Some(settings),
            Event::Begun { attempt, key, ordinal, run_dir, at } => self.attempts.push(Attempt {
                number: attempt,
                row: RowId { key, ordinal },
                run_dir,
                at,
                outcome: Outcome::Unknown,
                marked: false,
                superseded: false,
            }),
            Event::Finished { attempt, duration_s, doubts } => {
                self.change(attempt, |of| of.outcome = Outcome::Finished { duration_s, doubts });
            }
            Event::Failed { attempt, reason } => {
                self.change(attempt, |of| of.outcome = Outcome::Failed { reason });
            }
            Event::BrokenOff { attempt } => {
                self.change(attempt, |of| of.outcome = Outcome::BrokenOff);
            }
            Event::Marked { attempt } => self.change(attempt, |of| of.marked = true),
            Event::Superseded { attempt } => self.change(attempt, |of| of.superseded = true),
            Event::Claimed { folder, fingerprint, bytes } => {
                self.datasets.insert(folder, Dataset { fingerprint, bytes, duration_s: None });
            }
            Event::Generated { folder, duration_s } => {
                if let Some(dataset) = self.datasets.get_mut(&folder) {
                    dataset.duration_s = Some(duration_s);
                }
            }
            Event::Deleted { folder } => {
                self.datasets.remove(&folder);
            }
        }
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Attempt)) {
        if let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.number == number) {
            change(attempt);
        }
    }

    /// The last attempt at a row whose result was not superseded.
    pub fn last_of(&self, row: &RowId) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.row == *row && !attempt.superseded)
    }

    /// The number of the next attempt.
    pub fn next_attempt(&self) -> u64 {
        self.attempts.iter().map(|attempt| attempt.number).max().unwrap_or(0) + 1
    }

    /// Whether any run came to a result.
    pub fn has_results(&self) -> bool {
        self.attempts.iter().any(Attempt::is_finished)
    }
}
