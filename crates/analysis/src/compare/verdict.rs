//! The tests of a comparison: the values of both sides for each response, their difference, and the verdict on it.

use super::{
    ComparedResponse, ComparisonVerdict, IntervalEstimate, Pairing, Question, Side, VerdictReason,
    replicate_of,
};
use crate::estimate::{ResponseScale, clamp_to_points};
use crate::precision::{ALPHA, CONFIDENCE, POWER, RUNS_MAX};
use feedrate_measure::doubt::compute_stretch;
use feedrate_measure::metric::{Better, DURATION_S, Metric, Unit};
use feedrate_measure::stats::{self, Difference, Interval, Margin, Samples};
use feedrate_results::run::Run;
use std::collections::BTreeMap;

/// One response of both sides, before its verdict.
pub(super) struct ComparedPair {
    response: &'static Metric,
    a: Side,
    b: Side,
    difference: IntervalEstimate,
    ratio: Option<IntervalEstimate>,
    /// The difference on the scale of the response; `None` if there are too few values, or if a value has no logarithm.
    tested: Option<Difference>,
    pairing: Pairing,
    stretch: ComputeStretch,
    /// A reason that rules out a test and therefore decides the verdict.
    obstacle: Option<VerdictReason>,
    /// The p-value of the difference, without correction for multiple tests.
    p: Option<f64>,
}

/// Measured ÷ configured compute time, mean over the runs of each side; 1 unless emulated accelerators were too slow.
#[derive(Clone, Copy)]
struct ComputeStretch {
    a: f64,
    b: f64,
}

/// Smallest difference of two stretches that can change a verdict, as a share: the measurement of compute times is no better.
const STRETCH_DIFFERENCE_MIN: f64 = 0.01;

impl ComparedPair {
    pub(super) fn new(
        response: &'static Metric,
        runs_a: &[&Run],
        runs_b: &[&Run],
        pairing: Pairing,
    ) -> Self {
        let replicates_a = runs_a.iter().map(|run| replicate_of(run));
        let replicates_b = runs_b.iter().map(|run| replicate_of(run));
        let are_same_replicates = replicates_a.eq(replicates_b);
        let a = Side::new(response, runs_a);
        let b = Side::new(response, runs_b);
        let (difference, log_ratio, pairing_obstacle) = match pairing {
            Pairing::None => (
                stats::welch_difference(&a.values, &b.values),
                stats::welch_log_ratio(&a.values, &b.values),
                None,
            ),
            Pairing::ByReplicate => match find_pairing_obstacle(&a, &b, are_same_replicates) {
                None => (
                    stats::paired_difference(&a.values, &b.values),
                    stats::paired_log_ratio(&a.values, &b.values),
                    None,
                ),
                obstacle => (None, None, obstacle),
            },
        };
        let tested = match ResponseScale::new(response) {
            ResponseScale::Percent => difference,
            ResponseScale::Logarithm => log_ratio,
        };
        let obstacle = match (a.values.len(), b.values.len()) {
            (count_a, count_b) if count_a.min(count_b) < 2 => {
                Some(VerdictReason::FewRuns { a: count_a, b: count_b })
            }
            _ if a.values.iter().chain(&b.values).all(|value| *value == a.values[0]) => {
                Some(VerdictReason::Equal(a.values[0]))
            }
            _ => pairing_obstacle.or(tested.is_none().then_some(VerdictReason::NotPositive)),
        };
        let mean_difference =
            stats::mean(&a.values).zip(stats::mean(&b.values)).map(|(a, b)| b - a);
        let difference_interval = difference.and_then(|difference| {
            let interval = difference.interval(CONFIDENCE)?;
            let is_percent = response.unit == Unit::Percent;
            Some(if is_percent { clamp_to_points(interval) } else { interval })
        });
        let means = a.mean.estimate.filter(|&a| a > 0.0).zip(b.mean.estimate);
        let ratio = log_ratio.map(|log| log.estimate.exp()).or(means.map(|(a, b)| b / a));
        let ratio_interval = log_ratio.and_then(|log| log.interval(CONFIDENCE)).map(Interval::exp);
        ComparedPair {
            response,
            difference: IntervalEstimate::new(difference_interval, mean_difference),
            ratio: ratio.map(|ratio| IntervalEstimate::new(ratio_interval, Some(ratio))),
            tested,
            pairing,
            stretch: ComputeStretch { a: mean_stretch(runs_a), b: mean_stretch(runs_b) },
            p: if obstacle.is_none() { tested.and_then(|difference| difference.p()) } else { None },
            obstacle,
            a,
            b,
        }
    }

    /// Sets a reason why the values do not show the speed of the storage, unless there is no test anyway. Equal values do not show it either.
    pub(super) fn with_distortion(mut self, distortion: Option<VerdictReason>) -> Self {
        let is_judged = matches!(self.obstacle, None | Some(VerdictReason::Equal(_)));
        if distortion.is_some() && is_judged {
            self.obstacle = distortion;
            self.p = None;
        }
        self
    }

    /// Sets the numbers of invalid runs. If the whole experiment has an obstacle, it replaces the obstacle of this response.
    pub(super) fn with_obstacle(
        mut self,
        obstacle: Option<VerdictReason>,
        invalid: [usize; 2],
    ) -> Self {
        [self.a.invalid, self.b.invalid] = invalid;
        if obstacle.is_some() {
            self.obstacle = obstacle;
            self.p = None;
        }
        self
    }
}

/// The reason why the runs of two sides do not form pairs; `None` if they do.
fn find_pairing_obstacle(a: &Side, b: &Side, are_same_replicates: bool) -> Option<VerdictReason> {
    if a.runs != b.runs {
        Some(VerdictReason::UnequalCounts { a: a.runs, b: b.runs })
    } else if !are_same_replicates {
        Some(VerdictReason::DifferentReplicates)
    } else {
        let have_all_values = [a, b].iter().all(|side| side.values.len() == side.runs);
        (!have_all_values).then_some(VerdictReason::MissingValues)
    }
}

fn mean_stretch(runs: &[&Run]) -> f64 {
    let stretches = runs.iter().map(|run| compute_stretch(&run.doubts).unwrap_or(1.0));
    stats::mean(&stretches.collect::<Vec<f64>>()).unwrap_or(1.0)
}

impl Side {
    pub(super) fn new(response: &Metric, runs: &[&Run]) -> Self {
        // DLIO writes a utilisation of 0 for runs without compute, which have none.
        let is_known = |value: &f64| !(response.is_utilisation() && *value == 0.0);
        let values: Vec<f64> =
            runs.iter().filter_map(|run| run.metric(response)).filter(is_known).collect();
        let provenance = runs.iter().filter_map(|run| run.provenance(response)).max();
        let mean = IntervalEstimate::new(
            response.average_interval(&values, CONFIDENCE),
            stats::mean(&values),
        );
        Side { runs: runs.len(), invalid: 0, values, provenance, mean }
    }
}

/// Determines the verdicts of all pairs.
///
/// The p-values of the differences of a response are corrected for multiple tests by Holm's method, as for findings. Whether all pairs are
/// within the margin is a single question, so each pair is tested at the full significance level (intersection-union test, Berger,
/// Technometrics 24, 1982).
pub(super) fn judge(
    pairs: Vec<(String, ComparedPair)>,
    question: Question,
) -> Vec<ComparedResponse> {
    let mut p_by_response: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, pair) in &pairs {
        p_by_response.entry(pair.response.id.name()).or_default().extend(pair.p);
    }
    let mut corrected: BTreeMap<_, _> =
        p_by_response.into_iter().map(|(name, p)| (name, stats::holm(&p).into_iter())).collect();
    let findings = pairs.into_iter().map(|(experiment, pair)| {
        let p = pair.p.and_then(|_| corrected.get_mut(pair.response.id.name())?.next());
        let reason = match verdict_reason(&pair, p, question) {
            reason if depends_on_stretch(&pair, &reason, question) => {
                let ComputeStretch { a, b } = pair.stretch;
                VerdictReason::ComputeStretched { a, b }
            }
            reason => reason,
        };
        let verdict = reason.verdict();
        let response = pair.response.id.name();
        let ComparedPair { a, b, difference, ratio, .. } = pair;
        ComparedResponse { experiment, response, a, b, difference, ratio, p, verdict, reason }
    });
    findings.collect()
}

/// The reason for the verdict on a pair. `p` is the corrected p-value of the difference.
fn verdict_reason(pair: &ComparedPair, p: Option<f64>, question: Question) -> VerdictReason {
    if let Some(obstacle) = &pair.obstacle {
        return obstacle.clone();
    }
    let Some((difference, p)) = pair.tested.zip(p) else {
        return VerdictReason::TooNoisy { runs: None };
    };
    let better = pair.response.better;
    let margin = margin(question, pair);
    let (answer_p, reason) = match question {
        Question::Within(share) => {
            let equivalence_p = stats::equivalence_p(&difference, margin.low, margin.high);
            (equivalence_p, VerdictReason::Within(share))
        }
        // This p-value assumes that B is worse by the margin.
        Question::NoWorseThan(share) => {
            let reversed = Difference { estimate: -difference.estimate, ..difference };
            let not_worse_p = match better {
                Better::Higher => difference.p_above(margin.low),
                Better::Lower => reversed.p_above(-margin.high),
            };
            (not_worse_p, VerdictReason::NotWorseBy(share))
        }
    };
    if answer_p.is_some_and(|p| p < ALPHA) {
        return reason;
    }
    if p < ALPHA {
        let change = match ResponseScale::new(pair.response) {
            ResponseScale::Percent => difference.estimate,
            ResponseScale::Logarithm => difference.estimate.exp_m1(),
        };
        let is_better = (change > 0.0) == (better == Better::Higher);
        return VerdictReason::Differs { is_better, size: change.abs() };
    }
    VerdictReason::TooNoisy { runs: runs_to_decide(pair, &difference, margin) }
}

/// Whether the verdict could be another one if no emulated step had taken longer than configured. A utilisation would then be lower by up to
/// the stretch, a rate higher, and the run shorter.
fn depends_on_stretch(pair: &ComparedPair, reason: &VerdictReason, question: Question) -> bool {
    let response = pair.response;
    let shift = match (pair.stretch.b / pair.stretch.a).ln() {
        log if response.is_utilisation() || response.id == DURATION_S.id => -log,
        log if response.unit.is_rate() => log,
        _ => return false,
    };
    let means = pair.a.mean.estimate.zip(pair.b.mean.estimate);
    let Some(difference) = means.map(|(a, b)| (b / a).ln()) else { return false };
    let change = (difference + shift).exp_m1();
    let is_yes = match (question, response.better) {
        (Question::Within(share), _) => change.abs() <= share,
        (Question::NoWorseThan(share), Better::Higher) => -share <= change,
        (Question::NoWorseThan(share), Better::Lower) => change <= share,
    };
    let could_change = match reason.verdict() {
        ComparisonVerdict::Same | ComparisonVerdict::NotWorse => !is_yes,
        ComparisonVerdict::Differs => is_yes,
        ComparisonVerdict::CannotTell => false,
    };
    STRETCH_DIFFERENCE_MIN < shift.abs() && could_change
}

/// The differences for which the answer to the question is yes, on the scale of the response. For percentages the margin is a share
/// of the mean of A, whose uncertainty is neglected.
fn margin(question: Question, pair: &ComparedPair) -> Margin {
    let (Question::Within(share) | Question::NoWorseThan(share)) = question;
    let (low, high) = match ResponseScale::new(pair.response) {
        ResponseScale::Percent => {
            let points = share * pair.a.mean.estimate.unwrap_or_default();
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

/// The number of runs per side that would answer the question if the true difference equals the observed difference. If that is within the
/// margin, this number of runs shows equivalence; otherwise, it detects the difference. `None` if the number is impractically large, or if
/// there are already enough runs.
fn runs_to_decide(pair: &ComparedPair, difference: &Difference, margin: Margin) -> Option<u64> {
    let count_a = pair.a.values.len() as f64;
    let count_b = pair.b.values.len() as f64;
    // `noise` is the standard deviation of the tested quantity, which is a value or the difference of a pair. `run_noise` is the standard
    // deviation of a single run.
    let (samples, noise, run_noise) = match pair.pairing {
        Pairing::None => {
            let noise = difference.standard_error / (1.0 / count_a + 1.0 / count_b).sqrt();
            (Samples::Independent, noise, noise)
        }
        Pairing::ByReplicate => {
            let noise = difference.standard_error * count_a.sqrt();
            (Samples::Paired, noise, noise / 2.0_f64.sqrt())
        }
    };
    let runs = if margin.low < difference.estimate && difference.estimate < margin.high {
        stats::runs_for_equivalence(margin, difference.estimate, noise, samples, ALPHA, POWER)
    } else {
        stats::runs_for_difference(difference.estimate / run_noise, CONFIDENCE, POWER)
    };
    runs.filter(|&runs| count_a.min(count_b) < runs as f64 && runs <= RUNS_MAX)
}
