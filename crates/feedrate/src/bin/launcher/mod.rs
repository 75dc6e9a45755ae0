//! Starts the `feedrate` in the same folder with another program name, by which `feedrate` selects its behaviour. The launchers do not
//! link feedrate's libraries: the release build then links one large program instead of four.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Replaces this process by `feedrate`; returns only if that fails.
#[expect(clippy::print_stderr, reason = "the messages of the library are not linked here")]
pub(crate) fn start_feedrate_as(name: &str) -> ExitCode {
    let sibling = std::env::current_exe().map(|path| path.with_file_name("feedrate"));
    let program = sibling.unwrap_or_else(|_| PathBuf::from("feedrate"));
    let error = Command::new(&program).arg0(name).args(std::env::args_os().skip(1)).exec();
    eprintln!("error: {name}: cannot start {}: {error}", program.display());
    eprintln!("hint: install `feedrate` and `{name}` in the same folder");
    ExitCode::FAILURE
}
