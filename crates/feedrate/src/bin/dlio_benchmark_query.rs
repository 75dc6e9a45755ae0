//! `dlio_benchmark_query`: replaces DLIO's program of that name.

mod launcher;

use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::start_feedrate_as(env!("CARGO_BIN_NAME"))
}
