//! What a journal's events come to: attempts with their outcomes, datasets that the study made. Reads no file.

use super::event::{Checked, Event, Settings, moved};
use crate::row::RowKey;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which row: rows may ask for the same run several times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// What is run.
    pub key: RowKey,
    /// Which of the rows with this key, from 0.
    pub ordinal: u32,
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
    /// Stands for the plan that it ran; empty where it came to no result.
    pub fn plan(&self) -> &str {
        match &self.outcome {
            Outcome::Finished(result) => &result.plan,
            _ => "",
        }
    }

    /// Whether it came to a result.
    pub fn is_finished(&self) -> bool {
        matches!(self.outcome, Outcome::Finished(_))
    }
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nobody has told yet.
    Unknown,
    /// Results are whole and on the disk.
    Finished(Checked),
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
    /// On the storage.
    pub bytes: u64,
    /// How long it took to make; `None` if that was not finished.
    pub duration_s: Option<f64>,
}

/// The state beside a study's CSV is that of another.
#[derive(Debug, thiserror::Error)]
#[error("what lies beside this study is the state of `{}`, of which it is a copy", original.display())]
pub struct IsCopy {
    /// The CSV of the other.
    pub original: PathBuf,
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
            Event::Settings(settings) => {
                if let Some(before) = self.settings.take() {
                    self.move_paths(&before.csv, &settings.csv);
                }
                self.settings = Some(settings);
            }
            Event::Begun { attempt, key, ordinal, run_dir, at } => self.attempts.push(Attempt {
                number: attempt,
                row: RowId { key, ordinal },
                run_dir,
                at,
                outcome: Outcome::Unknown,
                marked: false,
                superseded: false,
            }),
            Event::Finished { attempt, result } => {
                self.change(attempt, |of| of.outcome = Outcome::Finished(result));
            }
            Event::Failed { attempt, reason } => {
                self.change(attempt, |of| of.outcome = Outcome::Failed { reason });
            }
            Event::BrokenOff { attempt } => {
                self.change(attempt, |of| of.outcome = Outcome::BrokenOff);
            }
            Event::Marked { attempt } => self.change(attempt, |of| of.marked = true),
            Event::Superseded { attempt } => self.change(attempt, |of| of.superseded = true),
            Event::Claimed { folder, bytes, .. } => {
                self.datasets.insert(folder, Dataset { bytes, duration_s: None });
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

    fn move_paths(&mut self, from: &Path, to: &Path) {
        for attempt in &mut self.attempts {
            attempt.run_dir = moved(&attempt.run_dir, from, to);
        }
        let datasets = std::mem::take(&mut self.datasets).into_iter();
        self.datasets = datasets.map(|(folder, of)| (moved(&folder, from, to), of)).collect();
    }

    /// Take the history along to where the study's CSV is now. Says with which event, if it was elsewhere.
    ///
    /// # Errors
    /// This is the history of another study, whose CSV is still there.
    pub fn come_along(&mut self, csv: &Path) -> Result<Option<Event>, IsCopy> {
        let Some(settings) = self.settings.as_ref().filter(|of| of.csv != csv) else {
            return Ok(None);
        };
        if settings.csv.exists() {
            return Err(IsCopy { original: settings.csv.clone() });
        }
        let event = Event::Settings(settings.moved_to(csv));
        self.add(event.clone());
        Ok(Some(event))
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
