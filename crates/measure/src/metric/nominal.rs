//! Bytes per second computed from the configured record length, as in DLIO. Bytes that were actually read are ignored.

use super::{Basis, COMPOSED, Formula, Metric, MetricId, SAMPLES_WHOLE, SAMPLES_WINDOWED, Unit};
use feedrate_spec::units::MIB;

/// Nominal rate in the window.
pub static NOMINAL_WINDOWED: Metric = Metric {
    id: MetricId("nominal_bytes_per_second_windowed"),
    title: "nominal throughput in the window",
    definition: "samples_per_second_windowed × record_length_bytes",
    source: "DLIO's train_io_mean_MB_per_second, there in MiB",
    path: "throughput.nominal_bytes_per_second.windowed",
    // DLIO's MB are MiB.
    reported_as: Some(("train_io_mean_MB_per_second", MIB)),
    formula: Formula::FromMetrics(|plan, value| {
        Some(value(&SAMPLES_WINDOWED)? * plan.dataset.record_bytes)
    }),
    ..NOMINAL
};

/// Nominal rate over whole epochs.
pub static NOMINAL_WHOLE: Metric = Metric {
    id: MetricId("nominal_bytes_per_second"),
    title: "nominal throughput",
    axis: "Nominal throughput",
    definition: "samples_per_second × record_length_bytes",
    path: "throughput.nominal_bytes_per_second.whole",
    formula: Formula::FromMetrics(|plan, value| {
        Some(value(&SAMPLES_WHOLE)? * plan.dataset.record_bytes)
    }),
    ..NOMINAL
};

const NOMINAL: Metric = Metric {
    unit: Unit::BytesPerSecond,
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize, Basis::RecordLength],
    ..COMPOSED
};
