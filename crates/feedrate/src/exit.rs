//! Exit codes, as the README states them.

use feedrate_data::error::DatasetError;
use feedrate_measure::metric::UnknownMetric;
use feedrate_results::index::RunsError;
use feedrate_run::checkpoint::CheckpointError;
use feedrate_run::comm::CommError;
use feedrate_run::driver::RunError;
use feedrate_spec::problem::Problems;
use feedrate_spec::workload::alike;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// Exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// Done.
    Fine = 0,
    /// The run failed.
    Failed = 1,
    /// Bad usage or workload.
    Usage = 2,
    /// Done, but an expectation was not met.
    Unmet = 3,
    /// Done, but what was asked is not decided.
    Undecided = 4,
    /// Interrupted.
    Interrupted = 130,
    /// More steps are wanted than the data has: `dlio_benchmark` ends so, as DLIO does.
    TooManySteps = 255,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Bad usage of a command that clap cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    /// A lowercase fragment.
    pub(crate) message: String,
    /// The command.
    pub(crate) hint: Option<String>,
}

impl UsageError {
    /// With a remedy.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        UsageError { message: message.into(), hint: Some(hint.into()) }
    }

    /// Without one.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        UsageError { message: message.into(), hint: None }
    }

    /// `message`, with the names that `word` may have meant, else `otherwise`.
    pub(crate) fn unknown<'a>(
        message: String,
        word: &str,
        names: impl IntoIterator<Item = &'a str>,
        otherwise: &str,
    ) -> Self {
        match alternatives(&alike(word, names)) {
            Some(names) => Self::new(message, format!("did you mean {names}?")),
            None => Self::new(message, otherwise),
        }
    }
}

/// So many names are offered.
const OFFERED_MAX: usize = 10;

/// "`a`, `b` or `c`".
pub(crate) fn alternatives(names: &[&str]) -> Option<String> {
    let offered: Vec<String> =
        names.iter().take(OFFERED_MAX).map(|name| format!("`{name}`")).collect();
    let (last, first) = offered.split_last()?;
    Some(if first.is_empty() { last.clone() } else { format!("{} or {last}", first.join(", ")) })
}

/// Refuse what was asked, with a remedy.
pub(crate) fn refuse<T, E: From<UsageError>>(
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, E> {
    Err(UsageError::new(message, hint).into())
}

impl From<RunsError> for UsageError {
    fn from(error: RunsError) -> Self {
        UsageError { message: error.to_string(), hint: error.hint() }
    }
}

impl From<UnknownMetric> for UsageError {
    fn from(error: UnknownMetric) -> Self {
        UsageError::new(error.to_string(), error.hint())
    }
}

/// The run was interrupted and left what it had.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: the run is not whole; what was measured is in `{0}`")]
pub(crate) struct Interrupted(pub(crate) String);

/// More steps are wanted than the data has.
#[derive(Debug, thiserror::Error)]
#[error(
    "only {available} steps an epoch can be made of the data, and `train.total_training_steps` is {wanted}"
)]
pub(crate) struct TooManySteps {
    /// Steps of an epoch.
    pub(crate) available: u64,
    /// `train.total_training_steps`.
    pub(crate) wanted: u64,
}

/// The code that belongs to an error.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    if error.is::<Problems>() || error.is::<UsageError>() {
        Exit::Usage
    } else if is_interruption(error) {
        Exit::Interrupted
    } else if error.is::<TooManySteps>() {
        Exit::TooManySteps
    } else {
        Exit::Failed
    }
}

fn is_interruption(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>()
        || matches!(
            error.downcast_ref(),
            Some(DatasetError::Cancelled { .. } | DatasetError::Busy { .. })
        )
        || of_ranks(error).is_some_and(CommError::is_interruption)
}

/// That of the ranks' work together, if nothing else went wrong.
pub(crate) fn of_ranks(error: &anyhow::Error) -> Option<&CommError> {
    if let Some(run) = error.downcast_ref::<RunError>() {
        return run.of_ranks();
    }
    match error.downcast_ref() {
        Some(CheckpointError::Comm(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_run::comm::End;

    #[test]
    fn the_nearest_name_is_offered() {
        for (word, expected) in [
            ("threds", "did you mean `threads`?"),
            ("mpi", "did you mean `mpi`, `mpich` or `mpirun`?"),
            ("nothing", "see the list"),
            ("", "see the list"),
        ] {
            let names = ["threads", "mpi", "mpich", "mpirun"];
            let error = UsageError::unknown("no such name".into(), word, names, "see the list");
            assert_eq!(error.hint.as_deref(), Some(expected), "{word}");
        }
    }

    #[test]
    fn whoever_was_told_to_stop_was_interrupted() {
        let check = |error: anyhow::Error, code| {
            let error = error.context("cannot go on");
            assert_eq!(code_of(&error), code, "{error:?}");
        };
        let lost = |end| CommError::Lost { rank: 3, host: "n".into(), end };
        check(CommError::Stopped.into(), Exit::Interrupted);
        check(lost(End::Interrupted).into(), Exit::Interrupted);
        check(RunError::Comm(CommError::Stopped).into(), Exit::Interrupted);
        let of_checkpoint = CheckpointError::Comm(lost(End::Interrupted));
        check(RunError::Checkpoint(of_checkpoint).into(), Exit::Interrupted);
        check(CheckpointError::Comm(CommError::Stopped).into(), Exit::Interrupted);
        let cancelled = DatasetError::Cancelled { files: 1, files_total: 2, share: None };
        check(cancelled.into(), Exit::Interrupted);
        check(lost(End::Died).into(), Exit::Failed);
        check(lost(End::Failed("x: interrupted".into())).into(), Exit::Failed);
        check(Interrupted("results".into()).into(), Exit::Interrupted);
    }
}
