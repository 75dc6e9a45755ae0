//! The tests of a comparison: the responses of both sides beside each other, and what their difference shows.

use super::{ComparedResponse, Ground, IntervalEstimate, Pairing, Question, Side, turn};
use crate::estimate::{ResponseScale, of_points};
use crate::precision::{ALPHA, CONFIDENCE, POWER, RUNS_MAX};
use feedrate_measure::metric::{Better, Metric, Unit};
use feedrate_measure::stats::{self, Difference, Interval, Margin, Samples};
use feedrate_results::run::Run;
use std::collections::BTreeMap;

/// One response of both sides, before anything is said of it.
pub(super) struct ComparedPair {
    response: &'static Metric,
    a: Side,
    b: Side,
    difference: IntervalEstimate,
    ratio: Option<IntervalEstimate>,
    /// On the scale of the response; `None` where there are too few values, or one is not on it.
    tested: Option<Difference>,
    pairing: Pairing,
    /// Ground that needs no test.
    obstacle: Option<Ground>,
    /// Not corrected yet.
    p: Option<f64>,
}

impl ComparedPair {
    pub(super) fn new(response: &'static Metric, a: &[&Run], b: &[&Run], pairing: Pairing) -> Self {
        let same_turns = a.iter().map(|run| turn(run)).eq(b.iter().map(|run| turn(run)));
        let (a, b) = (Side::new(response, a), Side::new(response, b));
        let unpaired = unpaired(&a, &b, same_turns);
        let (difference, log_ratio, unpaired) = match (pairing, unpaired) {
            (Pairing::None, _) => (
                stats::welch_difference(&a.values, &b.values),
                stats::welch_log_ratio(&a.values, &b.values),
                None,
            ),
            (Pairing::ByReplicate, None) => (
                stats::paired_difference(&a.values, &b.values),
                stats::paired_log_ratio(&a.values, &b.values),
                None,
            ),
            (Pairing::ByReplicate, unpaired) => (None, None, unpaired),
        };
        let tested = match ResponseScale::new(response) {
            ResponseScale::Percent => difference,
            ResponseScale::Logarithm => log_ratio,
        };
        let obstacle = match (a.values.len(), b.values.len()) {
            (few, of_b) if few.min(of_b) < 2 => Some(Ground::FewRuns { a: few, b: of_b }),
            _ if a.values.iter().chain(&b.values).all(|value| *value == a.values[0]) => {
                Some(Ground::Equal(a.values[0]))
            }
            _ => unpaired.or(tested.is_none().then_some(Ground::NotPositive)),
        };
        let means = stats::mean(&a.values).zip(stats::mean(&b.values)).map(|(a, b)| b - a);
        let middles = a.middle.estimate.filter(|&a| a > 0.0).zip(b.middle.estimate);
        let ratio = log_ratio.map(|log| log.estimate.exp()).or(middles.map(|(a, b)| b / a));
        let interval = log_ratio.and_then(|log| log.interval(CONFIDENCE)).map(Interval::exp);
        ComparedPair {
            response,
            difference: IntervalEstimate::new(
                difference
                    .and_then(|of| of.interval(CONFIDENCE))
                    .map(|of| if response.unit == Unit::Percent { of_points(of) } else { of }),
                means,
            ),
            ratio: ratio.map(|ratio| IntervalEstimate::new(interval, Some(ratio))),
            tested,
            pairing,
            p: if obstacle.is_none() { tested.and_then(|of| of.p()) } else { None },
            obstacle,
            a,
            b,
        }
    }
}

impl ComparedPair {
    /// The same without a verdict, where something stands against one.
    pub(super) fn with_obstacle(mut self, obstacle: Option<Ground>, invalid: [usize; 2]) -> Self {
        [self.a.invalid, self.b.invalid] = invalid;
        if obstacle.is_some() {
            (self.obstacle, self.p) = (obstacle, None);
        }
        self
    }
}

/// Find why the runs of two sides are no pairs; `None` where they are.
fn unpaired(a: &Side, b: &Side, same_turns: bool) -> Option<Ground> {
    if a.runs != b.runs {
        Some(Ground::UnequalCounts { a: a.runs, b: b.runs })
    } else if !same_turns {
        Some(Ground::DifferentReplicates)
    } else {
        let is_whole = [a, b].iter().all(|side| side.values.len() == side.runs);
        (!is_whole).then_some(Ground::MissingValues)
    }
}

impl Side {
    fn new(response: &Metric, runs: &[&Run]) -> Self {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.metric(response)).collect();
        let provenance = runs.iter().filter_map(|run| run.provenance(response)).max();
        let middle =
            IntervalEstimate::new(response.middle(&values, CONFIDENCE), stats::mean(&values));
        Side { runs: runs.len(), invalid: 0, values, provenance, middle }
    }
}

/// Judge all of them together. Differences of a response are corrected for their number, as those of findings are, so that none is found by trying often;
/// whether all hold within the margin is one question, for which each may be asked at the full chance (intersection-union, Berger, Technometrics 24, 1982).
pub(super) fn judge(
    pairs: Vec<(String, ComparedPair)>,
    question: Question,
) -> Vec<ComparedResponse> {
    let mut of_responses: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, pair) in &pairs {
        of_responses.entry(pair.response.id.name()).or_default().extend(pair.p);
    }
    let corrected = of_responses.into_iter().map(|(name, p)| (name, stats::holm(&p).into_iter()));
    let mut corrected: BTreeMap<_, _> = corrected.collect();
    let findings = pairs.into_iter().map(|(experiment, pair)| {
        let p = pair.p.and_then(|_| corrected.get_mut(pair.response.id.name())?.next());
        let ground = ground(&pair, p, question);
        let ComparedPair { response, a, b, difference, ratio, .. } = pair;
        let (response, verdict) = (response.id.name(), ground.verdict());
        ComparedResponse { experiment, response, a, b, difference, ratio, p, verdict, ground }
    });
    findings.collect()
}

fn ground(pair: &ComparedPair, p: Option<f64>, question: Question) -> Ground {
    if let Some(obstacle) = &pair.obstacle {
        return obstacle.clone();
    }
    let (Some(of), Some(p)) = (pair.tested, p) else { return Ground::TooNoisy { runs: None } };
    let better = pair.response.better;
    let margin = margin(question, pair);
    let (shown, ground) = match question {
        Question::Within(share) => {
            (stats::equivalence_p(&of, margin.low, margin.high), Ground::Within(share))
        }
        // Chance of B looking so good if it were worse by the margin.
        Question::NoWorseThan(share) => {
            let worse = Difference { estimate: -of.estimate, ..of };
            let shown = match better {
                Better::Higher => of.p_above(margin.low),
                Better::Lower => worse.p_above(-margin.high),
            };
            (shown, Ground::NotWorseBy(share))
        }
    };
    if shown.is_some_and(|p| p < ALPHA) {
        return ground;
    }
    if p < ALPHA {
        let change = match ResponseScale::new(pair.response) {
            ResponseScale::Percent => of.estimate,
            ResponseScale::Logarithm => of.estimate.exp_m1(),
        };
        let is_better = (change > 0.0) == (better == Better::Higher);
        return Ground::Differs { is_better, by: change.abs() };
    }
    Ground::TooNoisy { runs: runs_to_tell(pair, &of, margin) }
}

/// Differences that answer the question with yes, on the scale of the response. Of a percentage the share is that of the mean of A, which is taken as known.
fn margin(question: Question, pair: &ComparedPair) -> Margin {
    let (Question::Within(share) | Question::NoWorseThan(share)) = question;
    let (low, high) = match ResponseScale::new(pair.response) {
        ResponseScale::Percent => {
            let points = share * pair.a.middle.estimate.unwrap_or_default();
            (-points, points)
        }
        ResponseScale::Logarithm => ((1.0 - share).ln(), (1.0 + share).ln()),
    };
    match (question, pair.response.better) {
        (Question::Within(_), _) => Margin { low, high },
        (Question::NoWorseThan(_), Better::Higher) => Margin { low, high: f64::INFINITY },
        (Question::NoWorseThan(_), Better::Lower) => Margin { low: f64::NEG_INFINITY, high },
    }
}

/// Runs of each with which the difference, if it is what it looks, is shown to lie within the margin, or where it lies outside is found. `None` where nobody could make so many.
fn runs_to_tell(pair: &ComparedPair, of: &Difference, margin: Margin) -> Option<u64> {
    let (a, b) = (pair.a.values.len() as f64, pair.b.values.len() as f64);
    // Deviation of a value, or of the difference of a pair; and of one run.
    let (samples, noise, noise_of_run) = match pair.pairing {
        Pairing::None => {
            let noise = of.standard_error / (1.0 / a + 1.0 / b).sqrt();
            (Samples::Two, noise, noise)
        }
        Pairing::ByReplicate => {
            let noise = of.standard_error * a.sqrt();
            (Samples::Pairs, noise, noise / 2.0_f64.sqrt())
        }
    };
    let runs = if margin.low < of.estimate && of.estimate < margin.high {
        stats::samples_within(margin, of.estimate, noise, samples, ALPHA, POWER)
    } else {
        stats::samples_to_tell(of.estimate / noise_of_run, CONFIDENCE, POWER)
    };
    runs.filter(|&runs| a.min(b) < runs as f64 && runs <= RUNS_MAX)
}
