//! Stopping by precision: whether the runs of an experiment determine its response precisely enough, and how many runs are needed.
//!
//! This module decides whether to continue, but starts no runs.

use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{self, Interval};

/// The confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// The significance level of every test.
pub const ALPHA: f64 = 1.0 - CONFIDENCE;

/// Minimum number of runs before an experiment may stop. If the interval is checked after each run, an experiment tends to stop when runs
/// agree by chance. In simulations, the final interval contains the true value in 92 to 95 % of cases with a minimum of five runs, and in
/// 89 % with a minimum of two.
pub const REPLICATES_MIN: u64 = 5;

/// The requested precision of a response: `ci=2%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionTarget {
    /// Half the width of the interval as a share of its center: 0.02.
    pub half_width: f64,
}

impl PrecisionTarget {
    /// Parses `ci=2%` or `ci=0.02`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let half_width = text.strip_prefix("ci=").and_then(parse_share)?;
        Some(PrecisionTarget { half_width })
    }
}

/// Parses `2%` or `0.02`, above 0 and below 1.
pub fn parse_share(text: &str) -> Option<f64> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().ok()? / unit;
    (0.0 < share && share < 1.0).then_some(share)
}

/// The next step for an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The response is known precisely enough.
    Enough,
    /// The experiment should be run again.
    RunAgain,
    /// The precision cannot be reached with the permitted number of runs, or there is no relative precision because the mean is zero.
    OutOfReach,
}

/// The precision that an experiment has reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionStatus {
    /// Number of runs that have a value.
    pub replicates: u64,
    /// Mean of the response; `None` for fewer than two runs.
    pub middle: Option<Interval>,
    /// Half the width of the interval as a share of its center, if that is not zero.
    pub half_width: Option<f64>,
    /// Total number of runs that are needed if the noise stays the same; `None` if unknown.
    pub replicates_expected: Option<u64>,
    /// The next step.
    pub next: NextStep,
}

/// Judges the precision of one experiment that may have at most `replicates_max` runs.
pub fn judge(
    response: &Metric,
    values: &[f64],
    until: PrecisionTarget,
    replicates_max: u64,
) -> PrecisionStatus {
    let replicates = values.len() as u64;
    let middle = response.average_interval(values, CONFIDENCE);
    let half_width = middle.and_then(|interval| interval.relative_half_width());
    let runs_needed =
        |variation: f64| stats::runs_for_half_width(variation, until.half_width, CONFIDENCE);
    let expected = stats::coefficient_of_variation(values).and_then(runs_needed);
    let is_narrow = half_width.is_some_and(|width| width <= until.half_width);
    let next = if is_narrow && REPLICATES_MIN.min(replicates_max) <= replicates {
        NextStep::Enough
    } else if replicates_max <= replicates
        || (2 <= replicates && !may_reach(values, runs_needed, replicates_max))
    {
        NextStep::OutOfReach
    } else {
        NextStep::RunAgain
    };
    let replicates_expected = expected.map(|runs| runs.max(REPLICATES_MIN.min(replicates_max)));
    PrecisionStatus { replicates, middle, half_width, replicates_expected, next }
}

/// Whether the precision may be reachable: with the lowest noise that is consistent with the values, at most `replicates_max` runs
/// are needed.
fn may_reach(
    values: &[f64],
    runs_needed: impl Fn(f64) -> Option<u64>,
    replicates_max: u64,
) -> bool {
    let mean = stats::mean(values).filter(|&mean| mean > 0.0);
    let stdev = stats::stdev_interval(values, CONFIDENCE);
    let runs = stdev.zip(mean).and_then(|(stdev, mean)| runs_needed(stdev.low / mean));
    runs.is_some_and(|runs| runs <= replicates_max)
}

/// The mean of values that are checked after each new value, with an interval that stays valid whenever the checks end.
///
/// It is Student's t interval with an error of 5 % ÷ (n (n − 1)) at each end for n values (alpha spending: Lan and DeMets, Biometrika 70,
/// 1983). Over all n, these errors add up to 5 %. With normal noise, at most 5 % of the searches therefore find a mean above a bound that
/// it equals, for any number of values. `None` for fewer than two values.
pub fn sequential_mean(values: &[f64]) -> Option<Interval> {
    stats::mean_interval(values, sequential_confidence(values.len() as u64)?)
}

/// The difference of two means, `changed` − `unchanged`, with Welch's interval at the same confidence as [`sequential_mean`]: at most
/// 5 % of the trials find one of two equal means above the other. `None` for fewer than two values of either.
pub fn sequential_difference(unchanged: &[f64], changed: &[f64]) -> Option<Interval> {
    let fewest = unchanged.len().min(changed.len()) as u64;
    stats::welch_difference(unchanged, changed)?.interval(sequential_confidence(fewest)?)
}

/// Whether `total_values` values would decide on which side of `bound` the mean is, if mean and standard deviation stay the same.
pub fn would_decide(values: &[f64], bound: f64, total_values: u64) -> bool {
    let half_width = stats::stdev(values).and_then(|stdev| {
        stats::mean_half_width(stdev, total_values, sequential_confidence(total_values)?)
    });
    let distance = stats::mean(values).map(|mean| (mean - bound).abs());
    distance.zip(half_width).is_some_and(|(distance, half_width)| half_width < distance)
}

/// The confidence level of a sequential interval of this number of values.
fn sequential_confidence(values: u64) -> Option<f64> {
    (2 <= values).then(|| 1.0 - 2.0 * ALPHA / (values as f64 * (values - 1) as f64))
}

/// The number of runs that are needed, estimated from pilot runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PilotEstimate {
    /// Coefficient of variation of the response, pooled over the experiments.
    pub variation: f64,
    /// Number of runs per experiment that make its interval narrow enough; `None` if it is impractically large.
    pub replicates_for_interval: Option<u64>,
    /// Number of runs of each of two experiments that detects the given difference between them with a power of 80 %.
    pub replicates_to_detect: Option<u64>,
}

/// Largest number of runs per experiment that is advised.
pub const RUNS_MAX: u64 = 1000;

/// The power for which [`estimate_replicates`] calculates numbers of runs.
pub const POWER: f64 = 0.8;

/// Estimates the number of runs that are needed from the values of pilot runs of each experiment. `difference` is a share of the
/// response. `None` if no experiment has two runs.
pub fn estimate_replicates(
    pilots: &[Vec<f64>],
    until: PrecisionTarget,
    difference: f64,
) -> Option<PilotEstimate> {
    let variation = pooled_variation(pilots)?;
    let replicates_to_detect = if variation > 0.0 {
        stats::runs_for_difference(difference / variation, CONFIDENCE, POWER)
    } else {
        Some(2)
    };
    let for_interval = stats::runs_for_half_width(variation, until.half_width, CONFIDENCE);
    let replicates_for_interval = for_interval.map(|runs| runs.max(REPLICATES_MIN));
    Some(PilotEstimate { variation, replicates_for_interval, replicates_to_detect })
}

/// The coefficient of variation over all experiments. Squares are weighted by their degrees of freedom, as in the analysis of
/// variance.
fn pooled_variation(pilots: &[Vec<f64>]) -> Option<f64> {
    let mut sum_of_squares = 0.0;
    let mut freedom = 0;
    for values in pilots {
        if let Some(variation) = stats::coefficient_of_variation(values) {
            sum_of_squares += variation * variation * (values.len() - 1) as f64;
            freedom += values.len() - 1;
        }
    }
    (freedom > 0).then(|| (sum_of_squares / freedom as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    const UNTIL: PrecisionTarget = PrecisionTarget { half_width: 0.02 };

    #[test]
    fn targets_are_shares() {
        for (text, expected) in [
            ("ci=2%", Some(0.02)),
            ("ci=2 %", Some(0.02)),
            ("ci=0.5%", Some(0.005)),
            ("ci=0.02", Some(0.02)),
            ("ci=2", None),
            ("ci=0%", None),
            ("ci=-1%", None),
            ("2%", None),
            ("ci=", None),
            ("ci=NaN", None),
        ] {
            assert_eq!(
                PrecisionTarget::parse(text).map(|until| until.half_width),
                expected,
                "{text}"
            );
        }
    }

    #[track_caller]
    fn check(values: &[f64], replicates_max: u64, next: NextStep, half_width: &str) {
        let response = Metric::find("au_all_steps").unwrap();
        let status = judge(response, values, UNTIL, replicates_max);
        let text = status.half_width.map_or("-".into(), |width| format!("{:.1} %", 100.0 * width));
        assert_eq!((status.next, text.as_str()), (next, half_width), "{values:?}");
    }

    #[test]
    fn runs_are_added_until_the_interval_is_narrow() {
        check(&[], 10, NextStep::RunAgain, "-");
        check(&[90.0], 10, NextStep::RunAgain, "-");
        check(&[90.0, 91.0], 10, NextStep::RunAgain, "7.3 %");
        check(&[90.0, 91.0, 90.5], 10, NextStep::RunAgain, "1.4 %");
        check(&[90.0, 91.0, 90.5, 90.2, 90.8], 10, NextStep::Enough, "0.6 %");
        check(&[90.0, 90.0, 90.0, 90.0, 90.0], 10, NextStep::Enough, "0.0 %");
    }

    #[test]
    fn the_limit_of_runs_ends_an_experiment() {
        check(&[90.0, 91.0, 90.5], 3, NextStep::Enough, "1.4 %");
        check(&[90.0, 80.0, 85.0], 3, NextStep::OutOfReach, "15.1 %");
        check(&[90.0], 1, NextStep::OutOfReach, "-");
        // The lowest consistent noise is a third of the observed noise and would need 20 runs.
        check(&[90.0, 40.0, 60.0], 10, NextStep::OutOfReach, "67.7 %");
        check(&[90.0, 40.0, 60.0], 1000, NextStep::RunAgain, "67.7 %");
        check(&[0.0, 0.0], 10, NextStep::OutOfReach, "-");
    }

    /// Checks the coverage documented at [`REPLICATES_MIN`], at the noise levels with the worst and the best coverage.
    #[test]
    fn stopping_at_a_narrow_interval_hardly_reduces_its_coverage() {
        let response = Metric::find("au_all_steps").unwrap();
        for (noise, low, high) in [(0.01, 94.0, 96.0), (0.02, 92.5, 95.5), (0.04, 91.0, 94.0)] {
            let mut random = LegacyRandom::new(1991);
            let mut covered = 0;
            for _ in 0..2000 {
                let mut values = Vec::new();
                let middle = loop {
                    values.push(50.0 * (1.0 + noise * random.standard_normal()));
                    let status = judge(response, &values, UNTIL, 10_000);
                    if status.next == NextStep::Enough {
                        break status.middle.unwrap();
                    }
                };
                covered += u32::from(middle.low <= 50.0 && 50.0 <= middle.high);
            }
            let percent = f64::from(covered) / 20.0;
            assert!((low..high).contains(&percent), "{noise}: {percent} %");
        }
    }

    /// Runs 4000 searches for a mean of 90. Returns how many find the mean above 90, and how many below.
    fn count_false_decisions(mut value: impl FnMut(&mut LegacyRandom) -> f64) -> (u32, u32) {
        let mut random = LegacyRandom::new(1983);
        let mut above = 0;
        let mut below = 0;
        for _ in 0..4000 {
            let mut values = Vec::new();
            while values.len() < 20 {
                values.push(value(&mut random));
                let Some(mean) = sequential_mean(&values) else { continue };
                above += u32::from(90.0 < mean.low);
                below += u32::from(mean.high < 90.0);
                if 90.0 < mean.low || mean.high < 90.0 {
                    break;
                }
            }
        }
        (above, below)
    }

    /// Checks the claim of [`sequential_mean`].
    #[test]
    fn checking_after_each_value_keeps_the_error_rate() {
        for noise in [0.1, 2.0] {
            let (above, below) =
                count_false_decisions(|random| 90.0 + noise * random.standard_normal());
            assert!((100..200).contains(&above) && (100..200).contains(&below), "{above}, {below}");
        }
        // The ordinary interval, checked after each value, is wrong several times as often.
        let mut random = LegacyRandom::new(1983);
        let mut wrong = 0;
        for _ in 0..1000 {
            let values: Vec<f64> = (0..20).map(|_| random.standard_normal()).collect();
            let is_above = |n| {
                let interval = stats::mean_interval(&values[..n], 0.95);
                interval.is_some_and(|interval| 0.0 < interval.low)
            };
            wrong += u32::from((2..=20).any(is_above));
        }
        assert!(100 < wrong, "{wrong}");
        // Utilisation near 100 % is skewed: its distance to 100 % is log-normal.
        let skewed = |random: &mut LegacyRandom| {
            let sigma = 0.5_f64;
            100.0 - 10.0 * (sigma * random.standard_normal() - sigma * sigma / 2.0).exp()
        };
        let (above, below) = count_false_decisions(skewed);
        assert!((50..400).contains(&above) && (50..400).contains(&below), "{above}, {below}");
    }

    #[test]
    fn more_values_would_decide_if_the_interval_excludes_the_bound() {
        // Half widths at a standard deviation of 1: 8.98 for two values, 4.41 for three, 3.11 for four.
        let values = [94.0, 95.0, 96.0];
        for (bound, total, expected) in
            [(90.0, 3, true), (91.0, 3, false), (91.0, 4, true), (95.0, 1000, false)]
        {
            assert_eq!(would_decide(&values, bound, total), expected, "{bound}, {total}");
        }
        assert!(!would_decide(&[95.0], 90.0, 9) && sequential_mean(&[95.0]).is_none());
        let interval = sequential_mean(&[94.0, 96.0]).unwrap();
        assert_eq!(format!("{:.2} {:.2}", interval.low, interval.high), "82.29 107.71");
    }

    #[test]
    fn the_number_of_runs_is_estimated_from_a_pilot() {
        // A standard deviation of 2 % in each: t(5) · 2 % ÷ √6 = 2.1 %, t(6) · 2 % ÷ √7 = 1.8 %.
        let pilots = [vec![98.0, 100.0, 102.0], vec![49.0, 50.0, 51.0], vec![7.0]];
        let found = estimate_replicates(&pilots, UNTIL, 0.02).unwrap();
        assert_eq!(format!("{:.4}", found.variation), "0.0200");
        assert_eq!(
            (found.replicates_for_interval, found.replicates_to_detect),
            (Some(7), Some(17))
        );
        assert_eq!(estimate_replicates(&pilots[2..], UNTIL, 0.02), None);
        let quiet = estimate_replicates(&[vec![5.0, 5.0]], UNTIL, 0.02).unwrap();
        assert_eq!((quiet.replicates_for_interval, quiet.replicates_to_detect), (Some(5), Some(2)));
    }
}
