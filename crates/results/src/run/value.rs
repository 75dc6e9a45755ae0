//! A number of a run, and how it came about.

use serde::Serialize;

/// The stable name of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MetricId(pub &'static str);

/// Share of the time that accelerators waited for data.
pub const STALL_PERCENT: MetricId = MetricId("stall_percent");
/// All epochs together.
pub const DURATION_S: MetricId = MetricId("duration_s");

/// A number and its provenance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// In the unit of the metric.
    pub number: f64,
    /// How it came about.
    pub provenance: Provenance,
}

/// How a number came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// From a record of ours.
    Measured,
    /// From what others' files say of steps.
    Recomputed,
    /// From something that was not measured, such as the mean size of samples.
    Estimated,
    /// As the run's own summary has it.
    Reported,
}
