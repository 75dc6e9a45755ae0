//! Options of a search, without the command line that they come from.

use crate::chooser::ScaleLimits;
use crate::search::SearchTarget;
use feedrate_measure::metric::Metric;
use feedrate_session::request::Request;

/// Options of a search.
#[derive(Clone, Debug)]
pub struct ScaleOptions {
    /// The workload, its overrides, and the state of the page cache before each run.
    pub request: Request,
    /// Target of the response; `None` is the workload's utilisation.
    pub bound: Option<f64>,
    /// Metric that the target is of.
    pub response: &'static Metric,
    /// `accelerators`, or the key that is varied.
    pub key: String,
    /// Edge of the range that is searched for.
    pub find: SearchTarget,
    /// Smallest number, at least 1.
    pub from: u64,
    /// Largest number; `None` has no limit but the dataset.
    pub max: Option<u64>,
    /// Bytes of all datasets that are generated.
    pub max_data_bytes: Option<u64>,
    /// Limits of runs and time.
    pub limits: ScaleLimits,
}
