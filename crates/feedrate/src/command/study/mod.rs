//! `feedrate study`: one file a command of it, dispatched here.

mod how;
mod row;
mod reporter;
pub(super) mod datasets;
mod machine;
mod ledger;
mod precision;
mod dry_run;
mod new;
mod run;
pub(super) mod chosen;
mod row_view;
mod status;

pub(super) use dry_run::StudyDryRunOutput;
pub(super) use how::{StudyHow, StudyStart};
pub(super) use new::StudyNewOutput;
pub(super) use row::note_own_workloads;
pub(super) use run::StudyRunOutput;
pub(super) use status::{StudyShowOutput, StudyStatusOutput};

use crate::exit::Exit;
use clap::Subcommand;
use feedrate_results::files::FilesError;
use feedrate_spec::refusal::Refusal;
use feedrate_study::runner::RunnerError;

/// Commands about studies.
#[derive(Debug, Subcommand)]
pub(super) enum StudyCommand {
    /// Write the runs of an experimental design as CSV.
    New(new::StudyNewArguments),
    /// Run what is pending in a study.
    Run(run::StudyRunArguments),
    /// Show how far a study is, or single rows with every attempt.
    Status(status::StudyStatusArguments),
}

/// Do what was asked.
pub(super) fn study(command: &StudyCommand) -> anyhow::Result<Exit> {
    let done = match command {
        StudyCommand::New(a) => new::new(a),
        StudyCommand::Run(a) => run::run(a),
        StudyCommand::Status(a) => status::status(a),
    };
    done.map_err(by_whose_fault)
}

/// Problems of a study's CSV are bad usage, told like those of a workload.
fn by_whose_fault(error: anyhow::Error) -> anyhow::Error {
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
