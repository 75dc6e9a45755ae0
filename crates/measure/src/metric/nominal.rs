//! Bytes per second by the configured record length: DLIO's figure, whatever was really read.

use super::{Metric, SAMPLES_WHOLE, SAMPLES_WINDOWED};
use feedrate_spec::plan::Plan;

/// In the window.
pub static NOMINAL_WINDOWED: Metric = Metric {
    name: "nominal_bytes_per_second_windowed",
    unit: "bytes/s",
    definition: "samples_per_second_windowed × record_length_bytes (DLIO's train_io_mean_MB_per_second, there in MiB).",
    of_accelerator: |scope, accelerator| {
        nominal(scope.plan, (SAMPLES_WINDOWED.of_accelerator)(scope, accelerator))
    },
    of_epoch: |scope| nominal(scope.plan, (SAMPLES_WINDOWED.of_epoch)(scope)),
    of_run: |record| nominal(&record.plan, (SAMPLES_WINDOWED.of_run)(record)),
};

/// Over whole epochs.
pub static NOMINAL_WHOLE: Metric = Metric {
    name: "nominal_bytes_per_second_whole",
    unit: "bytes/s",
    definition: "samples_per_second_whole × record_length_bytes (feedrate).",
    of_accelerator: |scope, accelerator| {
        nominal(scope.plan, (SAMPLES_WHOLE.of_accelerator)(scope, accelerator))
    },
    of_epoch: |scope| nominal(scope.plan, (SAMPLES_WHOLE.of_epoch)(scope)),
    of_run: |record| nominal(&record.plan, (SAMPLES_WHOLE.of_run)(record)),
};

fn nominal(plan: &Plan, samples_per_second: Option<f64>) -> Option<f64> {
    Some(samples_per_second? * plan.dataset.record_bytes)
}
