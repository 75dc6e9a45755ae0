//! Arguments of `feedrate compare`. Nothing is checked here that clap does not check.

use clap::Args;
use std::path::PathBuf;

/// `feedrate compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Experiments are matched by what was run. Settings in which all of A differ from all of B are what is compared, and are told; so two \
single experiments are compared whatever they differ in. Intervals are of 95 %; each run is one value, however many epochs it has.

Exit codes: 0 what is asked for was shown for every experiment; 2 bad usage, or nothing to compare; 3 it was not shown, or one of them lacks an experiment.")]
pub(crate) struct CompareArguments {
    /// The folder of a run, ours or DLIO's, a folder above those of several, or the CSV of a study.
    pub(crate) a: PathBuf,
    /// The same, to be compared with A.
    pub(crate) b: PathBuf,
    /// Response to compare; may be given several times [default: au_all_steps_percent and delivered_bytes_per_second; samples_per_second where runs of DLIO do not tell the bytes].
    #[arg(long = "response", value_name = "NAME")]
    pub(crate) responses: Vec<String>,
    /// Show that A and B are the same within this share [default: 2%].
    #[arg(long, value_name = "SHARE", conflicts_with = "no_worse_than")]
    pub(crate) within: Option<String>,
    /// Show that B is not worse than A by more than this share.
    #[arg(long, value_name = "SHARE")]
    pub(crate) no_worse_than: Option<String>,
    /// Runs of A and B are pairs: those of the same block and replicate of a study, else in the order they were started.
    #[arg(long)]
    pub(crate) paired: bool,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
