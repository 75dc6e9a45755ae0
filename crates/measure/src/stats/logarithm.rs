//! Means and ratios of positive values, on the scale of logarithms.
//!
//! Rates and durations vary by factors, so that their logarithms are nearer to normal than they are. The interval of a mean of logarithms,
//! taken back, is one of the geometric mean; that of a difference, one of the ratio of geometric means (Altman, Practical Statistics
//! for Medical Research, 1991, ch. 9.7), which is the ratio of the means too where both vary by the same factors. Fieller's interval of a ratio of
//! arithmetic means is not offered: of few values it may have no ends.

use super::interval::{Difference, Interval, mean_interval, paired_difference, welch_difference};

/// Interval of the geometric mean. `None` of fewer than two values, or where one is not positive.
pub fn geometric_mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    Some(mean_interval(&logarithms(values)?, confidence)?.exp())
}

/// ln(`b` ÷ `a`), geometric means of two samples that do not belong together, by Welch. `None` of fewer than two values in
/// either, or where one is not positive.
pub fn welch_log_ratio(a: &[f64], b: &[f64]) -> Option<Difference> {
    welch_difference(&logarithms(a)?, &logarithms(b)?)
}

/// ln(`b` ÷ `a`), pair by pair. `None` of fewer than two pairs, where a value has no partner, or one is not positive.
pub fn paired_log_ratio(a: &[f64], b: &[f64]) -> Option<Difference> {
    paired_difference(&logarithms(a)?, &logarithms(b)?)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|&value| (value > 0.0).then(|| value.ln())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values whose logarithms are those of a worked example, everything is that example's: Student's sleep data again
    /// (see `interval.rs`).
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
        let one = geometric_mean_interval(&drugs[0], 0.95).unwrap();
        assert_eq!(format!("{:.2}", one.estimate.ln()), "0.75");
    }

    #[test]
    fn what_is_not_positive_has_no_logarithm() {
        assert_eq!(welch_log_ratio(&[1.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(paired_log_ratio(&[1.0, 2.0], &[-1.0, 2.0]), None);
        assert_eq!(geometric_mean_interval(&[3.0], 0.95), None);
    }
}
