//! `feedrate postprocess`: what `dlio_postprocessor` tells of a run, from its record.

use crate::exit::Exit;
use crate::messages;
use crate::results::{file_name, write_or_print};
use clap::Args;
use feedrate_measure::dlio;
use feedrate_measure::record::Record;
use std::path::{Path, PathBuf};

/// `feedrate postprocess`.
#[derive(Debug, Args)]
pub(super) struct PostprocessArguments {
    /// The folder of a run.
    run: PathBuf,
    /// The report's file, `-` for stdout [default: `DLIO_WORKLOAD_report.txt` in the run's folder].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    force: bool,
}

/// Its name in the folder of its run.
pub(super) fn report_name(record: &Record) -> String {
    format!("DLIO_{}_report.txt", file_name(&record.plan.workload))
}

/// Write the report.
pub(crate) fn postprocess(arguments: &PostprocessArguments) -> anyhow::Result<Exit> {
    let record = feedrate_results::load_run(&arguments.run)?;
    let report = dlio::report(&record);
    let name = report_name(&record);
    let file = arguments.output.clone().unwrap_or_else(|| arguments.run.join(name));
    let file = Some(file).filter(|file| file != Path::new("-"));
    write_or_print(file.as_deref(), &report, arguments.force)?;
    if let Some(file) = file {
        messages::print(&file.display().to_string());
    }
    Ok(Exit::Fine)
}
