//! The programs `feedrate` and `dlio_benchmark`: arguments, commands, messages, exit codes.
//!
//! Only this crate prints, reads arguments and the environment, and exits.

mod cli;
mod exit;
mod text;
mod messages;
mod output;
mod interrupt;
mod bundled;
mod catalog;
mod time;
mod progress;
mod asked;
mod resolve;
mod launch;
mod results;
mod dataset_lock;
mod dataset;
mod sharing;
mod execute;
mod summary;
mod gate;
mod dlio;
mod command;

use clap::{CommandFactory, FromArgMatches};
use command::Arguments;
use std::process::ExitCode;

/// `feedrate`: can this storage feed these accelerators, and if not, why not and what would help?
pub fn feedrate() -> ExitCode {
    let parsed = Arguments::command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let outcome = match parsed {
        Ok((arguments, matches)) => command::dispatch(&arguments, &matches),
        Err(usage) => messages::print_usage(&usage),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            messages::print_error(&error);
            exit::code_of(&error).into()
        }
    }
}

/// `dlio_benchmark`, in DLIO's place.
pub fn dlio_benchmark() -> ExitCode {
    dlio::main()
}

/// `dlio_benchmark_query`: print one value of a workload.
pub fn dlio_benchmark_query() -> ExitCode {
    dlio::query()
}

/// `dlio_postprocessor`: write the report of a run.
pub fn dlio_postprocessor() -> ExitCode {
    dlio::postprocessor()
}

/// Threads for work that is not measured: as many as there are cores.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
