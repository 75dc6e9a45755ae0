//! A finding: what runs say, as data. It has no text; `report` has the words.

use crate::precision::CONFIDENCE;
use feedrate_measure::stats::Interval;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Something that runs say, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its place among others, and its name in JSON.
    pub kind: FindingKind,
    /// Several where the same cannot be told of each.
    pub workloads: Vec<String>,
    /// Name of the metric; `None` where it is about several.
    pub response: Option<&'static str>,
    /// The factors it is about.
    pub factors: Vec<String>,
    /// Everything that a sentence says beside the numbers.
    pub subject: Subject,
    /// Its numbers, the most important first.
    pub effects: Vec<EffectSize>,
    /// Folders of the runs that it rests on.
    pub evidence: Vec<PathBuf>,
    /// Reasons why it may mislead.
    pub caveats: Vec<Caveat>,
    /// Whether a test, or the runs themselves, bear it out; otherwise it is description.
    pub is_supported: bool,
    /// Among its like, the largest first.
    pub(crate) magnitude: f64,
}

/// The kinds of findings in the order they are told; artefacts and more than linear growth together, and so effects and growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Two metrics of the same runs disagree.
    Artefact,
    /// More than linear.
    Superlinear,
    /// Runs that must not be used.
    LeftOut,
    /// The effect of a factor, alone or with another.
    Effect,
    /// Growth of throughput with processes.
    Scaling,
    /// A factor, or more of it, that makes no difference that matters.
    NoEffect,
    /// The first epoch against later ones.
    Epochs,
    /// Training beside checkpoints, and what these take.
    Checkpoints,
    /// Repeated runs change over the order of running.
    Drift,
    /// Runs far from their replicates.
    Outlier,
    /// A difference between runs that were not repeated.
    NotTested,
    /// A question that the runs leave open, and why.
    CannotTell,
}

impl FindingKind {
    pub(crate) fn place(self) -> usize {
        match self {
            FindingKind::Superlinear => FindingKind::Artefact as usize,
            FindingKind::Scaling => FindingKind::Effect as usize,
            other => other as usize,
        }
    }
}

/// The subject of a finding.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub enum Subject {
    /// Windowed utilisation and the whole epoch contradict each other from one level to the next.
    Window(WindowArtefact),
    /// Throughput grows more than linearly, by the share of linear growth that is the effect.
    MoreThanLinear,
    /// Runs that are not used, among all, and how many have each doubt.
    LeftOut { runs: usize, all: usize, doubts: Vec<(String, usize)> },
    /// Levels of a factor against its baseline.
    MainEffect(MainEffect),
    /// A pair of factors that act together: what a step of the second does with the level and with the base of the first.
    Interaction(Interaction),
    /// The share of linear growth at most processes.
    Efficiency,
    /// All of these levels are within the margin of the baseline.
    Equivalent { levels: Vec<String>, margin: f64 },
    /// More than this level is no better by more than the margin.
    NoGain { level: String, margin: f64 },
    /// The first epoch against later ones, in so many experiments.
    BetweenEpochs(usize),
    /// Checkpoints that were written, and training during and after them against before, in so many experiments.
    AroundCheckpoints(usize),
    /// Repeated runs change over the order of running.
    Drift,
    /// Runs far from the others of their cell, with modified z-scores.
    Outliers { runs: Vec<(String, f64)>, of: usize },
    /// A question that the runs leave open.
    Inconclusive(Inconclusive),
}

/// A step from one level to the next in which windowed utilisation and the whole epoch disagree; values before and after it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub struct WindowArtefact {
    pub from: String,
    pub to: String,
    /// Whether the window hides a change, and has made none.
    pub is_hidden: bool,
    pub windowed_percent: [f64; 2],
    pub all_steps_percent: Option<[f64; 2]>,
    /// Throughput of the whole epoch, after ÷ before.
    pub rate: Option<f64>,
    /// The same if utilisation stayed as it was, where that is known.
    pub rate_if_linear: Option<f64>,
}

/// The levels of a factor, beside their effects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MainEffect {
    /// Share of the variation of the response.
    pub share_percent: Option<f64>,
    /// Whether no other factor has a larger one.
    pub is_largest: bool,
    /// Levels that are not told apart from the baseline.
    pub not_told_apart: Vec<String>,
}

/// A pair of factors: the level and the base of each, and how much a step of the second changes with either of the first.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above")]
pub struct Interaction {
    pub levels: [String; 2],
    pub bases: [String; 2],
    /// Ratios or points; `None` where other factors were not the same.
    pub changes: Option<[f64; 2]>,
}

/// The reason for which a question stays open, and for which factors.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub enum Inconclusive {
    /// Runs of these sources, machines and sizes of samples are not compared.
    Apart(Vec<String>),
    /// DLIO does not act on these factors with their levels, for each list of reasons.
    Ignored(Vec<(Vec<NamedLevels>, Vec<String>)>),
    /// Only runs that must not be used have these levels.
    OnlyLeftOut(Vec<NamedLevels>),
    /// One run of a cell. The noise of what was repeated tells how many runs it takes.
    NoReplicates { of: OpenQuestions, noise: Option<Noise> },
    /// The interval holds both nothing and what would matter.
    TooNoisy(Vec<(Noise, Vec<String>, Vec<EffectSize>)>),
    /// Another factor always changed with it. One more cell would tell.
    Confounded { of: OpenQuestions, lacking: Option<Vec<(String, String)>> },
    /// A third factor always changed with these.
    Aliased(OpenQuestions),
    /// Not all combinations of two factors were run.
    NotCrossed { missing: usize, pairs: usize },
    /// More than is tested one by one.
    TooManyLevels(OpenQuestions),
}

/// A factor with some of its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "said above")]
pub struct NamedLevels {
    pub factor: String,
    pub levels: Vec<String>,
}

/// Open questions of some responses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "said above")]
pub struct OpenQuestions {
    pub questions: Vec<Unanswered>,
    pub responses: Vec<&'static str>,
}

/// Something that a design may tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// A factor; some of its levels only, where these are named.
    Factor(NamedLevels),
    /// Two factors together.
    Pair([String; 2]),
    /// So many pairs of factors together.
    Pairs(usize),
}

/// Noise of a response in repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Noise {
    pub response: &'static str,
    /// Deviation, in percent or points.
    pub deviation: f64,
    /// Runs of each cell that would tell the margin; `None` where nobody makes so many, or it is not for lack of runs.
    pub runs: Option<u64>,
    /// In percent or points.
    pub margin: f64,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectSize {
    /// The quantity.
    #[serde(skip)]
    pub of: Quantity,
    /// Its unit.
    pub unit: EffectUnit,
    /// The estimate.
    #[serde(rename = "value")]
    pub estimate: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs on the side that has fewer.
    pub n: usize,
    /// Chance of so much if there were nothing; corrected by Holm's method for all `tests` of the response.
    pub p: Option<f64>,
    /// Tests that p is corrected for.
    pub tests: Option<usize>,
    /// Share of the variation of the response.
    pub share_percent: Option<f64>,
}

/// The quantity that is estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Quantity {
    /// A level against the one it is compared with.
    Level {
        level: String,
        base: String,
    },
    /// All levels but this against it.
    OthersAgainst(String),
    /// Greater levels against this.
    MoreThan(String),
    /// A level of a factor with that of another, beyond what each does.
    Together {
        level: String,
        with: String,
    },
    LastRunAgainstFirst,
    /// A response, as in the two that follow: the first epoch against the mean of later ones.
    FirstEpoch(&'static str),
    /// Against the end of the block before.
    DuringCheckpoints(&'static str),
    AfterCheckpoints(&'static str),
    CheckpointDuration,
    /// Share of the time from the first step to the last, or the last checkpoint.
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
    /// Level ÷ level it is compared with.
    Ratio,
    /// Level − level it is compared with, of a response in percent.
    Points,
    /// Share of linear growth.
    Efficiency,
    /// A part of 1.
    Share,
    /// Seconds.
    Seconds,
    /// That of the response.
    Response,
}

impl EffectSize {
    /// An estimate from `n` runs; without ends where there is no interval.
    pub fn new(
        of: Quantity,
        unit: EffectUnit,
        estimate: f64,
        interval: Option<Interval>,
        n: usize,
    ) -> Self {
        EffectSize {
            of,
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

    /// The same with its chance, corrected for so many tests.
    pub(crate) fn tested(self, p: Option<f64>, tests: usize) -> Self {
        EffectSize { p, tests: Some(tests), ..self }
    }

    /// The confidence of its interval, where it has one.
    pub fn confidence(&self) -> Option<f64> {
        self.low.map(|_| CONFIDENCE)
    }
}

/// A reason why a finding may mislead.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "said above, and by the names")]
pub enum Caveat {
    /// A doubt of runs that it rests on, by name.
    RunsDoubted(String),
    /// These settings always changed together with a factor, so that it may be them.
    ChangedTogether { factor: String, followers: Vec<String> },
    /// It holds if factors do not act together. With the chance of the lack of fit where they do.
    Additive { lack_of_fit_p: Option<f64> },
    /// Shares of factors add up to more than all.
    SharesOverlap { percent: f64 },
    /// It depends on another factor.
    DependsOn(String),
    /// A cell was run once.
    NotReplicated,
    /// One run of a level.
    OneRunOfLevel,
    /// Normal noise has such runs too.
    OutliersAreCommon,
}
