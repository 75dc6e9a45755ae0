//! The data of a finding: a conclusion from runs with its numbers, evidence and caveats.
//!
//! Findings contain no sentences; `report` words them.

use crate::precision::CONFIDENCE;
use feedrate_measure::stats::Interval;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// A conclusion from runs, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The kind, by its name in JSON.
    pub kind: FindingKind,
    /// The workloads that it is about: one, or several if it is an open question.
    pub workloads: Vec<String>,
    /// Name of the metric; `None` if the finding is about several metrics.
    pub response: Option<&'static str>,
    /// Names of the factors that it is about.
    pub factors: Vec<String>,
    /// The content beside the numbers.
    pub subject: Subject,
    /// The numbers, most important first.
    pub effects: Vec<EffectSize>,
    /// Folders of the runs that the finding is based on.
    pub evidence: Vec<PathBuf>,
    /// Reasons why the finding may mislead.
    pub caveats: Vec<Caveat>,
    /// Whether a statistical test or a direct measurement supports it; otherwise it only describes the runs.
    pub is_supported: bool,
    /// Size by which findings of one kind are sorted, largest first.
    pub(crate) magnitude: f64,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Two metrics of the same runs disagree.
    Artefact,
    /// Throughput grows more than linearly with processes.
    Superlinear,
    /// Runs are excluded because their numbers must not be used.
    LeftOut,
    /// A factor has an effect, alone or together with another.
    Effect,
    /// A factor raises utilisation and lowers throughput, or the reverse.
    TradeOff,
    /// Throughput grows with processes.
    Scaling,
    /// A factor makes no relevant difference, or increasing it further makes none.
    NoEffect,
    /// The first epoch differs from later ones.
    Epochs,
    /// The duration of checkpoints, and their effect on training.
    Checkpoints,
    /// Repeated runs change in the order in which they were made.
    Drift,
    /// Runs are far from their replicates.
    Outlier,
    /// Runs differ, but were not repeated.
    NotTested,
    /// The runs leave a question open.
    CannotTell,
}

/// The content of a finding beside its numbers.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub enum Subject {
    /// From one level to the next, windowed utilisation and figures over all steps contradict each other.
    Window(WindowArtefact),
    /// Throughput grows more than linearly; the effect is the ratio to linear growth.
    MoreThanLinear,
    /// `runs` of `all` runs are excluded; `doubts` counts the runs with each doubt.
    LeftOut { runs: usize, all: usize, doubts: Vec<(String, usize)> },
    /// Levels of a factor differ from its baseline.
    MainEffect(MainEffect),
    /// Utilisation and throughput change in opposite directions from the baseline to a level.
    TradeOff,
    /// The effect of one factor depends on the level of another.
    Interaction(Interaction),
    /// The largest number of processes reaches a share of linear growth.
    Efficiency,
    /// All these levels differ from the baseline by less than the margin.
    Equivalent { levels: Vec<String>, margin: f64 },
    /// Greater levels are at most the margin better than this level.
    NoGain { level: String, margin: f64 },
    /// The first epoch is compared with later epochs, in this number of experiments.
    BetweenEpochs(usize),
    /// Training during and after checkpoints is compared with training before checkpoints, in this number of experiments.
    AroundCheckpoints(usize),
    /// Repeated runs change in the order in which they were made.
    Drift,
    /// Some of the `cell_runs` runs of a cell are outliers; `runs` contains their names and modified z-scores.
    Outliers { runs: Vec<(String, f64)>, cell_runs: usize },
    /// The runs leave a question open.
    Inconclusive(Inconclusive),
}

/// A step from one level to the next in which windowed utilisation and figures over all steps contradict each other. A pair contains the
/// values before and after the step.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct WindowArtefact {
    pub from: String,
    pub to: String,
    /// Whether the window hides a real change; otherwise it shows a change that is not real.
    pub is_hidden: bool,
    pub windowed_percent: [f64; 2],
    pub all_steps_percent: Option<[f64; 2]>,
    /// Ratio of the throughputs over all steps, after ÷ before.
    pub rate: Option<f64>,
    /// The ratio that linear growth would give, if the factor is the number of processes.
    pub rate_if_linear: Option<f64>,
}

/// The effect of a factor beside the sizes for each level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MainEffect {
    /// Share of the variation of the response that the factor explains.
    pub share_percent: Option<f64>,
    /// Whether no other factor has a larger share.
    pub is_largest: bool,
    /// Levels that cannot be distinguished from the baseline.
    pub indistinguishable: Vec<String>,
    /// Number of combinations of the other factors over which levels are averaged.
    pub combinations: usize,
}

/// Two factors whose effects depend on each other: a level and the baseline of each.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct Interaction {
    pub levels: [String; 2],
    pub bases: [String; 2],
    /// The effect of the second factor at the level and at the baseline of the first factor, as ratios or points; `None` if not all
    /// combinations of other factors were run.
    pub changes: Option<[f64; 2]>,
}

/// The reason why a question stays open, with the factors it concerns.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub enum Inconclusive {
    /// These groups of runs, by source, machine and sample size, are not compared with each other.
    Separate(Vec<String>),
    /// The program of the runs ignores these factors, which are grouped by their reasons.
    Ignored(Vec<(Vec<NamedLevels>, Vec<String>)>),
    /// Only runs that must not be used have these levels.
    OnlyInvalid(Vec<NamedLevels>),
    /// Cells were run only once. The noise of repeated cells, if known, shows how many runs are needed.
    NoReplicates { questions: OpenQuestions, noise: Option<Noise> },
    /// The interval contains both zero and relevant differences. Each entry is a response with its noise, the factors, and their widest effects.
    TooNoisy(Vec<(Noise, Vec<String>, Vec<EffectSize>)>),
    /// Another factor always changed together with this factor. `lacking` is a cell that would separate both.
    Confounded { questions: OpenQuestions, lacking: Option<Vec<(String, String)>> },
    /// A third factor always changed together with the pair.
    Aliased(OpenQuestions),
    /// Not all combinations of two factors were run.
    NotCrossed { missing: usize, pairs: usize },
    /// There are too many levels to test them individually.
    TooManyLevels(OpenQuestions),
}

/// A factor with some of its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct NamedLevels {
    pub factor: String,
    pub levels: Vec<String>,
}

/// Open questions, with the responses that leave them open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct OpenQuestions {
    pub questions: Vec<OpenQuestion>,
    pub responses: Vec<&'static str>,
}

/// An effect that a design could have shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenQuestion {
    /// The effect of a factor, or only of the named levels.
    Factor(NamedLevels),
    /// The interaction of two factors.
    Pair([String; 2]),
    /// The interactions of this number of pairs.
    Pairs(usize),
}

/// The noise of a response in repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub struct Noise {
    pub response: &'static str,
    /// Standard deviation in percent or points.
    pub deviation: f64,
    /// Number of runs per cell that would detect the margin; `None` if it is impractically large or there are enough runs.
    pub runs: Option<u64>,
    /// The equivalence margin in percent or points.
    pub margin: f64,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectSize {
    /// The quantity that is estimated.
    #[serde(skip)]
    pub quantity: Quantity,
    /// Its unit.
    pub unit: EffectUnit,
    /// The estimate.
    #[serde(rename = "value")]
    pub estimate: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Number of runs of the smaller of the compared groups.
    pub n: usize,
    /// Probability of an estimate of at least this size if there is no effect, corrected for all `tests` of the response by Holm's method.
    pub p: Option<f64>,
    /// Number of tests for which `p` is corrected.
    pub tests: Option<usize>,
    /// Share of the variation of the response that the factor or pair explains.
    pub share_percent: Option<f64>,
}

/// The quantity that is estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names explain them")]
pub enum Quantity {
    /// A level compared with the base level.
    Level {
        level: String,
        base: String,
    },
    /// A level compared with the base level, in the response of this name.
    ResponseAtLevel {
        response: &'static str,
        level: String,
        base: String,
    },
    /// All other levels compared with this level.
    OthersAgainst(String),
    /// Greater levels compared with this level.
    MoreThan(String),
    /// The interaction: the effect of two levels together beyond their separate effects.
    Together {
        level: String,
        with: String,
    },
    LastRunAgainstFirst,
    /// The response in the first epoch, compared with the mean of later epochs.
    FirstEpoch(&'static str),
    /// The response during checkpoints, compared with the phase before.
    DuringCheckpoints(&'static str),
    /// The response after checkpoints, compared with the phase before.
    AfterCheckpoints(&'static str),
    CheckpointDuration,
    /// Time that the run lost to a checkpoint: its own, and what the steps during and after it lost or gained.
    CheckpointNetCost,
    /// Share of the time from the first step to the end of the last step or checkpoint.
    CheckpointShare,
    Median,
    Windowed {
        level: String,
        base: String,
    },
    AllSteps {
        level: String,
        base: String,
    },
    WholeEpochThroughput {
        level: String,
        base: String,
    },
}

/// The unit of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectUnit {
    /// Ratio of two values.
    Ratio,
    /// Difference of two percentages.
    Points,
    /// Share of linear growth.
    Efficiency,
    /// A share between 0 and 1.
    Share,
    /// Seconds.
    Seconds,
    /// The unit of the response.
    Response,
}

impl EffectSize {
    /// An estimate from `n` runs, with an interval if there is one.
    pub fn new(
        quantity: Quantity,
        unit: EffectUnit,
        estimate: f64,
        interval: Option<Interval>,
        n: usize,
    ) -> Self {
        EffectSize {
            quantity,
            unit,
            estimate,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            n,
            p: None,
            tests: None,
            share_percent: None,
        }
    }

    /// Adds the p-value, corrected for `tests` tests.
    pub(crate) fn with_p(self, p: Option<f64>, tests: usize) -> Self {
        EffectSize { p, tests: Some(tests), ..self }
    }

    /// The confidence level of the interval, if there is one.
    pub fn confidence(&self) -> Option<f64> {
        self.low.map(|_| CONFIDENCE)
    }
}

/// A reason why a finding may mislead.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names of the fields explain them")]
pub enum Caveat {
    /// Runs in the evidence have this doubt.
    RunsDoubted(String),
    /// These settings always changed together with the factor and may be the actual cause.
    ChangedTogether { factor: String, followers: Vec<String> },
    /// The estimate assumes that factors do not interact. The p-value of the lack of fit is given if it is significant.
    Additive { lack_of_fit_p: Option<f64> },
    /// The shares of all factors add up to more than 100 %.
    SharesOverlap { percent: f64 },
    /// The effect depends on the level of another factor.
    DependsOn(String),
    /// A cell was run only once.
    NotReplicated,
    /// A level was run only once.
    OneRunOfLevel,
    /// Normally distributed noise produces such runs too.
    OutliersAreCommon,
}
