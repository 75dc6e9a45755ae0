//! `feedrate supervise`: a run of a study, with all that it starts. For the runner of a study, which reads how it ended.

use crate::exit::Exit;
use crate::{interrupt, messages};
use clap::Args;
use feedrate_run::clock::Clock;
use feedrate_study::supervise::{self, Supervision};

/// `feedrate supervise`.
#[derive(Debug, Args)]
pub(super) struct SuperviseArguments {
    /// Files and times, as JSON.
    order: String,
}

/// Supervise one run, and print how it ended.
pub(super) fn supervise(arguments: &SuperviseArguments) -> anyhow::Result<Exit> {
    let order: Supervision = serde_json::from_str(&arguments.order)?;
    // So does all that it starts.
    interrupt::hear();
    let clock = Clock::new();
    let ended = supervise::supervise(&order, &|| clock.now_ns());
    messages::print(&serde_json::to_string(&ended)?)?;
    Ok(Exit::Fine)
}
