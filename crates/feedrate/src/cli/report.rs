//! `feedrate report`.

use clap::Args;
use std::path::PathBuf;

/// `feedrate report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder of a run (ours, DLIO's or MLPerf Storage's), any folder above those of several, or the CSV of a study; several are told apart.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) results: Vec<PathBuf>,
    /// Write it to this file, whose ending says what it is: html, md, csv, tex or json [default: Markdown on stdout].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format to write: html, markdown, csv, csv-std, tidy, latex or json [default: by the ending of FILE].
    #[arg(long, value_name = "NAME")]
    pub(crate) format: Option<String>,
    /// Its heading [default: `Report on` and what was given].
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// One JSON object on stdout.
    #[arg(long, conflicts_with_all = ["format", "output"])]
    pub(crate) json: bool,
}
