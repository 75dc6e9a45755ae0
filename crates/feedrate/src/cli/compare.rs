//! Arguments of `feedrate compare`. Nothing is checked here that clap does not check.

use clap::Args;
use std::path::PathBuf;

/// `feedrate compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Experiments are matched by what was run. Settings in which all of A differ from all of B are what is compared, and are told; so two \
single experiments are compared whatever they differ in. Intervals are of 95 %; each run is one value, however many epochs it has.

Exit codes: 0 what is asked for was shown for every experiment; 1 results cannot be read; 2 bad usage; 3 it was not shown, or one of them lacks an experiment.")]
pub(crate) struct CompareArguments {
    /// The folder of a run, or a folder above those of several.
    pub(crate) a: PathBuf,
    /// The same, to be compared with A.
    pub(crate) b: PathBuf,
    /// What is compared; may be given several times [default: au_all_steps_percent and delivered_bytes_per_second].
    #[arg(long = "response", value_name = "NAME")]
    pub(crate) responses: Vec<String>,
    /// Show that A and B are the same within this share [default: 2%].
    #[arg(long, value_name = "SHARE", conflicts_with = "no_worse_than")]
    pub(crate) within: Option<String>,
    /// Show that B is not worse than A by more than this share.
    #[arg(long, value_name = "SHARE")]
    pub(crate) no_worse_than: Option<String>,
    /// The first run of A and the first of B are a pair, and so on, as where they were made in turns.
    #[arg(long)]
    pub(crate) paired: bool,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
