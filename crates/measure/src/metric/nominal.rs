//! Bytes per second by the configured record length: DLIO's figure, whatever was really read.

use super::{
    Basis, Better, METRIC, Metric, MetricId, SAMPLES_WHOLE, SAMPLES_WINDOWED, Shown, Unit, rate,
};
use feedrate_spec::plan::Plan;
use feedrate_spec::units::MIB;

/// In the window.
pub static NOMINAL_WINDOWED: Metric = Metric {
    id: MetricId("nominal_bytes_per_second_windowed"),
    title: "nominal throughput in the window",
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    definition: "samples_per_second_windowed × record_length_bytes",
    source: "DLIO's train_io_mean_MB_per_second, there in MiB",
    path: "throughput.nominal_bytes_per_second.windowed",
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize, Basis::RecordLength],
    shown: Shown::Composed,
    // DLIO's MB are MiB.
    reported_as: Some(("train_io_mean_MB_per_second", MIB)),
    of_accelerator: |scope, accelerator| {
        nominal(scope.plan, (SAMPLES_WINDOWED.of_accelerator)(scope, accelerator))
    },
    of_epoch: |scope| nominal(scope.plan, (SAMPLES_WINDOWED.of_epoch)(scope)),
    of_run: |record| nominal(&record.plan, (SAMPLES_WINDOWED.of_run)(record)),
    ..METRIC
};

/// Over whole epochs.
pub static NOMINAL_WHOLE: Metric = Metric {
    id: MetricId("nominal_bytes_per_second"),
    label: "nominal_bytes_per_second_whole",
    title: "nominal throughput",
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    definition: "samples_per_second_whole × record_length_bytes",
    path: "throughput.nominal_bytes_per_second.whole",
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize, Basis::RecordLength],
    shown: Shown::Composed,
    of_totals: |epochs| rate(epochs, |epoch| epoch.nominal_bytes),
    of_accelerator: |scope, accelerator| {
        nominal(scope.plan, (SAMPLES_WHOLE.of_accelerator)(scope, accelerator))
    },
    of_epoch: |scope| nominal(scope.plan, (SAMPLES_WHOLE.of_epoch)(scope)),
    of_run: |record| nominal(&record.plan, (SAMPLES_WHOLE.of_run)(record)),
    ..METRIC
};

fn nominal(plan: &Plan, samples_per_second: Option<f64>) -> Option<f64> {
    Some(samples_per_second? * plan.dataset.record_bytes)
}
