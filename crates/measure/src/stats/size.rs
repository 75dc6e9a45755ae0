//! How many runs it takes, from noise that is known or guessed from a pilot.

use super::{t_below, t_quantile};
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

/// More runs than anybody makes; what would take more has no answer.
const SAMPLES_MAX: f64 = 1e7;

/// Runs after which the interval of the mean is expected to be ± `half_width` of it: the least n with t(n − 1) · cov ÷ √n ≤ half_width (Jain 1991,
/// ch. 13.9, with Student's t instead of the normal). At least 2; `None` where nobody could make so many.
pub fn samples_for_half_width(cov: f64, half_width: f64, confidence: f64) -> Option<u64> {
    let share = 0.5 + confidence / 2.0;
    least(|n| {
        let t = t_quantile(share, (n - 1) as f64);
        t.is_some_and(|t| t * cov / (n as f64).sqrt() <= half_width)
    })
}

/// Chance that a two-sided t test of two samples of `n` finds a difference of `effect` standard deviations (Cohen, Statistical Power Analysis, 1988,
/// ch. 2): noncentral t with 2n − 2 degrees of freedom. `None` of fewer than two.
fn power_of_two_samples(n: u64, effect: f64, confidence: f64) -> Option<f64> {
    let freedom = 2.0 * (n as f64 - 1.0);
    let t = t_quantile(0.5 + confidence / 2.0, freedom)?;
    let shift = effect.abs() * (n as f64 / 2.0).sqrt();
    Some(1.0 - noncentral_t_below(t, freedom, shift) + noncentral_t_below(-t, freedom, shift))
}

/// Runs of each of two to find a difference of `effect` standard deviations with this power. At least 2; `None` where nobody could make so many.
pub fn samples_to_tell(effect: f64, confidence: f64, power: f64) -> Option<u64> {
    least(|n| power_of_two_samples(n, effect, confidence).is_some_and(|reached| power <= reached))
}

/// How values of two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// Not at all: noise is that of one value.
    Two,
    /// Each with one of the other: noise is that of the differences.
    Pairs,
}

/// Where a difference is to lie. An end that is infinite is not asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Margin {
    pub low: f64,
    pub high: f64,
}

/// Runs of each side after which two one-sided tests at level `alpha` show with this power that `difference` lies within the margin (Schuirmann, J. Pharmacokinetics
/// and Biopharmaceutics 15, 1987; the power by central t, near enough from two runs on: Phillips, J. Pharmacokinetics and Biopharmaceutics 18, 1990).
/// At least 2; `None` where the difference is not within, or nobody could make so many.
pub fn samples_within(
    margin: Margin,
    difference: f64,
    stdev: f64,
    samples: Samples,
    alpha: f64,
    power: f64,
) -> Option<u64> {
    let reached = |n: u64| {
        let n = n as f64;
        let (freedom, standard_error) = match samples {
            Samples::Two => (2.0 * n - 2.0, stdev * (2.0 / n).sqrt()),
            Samples::Pairs => (n - 1.0, stdev / n.sqrt()),
        };
        let t = t_quantile(1.0 - alpha, freedom)?;
        // An end that is not asked for is always kept.
        let ends = [margin.high - difference, difference - margin.low];
        let found = ends.map(|left| match left {
            f64::INFINITY => Some(1.0),
            left => t_below(left / standard_error - t, freedom),
        });
        Some(found[0]? + found[1]? - 1.0)
    };
    let is_within = margin.low < difference && difference < margin.high;
    is_within.then(|| least(|n| reached(n).is_some_and(|reached| power <= reached)))?
}

/// The least number of runs that suffices, where more do too.
fn least(suffices: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut few, mut enough) = (1, 2);
    while !suffices(enough) {
        (few, enough) = (enough, 2 * enough);
        if SAMPLES_MAX < enough as f64 {
            return None;
        }
    }
    while 1 < enough - few {
        let half = few + (enough - few) / 2;
        if suffices(half) { enough = half } else { few = half }
    }
    Some(enough)
}

/// The share of a noncentral t below `t`: the normal's share below t · w − shift, averaged over w = √(χ² ÷ freedom) (Johnson, Kotz and Balakrishnan,
/// Continuous Univariate Distributions 2, ch. 31), by Simpson's rule. For two degrees of freedom or more.
fn noncentral_t_below(t: f64, freedom: f64, shift: f64) -> f64 {
    const PARTS: u32 = 1000;
    // w is 1 ± 1 ÷ √(2 freedom).
    let spread = 10.0 / (2.0 * freedom).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let half = freedom / 2.0;
    let constant = 2.0_f64.ln() + half * half.ln() - ln_gamma(half);
    let normal = Normal::standard();
    let step = (to - from) / f64::from(PARTS);
    let weighted = (0..=PARTS).map(|i| {
        let weight = match i {
            0 | PARTS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let w = from + f64::from(i) * step;
        // At 0 the logarithm is −∞, and the density 0.
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

    const BOTH: Margin = Margin { low: -0.02, high: 0.02 };
    const LOW: Margin = Margin { low: -0.02, high: f64::INFINITY };

    fn within(margin: Margin, noise: (f64, f64), samples: Samples) -> Option<u64> {
        samples_within(margin, noise.0, noise.1, samples, 0.05, 0.80)
    }

    /// The share of simulated comparisons of `n` runs that show it.
    fn shown(margin: Margin, (difference, stdev): (f64, f64), samples: Samples, n: u64) -> f64 {
        const SIMULATIONS: u32 = 2000;
        let mut random = LegacyRandom::new(2025);
        let mut draw = |middle: f64, stdev: f64| {
            (0..n).map(|_| middle + stdev * random.standard_normal()).collect::<Vec<f64>>()
        };
        let mut shown = 0;
        for _ in 0..SIMULATIONS {
            let found = match samples {
                Samples::Two => welch_difference(&draw(0.0, stdev), &draw(difference, stdev)),
                Samples::Pairs => {
                    paired_difference(&vec![0.0; n as usize], &draw(difference, stdev))
                }
            };
            let p = if margin.high == f64::INFINITY {
                found.unwrap().p_above(margin.low)
            } else {
                equivalence_p(&found.unwrap(), margin.low, margin.high)
            };
            shown += u32::from(p.unwrap() < 0.05);
        }
        f64::from(shown) / f64::from(SIMULATIONS)
    }

    /// No more runs than it takes, and no less, as simulations have it.
    #[test]
    fn runs_to_show_equivalence_have_the_power_that_they_claim() {
        for (margin, noise, samples, expected) in [
            (BOTH, (0.0, 0.01), Samples::Two, 6),
            (BOTH, (0.0, 0.02), Samples::Two, 18),
            (BOTH, (0.0, 0.05), Samples::Two, 107),
            (BOTH, (0.01, 0.02), Samples::Two, 51),
            (BOTH, (-0.01, 0.02), Samples::Two, 51),
            (BOTH, (0.0, 0.02), Samples::Pairs, 10),
            (LOW, (0.0, 0.02), Samples::Two, 13),
            (LOW, (0.01, 0.02), Samples::Two, 7),
        ] {
            let n = within(margin, noise, samples).unwrap();
            let off = n.abs_diff(expected) as f64;
            assert!(off <= (0.02 * expected as f64).max(1.0), "{noise:?}: {n}");
            let (with, without) =
                (shown(margin, noise, samples, n), shown(margin, noise, samples, n - 1 - n / 20));
            assert!(0.78 < with && without < 0.82, "{noise:?}: {with} of {n}, {without} of fewer");
        }
    }

    #[test]
    fn what_does_not_lie_within_is_never_shown_to() {
        assert_eq!(within(BOTH, (0.02, 0.01), Samples::Two), None);
        assert_eq!(within(BOTH, (0.0, 100.0), Samples::Two), None);
        assert_eq!(within(LOW, (-0.03, 0.01), Samples::Two), None);
        assert_eq!(within(BOTH, (0.0, 1e-9), Samples::Pairs), Some(2));
    }

    /// Jain (1991), example 13.11: a mean of 20 s with a deviation of 5 s, to be known to 5 %: 97 by the normal, and so two more by Student's t.
    #[test]
    fn jains_response_time() {
        assert_eq!(samples_for_half_width(0.25, 0.05, 0.95), Some(99));
    }

    #[test]
    fn half_widths_are_reached_just_then() {
        for (cov, half_width) in [(0.002, 0.02), (0.01, 0.02), (0.05, 0.02), (0.3, 0.02)] {
            let n = samples_for_half_width(cov, half_width, 0.95).unwrap();
            let width =
                |n: u64| t_quantile(0.975, (n - 1) as f64).unwrap() * cov / (n as f64).sqrt();
            assert!(width(n) <= half_width && (n == 2 || half_width < width(n - 1)), "{cov}: {n}");
        }
        assert_eq!(samples_for_half_width(0.0, 0.02, 0.95), Some(2));
        assert_eq!(samples_for_half_width(0.1, 0.0, 0.95), None);
    }

    /// As R's help of `power.t.test` has them: n = 20 has a power of 0.8689528 for one deviation; 0.90 takes 22.02.
    #[test]
    fn power_is_that_of_rs_examples() {
        assert_eq!(format!("{:.6}", power_of_two_samples(20, 1.0, 0.95).unwrap()), "0.868953");
        assert_eq!(samples_to_tell(1.0, 0.95, 0.90), Some(23));
        assert_eq!(power_of_two_samples(1, 1.0, 0.95), None);
    }

    /// Cohen (1988), table 2.4.1: a power of 0.80 at 5 %, two-sided, takes so many for a large and a medium effect.
    #[test]
    fn cohens_large_and_medium_effects() {
        for (effect, n) in [(0.8, 26), (0.5, 64)] {
            assert_eq!(samples_to_tell(effect, 0.95, 0.80), Some(n));
        }
        assert_eq!(samples_to_tell(50.0, 0.95, 0.80), Some(2));
        assert_eq!(samples_to_tell(0.0, 0.95, 0.80), None);
    }
}
