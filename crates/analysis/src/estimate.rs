//! The one estimator of sentences and figures: weighted sums of the means of cells, each with a variance of its own (Welch 1947, Satterthwaite 1946).
//!
//! Storage noise grows with load, so that one variance for all cells would make intervals too narrow where it is noisy. A cell of one run has no variance, and
//! what rests on it no interval.

use crate::finding::{EffectSize, EffectUnit, Quantity};
use crate::precision::CONFIDENCE;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_measure::stats::{Cell, Combination, Difference, Interval};
use schemars::JsonSchema;
use serde::Serialize;

/// The scale on which noise is nearest to normal, and effects add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseScale {
    /// Percentages, as they are.
    Percent,
    /// Rates and durations, which vary by factors.
    Logarithm,
}

impl ResponseScale {
    /// The scale of a response.
    pub fn new(response: &Metric) -> Self {
        if response.unit == Unit::Percent {
            ResponseScale::Percent
        } else {
            ResponseScale::Logarithm
        }
    }

    /// How far from nothing a difference is, so that points and ratios can be ordered.
    pub(crate) fn magnitude(self, difference: f64) -> f64 {
        match self {
            ResponseScale::Percent => difference.abs() / 100.0,
            ResponseScale::Logarithm => difference.abs(),
        }
    }

    /// An estimate as people count it; without ends where it has no interval.
    pub(crate) fn effect(
        self,
        of: Quantity,
        estimate: f64,
        difference: Option<&Difference>,
        n: usize,
    ) -> EffectSize {
        let interval = difference.and_then(|difference| difference.interval(CONFIDENCE));
        let (unit, interval) = match (self, &of) {
            (ResponseScale::Logarithm, _) => (EffectUnit::Ratio, interval.map(|one| one.exp())),
            // A difference of differences goes beyond what one of them can be.
            (ResponseScale::Percent, Quantity::Together { .. }) => (EffectUnit::Points, interval),
            (ResponseScale::Percent, _) => (EffectUnit::Points, interval.map(of_points)),
        };
        EffectSize::new(of, unit, self.back(estimate), interval, n)
    }

    /// A value of this scale in the unit of the response; a difference as a ratio or in points.
    pub fn back(self, value: f64) -> f64 {
        match self {
            ResponseScale::Percent => value,
            ResponseScale::Logarithm => value.exp(),
        }
    }
}

/// The middle of replicates: the mean of percentages, the geometric mean of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Middle {
    /// `None` where no run has a value.
    pub estimate: Option<f64>,
    /// 95 % (Student's t, of rates on the scale of logarithms, of percentages on that of the logit); `None` of fewer than two values.
    pub interval: Option<(f64, f64)>,
}

impl Middle {
    /// The middle of values of `metric`, or of something that varies as it does.
    pub fn new(metric: &Metric, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let interval = metric.middle(&values, CONFIDENCE);
        let only = if let [only] = values[..] { Some(only) } else { None };
        Middle {
            estimate: interval.map(|of| of.estimate).or(only),
            interval: interval.map(|of| (of.low, of.high)),
        }
    }
}

/// A value on the scale of its response; `None` where it has none, as what is not positive has no logarithm.
pub fn scaled(response: &Metric, value: f64) -> Option<f64> {
    match ResponseScale::new(response) {
        _ if !value.is_finite() => None,
        ResponseScale::Percent => Some(value),
        ResponseScale::Logarithm => (value > 0.0).then(|| value.ln()),
    }
}

/// The part of an interval of a difference of percentages that such a difference can have: it ends where they do, and holds the truth no less often.
pub(crate) fn of_points(interval: Interval) -> Interval {
    Interval { low: interval.low.max(-100.0), high: interval.high.min(100.0), ..interval }
}

/// The mean of the means of cells, each as heavy however often it was run, in the unit of the response: of rates and durations the geometric mean. With its
/// interval where each cell was repeated. `None` where a cell is empty, or a value is not on the scale.
pub fn mean_of_cells(response: &Metric, cells: &[Vec<f64>]) -> Option<(f64, Option<Interval>)> {
    if let [only] = cells
        && let Some(interval) = response.middle(only, CONFIDENCE)
    {
        return Some((interval.estimate, Some(interval)));
    }
    if cells.iter().any(Vec::is_empty) {
        return None;
    }
    let cells = cells.iter().map(|cell| {
        let values = cell.iter().map(|&value| scaled(response, value)).collect::<Option<_>>()?;
        Some(Cell { levels: Vec::new(), values })
    });
    let cells: Vec<Cell> = cells.collect::<Option<_>>()?;
    let scale = ResponseScale::new(response);
    let (mean, noise) = unweighted_mean(&cells);
    let interval = noise.and_then(|of| of.interval(CONFIDENCE)).map(|of| Interval {
        estimate: scale.back(of.estimate),
        low: scale.back(of.low),
        high: scale.back(of.high),
    });
    (!cells.is_empty()).then(|| (scale.back(mean), interval))
}

/// The mean of the means of cells, each as heavy; with its noise where each was repeated.
pub fn unweighted_mean(cells: &[Cell]) -> (f64, Option<Difference>) {
    let mean = Combination { weights: vec![1.0 / cells.len() as f64; cells.len()] };
    (mean.estimate(cells), mean.welch(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_cells_has_the_interval_of_welch_and_satterthwaite() {
        let au = Metric::find("au_all_steps").unwrap();
        // Means 50 and 70; variances 4 and 16 of three runs each: √(20 ÷ 3) ÷ 2 with 20² ÷ (16 ÷ 2 + 256 ÷ 2) degrees of freedom.
        let cells = [vec![48.0, 50.0, 52.0], vec![66.0, 70.0, 74.0]];
        let (middle, interval) = mean_of_cells(au, &cells).unwrap();
        let interval = interval.unwrap();
        assert_eq!(middle, 60.0);
        let half = (interval.high - interval.low) / 2.0;
        // t(2.94) is 3.22.
        assert!((half - 3.22 * (20.0_f64 / 3.0).sqrt() / 2.0).abs() < 0.02, "{half}");
    }

    #[test]
    fn a_cell_of_one_run_leaves_the_interval_open() {
        let rate = Metric::find("samples_per_second").unwrap();
        let (middle, interval) = mean_of_cells(rate, &[vec![100.0, 100.0], vec![400.0]]).unwrap();
        assert!((middle - 200.0).abs() < 1e-9 && interval.is_none());
        assert_eq!(mean_of_cells(rate, &[vec![100.0], vec![0.0]]), None);
        assert_eq!(mean_of_cells(rate, &[vec![]]), None);
    }
}
