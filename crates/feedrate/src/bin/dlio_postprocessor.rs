//! `dlio_postprocessor`: the report of a run, in the place of DLIO's program of that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedrate::dlio_postprocessor()
}
