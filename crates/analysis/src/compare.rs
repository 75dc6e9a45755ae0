//! Compares two sets of runs: which experiments they share, how large the differences are, and what can be concluded from them.
//!
//! Percentages are compared by the difference B − A, rates and durations by the ratio B ÷ A, as in findings. The absence of a
//! significant difference never leads to the verdict "same".

pub mod matching;
mod sides;
mod verdict;

pub use sides::{MAIN_RESPONSES, Runs, find_shared_run, read_sides};

use verdict::{ComparedPair, judge};

use crate::answer::{Answer, UnknownBecause};
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
    /// Are A and B the same within this share?
    Within(f64),
    /// Is B at most this share worse than A?
    NoWorseThan(f64),
}

/// How runs of A and B are assigned to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Runs are not paired.
    None,
    /// Runs are paired by block and replicate of their study; runs without a study in the order of their start.
    ByReplicate,
}

/// The result of a comparison.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Settings in which all runs of A differ from all runs of B.
    pub differs_in: Vec<DifferingSetting>,
    /// One entry for each shared experiment and response.
    #[serde(skip)]
    pub findings: Vec<ComparedResponse>,
    /// Experiments that only A has.
    pub only_in_a: Vec<String>,
    /// Experiments that only B has.
    pub only_in_b: Vec<String>,
    /// The values of these experiments, which have no counterpart.
    pub unmatched: Vec<UnmatchedExperiment>,
    /// Runs of A that are not compared.
    pub left_out_of_a: Vec<LeftOut>,
    /// Runs of B that are not compared.
    pub left_out_of_b: Vec<LeftOut>,
    /// Doubts about the runs of A, including invalid runs; most severe first.
    pub doubts_of_a: Vec<SideDoubt>,
    /// Doubts about the runs of B, including invalid runs; most severe first.
    pub doubts_of_b: Vec<SideDoubt>,
    /// Circumstances other than settings that may explain a difference.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// A setting with one value in all runs of A and another in all runs of B; `null` if a side does not have the setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Differing")]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct DifferingSetting {
    pub setting: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// A doubt, and the number of runs of a side that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct SideDoubt {
    pub severity: Severity,
    pub name: String,
    pub runs: usize,
}

/// A circumstance of the runs, such as their machine, that may explain a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub enum Note {
    /// The circumstance differs between A and B.
    Differs(DifferingSetting),
    /// The circumstance differs between the runs of one side.
    Varies { side: &'static str, setting: String },
}

/// One response of one experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ComparedResponse {
    /// The experiment.
    pub experiment: String,
    /// Name of the metric.
    pub response: &'static str,
    /// The runs of A.
    pub a: Side,
    /// The runs of B.
    pub b: Side,
    /// B − A; without interval if there are too few runs.
    pub difference: IntervalEstimate,
    /// B ÷ A; `null` if a value is not positive.
    pub ratio: Option<IntervalEstimate>,
    /// Probability of a difference of at least this size if there were none, corrected for the number of experiments by Holm's
    /// method. Percentages are tested in points, other responses as logarithms.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// The reason for the verdict.
    #[serde(skip)]
    pub reason: VerdictReason,
}

/// An experiment that only one side has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnmatchedExperiment {
    /// The side: `A` or `B`.
    pub side: &'static str,
    /// The experiment.
    pub experiment: String,
    /// Its values.
    pub responses: Vec<UnmatchedResponse>,
}

/// One response of an experiment that only one side has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnmatchedResponse {
    /// Name of the metric.
    pub response: &'static str,
    /// The runs.
    pub runs: Side,
}

/// The runs of one side of an experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Side {
    /// Number of usable runs.
    pub runs: usize,
    /// Number of runs that must not be used.
    pub invalid: usize,
    /// Values of the usable runs, as far as known, ordered by block, replicate and start.
    pub values: Vec<f64>,
    /// The least reliable provenance of these values; `null` if there are none.
    pub provenance: Option<Provenance>,
    /// The mean with its 95 % interval; for rates and durations the geometric mean.
    #[serde(rename = "middle")]
    pub mean: IntervalEstimate,
}

/// A number with its 95 % interval, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the terms are standard")]
pub struct IntervalEstimate {
    pub estimate: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl IntervalEstimate {
    /// Creates an estimate from an interval, or from `estimate` alone if there is no interval.
    fn new(interval: Option<Interval>, estimate: Option<f64>) -> Self {
        IntervalEstimate {
            estimate: interval.map(|interval| interval.estimate).or(estimate),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        }
    }
}

/// The verdict on one response of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// A and B are the same within the margin.
    Same,
    /// B is not worse than A by more than the margin.
    NotWorse,
    /// A and B differ, possibly by more than the margin.
    Differs,
    /// The runs do not decide the question.
    CannotTell,
}

/// The reason for a verdict.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub enum VerdictReason {
    /// Runs of a side must not be used.
    InvalidRuns { a: usize, b: usize },
    /// These settings differ, or are not known to be equal, and are not the subject of the comparison.
    NotComparable { differs: Vec<&'static str>, unknown: Vec<&'static str> },
    /// The difference is within this share.
    Within(f64),
    /// All runs of both sides have this value.
    Equal(f64),
    /// B is not worse than A by this share.
    NotWorseBy(f64),
    /// B differs from A by `size`: points of a percentage, otherwise a share.
    Differs { is_better: bool, size: f64 },
    /// This number of runs per side would decide; `None` if it is impractically large.
    TooNoisy { runs: Option<u64> },
    /// Fewer than two runs of a side have a value.
    FewRuns { a: usize, b: usize },
    /// Runs should be paired but their numbers differ.
    UnequalCounts { a: usize, b: usize },
    /// Runs should be paired but are of different replicates or blocks.
    DifferentReplicates,
    /// Runs should be paired but some have no value.
    MissingValues,
    /// A value is not positive, so there is no ratio.
    NotPositive,
    /// Runs do not show the speed of the storage, for these reasons.
    Distorted { a: Vec<UnknownBecause>, b: Vec<UnknownBecause> },
    /// Emulated steps took longer than configured, by these factors, and the verdict depends on that.
    ComputeStretched { a: f64, b: f64 },
}

impl VerdictReason {
    fn verdict(&self) -> ComparisonVerdict {
        match self {
            VerdictReason::Within(_) | VerdictReason::Equal(_) => ComparisonVerdict::Same,
            VerdictReason::NotWorseBy(_) => ComparisonVerdict::NotWorse,
            VerdictReason::Differs { .. } => ComparisonVerdict::Differs,
            _ => ComparisonVerdict::CannotTell,
        }
    }
}

impl Comparison {
    /// Whether the answer to the question is yes for every experiment, and both sides have the same experiments.
    pub fn is_met(&self) -> bool {
        self.has_same_experiments()
            && !self.findings.is_empty()
            && self.findings.iter().all(|finding| {
                matches!(finding.verdict, ComparisonVerdict::Same | ComparisonVerdict::NotWorse)
            })
    }

    /// Whether the runs leave the question open: the answer is not yes, but no experiment differs.
    pub fn is_undecided(&self) -> bool {
        self.has_same_experiments()
            && !self.is_met()
            && self.findings.iter().all(|finding| finding.verdict != ComparisonVerdict::Differs)
    }

    fn has_same_experiments(&self) -> bool {
        self.only_in_a.is_empty() && self.only_in_b.is_empty()
    }
}

/// Compares the experiments that `a` and `b` share.
///
/// The settings in which all runs of A differ from all runs of B are the subject of the comparison. Experiments are compared if all other
/// settings agree, so a single experiment of A and a single one of B can always be compared. There is no verdict if one of
/// [`matching::KEYS`] differs and `across` does not name it.
pub fn compare(
    a: Runs,
    b: Runs,
    responses: &[&'static Metric],
    question: Question,
    pairing: Pairing,
    across: &[&str],
) -> Comparison {
    let runs_a = a.representative();
    let runs_b = b.representative();
    let mut differs_in = differing_settings(runs_a, runs_b, |run| &run.settings);
    let notes = notes(runs_a, runs_b);
    let subject: BTreeSet<String> =
        differs_in.iter().map(|differing| differing.setting.clone()).collect();
    // A setting that is missing because results of other programs or watched loops do not record it may be the same.
    let records_a = runs_a.iter().all(Run::has_settings);
    let records_b = runs_b.iter().all(Run::has_settings);
    differs_in.retain(|differing| {
        (differing.a.is_some() || records_a) && (differing.b.is_some() || records_b)
    });
    // Two names of the same dataset are not a difference.
    let all: Vec<&Run> = runs_a.iter().chain(runs_b).collect();
    let is_same_workload = matching::KEYS[0].all_match(&all) == Some(true);
    let is_name =
        |differing: &DifferingSetting| ["workload", "model"].contains(&differing.setting.as_str());
    differs_in.retain(|differing| !(is_name(differing) && is_same_workload));
    let groups_a = group_by_experiment(&a, &subject);
    let groups_b = group_by_experiment(&b, &subject);
    let varying = varying_keys(groups_a.keys().chain(groups_b.keys()));
    let only_in = |side: &'static str, groups: &ExperimentGroups, others: &ExperimentGroups| {
        let alone = groups.iter().filter(|(settings, _)| !others.contains_key(*settings));
        let alone = alone.map(|(settings, group)| UnmatchedExperiment {
            side,
            experiment: experiment_name(settings, &varying),
            responses: responses
                .iter()
                .map(|response| UnmatchedResponse {
                    response: response.id.name(),
                    runs: Side { invalid: group.invalid.len(), ..Side::new(response, &group.runs) },
                })
                .collect(),
        });
        alone.collect::<Vec<_>>()
    };
    let only_in_a = only_in("A", &groups_a, &groups_b);
    let only_in_b = only_in("B", &groups_b, &groups_a);
    let names = |alone: &[UnmatchedExperiment]| {
        alone.iter().map(|alone| alone.experiment.clone()).collect()
    };
    let mut pairs = Vec::new();
    for (settings, group_a) in &groups_a {
        let Some(group_b) = groups_b.get(settings) else { continue };
        let obstacle = find_obstacle(group_a, group_b, across);
        for response in responses {
            let pair = ComparedPair::new(response, &group_a.runs, &group_b.runs, pairing);
            let invalid = [group_a.invalid.len(), group_b.invalid.len()];
            let distortion = find_distortion(group_a, group_b);
            let judged_pair =
                pair.with_distortion(distortion).with_obstacle(obstacle.clone(), invalid);
            pairs.push((experiment_name(settings, &varying), judged_pair));
        }
    }
    Comparison {
        findings: judge(pairs, question),
        only_in_a: names(&only_in_a),
        only_in_b: names(&only_in_b),
        unmatched: [only_in_a, only_in_b].concat(),
        differs_in,
        doubts_of_a: a.doubts(),
        doubts_of_b: b.doubts(),
        left_out_of_a: a.left_out,
        left_out_of_b: b.left_out,
        notes,
    }
}

/// The runs of one experiment on one side.
#[derive(Default)]
struct ExperimentRuns<'a> {
    /// Usable runs.
    runs: Vec<&'a Run>,
    /// Runs that must not be used.
    invalid: Vec<&'a Run>,
}

/// Experiments of one side by the settings that do not belong to the subject of the comparison.
type ExperimentGroups<'a> = BTreeMap<Settings, ExperimentRuns<'a>>;

impl<'a> ExperimentRuns<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().chain(&self.invalid).copied()
    }
}

fn group_by_experiment<'a>(side: &'a Runs, subject: &BTreeSet<String>) -> ExperimentGroups<'a> {
    let experiment_settings = |run: &Run| {
        let mut settings = run.settings.clone();
        settings.retain(|key, _| !subject.contains(key));
        settings
    };
    let mut groups = ExperimentGroups::new();
    for run in &side.runs {
        groups.entry(experiment_settings(run)).or_default().runs.push(run);
    }
    for run in &side.invalid {
        groups.entry(experiment_settings(run)).or_default().invalid.push(run);
    }
    groups.values_mut().for_each(|group| group.runs.sort_by_key(|run| replicate_of(run)));
    groups
}

/// Finds a reason that rules out any verdict on an experiment.
fn find_obstacle(a: &ExperimentRuns, b: &ExperimentRuns, across: &[&str]) -> Option<VerdictReason> {
    if !(a.invalid.is_empty() && b.invalid.is_empty()) {
        return Some(VerdictReason::InvalidRuns { a: a.invalid.len(), b: b.invalid.len() });
    }
    let runs: Vec<&Run> = a.all().chain(b.all()).collect();
    let mut differs = Vec::new();
    let mut unknown = Vec::new();
    for key in matching::KEYS.iter().filter(|key| !key.is_named(across)) {
        match key.all_match(&runs) {
            Some(true) => {}
            Some(false) => differs.push(key.name),
            None => unknown.push(key.name),
        }
    }
    let is_comparable = differs.is_empty() && unknown.is_empty();
    (!is_comparable).then_some(VerdictReason::NotComparable { differs, unknown })
}

/// Finds runs whose values were decided by busy cores or by memory. Runs of other programs have no answer and are taken as they are.
fn find_distortion(a: &ExperimentRuns, b: &ExperimentRuns) -> Option<VerdictReason> {
    let causes = |side: &ExperimentRuns| -> Vec<UnknownBecause> {
        let causes = side.runs.iter().filter_map(|run| Answer::from_run(run)?.unknown_because);
        let distorts = |because: &UnknownBecause| {
            matches!(because, UnknownBecause::CacheFed | UnknownBecause::CpuSaturated)
        };
        causes.filter(distorts).collect()
    };
    let (a, b) = (causes(a), causes(b));
    let is_distorted = !(a.is_empty() && b.is_empty());
    is_distorted.then_some(VerdictReason::Distorted { a, b })
}

/// Block and replicate of a run, if its study defines them. Runs of different experiments with the same block and replicate form pairs.
fn replicate_of(run: &Run) -> (Option<u32>, Option<u32>) {
    run.study.as_ref().map_or((None, None), |study| (study.block, study.replicate))
}

/// The settings that are constant in all runs of A and in all runs of B but differ between them. `settings` selects the settings.
fn differing_settings(
    a: &[Run],
    b: &[Run],
    settings: fn(&Run) -> &Settings,
) -> Vec<DifferingSetting> {
    let keys: BTreeSet<&String> = a.iter().chain(b).flat_map(|run| settings(run).keys()).collect();
    // The common value of a key in all runs; `None` if it varies.
    let constant = |runs: &[Run], key: &String| {
        let value = settings(runs.first()?).get(key);
        runs.iter().all(|run| settings(run).get(key) == value).then(|| value.cloned())
    };
    let differing = keys.into_iter().filter_map(|key| {
        let value_a = constant(a, key)?;
        let value_b = constant(b, key)?;
        let are_different = value_a != value_b;
        are_different.then(|| DifferingSetting { setting: key.clone(), a: value_a, b: value_b })
    });
    differing.collect()
}

fn notes(a: &[Run], b: &[Run]) -> Vec<Note> {
    let mut place_differences = differing_settings(a, b, |run| &run.place);
    place_differences.retain(|differing| differing.a.is_some() && differing.b.is_some());
    let mut notes: Vec<Note> = place_differences.into_iter().map(Note::Differs).collect();
    for (side, runs) in [("A", a), ("B", b)] {
        let varying = varying_keys(runs.iter().map(|run| &run.place)).into_iter();
        notes.extend(varying.map(|setting| Note::Varies { side, setting }));
    }
    notes
}

/// The keys whose values are not the same in all settings.
fn varying_keys<'a>(all: impl Iterator<Item = &'a Settings>) -> BTreeSet<String> {
    let all: Vec<&Settings> = all.collect();
    let mut keys: BTreeSet<String> =
        all.iter().flat_map(|settings| settings.keys().cloned()).collect();
    keys.retain(|key| all.windows(2).any(|pair| pair[0].get(key) != pair[1].get(key)));
    keys
}

/// Name of an experiment: workload, accelerators, and the settings that distinguish it from other experiments.
fn experiment_name(settings: &Settings, varying: &BTreeSet<String>) -> String {
    let mut parts: Vec<String> = settings.get("workload").cloned().into_iter().collect();
    if let Some(number) = settings.get("accelerators") {
        let plural = if number == "1" { "" } else { "s" };
        parts.push(format!("{number} accelerator{plural}"));
    }
    for key in varying.iter().filter(|key| !["workload", "accelerators"].contains(&key.as_str())) {
        let value = settings.get(key).map_or("none", String::as_str);
        parts.push(format!("{key}={value}"));
    }
    if parts.is_empty() { "all runs".into() } else { parts.join(", ") }
}
