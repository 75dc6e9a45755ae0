//! `feedrate`: can this storage feed these accelerators, and if not, why not and what would help?
//!
//! Only this crate prints, reads arguments and the environment, and exits.

mod cli;
mod exit;
mod messages;
mod interrupt;
mod bundled;
mod catalog;
mod progress;
mod resolve;
mod dataset;
mod results;
mod text;
mod summary;
mod command;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match command::dispatch(&arguments) {
        Ok(code) => code.into(),
        Err(error) => {
            messages::print_error(&error);
            exit::code_of(&error).into()
        }
    }
}
