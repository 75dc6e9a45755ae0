//! Intervals of Student's t: of a mean, and of a difference of means. Noise is taken as normal.

use super::sample::{mean, stdev};
use super::{t_below, t_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// An estimate, and what lies around it with a confidence that the caller chose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the words of every textbook")]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Half its width as a share of the estimate; `None` where that is not positive.
    pub fn relative_half_width(&self) -> Option<f64> {
        (self.estimate > 0.0).then(|| (self.high - self.low) / 2.0 / self.estimate)
    }

    /// Back from logarithms.
    pub fn exp(self) -> Self {
        Interval { estimate: self.estimate.exp(), low: self.low.exp(), high: self.high.exp() }
    }
}

/// An estimated difference with its standard error and degrees of freedom: what intervals and tests of it need.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the words of every textbook")]
pub struct Difference {
    pub estimate: f64,
    pub standard_error: f64,
    pub freedom: f64,
}

impl Difference {
    /// Two-sided; `confidence` is a share, 0.95.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let half = self.standard_error * t_quantile(0.5 + confidence / 2.0, self.freedom)?;
        let estimate = self.estimate;
        Some(Interval { estimate, low: estimate - half, high: estimate + half })
    }

    /// Chance of a difference at least so far from 0 if there were none. Without any noise it is 1 or 0.
    pub fn p(&self) -> Option<f64> {
        Some(2.0 * self.p_above(0.0)?.min(1.0 - self.p_above(0.0)?))
    }

    /// Chance of an estimate at least so high if the difference were `least` or less: one of the two of equivalence, for "not worse than".
    pub fn p_above(&self, least: f64) -> Option<f64> {
        let over = self.estimate - least;
        if self.standard_error == 0.0 {
            // Values that never vary: the difference is what it is.
            return Some(if over > 0.0 {
                0.0
            } else if over < 0.0 {
                1.0
            } else {
                0.5
            });
        }
        t_below(-over / self.standard_error, self.freedom)
    }
}

/// Interval of the mean: Student's t with n − 1 degrees of freedom (Jain 1991, ch. 13.2). `None` of fewer than two values.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    of_mean(values)?.interval(confidence)
}

/// Half the width of such an interval, of so many values with this deviation. `None` of fewer than two.
pub fn mean_half_width(stdev: f64, values: u64, confidence: f64) -> Option<f64> {
    let freedom = values.checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let standard_error = stdev / (values as f64).sqrt();
    let found = Difference { estimate: 0.0, standard_error, freedom }.interval(confidence)?;
    Some(found.high)
}

/// Interval of the mean of percentages, within 0 to 100: Student's t on the scale of the logit, standard error by the delta method (Agresti, Categorical Data
/// Analysis, 2013, ch. 16.1). Where a value is no percentage, that of the mean. `None` of fewer than two values.
pub fn percent_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let of = of_mean(values)?;
    let is_percent = values.iter().all(|value| (0.0..=100.0).contains(value));
    if is_percent { of_percent(of, confidence) } else { of.interval(confidence) }
}

/// Interval of 100 · Σ `parts` ÷ Σ `wholes`, within 0 to 100: the ratio estimator (Cochran, Sampling Techniques, 1977, ch. 6.4), Student's t with n − 1
/// degrees of freedom on the scale of the logit. `None` of fewer than two, where one lacks its whole, or a part is more than that.
pub fn share_interval(parts: &[f64], wholes: &[f64], confidence: f64) -> Option<Interval> {
    let is_part = |(part, whole): (&f64, &f64)| (0.0..=*whole).contains(part);
    if parts.len() != wholes.len() || !parts.iter().zip(wholes).all(is_part) {
        return None;
    }
    let whole = mean(wholes).filter(|&whole| whole > 0.0)?;
    let share = mean(parts)? / whole;
    let residuals =
        parts.iter().zip(wholes).map(|(part, all)| 100.0 * (part - share * all) / whole);
    let of = of_mean(&residuals.collect::<Vec<_>>())?;
    of_percent(Difference { estimate: 100.0 * share, ..of }, confidence)
}

/// An interval on the scale of the logit, taken back.
fn of_percent(of: Difference, confidence: f64) -> Option<Interval> {
    let share = of.estimate / 100.0;
    // All at one end do not vary, and have no logit.
    if share * (1.0 - share) <= 0.0 {
        return of.interval(confidence);
    }
    let logit = Difference {
        estimate: (share / (1.0 - share)).ln(),
        standard_error: of.standard_error / 100.0 / (share * (1.0 - share)),
        freedom: of.freedom,
    };
    let found = logit.interval(confidence)?;
    let (low, high) = (percent_of_logit(found.low), percent_of_logit(found.high));
    Some(Interval { estimate: of.estimate, low, high })
}

fn percent_of_logit(logit: f64) -> f64 {
    100.0 / (1.0 + (-logit).exp())
}

/// Interval of the mean of `b` − that of `a`, spreads not taken as equal: Welch (1947) with Satterthwaite's (1946) degrees of freedom.
/// `None` of fewer than two values in either.
pub fn welch_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    let (of_a, of_b) = (of_mean(a)?, of_mean(b)?);
    let (square_a, square_b) = (of_a.standard_error.powi(2), of_b.standard_error.powi(2));
    let sum = square_a + square_b;
    let freedom = if sum > 0.0 {
        sum * sum / (square_a * square_a / of_a.freedom + square_b * square_b / of_b.freedom)
    } else {
        of_a.freedom + of_b.freedom
    };
    let estimate = of_b.estimate - of_a.estimate;
    Some(Difference { estimate, standard_error: sum.sqrt(), freedom })
}

/// Interval of the mean of `b` − `a`, pair by pair (Jain 1991, ch. 13.4.1). `None` of fewer than two pairs, or where values have no partner.
pub fn paired_difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    if a.len() != b.len() {
        return None;
    }
    of_mean(&a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<_>>())
}

/// Interval of the standard deviation, by chi-squared with n − 1 degrees of freedom (Montgomery, Design and Analysis of Experiments, ch. 2.6).
/// `None` of fewer than two values.
pub fn stdev_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let estimate = stdev(values)?;
    let freedom = (values.len() - 1) as f64;
    let chi = ChiSquared::new(freedom).ok()?;
    let [low, high] = [0.5 + confidence / 2.0, 0.5 - confidence / 2.0]
        .map(|share| estimate * (freedom / chi.inverse_cdf(share)).sqrt());
    Some(Interval { estimate, low, high })
}

/// The mean as a difference from 0.
fn of_mean(values: &[f64]) -> Option<Difference> {
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

    /// Student's sleep data (Biometrika 6, 1908), as R has it: `t.test(extra ~ group, data = sleep)`, also with `paired = TRUE`.
    const SLEEP: [[f64; 10]; 2] = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ];

    /// Jain (1991), example 13.4. He has −1.21 and 3.27, from rounded sums.
    #[test]
    fn jains_interval_of_a_mean() {
        check(mean_interval(&[1.5, 2.6, -1.8, 1.3, -0.5, 1.7, 2.4], 0.99), 1, ("-1.2", "3.3"));
    }

    /// Jain (1991), example 13.5: six workloads on two systems. He has −7.75 and 7.11, from rounded sums.
    #[test]
    fn jains_paired_observations() {
        let a = [5.4, 16.6, 0.6, 1.4, 0.6, 7.3];
        let b = [19.1, 3.5, 3.4, 2.5, 3.6, 1.7];
        check(paired_difference(&b, &a).unwrap().interval(0.90), 1, ("-7.7", "7.1"));
    }

    #[test]
    fn welch_on_students_sleep_data() {
        let difference = welch_difference(&SLEEP[1], &SLEEP[0]).unwrap();
        let t = difference.estimate / difference.standard_error;
        assert_eq!(format!("{t:.4}"), "-1.8608");
        assert_eq!(format!("{:.3}", difference.freedom), "17.776");
        assert_eq!(format!("{:.5}", difference.p().unwrap()), "0.07939");
        check(difference.interval(0.95), 7, ("-3.3654832", "0.2054832"));
    }

    #[test]
    fn pairs_of_students_sleep_data() {
        let difference = paired_difference(&SLEEP[1], &SLEEP[0]).unwrap();
        let t = difference.estimate / difference.standard_error;
        assert_eq!(format!("{t:.4}"), "-4.0621");
        assert_eq!(format!("{:.6}", difference.p().unwrap()), "0.002833");
        check(difference.interval(0.95), 7, ("-2.4598858", "-0.7001142"));
    }

    /// Quantiles of chi-squared with 9 degrees of freedom, as every table has them: 2.700 and 19.023.
    #[test]
    fn a_deviation_has_an_interval_of_chi_squared() {
        let values = SLEEP[0];
        let found = stdev_interval(&values, 0.95).unwrap();
        let square = |s: f64| 9.0 * found.estimate.powi(2) / s.powi(2);
        assert_eq!(format!("{:.3} {:.3}", square(found.high), square(found.low)), "2.700 19.023");
    }

    #[test]
    fn half_a_width_follows_from_deviation_and_number() {
        let found = mean_interval(&SLEEP[0], 0.9).unwrap();
        let half = mean_half_width(stdev(&SLEEP[0]).unwrap(), 10, 0.9).unwrap();
        assert!((found.high - found.estimate - half).abs() < 1e-12);
        assert_eq!((mean_half_width(1.0, 1, 0.9), mean_half_width(1.0, 0, 0.9)), (None, None));
    }

    #[test]
    fn one_value_or_a_value_without_partner_has_no_interval() {
        assert_eq!((mean_interval(&[1.0], 0.95), stdev_interval(&[1.0], 0.95)), (None, None));
        assert_eq!(
            (welch_difference(&[1.0], &[1.0, 2.0]), paired_difference(&[1.0], &[2.0])),
            (None, None)
        );
        assert_eq!(paired_difference(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn values_that_never_vary_leave_nothing_open() {
        let none = welch_difference(&[2.0, 2.0], &[2.0, 2.0]).unwrap();
        assert_eq!((none.p(), none.interval(0.95).unwrap().low), (Some(1.0), 0.0));
        let some = welch_difference(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
        assert_eq!((some.p(), some.interval(0.95).unwrap().high), (Some(0.0), 1.0));
    }
}
