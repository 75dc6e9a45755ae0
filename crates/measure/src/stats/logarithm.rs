//! Means and ratios of positive values, on the logarithmic scale.
//!
//! The variation of rates and durations is multiplicative, so their logarithms are closer to normal than the values. The exponential
//! transforms an interval of a mean of logarithms to an interval of the geometric mean, and an interval of a difference of such means to an
//! interval of the ratio of geometric means (Altman, Practical Statistics for Medical Research, 1991, ch. 9.7). If both samples have the same
//! relative variation, this ratio equals the ratio of arithmetic means. Fieller's interval of a ratio of arithmetic means is not provided, as
//! it may be unbounded for few values.

use super::interval::{Difference, Interval, mean_interval, paired_difference, welch_difference};

/// Computes the interval of the geometric mean. `None` for fewer than two values, or if a value is not positive.
pub fn geometric_mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    Some(mean_interval(&logarithms(values)?, confidence)?.exp())
}

/// Estimates ln(`b` ÷ `a`) of the geometric means of two independent samples, by Welch. `None` for fewer than two values in either sample, or if a value is not
/// positive.
pub fn welch_log_ratio(a: &[f64], b: &[f64]) -> Option<Difference> {
    welch_difference(&logarithms(a)?, &logarithms(b)?)
}

/// Estimates the mean of ln(`b` ÷ `a`) over pairs. `None` for fewer than two pairs, if the numbers of values differ, or if a value is not positive.
pub fn paired_log_ratio(a: &[f64], b: &[f64]) -> Option<Difference> {
    paired_difference(&logarithms(a)?, &logarithms(b)?)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|&value| (value > 0.0).then(|| value.ln())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logarithms of these values are Student's sleep data, so the results equal those in `interval.rs`.
    #[test]
    fn a_ratio_is_a_difference_of_logarithms() {
        let exp = |values: [f64; 10]| values.map(f64::exp);
        let drugs = [
            exp([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]),
            exp([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]),
        ];
        let text = |found: Interval| format!("{:.5} {:.5}", found.low.ln(), found.high.ln());
        let welch = welch_log_ratio(&drugs[1], &drugs[0]).unwrap().interval(0.95).unwrap().exp();
        assert_eq!(text(welch), "-3.36548 0.20548");
        let paired = paired_log_ratio(&drugs[1], &drugs[0]).unwrap().interval(0.95).unwrap().exp();
        assert_eq!(text(paired), "-2.45989 -0.70011");
        let mean = geometric_mean_interval(&drugs[0], 0.95).unwrap();
        assert_eq!(format!("{:.2}", mean.estimate.ln()), "0.75");
    }

    #[test]
    fn values_that_are_not_positive_have_no_logarithm() {
        assert_eq!(welch_log_ratio(&[1.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(paired_log_ratio(&[1.0, 2.0], &[-1.0, 2.0]), None);
        assert_eq!(geometric_mean_interval(&[3.0], 0.95), None);
    }
}
