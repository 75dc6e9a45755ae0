//! Whether I/O is the problem of a job that is not feedrate's.

use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// Whether I/O is the problem of a job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum IoProblem {
        /// I/O took at least half of the time.
        Yes = "yes",
        /// I/O took a fifth to half of the time.
        Partly = "partly",
        /// I/O took less than a fifth of the time, or the readers waited for training.
        No = "no",
        /// The measurements do not show it.
        Unknown = "unknown",
    }
}

/// Share of time in I/O from which it is part of the problem. Without I/O, the job would be at most 1.25 times as fast.
pub const PARTLY_MIN: f64 = 0.2;
/// Share of time in I/O from which it is the problem.
const YES_MIN: f64 = 0.5;

impl IoProblem {
    /// Decides by the share of time in I/O, 0 to 1.
    pub fn from_share(share: f64) -> Self {
        match share {
            share if share < PARTLY_MIN => IoProblem::No,
            share if share < YES_MIN => IoProblem::Partly,
            _ => IoProblem::Yes,
        }
    }
}
