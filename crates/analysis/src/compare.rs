//! Two sets of runs side by side: which experiments they share, how far they lie apart, and what can be said of it. Values in, findings out.
//!
//! Everything is judged by the ratio of B to A, on the scale of logarithms. "The same" is never concluded from a difference that was not found.

mod sides;

pub use sides::{Runs, main_responses, sides};

use crate::precision::{ALPHA, CONFIDENCE, POWER};
use feedrate_measure::metric::{Better, Metric, Provenance};
use feedrate_measure::stats::{self, Difference, Interval, Margin, Samples};
use feedrate_results::index::LeftOut;
use feedrate_results::run::{Run, Settings};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The question that a comparison answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Are they the same within this share?
    Within(f64),
    /// Is B not worse by more than this share?
    NoWorseThan(f64),
}

/// How runs of A and B belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Not at all.
    None,
    /// By block and replicate of their study; of other runs the first of A and the first of B, and so on, in the order they were started.
    InTurns,
}

/// All that was compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Settings that A and B differ in throughout.
    pub differs_in: Vec<Differing>,
    /// Each experiment and response.
    pub findings: Vec<ComparedResponse>,
    /// Experiments that only one of them has.
    pub only_in_a: Vec<String>,
    /// Experiments that only one of them has.
    pub only_in_b: Vec<String>,
    /// Runs of A that are not compared.
    pub left_out_of_a: Vec<LeftOut>,
    /// Runs of B that are not compared.
    pub left_out_of_b: Vec<LeftOut>,
    /// Circumstances that may be behind a difference beside what was set.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// One setting that is the same in all runs of A, the same in all of B, and not the same in both. `null`: it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "said above")]
pub struct Differing {
    pub setting: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Something about where runs were made that may be behind a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub enum Note {
    /// It is not the same in A and in B.
    Differs(Differing),
    /// It is not the same in all runs of this side.
    Varies { side: &'static str, what: String },
}

/// One response of one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedResponse {
    /// The experiment.
    pub experiment: String,
    /// name.
    pub response: &'static str,
    /// The runs of A.
    pub a: Side,
    /// The runs of B.
    pub b: Side,
    /// B − A; without ends where there are too few runs.
    pub difference: Estimate,
    /// B ÷ A; `null` where a value is not positive.
    pub ratio: Option<Estimate>,
    /// Chance of a ratio so far from 1 if there were none; corrected for the number of findings by Holm's method.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for it.
    #[serde(skip)]
    pub ground: Ground,
}

/// The runs of one side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Runs.
    pub runs: usize,
    /// Those that have a value, by block, replicate and start.
    pub values: Vec<f64>,
    /// The furthest from measured of these values; `null` where there is none.
    pub provenance: Option<Provenance>,
    /// The mean, of rates and durations the geometric mean, with its 95 % interval.
    pub middle: Estimate,
}

/// A number, and its 95 % interval where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words of every textbook")]
pub struct Estimate {
    pub estimate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The verdict on two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same within the margin.
    Same,
    /// B is not worse by more than the margin.
    NotWorse,
    /// They differ, and may do so by more than the margin.
    Differs,
    /// The runs do not tell.
    CannotTell,
}

/// The ground of a verdict.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub enum Ground {
    /// The interval lies within this share on either side.
    Within(f64),
    /// B is not worse by this share.
    NotWorseBy(f64),
    /// B is so far from A.
    Differs { is_better: bool, by: f64 },
    /// So many runs of each would tell; `None` where nobody could make so many.
    TooNoisy { runs: Option<u64> },
    /// Fewer than two runs have a value on one side.
    FewRuns { a: usize, b: usize },
    /// Runs that should be pairs are none.
    NoPairs { a: usize, b: usize },
    /// Replicates or blocks of pairs are not the same.
    OtherTurns,
    /// Runs without a value leave others without a partner.
    NoPartners,
    /// A value that is not positive has no ratio.
    NotPositive,
}

impl Ground {
    fn verdict(&self) -> Verdict {
        match self {
            Ground::Within(_) => Verdict::Same,
            Ground::NotWorseBy(_) => Verdict::NotWorse,
            Ground::Differs { .. } => Verdict::Differs,
            _ => Verdict::CannotTell,
        }
    }
}

impl Comparison {
    /// Whether what was asked holds for each experiment, and none lacks its counterpart.
    pub fn is_met(&self) -> bool {
        let is_met = |finding: &ComparedResponse| {
            matches!(finding.verdict, Verdict::Same | Verdict::NotWorse)
        };
        let all = self.only_in_a.is_empty() && self.only_in_b.is_empty();
        all && !self.findings.is_empty() && self.findings.iter().all(is_met)
    }
}

/// Compare the experiments that `a` and `b` share.
///
/// Settings in which all of A differ from all of B are what is compared; in all others experiments must agree. So A and B of one experiment each
/// are compared whatever they differ in.
pub fn compare(
    a: Runs,
    b: Runs,
    responses: &[&'static Metric],
    question: Question,
    pairing: Pairing,
) -> Comparison {
    let differs_in = differing(&a.runs, &b.runs, |run| &run.settings);
    let notes = notes(&a.runs, &b.runs);
    let apart: BTreeSet<&str> = differs_in.iter().map(|one| one.setting.as_str()).collect();
    let groups = [grouped(&a.runs, &apart), grouped(&b.runs, &apart)];
    let varying = varying(groups.iter().flat_map(|groups| groups.keys()));
    let name = |settings: &Settings| experiment(settings, &varying);
    let only_in = |these: usize| {
        let others = &groups[1 - these];
        groups[these].keys().filter(|key| !others.contains_key(*key)).map(name).collect()
    };
    let mut findings = Vec::new();
    for (settings, of_a) in &groups[0] {
        let Some(of_b) = groups[1].get(settings) else { continue };
        let experiment = name(settings);
        findings.extend(responses.iter().map(|response| {
            let pair = Pair::of(response, of_a, of_b, pairing);
            (experiment.clone(), pair)
        }));
    }
    Comparison {
        findings: judged(findings, question),
        only_in_a: only_in(0),
        only_in_b: only_in(1),
        differs_in,
        left_out_of_a: a.left_out,
        left_out_of_b: b.left_out,
        notes,
    }
}

fn grouped<'a>(runs: &'a [Run], apart: &BTreeSet<&str>) -> BTreeMap<Settings, Vec<&'a Run>> {
    let mut groups: BTreeMap<Settings, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        let mut settings = run.settings.clone();
        settings.retain(|key, _| !apart.contains(key.as_str()));
        groups.entry(settings).or_default().push(run);
    }
    // Those of one turn stay in the order of their start.
    groups.values_mut().for_each(|runs| runs.sort_by_key(|run| turn(run)));
    groups
}

/// Block and replicate, where a study says them: runs of two experiments in the same turn were made side by side.
fn turn(run: &Run) -> (Option<u32>, Option<u32>) {
    run.study.as_ref().map_or((None, None), |study| (study.block, study.replicate))
}

/// Constant in all of A and in all of B, and not the same.
fn differing(a: &[Run], b: &[Run], of: fn(&Run) -> &Settings) -> Vec<Differing> {
    let keys: BTreeSet<&String> = a.iter().chain(b).flat_map(|run| of(run).keys()).collect();
    let constant = |runs: &[Run], key: &str| {
        let first = runs.first()?;
        let value = of(first).get(key);
        runs.iter().all(|run| of(run).get(key) == value).then(|| value.cloned())
    };
    let differing = keys.into_iter().filter_map(|key| {
        let (a, b) = (constant(a, key)?, constant(b, key)?);
        (a != b).then(|| Differing { setting: key.clone(), a, b })
    });
    differing.collect()
}

fn notes(a: &[Run], b: &[Run]) -> Vec<Note> {
    let differing = differing(a, b, |run| &run.place);
    let mut notes: Vec<Note> = differing.into_iter().map(Note::Differs).collect();
    for (side, runs) in [("A", a), ("B", b)] {
        let varying = varying(runs.iter().map(|run| &run.place)).into_iter();
        notes.extend(varying.map(|what| Note::Varies { side, what }));
    }
    notes
}

/// Keys whose values are not the same in all.
fn varying<'a>(all: impl Iterator<Item = &'a Settings>) -> BTreeSet<String> {
    let all: Vec<&Settings> = all.collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(|settings| settings.keys()).collect();
    let first = all.first();
    let varies = |key: &&String| {
        all.iter().any(|one| one.get(*key) != first.and_then(|first| first.get(*key)))
    };
    keys.into_iter().filter(varies).cloned().collect()
}

/// Workload, accelerators, and what sets it apart from the other experiments.
fn experiment(settings: &Settings, varying: &BTreeSet<String>) -> String {
    let value = |key: &str| settings.get(key).map_or("none", String::as_str);
    let mut name = settings.get("workload").cloned();
    let mut add = |part: String| match &mut name {
        Some(name) => name.push_str(&format!(", {part}")),
        None => name = Some(part),
    };
    if let Some(number) = settings.get("accelerators") {
        add(format!("{number} accelerator{}", if number == "1" { "" } else { "s" }));
    }
    for key in varying.iter().filter(|key| !["workload", "accelerators"].contains(&key.as_str())) {
        add(format!("{key}={}", value(key)));
    }
    name.unwrap_or("all runs".into())
}

/// One response of both sides, before anything is said of it.
struct Pair {
    response: &'static Metric,
    a: Side,
    b: Side,
    difference: Estimate,
    /// Difference of logarithms; `None` where there are too few values, or one is not positive.
    log_ratio: Option<Difference>,
    ratio: Option<f64>,
    pairing: Pairing,
    /// The reason why runs that should be pairs are none.
    unpaired: Option<Ground>,
}

impl Pair {
    fn of(response: &'static Metric, a: &[&Run], b: &[&Run], pairing: Pairing) -> Self {
        let turns = |runs: &[&Run]| runs.iter().map(|run| turn(run)).collect::<Vec<_>>();
        let same_turns = turns(a) == turns(b);
        let (a, b) = (Side::of(response, a), Side::of(response, b));
        let unpaired = match pairing {
            Pairing::None => None,
            Pairing::InTurns => unpaired(&a, &b, same_turns),
        };
        let (difference, log_ratio) = match pairing {
            Pairing::None => (
                stats::welch_difference(&a.values, &b.values),
                stats::welch_log_ratio(&a.values, &b.values),
            ),
            Pairing::InTurns if unpaired.is_none() => (
                stats::paired_difference(&a.values, &b.values),
                stats::paired_log_ratio(&a.values, &b.values),
            ),
            Pairing::InTurns => (None, None),
        };
        let means = || Some(stats::mean(&b.values)? - stats::mean(&a.values)?);
        let difference = match difference.and_then(|difference| difference.interval(CONFIDENCE)) {
            Some(interval) => Estimate::from(interval),
            None => Estimate { estimate: means(), low: None, high: None },
        };
        let middles =
            || Some(b.middle.estimate? / a.middle.estimate.filter(|&middle| middle > 0.0)?);
        let ratio = log_ratio.map(|log| log.estimate.exp()).or_else(middles);
        Pair { response, a, b, difference, log_ratio, ratio, pairing, unpaired }
    }

    /// Find what stands in the way of a verdict.
    fn obstacle(&self) -> Option<Ground> {
        let (a, b) = (self.a.values.len(), self.b.values.len());
        if a.min(b) < 2 {
            return Some(Ground::FewRuns { a, b });
        }
        let not_positive = self.log_ratio.is_none().then_some(Ground::NotPositive);
        self.unpaired.clone().or(not_positive)
    }
}

/// Find why the runs of two sides are no pairs; `None` where they are.
fn unpaired(a: &Side, b: &Side, same_turns: bool) -> Option<Ground> {
    let is_whole = |side: &Side| side.values.len() == side.runs;
    if a.runs != b.runs {
        Some(Ground::NoPairs { a: a.runs, b: b.runs })
    } else if !same_turns {
        Some(Ground::OtherTurns)
    } else if !is_whole(a) || !is_whole(b) {
        Some(Ground::NoPartners)
    } else {
        None
    }
}

impl Side {
    fn of(response: &Metric, runs: &[&Run]) -> Self {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.metric(response)).collect();
        let middle = match response.middle(&values, CONFIDENCE) {
            Some(interval) => Estimate::from(interval),
            None => Estimate { estimate: stats::mean(&values), low: None, high: None },
        };
        let provenance = runs.iter().filter_map(|run| run.provenance(response)).max();
        Side { runs: runs.len(), values, provenance, middle }
    }
}

impl From<Interval> for Estimate {
    fn from(of: Interval) -> Self {
        Estimate { estimate: Some(of.estimate), low: Some(of.low), high: Some(of.high) }
    }
}

/// Judge all of them together. Differences are corrected for their number, so that none is found by trying often; whether all hold
/// within the margin is one question, for which each may be asked at the full chance (intersection-union, Berger, Technometrics 24, 1982).
fn judged(pairs: Vec<(String, Pair)>, question: Question) -> Vec<ComparedResponse> {
    let known = |pair: &Pair| pair.log_ratio.filter(|_| pair.obstacle().is_none())?.p();
    let p: Vec<f64> = pairs.iter().filter_map(|(_, pair)| known(pair)).collect();
    let mut corrected = stats::holm(&p).into_iter();
    let findings = pairs.into_iter().map(|(experiment, pair)| {
        let p = known(&pair).and_then(|_| corrected.next());
        let ground = ground(&pair, p, question);
        let interval = pair.log_ratio.and_then(|log| log.interval(CONFIDENCE));
        let ratio = match interval {
            Some(interval) => Some(Estimate::from(interval.exp())),
            None => {
                pair.ratio.map(|ratio| Estimate { estimate: Some(ratio), low: None, high: None })
            }
        };
        let Pair { response, a, b, difference, .. } = pair;
        ComparedResponse {
            experiment,
            response: response.id.name(),
            a,
            b,
            difference,
            ratio,
            p,
            verdict: ground.verdict(),
            ground,
        }
    });
    findings.collect()
}

fn ground(pair: &Pair, p: Option<f64>, question: Question) -> Ground {
    if let Some(obstacle) = pair.obstacle() {
        return obstacle;
    }
    let (Some(log), Some(p)) = (pair.log_ratio, p) else { return Ground::TooNoisy { runs: None } };
    let (shown, ground) = match question {
        Question::Within(margin) => {
            let (low, high) = ((1.0 - margin).ln(), (1.0 + margin).ln());
            (stats::equivalence_p(&log, low, high), Ground::Within(margin))
        }
        Question::NoWorseThan(margin) => {
            (not_worse_p(pair.response.better, &log, margin), Ground::NotWorseBy(margin))
        }
    };
    if shown.is_some_and(|p| p < ALPHA) {
        return ground;
    }
    if p < ALPHA {
        let change = log.estimate.exp_m1();
        let is_better = (change > 0.0) == (pair.response.better == Better::Higher);
        return Ground::Differs { is_better, by: change.abs() };
    }
    Ground::TooNoisy { runs: runs_to_tell(pair, &log, question) }
}

/// Chance of B looking so good if it were worse by `margin`.
fn not_worse_p(better: Better, log: &Difference, margin: f64) -> Option<f64> {
    match better {
        Better::Higher => log.p_above((1.0 - margin).ln()),
        Better::Lower => {
            let turned = Difference { estimate: -log.estimate, ..*log };
            turned.p_above(-(1.0 + margin).ln())
        }
    }
}

/// Runs of each with which the difference, if it is what it looks, is shown to lie within the margin, or where it lies outside is found. `None` where nobody could make so many.
fn runs_to_tell(pair: &Pair, log: &Difference, question: Question) -> Option<u64> {
    let (a, b) = (pair.a.values.len() as f64, pair.b.values.len() as f64);
    let (samples, noise) = match pair.pairing {
        Pairing::None => (Samples::Two, log.standard_error / (1.0 / a + 1.0 / b).sqrt()),
        Pairing::InTurns => (Samples::Pairs, log.standard_error * a.sqrt()),
    };
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    let margin = match (question, pair.response.better) {
        (Question::Within(share), _) => {
            Margin { low: (1.0 - share).ln(), high: (1.0 + share).ln() }
        }
        (Question::NoWorseThan(share), Better::Higher) => Margin { low: (1.0 - share).ln(), high },
        (Question::NoWorseThan(share), Better::Lower) => Margin { low, high: (1.0 + share).ln() },
    };
    let runs = if margin.low < log.estimate && log.estimate < margin.high {
        stats::samples_within(margin, (log.estimate, noise), samples, (ALPHA, POWER))
    } else {
        let of_one = match samples {
            Samples::Two => noise,
            Samples::Pairs => noise / 2.0_f64.sqrt(),
        };
        stats::samples_to_tell(log.estimate / of_one, CONFIDENCE, POWER)
    };
    runs.filter(|&runs| a.min(b) < runs as f64)
}
