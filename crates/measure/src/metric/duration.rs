//! The duration of training.

use super::{Basis, Better, COMPOSED, Fold, Formula, Metric, MetricId, Unit};

/// Duration of all epochs together.
pub static DURATION_S: Metric = Metric {
    id: MetricId("duration_s"),
    title: "duration",
    axis: "Duration",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Length of all epochs, without evaluations and pauses between epochs",
    path: "duration_s",
    basis: &[Basis::Steps, Basis::AllRanks],
    formula: Formula::PerEpoch(|scope| scope.wall_s(), Fold::Sum),
    ..COMPOSED
};
