//! `feedrate show`: the summary of a run again, from its record alone.

use crate::exit::Exit;
use crate::summary;
use clap::Args;
use feedrate_measure::summary::Summary;
use std::path::PathBuf;

/// `feedrate show`.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// The folder of a run.
    run: PathBuf,
    /// One JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Recompute and print.
pub(crate) fn show(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let record = feedrate_results::load_run(&arguments.run)?;
    let mut found = Summary::new(&record);
    found.run_dir = Some(arguments.run.display().to_string());
    summary::print(&found, &record, arguments.json)?;
    Ok(Exit::Fine)
}
