//! Exit codes of the programs, and which error leads to which code.

use feedrate_session::failure::FailureKind;
use std::process::ExitCode;

/// Exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Fine = 0,
    /// The run failed.
    Failed = 1,
    /// Bad usage or workload.
    Usage = 2,
    /// Done, but a condition was not met.
    Unmet = 3,
    /// Done, but the question is not decided.
    Undecided = 4,
    /// Interrupted.
    Interrupted = 130,
    /// More steps are configured than the data has. Only `dlio_benchmark` exits with this code, as in DLIO.
    TooManySteps = 255,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    match FailureKind::from_error(error) {
        FailureKind::Failed => Exit::Failed,
        FailureKind::Refused => Exit::Usage,
        FailureKind::Interrupted => Exit::Interrupted,
        FailureKind::TooManySteps => Exit::TooManySteps,
    }
}
