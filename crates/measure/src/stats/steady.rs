//! Whether a measure that is repeated round after round has settled.

use super::residual::slope;
use super::sample::mean;

/// Rounds that are looked at together.
pub const STEADY_ROUNDS: usize = 5;
/// Greatest less least, as a share of the mean.
const EXCURSION_MAX: f64 = 0.20;
/// Change of the straight line through the rounds over them, as a share of the mean.
const SLOPE_MAX: f64 = 0.10;

/// The first round of the first five in a row that are steady: within 20 % of their mean of each other, and with a straight line that changes by at most
/// 10 % of it (SNIA, Solid State Storage Performance Test Specification, 2.1.25). `None` where there are none, or means are not positive.
pub fn steady_from(rounds: &[f64]) -> Option<usize> {
    rounds.windows(STEADY_ROUNDS).position(|window| is_steady(window).unwrap_or(false))
}

fn is_steady(window: &[f64]) -> Option<bool> {
    let middle = mean(window).filter(|&mean| mean > 0.0)?;
    let high = window.iter().copied().reduce(f64::max)?;
    let low = window.iter().copied().reduce(f64::min)?;
    let numbers: Vec<f64> = (0..window.len()).map(|round| round as f64).collect();
    let change = slope(&numbers, window)?.estimate.abs() * (window.len() - 1) as f64;
    Some(high - low <= EXCURSION_MAX * middle && change <= SLOPE_MAX * middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rounds: &[f64], expected: Option<usize>) {
        assert_eq!(steady_from(rounds), expected, "{rounds:?}");
    }

    #[test]
    fn five_rounds_within_20_percent_and_without_a_slope_are_steady() {
        check(&[100.0; 5], Some(0));
        check(&[100.0; 4], None);
        check(&[200.0, 150.0, 100.0, 101.0, 99.0, 100.0, 100.0], Some(2));
        // Apart by 20 % of the mean, and by a little more.
        check(&[90.0, 110.0, 100.0, 110.0, 90.0], Some(0));
        check(&[89.0, 110.0, 101.0, 110.0, 90.0], None);
        // A line from 95 to 105, and one from 94.8 to 105.2.
        check(&[95.0, 97.5, 100.0, 102.5, 105.0], Some(0));
        check(&[94.8, 97.4, 100.0, 102.6, 105.2], None);
        check(&[0.0; 5], None);
    }
}
