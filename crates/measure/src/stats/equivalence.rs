//! Tests of equivalence: whether a difference is within a margin. A test that finds no difference does not show equivalence.

use super::interval::Difference;

/// Computes the p-value of the hypothesis that the difference is at most `low` or at least `high`: the larger p of two one-sided tests
/// (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987). It is below 0.05 if and only if the 90 % interval is within the margin.
pub fn equivalence_p(difference: &Difference, low: f64, high: f64) -> Option<f64> {
    let not_above = 1.0 - difference.p_above(high)?;
    Some(difference.p_above(low)?.max(not_above))
}

#[cfg(test)]
mod tests {
    use super::super::welch_difference;
    use super::*;
    use proptest::prelude::*;

    /// Lakens, Equivalence tests (Social Psychological and Personality Science 8, 2017), from the replication by Moery and Calin-Jageman:
    /// t(182) = −2.69, p = .004 within ±0.43 deviations.
    #[test]
    fn p_equals_the_example_of_lakens() {
        let square_a = 0.95_f64.powi(2);
        let square_b = 0.83_f64.powi(2);
        let standard_error = (square_a / 95.0 + square_b / 89.0).sqrt();
        let margin = 0.43 * ((square_a + square_b) / 2.0).sqrt();
        let difference = Difference { estimate: 5.25 - 5.22, standard_error, freedom: 182.0 };
        assert_eq!(format!("{:.2}", (difference.estimate - margin) / standard_error), "-2.69");
        assert_eq!(format!("{:.3}", equivalence_p(&difference, -margin, margin).unwrap()), "0.004");
        assert!(difference.p_above(-margin).unwrap() < 0.004);
    }

    #[test]
    fn values_without_variation_are_decided() {
        let difference = welch_difference(&[5.0, 5.0], &[5.1, 5.1]).unwrap();
        assert_eq!(equivalence_p(&difference, -0.2, 0.2), Some(0.0));
        assert_eq!(equivalence_p(&difference, -0.05, 0.05), Some(1.0));
    }

    proptest! {
        #[test]
        fn p_is_below_5_percent_if_the_90_percent_interval_is_within_the_margin(
            estimate in -3.0..3.0, standard_error in 0.01..2.0, freedom in 1.0..30.0, margin in 0.1..3.0_f64,
        ) {
            let difference = Difference { estimate, standard_error, freedom };
            let interval = difference.interval(0.90).unwrap();
            let is_within = -margin < interval.low && interval.high < margin;
            prop_assert_eq!(equivalence_p(&difference, -margin, margin).unwrap() < 0.05, is_within);
        }
    }
}
