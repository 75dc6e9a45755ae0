//! Starts the `feedrate` in the same folder under another name, on which its behaviour depends. It links nothing of feedrate, so that
//! the release build links one large program instead of four.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Replaces this process by `feedrate`; returns only if that fails.
#[expect(clippy::print_stderr, reason = "the messages of the library are not linked here")]
pub(crate) fn start_feedrate_as(name: &str) -> ExitCode {
    let beside = std::env::current_exe().map(|path| path.with_file_name("feedrate"));
    let program = beside.unwrap_or_else(|_| PathBuf::from("feedrate"));
    let error = Command::new(&program).arg0(name).args(std::env::args_os().skip(1)).exec();
    eprintln!("error: {name}: cannot start {}: {error}", program.display());
    eprintln!("hint: install `feedrate` and `{name}` in the same folder");
    ExitCode::FAILURE
}
