//! Two sets of runs side by side: which experiments they share, how far they lie apart, and what can be said of it. Values in, findings out.
//!
//! Percentages are judged by the difference of B and A, rates and durations by their ratio, as findings are. "The same" is never concluded from a
//! difference that was not found.

pub mod matching;
mod sides;
mod verdict;

pub use sides::{MAIN_RESPONSES, Runs, find_shared_run, read_sides};

use verdict::{ComparedPair, judge};

use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{Metric, Provenance};
use feedrate_measure::stats::Interval;
use feedrate_results::index::LeftOut;
use feedrate_results::run::{Run, Settings};
use schemars::JsonSchema;
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
    ByReplicate,
}

/// All that was compared.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Settings that A and B differ in throughout.
    pub differs_in: Vec<Differing>,
    /// Each experiment and response.
    #[serde(skip)]
    pub findings: Vec<ComparedResponse>,
    /// Experiments that only one of them has.
    pub only_in_a: Vec<String>,
    /// Experiments that only one of them has.
    pub only_in_b: Vec<String>,
    /// Runs of A that are not compared.
    pub left_out_of_a: Vec<LeftOut>,
    /// Runs of B that are not compared.
    pub left_out_of_b: Vec<LeftOut>,
    /// Doubts of the runs of A, invalid ones among them; the worst first.
    pub doubts_of_a: Vec<SideDoubt>,
    /// The same of B.
    pub doubts_of_b: Vec<SideDoubt>,
    /// Circumstances that may be behind a difference beside what was set.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// One setting that is the same in all runs of A, the same in all of B, and not the same in both. `null`: it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "said above")]
pub struct Differing {
    pub setting: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// A doubt, and how many runs of a side have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "said above")]
pub struct SideDoubt {
    pub severity: Severity,
    pub name: String,
    pub runs: usize,
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub difference: IntervalEstimate,
    /// B ÷ A; `null` where a value is not positive.
    pub ratio: Option<IntervalEstimate>,
    /// Chance of a difference so large, of percentages in points and else of logarithms, if there were none; corrected for the number of experiments by
    /// Holm's method.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// The reason for it.
    #[serde(skip)]
    pub ground: Ground,
}

/// The runs of one side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Side {
    /// Runs that may be used.
    pub runs: usize,
    /// Runs that must not be used.
    pub invalid: usize,
    /// Those that have a value, by block, replicate and start.
    pub values: Vec<f64>,
    /// The furthest from measured of these values; `null` where there is none.
    pub provenance: Option<Provenance>,
    /// The mean, of rates and durations the geometric mean, with its 95 % interval.
    pub middle: IntervalEstimate,
}

/// A number, and its 95 % interval where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the words of every textbook")]
pub struct IntervalEstimate {
    pub estimate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl IntervalEstimate {
    /// From an interval; where there is none, from a number alone.
    fn new(interval: Option<Interval>, estimate: Option<f64>) -> Self {
        IntervalEstimate {
            estimate: interval.map(|of| of.estimate).or(estimate),
            low: interval.map(|of| of.low),
            high: interval.map(|of| of.high),
        }
    }
}

/// The verdict on two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
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
    /// Runs of a side must not be used.
    InvalidRuns { a: usize, b: usize },
    /// These are not the same, or not known to be, and nobody named them as the subject.
    NotComparable { differs: Vec<&'static str>, unknown: Vec<&'static str> },
    /// The interval lies within this share on either side.
    Within(f64),
    /// All runs of both have this value.
    Equal(f64),
    /// B is not worse by this share.
    NotWorseBy(f64),
    /// B is so far from A: points of a percentage, else a share.
    Differs { is_better: bool, by: f64 },
    /// So many runs of each would tell; `None` where nobody could make so many.
    TooNoisy { runs: Option<u64> },
    /// Fewer than two runs have a value on one side.
    FewRuns { a: usize, b: usize },
    /// Runs that should be pairs are none.
    UnequalCounts { a: usize, b: usize },
    /// Replicates or blocks of pairs are not the same.
    DifferentReplicates,
    /// Runs without a value leave others without a partner.
    MissingValues,
    /// A value that is not positive has no ratio.
    NotPositive,
}

impl Ground {
    fn verdict(&self) -> ComparisonVerdict {
        match self {
            Ground::Within(_) | Ground::Equal(_) => ComparisonVerdict::Same,
            Ground::NotWorseBy(_) => ComparisonVerdict::NotWorse,
            Ground::Differs { .. } => ComparisonVerdict::Differs,
            _ => ComparisonVerdict::CannotTell,
        }
    }
}

impl Comparison {
    /// Whether what was asked holds for each experiment, and none lacks its counterpart.
    pub fn is_met(&self) -> bool {
        let has_all = self.only_in_a.is_empty() && self.only_in_b.is_empty();
        let mut verdicts = self.findings.iter().map(|finding| finding.verdict);
        has_all
            && !self.findings.is_empty()
            && verdicts
                .all(|one| matches!(one, ComparisonVerdict::Same | ComparisonVerdict::NotWorse))
    }

    /// Whether it is not met only because the runs do not tell.
    pub fn is_undecided(&self) -> bool {
        let has_all = self.only_in_a.is_empty() && self.only_in_b.is_empty();
        let mut verdicts = self.findings.iter().map(|finding| finding.verdict);
        has_all && !self.is_met() && verdicts.all(|one| one != ComparisonVerdict::Differs)
    }
}

/// Compare the experiments that `a` and `b` share.
///
/// Settings in which all of A differ from all of B are what is compared; in all others experiments must agree. So A and B of one experiment each
/// are compared whatever they differ in, but there is no verdict where one of [`matching::KEYS`] differs that is not named in `across`.
pub fn compare(
    a: Runs,
    b: Runs,
    responses: &[&'static Metric],
    question: Question,
    pairing: Pairing,
    across: &[&str],
) -> Comparison {
    let [of_a, of_b] = [&a, &b].map(Runs::telling);
    let mut differs_in = differing(of_a, of_b, |run| &run.settings);
    let notes = notes(of_a, of_b);
    let apart: Vec<String> = differs_in.iter().map(|one| one.setting.clone()).collect();
    let apart: BTreeSet<&str> = apart.iter().map(String::as_str).collect();
    let knows = [of_a, of_b].map(|runs| runs.iter().all(Run::has_settings));
    // What files of others, or a loop that was watched, do not tell is not known to differ.
    differs_in.retain(|one| (one.a.is_some() || knows[0]) && (one.b.is_some() || knows[1]));
    // The same under two names differs in nothing.
    let all: Vec<&Run> = of_a.iter().chain(of_b).collect();
    let is_name = |one: &Differing| ["workload", "model"].contains(&one.setting.as_str());
    differs_in.retain(|one| !is_name(one) || matching::KEYS[0].all_match(&all) != Some(true));
    let groups = [grouped(&a, &apart), grouped(&b, &apart)];
    let varying = varying(groups.iter().flat_map(|groups| groups.keys()));
    let [only_in_a, only_in_b] = [0, 1].map(|these: usize| {
        let only = groups[these].keys().filter(|key| !groups[1 - these].contains_key(*key));
        only.map(|settings| experiment(settings, &varying)).collect()
    });
    let mut pairs = Vec::new();
    for (settings, of_a) in &groups[0] {
        let Some(of_b) = groups[1].get(settings) else { continue };
        let obstacle = obstacle(of_a, of_b, across);
        let pairs_of = responses.iter().map(|response| {
            let pair = ComparedPair::new(response, &of_a.runs, &of_b.runs, pairing);
            pair.with_obstacle(obstacle.clone(), [of_a.invalid.len(), of_b.invalid.len()])
        });
        pairs.extend(pairs_of.map(|pair| (experiment(settings, &varying), pair)));
    }
    Comparison {
        findings: judge(pairs, question),
        only_in_a,
        only_in_b,
        differs_in,
        doubts_of_a: a.doubts(),
        doubts_of_b: b.doubts(),
        left_out_of_a: a.left_out,
        left_out_of_b: b.left_out,
        notes,
    }
}

/// The runs of one experiment.
#[derive(Default)]
struct ExperimentRuns<'a> {
    runs: Vec<&'a Run>,
    /// Those that must not be used.
    invalid: Vec<&'a Run>,
}

impl<'a> ExperimentRuns<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().chain(&self.invalid).copied()
    }
}

fn grouped<'a>(side: &'a Runs, apart: &BTreeSet<&str>) -> BTreeMap<Settings, ExperimentRuns<'a>> {
    let mut groups: BTreeMap<Settings, ExperimentRuns> = BTreeMap::new();
    for (at, run) in side.all().enumerate() {
        let mut settings = run.settings.clone();
        settings.retain(|key, _| !apart.contains(key.as_str()));
        let of = groups.entry(settings).or_default();
        if at < side.runs.len() { of.runs.push(run) } else { of.invalid.push(run) }
    }
    groups.values_mut().for_each(|of| of.runs.sort_by_key(|run| turn(run)));
    groups
}

/// Find what stands against any verdict on an experiment.
fn obstacle(a: &ExperimentRuns, b: &ExperimentRuns, across: &[&str]) -> Option<Ground> {
    if !(a.invalid.is_empty() && b.invalid.is_empty()) {
        return Some(Ground::InvalidRuns { a: a.invalid.len(), b: b.invalid.len() });
    }
    let runs: Vec<&Run> = a.all().chain(b.all()).collect();
    let (mut differs, mut unknown) = (Vec::new(), Vec::new());
    for key in matching::KEYS.iter().filter(|key| !key.is_named(across)) {
        match key.all_match(&runs) {
            Some(true) => {}
            Some(false) => differs.push(key.name),
            None => unknown.push(key.name),
        }
    }
    let is_alike = differs.is_empty() && unknown.is_empty();
    (!is_alike).then_some(Ground::NotComparable { differs, unknown })
}

/// Block and replicate, where a study says them: runs of two experiments in the same turn were made side by side.
fn turn(run: &Run) -> (Option<u32>, Option<u32>) {
    run.study.as_ref().map_or((None, None), |study| (study.block, study.replicate))
}

/// Constant in all of A and in all of B, and not the same.
fn differing(a: &[Run], b: &[Run], of: fn(&Run) -> &Settings) -> Vec<Differing> {
    let keys: BTreeSet<&String> = a.iter().chain(b).flat_map(|run| of(run).keys()).collect();
    let differing = keys.into_iter().filter_map(|key| {
        let [a, b] = [a, b].map(|runs| {
            let value = of(runs.first()?).get(key);
            runs.iter().all(|run| of(run).get(key) == value).then(|| value.cloned())
        });
        let (a, b) = (a?, b?);
        (a != b).then(|| Differing { setting: key.clone(), a, b })
    });
    differing.collect()
}

fn notes(a: &[Run], b: &[Run]) -> Vec<Note> {
    let mut differing = differing(a, b, |run| &run.place);
    differing.retain(|one| one.a.is_some() && one.b.is_some());
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
    let mut keys: BTreeSet<String> = all.iter().flat_map(|one| one.keys().cloned()).collect();
    keys.retain(|key| all.windows(2).any(|two| two[0].get(key) != two[1].get(key)));
    keys
}

/// Workload, accelerators, and what sets it apart from the other experiments.
fn experiment(settings: &Settings, varying: &BTreeSet<String>) -> String {
    let mut parts: Vec<String> = settings.get("workload").cloned().into_iter().collect();
    parts.extend(
        settings
            .get("accelerators")
            .map(|number| format!("{number} accelerator{}", if number == "1" { "" } else { "s" })),
    );
    for key in varying.iter().filter(|key| !["workload", "accelerators"].contains(&key.as_str())) {
        let value = settings.get(key).map_or("none", String::as_str);
        parts.push(format!("{key}={value}"));
    }
    if parts.is_empty() { "all runs".into() } else { parts.join(", ") }
}
