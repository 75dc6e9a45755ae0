//! How long training took.

use super::{Basis, Better, METRIC, Metric, MetricId, Shown, Unit, sum_over_epochs};

/// All epochs together.
pub static DURATION_S: Metric = Metric {
    id: MetricId("duration_s"),
    title: "duration",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Length of all epochs, evaluations and pauses between epochs left out",
    path: "duration_s",
    basis: &[Basis::Steps, Basis::AllRanks],
    shown: Shown::Composed,
    of_accelerator: |scope, _| scope.wall_s(),
    of_epoch: |scope| if scope.is_whole() { scope.wall_s() } else { None },
    of_run: |record| sum_over_epochs(record, DURATION_S.of_epoch),
    of_totals: |epochs| Some(epochs.iter().map(|epoch| epoch.duration_s).sum()),
    ..METRIC
};
