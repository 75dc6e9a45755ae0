//! The middle of replicates, with its interval.

use crate::number::with_ends;
use crate::table::TableCell;
use feedrate_analysis::precision::CONFIDENCE;
use feedrate_measure::metric::Metric;
use serde::Serialize;

/// The middle of replicates: the mean of percentages, the geometric mean of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Middle {
    /// `None` where no run has a value.
    pub estimate: Option<f64>,
    /// 95 % (Student's t, of rates on the scale of logarithms, of percentages on that of the logit); `None` of fewer than two values.
    pub interval: Option<(f64, f64)>,
}

impl Middle {
    /// `95.0 [94.1, 95.9]`, or `95.0` of one run.
    pub(super) fn cell(&self, text: fn(Option<f64>) -> String) -> TableCell {
        let written =
            self.estimate.map(|of| with_ends(of, self.interval, |value| text(Some(value))));
        TableCell { text: written.unwrap_or_else(|| text(None)), value: self.estimate }
    }

    /// The middle of values of `metric`, or of something that varies as it does.
    pub(super) fn new(metric: &Metric, values: Vec<f64>) -> Self {
        let interval = metric.middle(&values, CONFIDENCE);
        let only = if let [only] = values[..] { Some(only) } else { None };
        Middle {
            estimate: interval.map(|of| of.estimate).or(only),
            interval: interval.map(|of| (of.low, of.high)),
        }
    }
}
