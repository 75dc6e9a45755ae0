//! Arguments of `feedrate scale`. Nothing is checked here that clap does not check.

use super::DataArguments;
use clap::Args;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// `feedrate scale`.
#[derive(Debug, Args)]
#[command(after_help = "\
It doubles the number until the response no longer holds, halves the gap, and measures the two numbers at the edge again. \
Where the response falls as the number grows, that is at most 2 log2(N) + 4 runs for an answer of N with 2 replicates. Each run is a process of its own; all read the same dataset.

Exit codes: 0 a number was found; 1 a run failed; 2 bad usage or workload; 3 not even the smallest number holds; 130 interrupted.")]
pub(crate) struct ScaleArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// The response holds from this value on: for utilisations a percentage.
    #[arg(long, visible_alias = "at-least", value_name = "VALUE")]
    pub(crate) au: f64,
    /// Condition to hold; for a response that should be low, `--au` is the upper limit.
    #[arg(long, value_name = "NAME", default_value = "au_sustained_percent")]
    pub(crate) response: String,
    /// Quantity to increase: `accelerators`, or a numeric key of the workload such as `reader.read_threads`.
    #[arg(long, value_name = "KEY", default_value = ACCELERATORS)]
    pub(crate) key: String,
    /// The smallest number.
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN)]
    pub(crate) from: NonZeroU64,
    /// The largest number; the dataset is made larger where it has too few samples for it [default: what the dataset has samples for].
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<NonZeroU64>,
    /// Runs at each of the two numbers around the edge.
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::new(2).unwrap_or(NonZeroU64::MIN))]
    pub(crate) replicates: NonZeroU64,
    /// Folder that results go to [default: the workload's `output.folder`, else `results`].
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Drop the dataset from the page cache before each run, and check that it is gone.
    #[arg(long)]
    pub(crate) cold: bool,
}

/// The key that is no workload's.
pub(crate) const ACCELERATORS: &str = "accelerators";
