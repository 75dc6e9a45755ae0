//! `feedrate supervise`: supervises one run of a study and all processes that it starts. The study's runner calls it and reads the outcome.

use crate::exit::Exit;
use crate::{interrupt, messages};
use clap::Args;
use feedrate_run::clock::Clock;
use feedrate_study::supervise::{self, Supervision};

/// `feedrate supervise`.
#[derive(Debug, Args)]
pub(super) struct SuperviseArguments {
    /// The script to run, its files and its time limits, as JSON.
    order: String,
}

/// Supervises one run, and prints its outcome.
pub(super) fn supervise(arguments: &SuperviseArguments) -> anyhow::Result<Exit> {
    let order: Supervision = serde_json::from_str(&arguments.order)?;
    // Child processes inherit the signal mask.
    interrupt::unblock();
    let clock = Clock::new();
    let outcome = supervise::supervise(&order, &|| clock.now_ns());
    messages::print(&serde_json::to_string(&outcome)?)?;
    Ok(Exit::Fine)
}
