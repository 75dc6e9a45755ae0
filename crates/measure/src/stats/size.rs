//! How many runs it takes, from noise that is known or guessed from a pilot.

use super::t_quantile;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

/// More runs than anybody makes; what would take more has no answer.
const SAMPLES_MAX: f64 = 1e7;

/// Runs after which the interval of the mean is expected to be ± `half_width` of it: the least n with t(n − 1) · cov ÷ √n ≤ half_width (Jain 1991,
/// ch. 13.9, with Student's t instead of the normal). At least 2; `None` where nobody could make so many.
pub fn samples_for_half_width(cov: f64, half_width: f64, confidence: f64) -> Option<u64> {
    let share = 0.5 + confidence / 2.0;
    let normal = (Normal::standard().inverse_cdf(share) * cov / half_width).powi(2);
    // The normal's n is never enough, and never far off.
    let first = Some(normal.ceil().max(2.0)).filter(|&n| n <= SAMPLES_MAX)? as u64;
    (first..).find(|&n| {
        let t = t_quantile(share, (n - 1) as f64);
        t.is_some_and(|t| t * cov / (n as f64).sqrt() <= half_width)
    })
}

/// Chance that a two-sided t test of two samples of `n` finds a difference of `effect` standard deviations (Cohen, Statistical Power Analysis, 1988,
/// ch. 2): noncentral t with 2n − 2 degrees of freedom. `None` of fewer than two.
pub fn power_of_two_samples(n: u64, effect: f64, confidence: f64) -> Option<f64> {
    let freedom = 2.0 * (n as f64 - 1.0);
    let t = t_quantile(0.5 + confidence / 2.0, freedom)?;
    let shift = effect.abs() * (n as f64 / 2.0).sqrt();
    Some(1.0 - noncentral_t_below(t, freedom, shift) + noncentral_t_below(-t, freedom, shift))
}

/// Runs of each of two to find a difference of `effect` standard deviations with this power. At least 2; `None` where nobody could make so many.
pub fn samples_to_tell(effect: f64, confidence: f64, power: f64) -> Option<u64> {
    let normal = Normal::standard();
    let sum = normal.inverse_cdf(0.5 + confidence / 2.0) + normal.inverse_cdf(power);
    let first = 2.0 * (sum / effect).powi(2);
    let first = Some(first.ceil().max(2.0)).filter(|&n| n <= SAMPLES_MAX)? as u64;
    (first..).find(|&n| {
        power_of_two_samples(n, effect, confidence).is_some_and(|reached| power <= reached)
    })
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
    let at = |w: f64| {
        let density = match w > 0.0 {
            true => (constant + (freedom - 1.0) * w.ln() - half * w * w).exp(),
            false => 0.0,
        };
        density * normal.cdf(t * w - shift)
    };
    let step = (to - from) / f64::from(PARTS);
    let weighted = (0..=PARTS).map(|i| {
        let weight = if i == 0 || i == PARTS {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        };
        weight * at(from + f64::from(i) * step)
    });
    weighted.sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

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
