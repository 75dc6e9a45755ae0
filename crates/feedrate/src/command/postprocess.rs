//! `feedrate postprocess`: what `dlio_postprocessor` tells of a run, from its record.

use crate::cli::PostprocessArguments;
use crate::exit::Exit;
use crate::messages;
use crate::results::file_name;
use feedrate_data::storage::StorageError;
use feedrate_measure::dlio;
use std::path::Path;

/// Write the report.
pub(crate) fn postprocess(arguments: &PostprocessArguments) -> anyhow::Result<Exit> {
    let record = feedrate_results::load_run(&arguments.run)?;
    let report = dlio::report(&record);
    let name = format!("DLIO_{}_report.txt", file_name(&record.plan.workload));
    let file = arguments.output.clone().unwrap_or_else(|| arguments.run.join(name));
    if file == Path::new("-") {
        messages::print(report.trim_end());
        return Ok(Exit::Fine);
    }
    std::fs::write(&file, report).map_err(|source| StorageError::new("write", &file, source))?;
    messages::print(file.display());
    Ok(Exit::Fine)
}
