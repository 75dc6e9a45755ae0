//! The programs `feedrate`, `dlio_benchmark`, `dlio_benchmark_query` and `dlio_postprocessor`: arguments, commands, messages and
//! exit codes.
//!
//! Only this crate reads arguments and the environment, prints, and exits. The work is done by the libraries.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests list intact folders"))]

mod exit;
pub(crate) use feedrate_report::text;
mod messages;
mod interrupt;
mod progress;
mod time;
mod cli;
mod child_process;
mod gate;
mod export;
mod summary;
mod dlio;
mod command;

use command::Arguments;
use exit::Exit;
use feedrate_run::comm::mpi::{self, LaunchedRank};
use feedrate_session::failure;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the program whose name is in `argv[0]`.
pub fn main() -> ExitCode {
    interrupt::survive_file_size_limit();
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    match path.file_name().and_then(OsStr::to_str) {
        Some("dlio_benchmark") => dlio::main(),
        Some("dlio_benchmark_query") => dlio::query(),
        Some("dlio_postprocessor") => dlio::postprocessor(),
        _ => feedrate(),
    }
}

fn feedrate() -> ExitCode {
    messages::set_color(cli::color_choice(std::env::args_os()));
    let words: Vec<OsString> = std::env::args_os().collect();
    let (arguments, matches) = match Arguments::parse(&words) {
        Ok(parsed) => parsed,
        Err(usage) => {
            let refused = command::refuse_usage(&usage, &words);
            if usage.use_stderr() {
                let says = match &refused {
                    Ok(()) => usage.to_string(),
                    Err(refusal) => failure::message(refusal),
                };
                export::write_usage_error(&words, &says);
            }
            return exit_of(refused.and_then(|()| messages::print_usage(&usage))).into();
        }
    };
    messages::set_verbosity(arguments.general.verbosity());
    let work = || exit_of(command::dispatch(&arguments, &matches));
    if arguments.waits_for_storage() { child_process::run_in_child(work) } else { work().into() }
}

/// Returns the exit code of a command's outcome, and prints an error.
fn exit_of(outcome: anyhow::Result<Exit>) -> Exit {
    outcome.unwrap_or_else(|error| {
        messages::print_error(&error);
        exit::code_of(&error)
    })
}

/// Value of an environment variable.
fn environment_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The rank and size that a launcher such as mpirun gave this process; `None` without a launcher.
fn launched() -> Option<LaunchedRank> {
    mpi::detect_launcher(environment_variable)
}
