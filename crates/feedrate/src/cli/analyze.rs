//! Arguments of `feedrate analyze`. Nothing is checked here that clap does not check.

use clap::Args;
use std::path::PathBuf;

/// `feedrate analyze`.
#[derive(Debug, Args)]
#[command(after_help = "\
What is recomputed, from which file, and what each doubt means: docs/guide/analyze.md, `feedrate describe NAME`.

Exit codes: 0 done, doubts or not; 2 bad usage, or no run was found.")]
pub(crate) struct AnalyzeArguments {
    /// Folders of runs, folders above those of many, or CSVs of studies; of several, each is a source of its own.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) sources: Vec<PathBuf>,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
