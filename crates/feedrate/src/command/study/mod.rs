//! `feedrate study`: dispatches to the subcommands. Each has a file.

mod run_settings;
mod reporter;
mod precision;
mod dry_run;
mod new;
mod gates;
mod run;
pub(super) mod conclusion;
mod row_view;
mod status;

pub(super) use dry_run::StudyDryRunOutput;
pub(super) use new::StudyNewOutput;
pub(super) use run::StudyRunOutput;
pub(super) use run_settings::{StudyLaunch, StudyRunSettings};
pub(super) use status::{StudyShowOutput, StudyStatusOutput};

use crate::exit::Exit;
use crate::{environment_variable, interrupt};
use clap::Subcommand;
use feedrate_run::live::Signals;
use feedrate_spec::listener::Silent;
use feedrate_study::failure::as_refusal;
use feedrate_study::machine::RunnerHost;
use reporter::Reporter;

/// Commands about studies.
#[derive(Debug, Subcommand)]
pub(super) enum StudyCommand {
    /// Create a study: write the runs of an experimental design as CSV.
    New(new::StudyNewArguments),
    /// Run the pending rows of a study.
    Run(run::StudyRunArguments),
    /// Show the progress of a study, or details of single rows.
    Status(status::StudyStatusArguments),
}

/// Runs the subcommand.
pub(super) fn study(command: &StudyCommand) -> anyhow::Result<Exit> {
    let result = match command {
        StudyCommand::New(a) => new::new(a),
        StudyCommand::Run(a) => run::run(a),
        StudyCommand::Status(a) => status::status(a),
    };
    result.map_err(as_refusal)
}

/// Host of the runner, for commands that run rows.
pub(super) fn runner_host() -> RunnerHost {
    RunnerHost {
        reporter: Box::new(Reporter::new()),
        signals: interrupt::signals_of_runner(),
        variable: environment_variable,
    }
}

/// Host of the runner, for commands that only plan rows.
fn silent_host() -> RunnerHost {
    RunnerHost {
        reporter: Box::new(Silent),
        signals: Signals::default(),
        variable: environment_variable,
    }
}
