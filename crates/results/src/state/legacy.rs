//! Studies of feedrate before its result folders said whose they are: a journal did, a line of JSON an event.

use super::StudyState;
use super::attempt::{Attempt, Checked, Outcome, write_about};
use super::settings::{StudySettings, moved, read_state};
use crate::files::{FilesError, StudyFiles, failed};
use crate::place::{INCOMPLETE, SUPERSEDED, absent};
use crate::row::RowKey;
use feedrate_measure::record::{StudyRun, file};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// An event of a journal, as far as it is about runs.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Settings(StudySettings),
    Begun {
        attempt: u64,
        key: RowKey,
        ordinal: u32,
        run_dir: PathBuf,
    },
    Finished {
        attempt: u64,
        #[serde(flatten)]
        checked: Checked,
    },
    Failed {
        attempt: u64,
        reason: String,
    },
    BrokenOff {
        attempt: u64,
    },
    Marked {
        attempt: u64,
    },
    Superseded {
        attempt: u64,
    },
    /// About a dataset: those say themselves whose they are.
    #[serde(other)]
    Other,
}

/// An attempt as the journal knows it.
struct KnownAttempt {
    attempt: Attempt,
    /// Number among rows with its key.
    ordinal: u32,
    checked: Option<Checked>,
}

/// The state of a study by its journal; nothing where there is none.
pub(super) fn read(files: &StudyFiles) -> Result<StudyState, FilesError> {
    let failed = failed("use", &files.journal());
    let text = absent(read_state(&files.journal())).map_err(&failed)?.unwrap_or_default();
    let (mut settings, mut known) = (None, BTreeMap::new());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        // The last may be cut off: its writer was killed.
        if line.last() == Some(&b'\n') {
            let event = serde_json::from_slice(line).map_err(|error| failed(error.into()))?;
            add(event, &mut settings, &mut known);
        }
    }
    let Some(settings) = settings else { return Ok(StudyState::default()) };
    let before = settings.csv.clone();
    let settings = settings.moved_to(&files.csv, &files.state)?;
    move_all(&mut known, &before, &settings.csv);
    let mut attempts: Vec<Attempt> = known.into_values().map(|one| one.attempt).collect();
    attempts.retain(|of| of.run_dir.exists() || matches!(of.outcome, Outcome::Failed { .. }));
    for attempt in &mut attempts {
        attempt.key.0 += &block(&attempt.run_dir);
    }
    Ok(StudyState { settings: Some(settings), attempts })
}

fn add(
    event: Event,
    settings: &mut Option<StudySettings>,
    known: &mut BTreeMap<u64, KnownAttempt>,
) {
    let (number, outcome, aside) = match event {
        Event::Settings(new) => {
            if let Some(before) = settings.replace(new.clone()) {
                move_all(known, &before.csv, &new.csv);
            }
            return;
        }
        Event::Begun { attempt: number, key, ordinal, run_dir } => {
            let same = known.values_mut().filter(|one| one.ordinal == ordinal);
            for one in same.map(|one| &mut one.attempt).filter(|one| one.key == key) {
                if let Outcome::Failed { is_retried, .. } = &mut one.outcome {
                    *is_retried = true;
                }
            }
            let attempt = Attempt { number, key, run_dir, outcome: Outcome::Running };
            known.insert(number, KnownAttempt { attempt, ordinal, checked: None });
            return;
        }
        Event::Finished { attempt, checked } => {
            known.entry(attempt).and_modify(|one| one.checked = Some(checked));
            (attempt, Outcome::Complete(None), None)
        }
        Event::Marked { attempt } => {
            let checked = known.get(&attempt).and_then(|one| one.checked.clone());
            (attempt, Outcome::Complete(checked), None)
        }
        Event::Failed { attempt, reason } => {
            (attempt, Outcome::Failed { reason, is_retried: false }, Some(INCOMPLETE))
        }
        Event::BrokenOff { attempt } => (attempt, Outcome::BrokenOff, Some(INCOMPLETE)),
        Event::Superseded { attempt } => (attempt, Outcome::Superseded, Some(SUPERSEDED)),
        Event::Other => return,
    };
    if let Some(KnownAttempt { attempt, .. }) = known.get_mut(&number) {
        attempt.outcome = outcome;
        if let (Some(aside), Some(name)) = (aside, attempt.run_dir.file_name()) {
            attempt.run_dir = attempt.run_dir.with_file_name(aside).join(name);
        }
    }
}

fn move_all(known: &mut BTreeMap<u64, KnownAttempt>, from: &Path, to: &Path) {
    if from == to {
        return;
    }
    for one in known.values_mut() {
        one.attempt.run_dir = moved(&one.attempt.run_dir, from, to);
    }
}

/// The end of a row's key, which no journal has, from the record.
fn block(run_dir: &Path) -> String {
    let study = file::read(run_dir).ok().and_then(|record| record.study);
    study.and_then(|study| study.block).map_or(String::new(), |block| format!("|{block}"))
}

/// Have the folders of results say what the journal says. The settings come last: until then the journal is read.
pub(super) fn adopt(files: &StudyFiles) -> Result<(), FilesError> {
    let StudyState { settings: Some(settings), attempts } = read(files)? else { return Ok(()) };
    for attempt in &attempts {
        let run_dir = &attempt.run_dir;
        fs::create_dir_all(run_dir).map_err(failed("make", run_dir))?;
        let study = file::read(run_dir).ok().and_then(|record| record.study);
        let about = StudyRun {
            id: Some(settings.id.clone()),
            key: Some(attempt.key.0.clone()),
            attempt: attempt.number,
            ..study.map_or_else(StudyRun::default, |study| *study)
        };
        write_about(run_dir, &about)?;
        attempt.write_outcome()?;
    }
    settings.write(files)
}
