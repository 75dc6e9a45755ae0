//! `feedrate postprocess`: what `dlio_postprocessor` tells of a run, from its record or from DLIO's files.

use crate::dlio::{record_in, report_name, write_report};
use crate::exit::Exit;
use crate::output::write_or_print;
use clap::Args;
use feedrate_measure::dlio::report;
use std::path::{Path, PathBuf};

/// `feedrate postprocess`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate postprocess results/unet3d/RUN -o -")]
pub(super) struct PostprocessArguments {
    /// Folder of a run, feedrate's or DLIO's.
    run: PathBuf,
    /// File of the report, `-` for stdout [default: `DLIO_WORKLOAD_report.txt` in the run's folder].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

/// Write the report.
pub(crate) fn postprocess(arguments: &PostprocessArguments) -> anyhow::Result<Exit> {
    let record = record_in(&arguments.run, None)?;
    let force = arguments.force;
    match &arguments.output {
        Some(file) if file == Path::new("-") => write_or_print(None, &report(&record), false)?,
        Some(file) => write_report(&record, file, force)?,
        None => {
            write_report(&record, &arguments.run.join(report_name(&record.plan.workload)), force)?
        }
    }
    Ok(Exit::Fine)
}
