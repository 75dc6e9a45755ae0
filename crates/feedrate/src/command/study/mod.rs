//! `feedrate study`: one file a command of it, dispatched here.

mod new;
mod how;
mod row;
mod reporter;
mod datasets;
mod machine;
mod precision;
mod dry_run;
mod run;
mod ledger;
mod status;
mod show;

use super::slurm;
use crate::cli::StudyCommand;
use crate::exit::{Exit, UsageError};
use feedrate_results::files::FilesError;
use feedrate_study::runner::RunnerError;

/// Do what was asked.
pub(crate) fn study(command: &StudyCommand) -> anyhow::Result<Exit> {
    let done = match command {
        StudyCommand::New(a) => new::new(a),
        StudyCommand::Run(a) => run::run(a),
        StudyCommand::Slurm(a) => slurm::study(a),
        StudyCommand::Status(a) => status::status(a),
        StudyCommand::Show(a) => show::show(a),
    };
    done.map_err(by_whose_fault)
}

/// Problems of a study's CSV are bad usage, told like those of a workload.
fn by_whose_fault(error: anyhow::Error) -> anyhow::Error {
    let error = match error.downcast::<RunnerError>() {
        Ok(RunnerError::Files(error)) => error.into(),
        Ok(RunnerError::Rows(problems)) => {
            return UsageError { message: problems.join("\nerror: "), hint: None }.into();
        }
        Ok(error) => error.into(),
        Err(error) => error,
    };
    match error.downcast::<FilesError>() {
        Ok(FilesError::Table(problems)) => problems.into(),
        Ok(error) => match error.hint() {
            Some(hint) => UsageError { message: error.to_string(), hint: Some(hint) }.into(),
            None => error.into(),
        },
        Err(error) => error,
    }
}
