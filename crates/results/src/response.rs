//! Responses of studies and comparisons are the metrics: one number a run. Epochs are repeated measures within a run, never runs.

pub use feedrate_measure::metric::{
    Better, METRICS as RESPONSES, Metric as Response, Unit, UnknownMetric as UnknownResponse,
};
