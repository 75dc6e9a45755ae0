//! `feedrate supervise`: a run of a study, with all that it starts. For the runner of a study, which reads how it ended.

use crate::cli::SuperviseArguments;
use crate::exit::{Exit, UsageError};
use crate::launch::timeout;
use crate::messages;
use feedrate_study::supervise::{Supervision, supervise as until_nothing_lives};

/// Supervise one run, and print how it ended.
pub(crate) fn supervise(arguments: &SuperviseArguments) -> anyhow::Result<Exit> {
    let grace = timeout(arguments.grace).ok_or_else(|| {
        UsageError::new(
            format!("`--grace {}` is no time to wait", arguments.grace),
            "give seconds, more than none",
        )
    })?;
    let ended = until_nothing_lives(&Supervision {
        script: arguments.script.clone(),
        cleanup: arguments.cleanup.clone(),
        stdout: arguments.stdout.clone(),
        stderr: arguments.stderr.clone(),
        running: arguments.running.clone(),
        grace,
    });
    messages::print(serde_json::to_string(&ended)?);
    Ok(Exit::Fine)
}
