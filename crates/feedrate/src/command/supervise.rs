//! `feedrate supervise`: a run of a study, with all that it starts. For the runner of a study, which reads how it ended.

use crate::exit::Exit;
use crate::launch::timeout;
use crate::messages;
use clap::Args;
use feedrate_study::supervise::{Supervision, supervise as until_nothing_lives};
use std::path::PathBuf;

/// `feedrate supervise`.
#[derive(Debug, Args)]
pub(super) struct SuperviseArguments {
    /// Command that bash runs.
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// Run by bash when the script did not end well, and all that it started is gone.
    #[arg(long, value_name = "FILE")]
    cleanup: Option<PathBuf>,
    /// Output is added to this file.
    #[arg(long, value_name = "FILE")]
    stdout: PathBuf,
    /// Messages are added to this file.
    #[arg(long, value_name = "FILE")]
    stderr: PathBuf,
    /// Locked while anything that was started lives.
    #[arg(long, value_name = "FILE")]
    running: PathBuf,
    /// Time from the word to stop until what is left is killed.
    #[arg(long, value_name = "SECONDS", default_value_t = feedrate_study::supervise::GRACE.as_secs_f64())]
    grace: f64,
}

/// Supervise one run, and print how it ended.
pub(crate) fn supervise(arguments: &SuperviseArguments) -> anyhow::Result<Exit> {
    let grace = timeout("--grace", arguments.grace)?;
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
