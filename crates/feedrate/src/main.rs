//! `feedrate`: can this storage feed these accelerators, and if not, why not and what would help?

use std::process::ExitCode;

fn main() -> ExitCode {
    feedrate::main()
}
