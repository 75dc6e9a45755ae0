//! `feedrate show`: the summary of a run again, from its record alone.

use crate::cli::ShowArguments;
use crate::exit::Exit;
use crate::summary;
use feedrate_measure::summary::Summary;

/// Recompute and print.
pub(crate) fn show(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let record = feedrate_results::load_run(&arguments.run)?;
    let mut found = Summary::new(&record);
    found.run_dir = Some(arguments.run.display().to_string());
    summary::print(&found, &record, arguments.json)?;
    Ok(Exit::Fine)
}
