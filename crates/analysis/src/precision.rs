//! Stopping by precision: whether the runs of an experiment tell its response well enough, and how many it will take. Decides only; runs nothing.

use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{self, Interval};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Chance of a false finding that is accepted.
pub const ALPHA: f64 = 1.0 - CONFIDENCE;

/// Fewer runs stop nothing. An interval that is looked at after each run is found narrow when its runs lie together by chance; from five
/// runs on it still holds the truth in 92 to 95 % of simulations, from two in 89 %.
pub const REPLICATES_MIN: u64 = 5;

/// How well a response is to be known: `ci=2%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionTarget {
    /// Half the width of the interval as a share of its middle: 0.02.
    pub half_width: f64,
}

impl PrecisionTarget {
    /// Read `ci=2%` or `ci=0.02`; `None` of what is not written so.
    pub fn parse(text: &str) -> Option<Self> {
        let half_width = text.strip_prefix("ci=").and_then(share)?;
        Some(PrecisionTarget { half_width })
    }
}

/// `2%` or `0.02`, above 0 and below 1.
pub fn share(text: &str) -> Option<f64> {
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
    /// Its response is known well enough.
    Enough,
    /// Run it again.
    Another,
    /// It will not be within the limit, or has no middle that a share could be taken of.
    OutOfReach,
}

/// Where an experiment stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionStatus {
    /// Runs that have a value.
    pub replicates: u64,
    /// Mean of the response; `None` where there are fewer than two runs.
    pub middle: Option<Interval>,
    /// Half the width of the interval as a share; `None` where it has none.
    pub half_width: Option<f64>,
    /// Runs it will take in all, if their noise stays as it is; `None` where that cannot be told.
    pub replicates_expected: Option<u64>,
    /// The next step.
    pub next: NextStep,
}

/// Whether the runs of one experiment do, with at most `replicates_max` of them.
pub fn judge(
    response: &Metric,
    values: &[f64],
    until: PrecisionTarget,
    replicates_max: u64,
) -> PrecisionStatus {
    let replicates = values.len() as u64;
    let middle = response.middle(values, CONFIDENCE);
    let half_width = middle.and_then(|interval| interval.relative_half_width());
    let needs = |cov: f64| stats::samples_for_half_width(cov, until.half_width, CONFIDENCE);
    let expected = stats::cov(values).and_then(needs);
    let is_narrow = half_width.is_some_and(|width| width <= until.half_width);
    let next = if is_narrow && REPLICATES_MIN.min(replicates_max) <= replicates {
        NextStep::Enough
    } else if replicates_max <= replicates
        || (2 <= replicates && !may_reach(values, needs, replicates_max))
    {
        NextStep::OutOfReach
    } else {
        NextStep::Another
    };
    let replicates_expected = expected.map(|runs| runs.max(REPLICATES_MIN.min(replicates_max)));
    PrecisionStatus { replicates, middle, half_width, replicates_expected, next }
}

/// Whether even the least noise that fits the values would take too many runs.
fn may_reach(values: &[f64], needs: impl Fn(f64) -> Option<u64>, replicates_max: u64) -> bool {
    let mean = stats::mean(values).filter(|&mean| mean > 0.0);
    let least = stats::stdev_interval(values, CONFIDENCE).zip(mean);
    let runs = least.and_then(|(stdev, mean)| needs(stdev.low / mean));
    runs.is_some_and(|runs| runs <= replicates_max)
}

/// The mean of values that are looked at after each of them, with an interval that is right at whichever look it ends: Student's t, where the n-th value may spend
/// 5 % ÷ (n (n − 1)) of error at either end (alpha spending: Lan and DeMets, Biometrika 70, 1983). These add up to 5 %, so that, of normal noise, a mean that is at
/// a bound is found above it in 5 % of searches at most, however many values they take. `None` of fewer than two values.
pub fn sequential_mean(values: &[f64]) -> Option<Interval> {
    stats::mean_interval(values, confidence_looked_at(values.len() as u64)?)
}

/// The same of the difference of two means, `changed` − `unchanged`, with Welch's interval: of equal means one is found above the other in 5 % of trials at
/// most, however often they are looked at. `None` of fewer than two values in either.
pub fn sequential_difference(unchanged: &[f64], changed: &[f64]) -> Option<Interval> {
    let fewest = unchanged.len().min(changed.len()) as u64;
    stats::welch_difference(unchanged, changed)?.interval(confidence_looked_at(fewest)?)
}

/// Whether so many values in all would put the mean to one side of `bound`, if mean and deviation stay as they are.
pub fn would_decide(values: &[f64], bound: f64, values_in_all: u64) -> bool {
    let half_width = stats::stdev(values).and_then(|stdev| {
        stats::mean_half_width(stdev, values_in_all, confidence_looked_at(values_in_all)?)
    });
    let distance = stats::mean(values).map(|mean| (mean - bound).abs());
    distance.zip(half_width).is_some_and(|(distance, half_width)| half_width < distance)
}

fn confidence_looked_at(values: u64) -> Option<f64> {
    (2 <= values).then(|| 1.0 - 2.0 * ALPHA / (values as f64 * (values - 1) as f64))
}

/// An estimate, from pilot runs, of the runs to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PilotEstimate {
    /// Deviation ÷ mean of the response, pooled over the experiments.
    pub cov: f64,
    /// Runs of each experiment until its interval is narrow enough; `None` where nobody could make so many.
    pub replicates_for_interval: Option<u64>,
    /// Runs of each of two experiments to tell `difference` between them with a power of 80 %.
    pub replicates_to_detect: Option<u64>,
}

/// More runs of each than anybody makes: no advice.
pub const RUNS_MAX: u64 = 1000;

/// The chance with which [`estimate`] wants a difference to be found.
pub const POWER: f64 = 0.8;

/// From the values of a few runs of each experiment, how many it will take. `difference`: a share of the response. `None` where no experiment has
/// two runs.
pub fn estimate(
    pilots: &[Vec<f64>],
    until: PrecisionTarget,
    difference: f64,
) -> Option<PilotEstimate> {
    let cov = pooled_cov(pilots)?;
    let replicates_to_detect = if cov > 0.0 {
        stats::samples_to_tell(difference / cov, CONFIDENCE, POWER)
    } else {
        Some(2)
    };
    let for_interval = stats::samples_for_half_width(cov, until.half_width, CONFIDENCE);
    let replicates_for_interval = for_interval.map(|runs| runs.max(REPLICATES_MIN));
    Some(PilotEstimate { cov, replicates_for_interval, replicates_to_detect })
}

/// Squares weighted by their degrees of freedom, as in the analysis of variance.
fn pooled_cov(pilots: &[Vec<f64>]) -> Option<f64> {
    let known = pilots.iter().filter_map(|values| Some((stats::cov(values)?, values.len() - 1)));
    let (squares, freedom) = known.fold((0.0, 0), |(squares, freedom), (cov, more)| {
        (squares + cov * cov * more as f64, freedom + more)
    });
    (freedom > 0).then(|| (squares / freedom as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_spec::plan::mt19937::LegacyRandom;

    const UNTIL: PrecisionTarget = PrecisionTarget { half_width: 0.02 };

    #[test]
    fn precision_is_written_as_a_share() {
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
        let standing = judge(response, values, UNTIL, replicates_max);
        let text =
            standing.half_width.map_or("-".into(), |width| format!("{:.1} %", 100.0 * width));
        assert_eq!((standing.next, text.as_str()), (next, half_width), "{values:?}");
    }

    #[test]
    fn runs_are_added_until_the_interval_is_narrow() {
        check(&[], 10, NextStep::Another, "-");
        check(&[90.0], 10, NextStep::Another, "-");
        check(&[90.0, 91.0], 10, NextStep::Another, "7.3 %");
        check(&[90.0, 91.0, 90.5], 10, NextStep::Another, "1.4 %");
        check(&[90.0, 91.0, 90.5, 90.2, 90.8], 10, NextStep::Enough, "0.6 %");
        check(&[90.0, 90.0, 90.0, 90.0, 90.0], 10, NextStep::Enough, "0.0 %");
    }

    #[test]
    fn a_limit_ends_it() {
        check(&[90.0, 91.0, 90.5], 3, NextStep::Enough, "1.4 %");
        check(&[90.0, 80.0, 85.0], 3, NextStep::OutOfReach, "15.1 %");
        check(&[90.0], 1, NextStep::OutOfReach, "-");
        // Even a third of this noise would take 20 runs.
        check(&[90.0, 40.0, 60.0], 10, NextStep::OutOfReach, "67.7 %");
        check(&[90.0, 40.0, 60.0], 1000, NextStep::Another, "67.7 %");
        check(&[0.0, 0.0], 10, NextStep::OutOfReach, "-");
    }

    /// The claim of [`REPLICATES_MIN`], at the noises where it is worst and where it is best.
    #[test]
    fn an_interval_that_was_waited_for_holds_the_truth_nearly_as_often() {
        let response = Metric::find("au_all_steps").unwrap();
        for (noise, from, to) in [(0.01, 94.0, 96.0), (0.02, 92.5, 95.5), (0.04, 91.0, 94.0)] {
            let mut random = LegacyRandom::new(1991);
            let mut held = 0;
            for _ in 0..2000 {
                let mut values = Vec::new();
                let middle = loop {
                    values.push(50.0 * (1.0 + noise * random.standard_normal()));
                    let standing = judge(response, &values, UNTIL, 10_000);
                    if standing.next == NextStep::Enough {
                        break standing.middle.unwrap();
                    }
                };
                held += u32::from(middle.low <= 50.0 && 50.0 <= middle.high);
            }
            let percent = f64::from(held) / 20.0;
            assert!((from..to).contains(&percent), "{noise}: {percent} %");
        }
    }

    /// Searches, of 4 000, that call a mean at 90 certain to be above, and those that call it certain to be below.
    fn false_certainties(mut value: impl FnMut(&mut LegacyRandom) -> f64) -> (u32, u32) {
        let (mut random, mut above, mut below) = (LegacyRandom::new(1983), 0, 0);
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

    /// The claim of [`sequential_mean`].
    #[test]
    fn looking_after_each_value_keeps_the_error() {
        for noise in [0.1, 2.0] {
            let (above, below) = false_certainties(|r| 90.0 + noise * r.standard_normal());
            assert!((100..200).contains(&above) && (100..200).contains(&below), "{above}, {below}");
        }
        // The interval of one look, taken after each, is wrong several times as often.
        let (mut random, mut wrong) = (LegacyRandom::new(1983), 0);
        for _ in 0..1000 {
            let values: Vec<f64> = (0..20).map(|_| random.standard_normal()).collect();
            let above = |n| stats::mean_interval(&values[..n], 0.95).is_some_and(|of| 0.0 < of.low);
            wrong += u32::from((2..=20).any(above));
        }
        assert!(100 < wrong, "{wrong}");
        // Utilisation near its end falls far and rises little: shortfalls that vary by factors.
        let skewed = |r: &mut LegacyRandom| {
            let sigma = 0.5_f64;
            100.0 - 10.0 * (sigma * r.standard_normal() - sigma * sigma / 2.0).exp()
        };
        let (above, below) = false_certainties(skewed);
        assert!((50..400).contains(&above) && (50..400).contains(&below), "{above}, {below}");
    }

    #[test]
    fn what_more_values_would_decide_is_told() {
        // Half widths at a deviation of 1: 8.98 of two, 4.41 of three, 3.11 of four.
        let values = [94.0, 95.0, 96.0];
        for (bound, in_all, expected) in
            [(90.0, 3, true), (91.0, 3, false), (91.0, 4, true), (95.0, 1000, false)]
        {
            assert_eq!(would_decide(&values, bound, in_all), expected, "{bound}, {in_all}");
        }
        assert!(!would_decide(&[95.0], 90.0, 9) && sequential_mean(&[95.0]).is_none());
        let of_two = sequential_mean(&[94.0, 96.0]).unwrap();
        assert_eq!(format!("{:.2} {:.2}", of_two.low, of_two.high), "82.29 107.71");
    }

    #[test]
    fn a_pilot_tells_how_many_it_will_take() {
        // A deviation of 2 % in each: t(5) · 2 % ÷ √6 = 2.1 %, t(6) · 2 % ÷ √7 = 1.8 %.
        let pilots = [vec![98.0, 100.0, 102.0], vec![49.0, 50.0, 51.0], vec![7.0]];
        let found = estimate(&pilots, UNTIL, 0.02).unwrap();
        assert_eq!(format!("{:.4}", found.cov), "0.0200");
        assert_eq!(
            (found.replicates_for_interval, found.replicates_to_detect),
            (Some(7), Some(17))
        );
        assert_eq!(estimate(&pilots[2..], UNTIL, 0.02), None);
        let quiet = estimate(&[vec![5.0, 5.0]], UNTIL, 0.02).unwrap();
        assert_eq!((quiet.replicates_for_interval, quiet.replicates_to_detect), (Some(5), Some(2)));
    }
}
