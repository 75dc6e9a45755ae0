//! `feedrate study`: one file a command of it, dispatched here.

mod new;

use crate::cli::StudyCommand;
use crate::exit::Exit;

/// Do what was asked.
pub(crate) fn study(command: &StudyCommand) -> anyhow::Result<Exit> {
    match command {
        StudyCommand::New(a) => new::new(a),
    }
}
