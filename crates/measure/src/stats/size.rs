//! Required numbers of runs, computed from a known or estimated standard deviation.

use super::{t_cdf, t_quantile};
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

/// Upper limit of the search. Larger numbers of runs are not practical.
const RUNS_MAX: f64 = 1e7;

/// Computes the number of runs for which the interval of the mean is expected to be within ± `half_width`, a share of the mean: the smallest
/// n with t(n − 1) · c ÷ √n ≤ half_width, where c is the coefficient of variation (Jain 1991, ch. 13.9, with Student's t instead of the
/// normal). At least 2; `None` above 10⁷.
pub fn runs_for_half_width(
    coefficient_of_variation: f64,
    half_width: f64,
    confidence: f64,
) -> Option<u64> {
    let share = 0.5 + confidence / 2.0;
    smallest_number(|n| {
        let t = t_quantile(share, (n - 1) as f64);
        t.is_some_and(|t| t * coefficient_of_variation / (n as f64).sqrt() <= half_width)
    })
}

/// Computes the power of a two-sided t test of two samples of size `n` for a difference of `effect` standard deviations (Cohen, Statistical Power Analysis,
/// 1988, ch. 2): noncentral t with 2n − 2 degrees of freedom. `None` for `n` below 2.
fn power_of_two_samples(n: u64, effect: f64, confidence: f64) -> Option<f64> {
    let freedom = 2.0 * (n as f64 - 1.0);
    let t = t_quantile(0.5 + confidence / 2.0, freedom)?;
    let shift = effect.abs() * (n as f64 / 2.0).sqrt();
    Some(1.0 - noncentral_t_cdf(t, freedom, shift) + noncentral_t_cdf(-t, freedom, shift))
}

/// Computes the number of runs in each of two samples that detects a difference of `effect` standard deviations with this power. At least 2;
/// `None` above 10⁷.
pub fn runs_for_difference(effect: f64, confidence: f64, power: f64) -> Option<u64> {
    let is_enough =
        |n| power_of_two_samples(n, effect, confidence).is_some_and(|reached| power <= reached);
    smallest_number(is_enough)
}

/// Relation between the values of two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// Independent samples. The standard deviation is that of single values.
    Independent,
    /// Paired samples. The standard deviation is that of the differences of pairs.
    Paired,
}

/// Bounds of a difference. An infinite bound is no restriction.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Margin {
    pub low: f64,
    pub high: f64,
}

/// Computes the number of runs in each sample for which two one-sided tests at level `alpha` have this power to show that `difference` is within the margin
/// (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987). The power is approximated by the central t (Phillips, J. Pharmacokinetics and Biopharmaceutics 18, 1990). At least 2; `None` if the difference is outside the margin, or above 10⁷.
pub fn runs_for_equivalence(
    margin: Margin,
    difference: f64,
    stdev: f64,
    samples: Samples,
    alpha: f64,
    power: f64,
) -> Option<u64> {
    let power_of = |n: u64| {
        let n = n as f64;
        let (freedom, standard_error) = match samples {
            Samples::Independent => (2.0 * n - 2.0, stdev * (2.0 / n).sqrt()),
            Samples::Paired => (n - 1.0, stdev / n.sqrt()),
        };
        let t = t_quantile(1.0 - alpha, freedom)?;
        let power_of_bound = |distance: f64| {
            if distance == f64::INFINITY {
                return Some(1.0);
            }
            t_cdf(distance / standard_error - t, freedom)
        };
        let power_of_high = power_of_bound(margin.high - difference)?;
        let power_of_low = power_of_bound(difference - margin.low)?;
        Some(power_of_high + power_of_low - 1.0)
    };
    let is_within = margin.low < difference && difference < margin.high;
    is_within.then(|| smallest_number(|n| power_of(n).is_some_and(|reached| power <= reached)))?
}

/// Finds the smallest number, at least 2, that suffices. All larger numbers must suffice too. `None` above [`RUNS_MAX`].
fn smallest_number(suffices: impl Fn(u64) -> bool) -> Option<u64> {
    let mut too_few = 1;
    let mut enough = 2;
    while !suffices(enough) {
        too_few = enough;
        enough *= 2;
        if RUNS_MAX < enough as f64 {
            return None;
        }
    }
    while 1 < enough - too_few {
        let middle = too_few + (enough - too_few) / 2;
        if suffices(middle) { enough = middle } else { too_few = middle }
    }
    Some(enough)
}

/// Cumulative distribution function of the noncentral t at `t`, for at least two degrees of freedom. It is the normal distribution function at
/// t · w − shift, averaged over w = √(χ² ÷ freedom) by Simpson's rule (Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2,
/// ch. 31).
fn noncentral_t_cdf(t: f64, freedom: f64, shift: f64) -> f64 {
    const PARTS: u32 = 1000;
    // The standard deviation of w is about 1 ÷ √(2 freedom).
    let spread = 10.0 / (2.0 * freedom).sqrt();
    let w_min = (1.0 - spread).max(0.0);
    let w_max = 1.0 + spread;
    let half = freedom / 2.0;
    let constant = 2.0_f64.ln() + half * half.ln() - ln_gamma(half);
    let normal = Normal::standard();
    let step = (w_max - w_min) / f64::from(PARTS);
    let weighted = (0..=PARTS).map(|i| {
        let weight = match i {
            0 | PARTS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let w = w_min + f64::from(i) * step;
        // At w = 0, the logarithm is −∞ and the density is 0.
        let density = (constant + (freedom - 1.0) * w.ln() - half * w * w).exp();
        weight * density * normal.cdf(t * w - shift)
    });
    weighted.sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::super::{equivalence_p, paired_difference, welch_difference};
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    const TWO_SIDED: Margin = Margin { low: -0.02, high: 0.02 };
    const LOWER_ONLY: Margin = Margin { low: -0.02, high: f64::INFINITY };

    fn runs_needed(margin: Margin, noise: (f64, f64), samples: Samples) -> Option<u64> {
        runs_for_equivalence(margin, noise.0, noise.1, samples, 0.05, 0.80)
    }

    /// Share of simulated comparisons of `n` runs that show equivalence.
    fn equivalence_share(
        margin: Margin,
        (difference, stdev): (f64, f64),
        samples: Samples,
        n: u64,
    ) -> f64 {
        const SIMULATIONS: u32 = 2000;
        let mut random = LegacyRandom::new(2025);
        let mut draw = |mean: f64, stdev: f64| {
            (0..n).map(|_| mean + stdev * random.standard_normal()).collect::<Vec<f64>>()
        };
        let mut equivalent = 0;
        for _ in 0..SIMULATIONS {
            let found = match samples {
                Samples::Independent => {
                    welch_difference(&draw(0.0, stdev), &draw(difference, stdev))
                }
                Samples::Paired => {
                    paired_difference(&vec![0.0; n as usize], &draw(difference, stdev))
                }
            };
            let p = if margin.high == f64::INFINITY {
                found.unwrap().p_above(margin.low)
            } else {
                equivalence_p(&found.unwrap(), margin.low, margin.high)
            };
            equivalent += u32::from(p.unwrap() < 0.05);
        }
        f64::from(equivalent) / f64::from(SIMULATIONS)
    }

    /// In simulations, the number of runs has the required power, and a smaller number does not.
    #[test]
    fn numbers_of_runs_for_equivalence_have_the_required_power() {
        for (margin, noise, samples, expected) in [
            (TWO_SIDED, (0.0, 0.01), Samples::Independent, 6),
            (TWO_SIDED, (0.0, 0.02), Samples::Independent, 18),
            (TWO_SIDED, (0.0, 0.05), Samples::Independent, 107),
            (TWO_SIDED, (0.01, 0.02), Samples::Independent, 51),
            (TWO_SIDED, (-0.01, 0.02), Samples::Independent, 51),
            (TWO_SIDED, (0.0, 0.02), Samples::Paired, 10),
            (LOWER_ONLY, (0.0, 0.02), Samples::Independent, 13),
            (LOWER_ONLY, (0.01, 0.02), Samples::Independent, 7),
        ] {
            let n = runs_needed(margin, noise, samples).unwrap();
            let deviation = n.abs_diff(expected) as f64;
            assert!(deviation <= (0.02 * expected as f64).max(1.0), "{noise:?}: {n}");
            let with_n = equivalence_share(margin, noise, samples, n);
            let with_fewer = equivalence_share(margin, noise, samples, n - 1 - n / 20);
            assert!(
                0.78 < with_n && with_fewer < 0.82,
                "{noise:?}: {with_n} of {n}, {with_fewer} of fewer"
            );
        }
    }

    #[test]
    fn a_difference_outside_the_margin_has_no_number_of_runs() {
        assert_eq!(runs_needed(TWO_SIDED, (0.02, 0.01), Samples::Independent), None);
        assert_eq!(runs_needed(TWO_SIDED, (0.0, 100.0), Samples::Independent), None);
        assert_eq!(runs_needed(LOWER_ONLY, (-0.03, 0.01), Samples::Independent), None);
        assert_eq!(runs_needed(TWO_SIDED, (0.0, 1e-9), Samples::Paired), Some(2));
    }

    /// Jain (1991), example 13.11: a mean of 20 s with a standard deviation of 5 s and a half-width of 5 % needs 97 runs with the normal
    /// distribution, and 99 with Student's t.
    #[test]
    fn the_number_of_runs_equals_jains() {
        assert_eq!(runs_for_half_width(0.25, 0.05, 0.95), Some(99));
    }

    #[test]
    fn the_number_of_runs_for_a_half_width_is_the_smallest() {
        for (cov, half_width) in [(0.002, 0.02), (0.01, 0.02), (0.05, 0.02), (0.3, 0.02)] {
            let n = runs_for_half_width(cov, half_width, 0.95).unwrap();
            let width =
                |n: u64| t_quantile(0.975, (n - 1) as f64).unwrap() * cov / (n as f64).sqrt();
            assert!(width(n) <= half_width && (n == 2 || half_width < width(n - 1)), "{cov}: {n}");
        }
        assert_eq!(runs_for_half_width(0.0, 0.02, 0.95), Some(2));
        assert_eq!(runs_for_half_width(0.1, 0.0, 0.95), None);
    }

    /// Examples of R's `power.t.test` for a difference of one standard deviation: n = 20 has a power of 0.8689528, and 0.90 needs n = 22.02.
    #[test]
    fn power_equals_rs_examples() {
        assert_eq!(format!("{:.6}", power_of_two_samples(20, 1.0, 0.95).unwrap()), "0.868953");
        assert_eq!(runs_for_difference(1.0, 0.95, 0.90), Some(23));
        assert_eq!(power_of_two_samples(1, 1.0, 0.95), None);
    }

    /// Cohen (1988), table 2.4.1: sample sizes for a power of 0.80 at 5 %, two-sided, for a large and a medium effect.
    #[test]
    fn numbers_of_runs_equal_cohens_table() {
        for (effect, n) in [(0.8, 26), (0.5, 64)] {
            assert_eq!(runs_for_difference(effect, 0.95, 0.80), Some(n));
        }
        assert_eq!(runs_for_difference(50.0, 0.95, 0.80), Some(2));
        assert_eq!(runs_for_difference(0.0, 0.95, 0.80), None);
    }
}
