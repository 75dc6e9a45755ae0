//! `dlio_benchmark`, `dlio_benchmark_query` and `dlio_postprocessor`, which replace DLIO's programs of the same names. They keep DLIO's
//! command lines, so that scripts and MLPerf Storage's wrapper work unchanged.

mod arguments;
mod text;
mod postprocessor;

use crate::exit::{Exit, code_of};
use crate::messages::{self, Verbosity};
use crate::progress::{Progress, Terminal};
use crate::{child_process, interrupt};
use arguments::{HydraArguments, Show};
use feedrate_measure::derived::Derived;
use feedrate_measure::summary::Summary;
use feedrate_report::document::Document;
use feedrate_report::output::terminal::{self, Screen};
use feedrate_report::run_page;
use feedrate_report::words::client;
use feedrate_session::dlio::{
    DlioSession, compose, defaults_list, job_yaml, log_level, search_path,
};
use feedrate_session::failure;
use feedrate_session::surroundings::ProcessSurroundings;
use feedrate_spec::listener::Listener;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::workload::{Surroundings, yaml_at};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs `dlio_benchmark` with the arguments of this process.
pub(crate) fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => return exit_of(Err(error)).into(),
    };
    match arguments.show {
        Some(show) => exit_of(print(show, &arguments)).into(),
        None => {
            // Only DLIO's lines are printed.
            messages::set_verbosity(Verbosity::Quiet);
            child_process::run_in_child(|| {
                let outcome = start(&arguments);
                let message = outcome.as_ref().err().map(failure::message);
                let exit = exit_of(outcome);
                explain_options(&message.unwrap_or_default());
                exit
            })
        }
    }
}

/// Runs `dlio_benchmark_query`: prints the value of the key in `workflow.query`.
pub(crate) fn query() -> ExitCode {
    exit_of(arguments().and_then(|arguments| {
        if arguments.show == Some(Show::Help) {
            messages::print(text::QUERY_HELP)?;
            return Ok(Exit::Fine);
        }
        if let Some(show) = arguments.show {
            return print(show, &arguments);
        }
        let composed = compose(&arguments.request, &ProcessSurroundings::now())?;
        let key = composed.workload.workflow_query.clone().unwrap_or_default();
        let value = yaml_at(&composed.workload, &key);
        messages::print(value.as_deref().unwrap_or("None").trim_end())?;
        Ok(Exit::Fine)
    }))
    .into()
}

/// Runs `dlio_postprocessor`.
pub(crate) fn postprocessor() -> ExitCode {
    exit_of(postprocessor::postprocess()).into()
}

fn arguments() -> anyhow::Result<HydraArguments> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut arguments = HydraArguments::parse(words).map_err(Refusal::without_hint)?;
    arguments.launch.launched = crate::launched();
    Ok(arguments)
}

/// Exit code of an outcome. DLIO distinguishes only success and failure.
fn exit_of(outcome: anyhow::Result<Exit>) -> Exit {
    let code = outcome.unwrap_or_else(|error| {
        messages::print_error(&error);
        code_of(&error)
    });
    match code {
        Exit::Fine | Exit::Unmet | Exit::Undecided => Exit::Fine,
        Exit::Failed | Exit::Usage => Exit::Failed,
        Exit::Interrupted | Exit::TooManySteps => code,
    }
}

/// Says whose options a printed text names, if `dlio_benchmark` does not have them.
fn explain_options(printed: &str) {
    let names = printed.split("`--").skip(1).map(|rest| {
        rest.split(|letter: char| letter != '-' && !letter.is_ascii_lowercase()).next()
    });
    let mut options = names.flatten().map(|name| format!("--{name}"));
    if options.any(|option| ![text::HELP, text::HYDRA_HELP].concat().contains(&option)) {
        messages::say(text::OPTIONS_NOTE);
    }
}

fn print(show: Show, arguments: &HydraArguments) -> anyhow::Result<Exit> {
    let request = &arguments.request;
    match show {
        Show::Help => messages::print(text::HELP)?,
        Show::HydraHelp => messages::print(text::HYDRA_HELP)?,
        Show::Version => {
            messages::print(concat!("dlio_benchmark of feedrate ", env!("CARGO_PKG_VERSION")))?
        }
        Show::SearchPath => messages::print(search_path(request)?.trim_end())?,
        Show::Defaults => messages::print(defaults_list(request).trim_end())?,
        Show::Job | Show::Hydra | Show::All => {
            let surroundings = ProcessSurroundings::now();
            if show != Show::Hydra {
                let is_resolved = arguments.is_resolved;
                let surroundings = is_resolved.then_some(&surroundings as &dyn Surroundings);
                let package = arguments.package.as_deref().unwrap_or_default();
                messages::print(job_yaml(request, package, surroundings)?.trim_end())?;
            }
            if show != Show::Job {
                messages::print(
                    compose(request, &surroundings)?.hydra_text(request).hydra.trim_end(),
                )?;
            }
        }
    }
    Ok(Exit::Fine)
}

fn start(arguments: &HydraArguments) -> anyhow::Result<Exit> {
    let level = std::env::var_os("DLIO_LOG_LEVEL").unwrap_or_default();
    let log_level = log_level(&level.to_string_lossy()).map_err(Refusal::without_hint)?;
    let HydraArguments { request, launch, .. } = arguments;
    let signals = &interrupt::signals();
    let listener = &(Arc::new(Terminal::new(Progress::Shown)) as Arc<dyn Listener>);
    let session = DlioSession { request, launch, log_level, signals, listener };
    let Some(record) = session.run()? else { return Ok(Exit::Fine) };
    if let Some(line) = client::line(&Derived::new(&record), None) {
        messages::say(line);
    }
    let doubts = Summary::new(&record).doubts;
    if !doubts.is_empty() {
        let document = Document::from(run_page::blocks_of_doubts(&doubts));
        let screen = Screen { columns: None, shows_all: true };
        let text = terminal::write(&document, screen).0;
        messages::say(&text);
        explain_options(&text);
    }
    Ok(Exit::Fine)
}
