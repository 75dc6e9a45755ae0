//! `feedrate report`: what results say, as a page, a document or tables.

use crate::exit::{Exit, UsageError};
use crate::{messages, threads};
use clap::Args;
use feedrate_measure::record::file::write_atomically;
use feedrate_report::gather::of_results;
use feedrate_report::output::{OUTPUTS, ReportOutput, find, for_file};
use feedrate_report::report::Report;
use std::path::{Path, PathBuf};

/// `feedrate report`.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Folder of a run (ours, DLIO's or MLPerf Storage's), any folder above those of several, or the CSV of a study; several are told apart.
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Write it to this file, whose ending says what it is: html, md, csv, tex or json [default: Markdown on stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format to write: html, markdown, csv, csv-std, tidy, latex or json [default: by the ending of FILE].
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Its heading [default: `Report on` and what was given].
    #[arg(long)]
    title: Option<String>,
    /// One JSON object on stdout.
    #[arg(long, conflicts_with_all = ["format", "output"])]
    json: bool,
}

const TO_STDOUT: &str = "markdown";

/// Write it.
pub(crate) fn report(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let output = output(arguments)?;
    // A name alone is in this folder.
    let folder = arguments
        .output
        .as_ref()
        .map(|file| Path::new(".").join(file.parent().unwrap_or(Path::new(""))));
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        let message = format!("there is no folder `{}`", folder.display());
        return Err(UsageError::new(message, "make it first").into());
    }
    let found =
        of_results(&arguments.results, folder.as_deref(), threads()).map_err(UsageError::from)?;
    let report = Report {
        title: arguments.title.clone().unwrap_or_else(|| title(&arguments.results)),
        program: format!("feedrate {}", env!("CARGO_PKG_VERSION")),
        ..found
    };
    let text = (output.write)(&report);
    match &arguments.output {
        Some(file) => write_atomically(file, text.as_bytes())?,
        None => messages::print(text.trim_end_matches('\n')),
    }
    Ok(Exit::Fine)
}

fn title(results: &[PathBuf]) -> String {
    let names: Vec<String> = results.iter().map(|path| path.display().to_string()).collect();
    format!("Report on {}", names.join(", "))
}

fn output(arguments: &ReportArguments) -> Result<&'static ReportOutput, UsageError> {
    let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
    let hint = Some(format!("one of {}", names.join(", ")));
    let found = match (&arguments.format, &arguments.output) {
        _ if arguments.json => find("json").ok_or("json".to_string()),
        (Some(name), _) => find(name).ok_or(format!("there is no format `{name}`")),
        (None, Some(file)) => for_file(file)
            .ok_or(format!("the ending of `{}` names no format of reports", file.display())),
        (None, None) => find(TO_STDOUT).ok_or(TO_STDOUT.to_string()),
    };
    found.map_err(|message| UsageError { message, hint })
}
