//! Classifies failures for exit codes and other ranks, and formats errors with their hints.

use feedrate_data::error::DatasetError;
use feedrate_data::stage::StageError;
use feedrate_data::storage::StorageError;
use feedrate_engine::job::ReadError;
use feedrate_measure::record::file::RecordFileError;
use feedrate_run::checkpoint::CheckpointError;
use feedrate_run::comm::CommError;
use feedrate_run::driver::RunError;
use feedrate_spec::problem::Problems;
use feedrate_spec::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::io;

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The work failed.
    Failed,
    /// The request was refused: bad usage or a bad workload.
    Refused,
    /// The user interrupted the work.
    Interrupted,
    /// More steps are configured than the data has.
    TooManySteps,
}

/// The run was interrupted. Its folder has the results so far.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: the run is incomplete; the results so far are in `{0}`")]
pub struct Interrupted(pub String);

/// More steps are configured than the data has.
#[derive(Debug, thiserror::Error)]
#[error(
    "the data has only {available} steps an epoch, and `train.total_training_steps` is {wanted}"
)]
pub struct TooManySteps {
    /// Number of steps in an epoch of the data.
    pub available: u64,
    /// `train.total_training_steps`.
    pub wanted: u64,
}

/// A failure that was already reported: the process only has to end with the right exit code.
#[derive(Debug, thiserror::Error)]
#[error("already reported")]
pub struct AlreadyReported(pub FailureKind);

impl FailureKind {
    /// Classifies an error.
    pub fn from_error(error: &anyhow::Error) -> Self {
        if let Some(AlreadyReported(kind)) = error.downcast_ref() {
            *kind
        } else if error.is::<Problems>() || error.is::<Refusal>() {
            FailureKind::Refused
        } else if is_interruption(error) {
            FailureKind::Interrupted
        } else if error.is::<TooManySteps>() {
            FailureKind::TooManySteps
        } else {
            FailureKind::Failed
        }
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
        || matches!(
            error.downcast_ref(),
            Some(DatasetError::Cancelled { .. } | DatasetError::Busy { .. })
        )
        || rank_error(error).is_some_and(CommError::is_interruption)
}

/// Returns the underlying error of the communication between ranks, if there is one.
pub fn rank_error(error: &anyhow::Error) -> Option<&CommError> {
    if let Some(run) = error.downcast_ref::<RunError>() {
        return run.comm_error();
    }
    match error.downcast_ref() {
        Some(CheckpointError::Comm(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

/// Returns the message that reports an error: its causes and its hint.
pub fn message(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Problems>() {
        Some(problems) => problems.to_string(),
        // Some texts of problems, such as a table's, already begin with "error: ".
        None => format!("error: {}", describe(error).trim_start_matches("error: ")),
    }
}

/// Returns the causes of an error, followed by a line with its hint.
pub fn describe(error: &anyhow::Error) -> String {
    match hint(error) {
        Some(hint) => format!("{}\n  hint: {hint}", causes(error)),
        None => causes(error),
    }
}

/// Returns an error and its hint on one line.
pub fn on_one_line(error: &anyhow::Error) -> String {
    let text = describe(error);
    let lines = text.lines().map(|line| {
        let message = line.trim().trim_start_matches("error: ");
        message.strip_prefix("hint: ").unwrap_or(message)
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// Joins the causes. Leaves out a cause that the text already contains.
fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for source in error.chain() {
        let cause = source.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return refusal.hint.clone();
        }
        hint_of_type(cause, RecordFileError::hint)
            .or_else(|| hint_of_type(cause, DatasetError::hint))
            .or_else(|| hint_of_type(cause, StageError::hint))
            .or_else(|| hint_of_type(cause, RunError::hint))
            .or_else(|| hint_of_type(cause, CheckpointError::hint))
            .or_else(|| hint_of_type(cause, ReadError::hint))
            .or_else(|| hint_of_type(cause, StorageError::hint))
            .or_else(|| hint_of_type(cause, file_size_hint))
            .map(str::to_string)
    })
}

fn file_size_hint(error: &io::Error) -> Option<&'static str> {
    let is_too_large = error.kind() == io::ErrorKind::FileTooLarge;
    is_too_large.then_some(
        "raise the limit on file sizes (`ulimit -f`), or write to a file system that takes larger files",
    )
}

/// Returns the hint of `cause` if the type of `cause` is `E`.
fn hint_of_type<E: std::error::Error + 'static>(
    cause: &(dyn std::error::Error + 'static),
    hint: fn(&E) -> Option<&'static str>,
) -> Option<&'static str> {
    cause.downcast_ref().and_then(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_run::comm::End;

    #[test]
    fn interruptions_are_recognised_below_a_context() {
        let check = |error: anyhow::Error, kind| {
            let with_context = error.context("cannot continue");
            assert_eq!(FailureKind::from_error(&with_context), kind, "{with_context:?}");
        };
        let lost = |end| CommError::Lost { rank: 3, host: "n".into(), end };
        check(CommError::Stopped.into(), FailureKind::Interrupted);
        check(lost(End::Interrupted).into(), FailureKind::Interrupted);
        check(RunError::Comm(CommError::Stopped).into(), FailureKind::Interrupted);
        let checkpoint = CheckpointError::Comm(lost(End::Interrupted));
        check(RunError::Checkpoint(checkpoint).into(), FailureKind::Interrupted);
        check(CheckpointError::Comm(CommError::Stopped).into(), FailureKind::Interrupted);
        let cancelled = DatasetError::Cancelled { files: 1, files_total: 2, share: None };
        check(cancelled.into(), FailureKind::Interrupted);
        check(lost(End::Died).into(), FailureKind::Failed);
        check(lost(End::Failed("x: interrupted".into())).into(), FailureKind::Failed);
        check(Interrupted("results".into()).into(), FailureKind::Interrupted);
    }
}
