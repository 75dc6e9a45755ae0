//! Converts errors of a study that the user can correct into refusals.

use crate::runner::RunnerError;
use feedrate_results::files::FilesError;
use feedrate_spec::refusal::Refusal;

/// Converts problems of a study's CSV to a refusal with a hint, like those of a workload. Other errors are returned unchanged.
pub fn as_refusal(error: anyhow::Error) -> anyhow::Error {
    let file_error = match error.downcast::<RunnerError>() {
        Ok(RunnerError::Files(error)) => error.into(),
        Ok(RunnerError::Rows(problems)) => {
            return Refusal::without_hint(problems.join("\nerror: ")).into();
        }
        Ok(error) => error.into(),
        Err(error) => error,
    };
    match file_error.downcast::<FilesError>() {
        Ok(FilesError::Table(problems)) => problems.into(),
        Ok(error) => match error.hint() {
            Some(hint) => Refusal::new(error.to_string(), hint).into(),
            None => error.into(),
        },
        Err(error) => error,
    }
}
