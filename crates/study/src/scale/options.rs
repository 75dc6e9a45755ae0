//! Options of a search, independent of the command line.

use crate::chooser::ScaleLimits;
use crate::search::SearchTarget;
use feedrate_measure::metric::Metric;
use feedrate_session::request::Request;

/// Options of a search.
#[derive(Clone, Debug)]
pub struct ScaleOptions {
    /// The workload, its overrides, and the state of the page cache before each run.
    pub request: Request,
    /// Target of the response; `None` for the workload's target utilisation.
    pub bound: Option<f64>,
    /// Metric that must reach the target.
    pub response: &'static Metric,
    /// The key to vary, or `accelerators`.
    pub key: String,
    /// Whether to search for the largest or the smallest number.
    pub find: SearchTarget,
    /// Smallest number, at least 1.
    pub from: u64,
    /// Largest number; `None` if only the dataset limits it.
    pub max: Option<u64>,
    /// Maximum bytes of all generated datasets; `None` for no limit.
    pub max_data_bytes: Option<u64>,
    /// Limits of runs and time.
    pub limits: ScaleLimits,
}
