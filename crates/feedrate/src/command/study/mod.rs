//! `feedrate study`: one file a command of it, dispatched here.

mod how;
mod reporter;
mod precision;
mod dry_run;
mod new;
mod run;
pub(super) mod conclusion;
mod row_view;
mod status;

pub(super) use dry_run::StudyDryRunOutput;
pub(super) use how::{StudyHow, StudyStart};
pub(super) use new::StudyNewOutput;
pub(super) use run::StudyRunOutput;
pub(super) use status::{StudyShowOutput, StudyStatusOutput};

use crate::exit::Exit;
use crate::interrupt;
use clap::Subcommand;
use feedrate_run::live::Signals;
use feedrate_spec::listener::Silent;
use feedrate_study::failure::as_refusal;
use feedrate_study::machine::RunnerHost;
use reporter::Reporter;

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
    done.map_err(as_refusal)
}

/// What a command that runs rows provides for the runner.
pub(super) fn runner_host() -> RunnerHost {
    RunnerHost {
        reporter: Box::new(Reporter::new()),
        signals: interrupt::signals_of_runner(),
        variable,
    }
}

/// The same for a command that only plans rows.
fn silent_host() -> RunnerHost {
    RunnerHost { reporter: Box::new(Silent), signals: Signals::default(), variable }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
