//! Errors about studies that the user can correct.

use crate::runner::RunnerError;
use feedrate_results::files::FilesError;
use feedrate_spec::refusal::Refusal;

/// Problems of a study's CSV as a refusal, like those of a workload; other errors as they are.
pub fn as_refusal(error: anyhow::Error) -> anyhow::Error {
    let error = match error.downcast::<RunnerError>() {
        Ok(RunnerError::Files(error)) => error.into(),
        Ok(RunnerError::Rows(problems)) => {
            return Refusal::without_hint(problems.join("\nerror: ")).into();
        }
        Ok(error) => error.into(),
        Err(error) => error,
    };
    match error.downcast::<FilesError>() {
        Ok(FilesError::Table(problems)) => problems.into(),
        Ok(error) => match error.hint() {
            Some(hint) => Refusal::new(error.to_string(), hint).into(),
            None => error.into(),
        },
        Err(error) => error,
    }
}
