//! Decides whether a change has an effect, from the values of a response in runs with and without it. The test is sequential:
//! it may be repeated after each run until the outcome is decided.

use crate::precision::sequential_difference;
use feedrate_measure::stats::Interval;
pub use feedrate_results::trials::Outcome;

/// Equivalence margin of utilisation, in points.
pub const MARGIN_POINTS: f64 = 2.0;

/// Determines the outcome of a trial from the values without and with the change. Differences within `margin` count as no effect.
pub fn outcome(without: &[f64], with: &[f64], margin: f64) -> Outcome {
    if with.is_empty() {
        return Outcome::NotTried;
    }
    match sequential_difference(without, with) {
        Some(Interval { low, high, .. }) if -margin < low && high < margin => Outcome::NoEffect,
        Some(Interval { low, .. }) if 0.0 < low => Outcome::Helps,
        Some(Interval { high, .. }) if high < 0.0 => Outcome::Hurts,
        _ => Outcome::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    #[test]
    fn an_outcome_is_decided_only_with_certainty() {
        let without = [31.0, 31.4, 31.2];
        for (with, expected) in [
            (&[][..], Outcome::NotTried),
            (&[97.0], Outcome::NotDecided),
            (&[97.0, 97.4, 97.1], Outcome::Helps),
            (&[20.0, 20.4, 20.1], Outcome::Hurts),
            (&[31.4, 31.1, 31.3], Outcome::NoEffect),
            (&[20.0, 45.0, 40.0], Outcome::NotDecided),
        ] {
            assert_eq!(outcome(&without, with, MARGIN_POINTS), expected, "{with:?}");
        }
        let with_small_margin = outcome(&without, &[31.4, 31.1, 31.3], 0.1);
        assert_eq!(with_small_margin, Outcome::NotDecided);
        assert_eq!(outcome(&[31.2], &[97.0, 97.4], MARGIN_POINTS), Outcome::NotDecided);
    }

    /// Checks the claim of [`sequential_difference`]: noise alone rarely leads to a decision, even if it is checked after each round.
    #[test]
    fn noise_alone_rarely_helps() {
        let mut random = LegacyRandom::new(18);
        let mut helps = 0;
        let mut hurts = 0;
        for _ in 0..1000 {
            let mut without = Vec::new();
            let mut with = Vec::new();
            let mut found = Outcome::NotDecided;
            while found == Outcome::NotDecided && with.len() < 8 {
                without.push(50.0 + 5.0 * random.standard_normal());
                with.push(50.0 + 5.0 * random.standard_normal());
                found = outcome(&without, &with, MARGIN_POINTS);
            }
            helps += u32::from(found == Outcome::Helps);
            hurts += u32::from(found == Outcome::Hurts);
        }
        assert!(helps <= 50 && hurts <= 50, "{helps}, {hurts}");
        assert!(10 <= helps + hurts, "{helps}, {hurts}");
    }
}
