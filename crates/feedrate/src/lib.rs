//! The programs `feedrate` and `dlio_benchmark`: arguments, commands, messages, exit codes.
//!
//! Only this crate prints, reads arguments and the environment, and exits.

mod exit;
pub(crate) use feedrate_report::text;
mod messages;
mod interrupt;
mod progress;
mod time;
mod cli;
mod front;
mod gate;
mod summary;
mod dlio;
mod command;

use clap::FromArgMatches;
use command::Arguments;
use exit::Exit;
use feedrate_run::comm::mpi::{self, Launched};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

/// Acts as the program whose name it was started under.
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
    messages::set_color(cli::color_of(std::env::args_os()));
    let parsed = Arguments::program().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(usage) => {
            let words: Vec<OsString> = std::env::args_os().collect();
            let refused = command::refuse_usage(&usage, &words);
            return ended(refused.and_then(|()| messages::print_usage(&usage))).into();
        }
    };
    messages::set_verbosity(arguments.general.verbosity());
    let work = || ended(command::dispatch(&arguments, &matches));
    if arguments.waits_for_storage() { front::before(work) } else { work().into() }
}

fn ended(outcome: anyhow::Result<Exit>) -> Exit {
    outcome.unwrap_or_else(|error| {
        messages::print_error(&error);
        exit::code_of(&error)
    })
}

/// A variable of the environment.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This process as its launcher describes it; `None` without a launcher.
fn launched() -> Option<Launched> {
    mpi::launched(variable)
}
