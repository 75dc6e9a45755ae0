//! Confidence intervals of means, differences of means, percentages and standard deviations. Noise is assumed to be normal.

use super::sample::{mean, stdev};
use super::{t_cdf, t_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// An estimate with its confidence interval. The caller chooses the confidence level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "terms of every textbook")]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Half of the width as a share of the estimate; `None` if the estimate is not positive.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.estimate > 0.0).then(|| (self.high - self.low) / 2.0 / self.estimate)
    }

    /// Converts an interval of a logarithm to one of the value.
    pub fn exp(self) -> Self {
        Interval { estimate: self.estimate.exp(), low: self.low.exp(), high: self.high.exp() }
    }
}

/// An estimated difference with its standard error and degrees of freedom, from which intervals and tests are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "terms of every textbook")]
pub struct Difference {
    pub estimate: f64,
    pub standard_error: f64,
    pub freedom: f64,
}

impl Difference {
    /// Computes the two-sided confidence interval; `confidence` is a share such as 0.95.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let half_width = self.standard_error * t_quantile(0.5 + confidence / 2.0, self.freedom)?;
        let estimate = self.estimate;
        Some(Interval { estimate, low: estimate - half_width, high: estimate + half_width })
    }

    /// Computes the two-sided p-value: the probability of an estimate at least as far from 0 if there is no difference. It is 0 or 1 without
    /// noise.
    pub fn p(&self) -> Option<f64> {
        Some(2.0 * self.p_above(0.0)?.min(1.0 - self.p_above(0.0)?))
    }

    /// Computes the one-sided p-value: the probability of an estimate at least as high if the true difference is `bound` or less. It is used
    /// for tests of non-inferiority and of equivalence.
    pub fn p_above(&self, bound: f64) -> Option<f64> {
        let excess = self.estimate - bound;
        if self.standard_error == 0.0 {
            // Values without variation: the difference is exact.
            return Some(if excess > 0.0 {
                0.0
            } else if excess < 0.0 {
                1.0
            } else {
                0.5
            });
        }
        t_cdf(-excess / self.standard_error, self.freedom)
    }
}

/// Computes the interval of the mean: Student's t with n − 1 degrees of freedom (Jain 1991, ch. 13.2). `None` for fewer than two values.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    mean_difference(values)?.interval(confidence)
}

/// Computes half of the width of the interval of the mean, for `values` values with this standard deviation. `None` for fewer than two
/// values.
pub fn mean_half_width(stdev: f64, values: u64, confidence: f64) -> Option<f64> {
    let freedom = values.checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let standard_error = stdev / (values as f64).sqrt();
    let interval = Difference { estimate: 0.0, standard_error, freedom }.interval(confidence)?;
    Some(interval.high)
}

/// Computes the interval of the mean of percentages, within 0 to 100: Student's t on the logit scale, with the standard error by the delta method (Agresti,
/// Categorical Data Analysis, 2013, ch. 16.1). If a value is outside 0 to 100, the interval is that of [`mean_interval`]. `None` for fewer than two values.
pub fn percent_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let mean = mean_difference(values)?;
    let is_percent = values.iter().all(|value| (0.0..=100.0).contains(value));
    if is_percent { logit_interval(mean, confidence) } else { mean.interval(confidence) }
}

/// Computes the interval of 100 · Σ `parts` ÷ Σ `totals`, within 0 to 100: the ratio estimator (Cochran, Sampling Techniques, 1977, ch. 6.4), with Student's t
/// on the logit scale and n − 1 degrees of freedom. `None` for fewer than two values, if the numbers of values differ, or if a part exceeds
/// its total.
pub fn share_interval(parts: &[f64], totals: &[f64], confidence: f64) -> Option<Interval> {
    let is_part = |(part, total): (&f64, &f64)| (0.0..=*total).contains(part);
    if parts.len() != totals.len() || !parts.iter().zip(totals).all(is_part) {
        return None;
    }
    let mean_total = mean(totals).filter(|&total| total > 0.0)?;
    let share = mean(parts)? / mean_total;
    let residuals: Vec<f64> = parts
        .iter()
        .zip(totals)
        .map(|(part, total)| 100.0 * (part - share * total) / mean_total)
        .collect();
    let residual = mean_difference(&residuals)?;
    logit_interval(Difference { estimate: 100.0 * share, ..residual }, confidence)
}

/// Largest half-width of an interval of a logit, a factor of 400 of the odds. The delta method is linear and does not hold so far: two values near 100 %
/// would have an interval of nearly 0 to 100 %. In simulations, the interval of Student's t covers the truth about as often. Three or more values
/// near a bound have smaller half-widths.
const LOGIT_HALF_WIDTH_MAX: f64 = 6.0;

/// Computes the interval of a percentage on the logit scale, or that of Student's t within 0 to 100 if the delta method does not hold.
fn logit_interval(percent: Difference, confidence: f64) -> Option<Interval> {
    let share = percent.estimate / 100.0;
    // At 0 or 100 % values do not vary, and the logit is infinite.
    if share * (1.0 - share) <= 0.0 {
        return percent.interval(confidence);
    }
    let logit = Difference {
        estimate: (share / (1.0 - share)).ln(),
        standard_error: percent.standard_error / 100.0 / (share * (1.0 - share)),
        freedom: percent.freedom,
    };
    let interval = logit.interval(confidence)?;
    if LOGIT_HALF_WIDTH_MAX < interval.high - interval.estimate {
        // The percentage is certainly within 0 to 100, so the part outside can be cut off.
        let Interval { estimate, low, high } = percent.interval(confidence)?;
        return Some(Interval { estimate, low: low.max(0.0), high: high.min(100.0) });
    }
    Some(Interval {
        estimate: percent.estimate,
        low: percent_of_logit(interval.low),
        high: percent_of_logit(interval.high),
    })
}

fn percent_of_logit(logit: f64) -> f64 {
    100.0 / (1.0 + (-logit).exp())
}

/// Estimates the mean of `b` minus the mean of `a`, with unequal variances: Welch (1947) with Satterthwaite's (1946) degrees of freedom. `None` for fewer than
/// two values in either sample.
pub fn welch_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    let mean_a = mean_difference(a)?;
    let mean_b = mean_difference(b)?;
    let square_a = mean_a.standard_error.powi(2);
    let square_b = mean_b.standard_error.powi(2);
    let sum = square_a + square_b;
    let freedom = if sum > 0.0 {
        sum * sum / (square_a * square_a / mean_a.freedom + square_b * square_b / mean_b.freedom)
    } else {
        mean_a.freedom + mean_b.freedom
    };
    let estimate = mean_b.estimate - mean_a.estimate;
    Some(Difference { estimate, standard_error: sum.sqrt(), freedom })
}

/// Estimates the mean of the differences `b` − `a` of pairs (Jain 1991, ch. 13.4.1). `None` for fewer than two pairs, or if the numbers of values differ.
pub fn paired_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    if a.len() != b.len() {
        return None;
    }
    mean_difference(&a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<_>>())
}

/// Computes the interval of the standard deviation: chi-squared with n − 1 degrees of freedom (Montgomery, Design and Analysis of Experiments, ch. 2.6).
/// `None` for fewer than two values.
pub fn stdev_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let estimate = stdev(values)?;
    let freedom = (values.len() - 1) as f64;
    let chi = ChiSquared::new(freedom).ok()?;
    let bound = |share: f64| estimate * (freedom / chi.inverse_cdf(share)).sqrt();
    let low = bound(0.5 + confidence / 2.0);
    let high = bound(0.5 - confidence / 2.0);
    Some(Interval { estimate, low, high })
}

/// The mean of values as a difference from 0.
fn mean_difference(values: &[f64]) -> Option<Difference> {
    let n = values.len() as f64;
    let standard_error = stdev(values)? / n.sqrt();
    Some(Difference { estimate: mean(values)?, standard_error, freedom: n - 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(interval: Option<Interval>, digits: usize, expected: (&str, &str)) {
        let found = interval.unwrap();
        let text = |value: f64| format!("{value:.digits$}");
        assert_eq!((text(found.low).as_str(), text(found.high).as_str()), expected);
    }

    /// Student's sleep data (Biometrika 6, 1908) from R. Expected values are those of `t.test(extra ~ group, data = sleep)`, also with
    /// `paired = TRUE`.
    const SLEEP: [[f64; 10]; 2] = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ];

    /// Jain (1991), example 13.4, which has −1.21 and 3.27 from rounded sums.
    #[test]
    fn the_interval_of_a_mean_equals_jains() {
        check(mean_interval(&[1.5, 2.6, -1.8, 1.3, -0.5, 1.7, 2.4], 0.99), 1, ("-1.2", "3.3"));
    }

    /// Jain (1991), example 13.5, six workloads on two systems, which has −7.75 and 7.11 from rounded sums.
    #[test]
    fn the_interval_of_pairs_equals_jains() {
        let a = [5.4, 16.6, 0.6, 1.4, 0.6, 7.3];
        let b = [19.1, 3.5, 3.4, 2.5, 3.6, 1.7];
        check(paired_difference(&b, &a).unwrap().interval(0.90), 1, ("-7.7", "7.1"));
    }

    #[test]
    fn welchs_test_of_the_sleep_data_equals_rs() {
        let difference = welch_difference(&SLEEP[1], &SLEEP[0]).unwrap();
        let t = difference.estimate / difference.standard_error;
        assert_eq!(format!("{t:.4}"), "-1.8608");
        assert_eq!(format!("{:.3}", difference.freedom), "17.776");
        assert_eq!(format!("{:.5}", difference.p().unwrap()), "0.07939");
        check(difference.interval(0.95), 7, ("-3.3654832", "0.2054832"));
    }

    #[test]
    fn the_paired_test_of_the_sleep_data_equals_rs() {
        let difference = paired_difference(&SLEEP[1], &SLEEP[0]).unwrap();
        let t = difference.estimate / difference.standard_error;
        assert_eq!(format!("{t:.4}"), "-4.0621");
        assert_eq!(format!("{:.6}", difference.p().unwrap()), "0.002833");
        check(difference.interval(0.95), 7, ("-2.4598858", "-0.7001142"));
    }

    /// Tables of chi-squared with 9 degrees of freedom list 2.700 and 19.023.
    #[test]
    fn the_interval_of_a_deviation_follows_chi_squared() {
        let values = SLEEP[0];
        let found = stdev_interval(&values, 0.95).unwrap();
        let square = |s: f64| 9.0 * found.estimate.powi(2) / s.powi(2);
        assert_eq!(format!("{:.3} {:.3}", square(found.high), square(found.low)), "2.700 19.023");
    }

    #[test]
    fn two_values_near_a_bound_have_an_interval_near_it() {
        let check_percent = |values: &[f64], low: &str, high: &str| {
            check(percent_interval(values, 0.95), 2, (low, high));
        };
        check_percent(&[99.9957, 100.0], "99.97", "100.00");
        check_percent(&[0.0043, 0.0], "0.00", "0.03");
        // The delta method holds.
        check_percent(&[80.0, 90.0], "3.74", "99.88");
        check_percent(&[99.8, 100.0, 100.0, 100.0], "98.81", "100.00");
    }

    #[test]
    fn the_half_width_follows_from_deviation_and_number() {
        let found = mean_interval(&SLEEP[0], 0.9).unwrap();
        let half_width = mean_half_width(stdev(&SLEEP[0]).unwrap(), 10, 0.9).unwrap();
        assert!((found.high - found.estimate - half_width).abs() < 1e-12);
        assert_eq!((mean_half_width(1.0, 1, 0.9), mean_half_width(1.0, 0, 0.9)), (None, None));
    }

    #[test]
    fn single_values_and_incomplete_pairs_have_no_interval() {
        assert_eq!((mean_interval(&[1.0], 0.95), stdev_interval(&[1.0], 0.95)), (None, None));
        assert_eq!(
            (welch_difference(&[1.0], &[1.0, 2.0]), paired_difference(&[1.0], &[2.0])),
            (None, None)
        );
        assert_eq!(paired_difference(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn values_without_variation_have_exact_differences() {
        let equal = welch_difference(&[2.0, 2.0], &[2.0, 2.0]).unwrap();
        assert_eq!((equal.p(), equal.interval(0.95).unwrap().low), (Some(1.0), 0.0));
        let different = welch_difference(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
        assert_eq!((different.p(), different.interval(0.95).unwrap().high), (Some(0.0), 1.0));
    }
}
