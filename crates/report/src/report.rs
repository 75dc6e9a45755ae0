//! The data of a report on one or several sources of results: `gather` fills it, `output` writes it.
//!
//! Long because it contains every part of a report and of its JSON.

use crate::draw::Figure;
use crate::table::ReportTable;
use feedrate_analysis::answer::{Answer, relevant_doubts};
use feedrate_analysis::finding::{EffectSize, FindingKind};
use feedrate_analysis::recommendation::Configuration;
use feedrate_measure::doubt::{Doubt, Severity};
use feedrate_measure::metric::{
    self, AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, METRICS, Metric,
    NOMINAL_WINDOWED, Provenance, SAMPLES_WHOLE, Value,
};
use feedrate_results::groups::CheckpointGroup;
use feedrate_results::index::LeftOut;
use feedrate_results::run::{OtherNumber, Reason, Run};
use feedrate_results::trials::{Outcome, TrialRuns, TriedAdvice};
use feedrate_spec::units::MIB;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A report. Texts may have words in backticks: keys, names, commands.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// Heading of the report.
    pub title: String,
    /// Program and version that made it.
    pub program: String,
    /// Opening lines: the answer, invalid runs, artefacts, the main finding and the next steps.
    #[schemars(with = "Vec<FindingFigure>")]
    pub opening: Vec<OpeningLine>,
    /// Given folders and studies, in their order.
    pub sources: Vec<Source>,
    /// The answer of a single run of feedrate.
    pub answer: Option<ReportAnswer>,
    /// The answers of several runs: one for each search, and one for each source, workload and sample size of other runs.
    pub answers: Vec<ReportGroupAnswer>,
    /// Comparison of two sources; `null` unless there are two sources with comparable results.
    pub comparison: Option<ReportComparison>,
    /// Findings, the most important first.
    pub findings: Vec<FindingText>,
    /// A recommendation for each workload with several configurations.
    pub recommendations: Vec<RecommendationText>,
    /// Changes that were tried for the workloads of these runs, else changes that are predicted to help a single run.
    pub advice: Vec<ReportAdvice>,
    /// Doubts, the most severe first.
    pub doubts: Vec<SeenDoubt>,
    /// Figures in reading order.
    pub figures: Vec<ReportFigure>,
    /// Figures that are not drawn, with reasons.
    pub not_drawn: Vec<NotDrawn>,
    /// Runs in the order of their start.
    #[schemars(with = "Vec<ReportedRunOutput<'static>>")]
    pub runs: Vec<ReportedRun>,
    /// Runs that wrote or read checkpoints and trained nothing.
    #[serde(skip)]
    pub checkpoints: Vec<CheckpointGroup>,
    /// Folders that were excluded.
    pub left_out: Vec<LeftOut>,
    /// Descriptions of how the runs were made.
    pub methods: Vec<Method>,
    /// A table of components and specifications for each machine.
    pub setups: Vec<ReportTable>,
    /// Settings of each workload, with all values of varied settings.
    pub configuration: ReportTable,
}

/// A line of the opening.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpeningLine {
    /// Name of the line: `Over time`.
    pub name: String,
    /// One or several sentences.
    pub value: String,
    /// Findings that the line repeats, as indexes of [`Report::findings`].
    #[serde(skip)]
    pub findings: Vec<usize>,
}

impl OpeningLine {
    /// A line that repeats no finding.
    pub(crate) fn new(name: impl Into<String>, value: String) -> Self {
        OpeningLine { name: name.into(), value, findings: Vec::new() }
    }
}

/// A given folder or study.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    /// Path as given.
    pub path: String,
    /// Number of runs.
    pub runs: usize,
}

/// Whether the accelerators of a run were fed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportAnswer {
    /// The answer in a few sentences, as the run printed it.
    pub says: Vec<String>,
    /// The answer as data.
    #[serde(flatten)]
    pub answer: Answer,
}

/// The answer of runs of one search, or of one source, workload and sample size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReportGroupAnswer {
    /// The search, source, workload or sample size that distinguishes the runs from others; empty if there are no others.
    pub name: String,
    /// The answer as a sentence.
    pub says: String,
    /// The runs, as indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    /// Whether they are the runs of a search.
    #[serde(skip)]
    pub is_search: bool,
}

/// A comparison of two sources.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportComparison {
    /// Number of comparisons in which the second source is better or worse.
    pub says: String,
    /// A row for each experiment and response.
    pub table: ReportTable,
}

/// A finding as a sentence with its evidence; also an open question.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingText {
    /// The sentence, with numbers and intervals.
    pub says: String,
    /// Kind of finding.
    pub kind: FindingKind,
    /// Workload; several are separated by commas.
    pub workload: String,
    /// Response that the finding is about; `null` if there are several.
    pub response: Option<&'static str>,
    /// Factors that the finding is about.
    pub factors: Vec<String>,
    /// Degree of support by the runs.
    pub support: Support,
    /// Effects, intervals and p values as text.
    pub figures: Vec<FindingFigure>,
    /// Effects, intervals and p values as numbers.
    pub numbers: Vec<FindingNumber>,
    /// Runs behind the finding, as indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    /// Reasons to doubt the finding.
    pub doubts: Vec<String>,
    /// Instructions for runs that would settle an open question; `null` if there is no such question.
    pub to_do: Option<String>,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingNumber {
    /// Quantity of the number: `8 against 4`.
    #[serde(rename = "of")]
    pub quantity: String,
    /// The number with its interval.
    #[serde(flatten)]
    pub effect: EffectSize,
    /// The weakest provenance of the values behind the number.
    pub provenance: Option<Provenance>,
    /// Confidence level of the interval as a share; `null` without an interval.
    pub confidence: Option<f64>,
}

/// The degree of support for a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The runs show the finding.
    Shown,
    /// The runs show the finding, but there are doubts.
    Doubted,
    /// The finding describes the runs, without a statistical test.
    Described,
    /// The runs do not decide the question, for the reason in the sentence.
    CannotBeTold,
}

impl Support {
    /// Whether the runs show the finding.
    pub fn is_shown(self) -> bool {
        matches!(self, Support::Shown | Support::Doubted)
    }

    /// The text of a report.
    pub fn text(self) -> &'static str {
        match self {
            Support::Shown => "shown",
            Support::Doubted => "shown, with doubts",
            Support::Described => "not tested",
            Support::CannotBeTold => "inconclusive",
        }
    }
}

/// The best of the tested configurations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RecommendationText {
    /// The workload.
    pub workload: String,
    /// Shared levels that the user cannot choose freely: accelerators, client, conditions of the storage, amount of work.
    pub held: BTreeMap<String, String>,
    /// Sentences on the best configuration, its changes against the baseline and untested combinations.
    pub says: Vec<String>,
    /// The first sentence in a few words.
    #[serde(skip)]
    pub short_text: String,
    /// Configurations that no other configuration exceeds in both throughput and utilisation, most throughput first.
    pub best: Vec<Configuration>,
    /// Configurations that were run.
    pub tested: usize,
    /// Combinations of all levels of all factors.
    pub combinations: u64,
}

/// Changes that are advised for a workload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportAdvice {
    /// The workload.
    pub workload: String,
    /// Sentences on the advice.
    pub says: Vec<String>,
    /// Folder of the trials; `null` if nothing was tried.
    pub trials: Option<String>,
    /// Result of the unchanged workload in the trials.
    pub baseline: Option<TrialRuns>,
    /// Changes in the order of advice.
    pub changes: Vec<ReportChange>,
}

/// A change with its predicted and its measured effect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportChange {
    /// The change as text.
    #[serde(skip)]
    pub change: String,
    /// Evidence of the record for the change; for a tried change, the reason why it is not decided.
    pub why: Option<String>,
    /// Whether trials withdrew the change.
    #[serde(rename = "withdrawn")]
    pub is_withdrawn: bool,
    /// The change as data.
    #[serde(flatten)]
    pub advice: TriedAdvice,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names describe them")]
pub struct FindingFigure {
    pub name: String,
    pub value: String,
}

/// A doubt, and the runs that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeenDoubt {
    /// Stable name in snake_case.
    pub name: String,
    /// Severity.
    pub severity: Severity,
    /// Whether it could change the answer of one of the runs.
    pub is_relevant: bool,
    /// Whether it makes the answer of one of the runs unknown.
    #[serde(skip)]
    pub is_decisive: bool,
    /// Runs that have the doubt, each with its evidence.
    pub seen: Vec<Seen>,
}

/// A doubt in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Seen {
    /// Index of the run in [`Report::runs`]; `null` if the doubt is not about a single run.
    pub run: Option<usize>,
    /// Evidence with figures.
    pub evidence: String,
    /// Advice.
    pub advice: String,
}

/// Parts of figures that an output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUse {
    /// No part.
    Nothing,
    /// Titles, captions and values.
    Values,
    /// Titles, captions, values and pictures.
    Pictures,
}

/// A figure. In its SVG, marks have a `<title>` as tooltip and the name of their series as `data-series`, by which a page can hide the series. The SVG has
/// no ids, scripts or styles that could collide with the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ReportFigure {
    /// Stable name, as in `feedrate plot NAME`.
    pub name: String,
    /// Heading of the figure.
    pub title: String,
    /// Explains marks and intervals, and names omitted data.
    pub caption: String,
    /// Whether the figure is shown at the top of a page.
    #[serde(skip)]
    pub is_lead: bool,
    /// The picture on a light background; empty if only values are shown.
    #[serde(skip)]
    pub svg: String,
    /// The picture on a dark background.
    #[serde(skip)]
    pub svg_dark: String,
    /// The drawn data, from which pictures of other sizes and formats are made.
    #[serde(skip)]
    pub figure: Option<Figure>,
    /// Series that can be hidden.
    pub series: Vec<String>,
    /// Table of the drawn numbers.
    pub values: ReportTable,
    /// Command that draws the figure into a file.
    #[serde(skip)]
    pub command: String,
}

/// A figure that is not drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotDrawn {
    /// Name, as in `feedrate plot NAME`.
    pub name: String,
    /// Reason why it is not drawn.
    pub why: String,
    /// Advice.
    pub hint: String,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct ReportedRun {
    /// The run; its settings include host and source.
    pub run: Run,
    /// Whether its accelerators were fed; `None` for runs of other programs.
    pub answer: Option<Answer>,
    /// The record, or another file with the numbers, as a URL relative to the report's folder.
    pub link: Option<String>,
    /// Index of the source in [`Report::sources`].
    pub source: usize,
    /// Levels of the workload's factors, by the names in findings and figures.
    pub factors: BTreeMap<String, String>,
}

impl ReportedRun {
    /// The reason why the run counts for no experiment; `None` if it counts.
    pub fn unused(&self) -> Option<&str> {
        self.run.unusable.as_ref().map(|reason| reason.name())
    }

    /// Whether the run has an answer: it counts, or it only wrote or read checkpoints.
    pub fn is_answered(&self) -> bool {
        matches!(self.run.unusable, None | Some(Reason::CheckpointsOnly))
    }

    /// The names of its doubts.
    pub fn doubts(&self) -> Vec<&str> {
        self.run.doubts.iter().map(|doubt| doubt.name.as_str()).collect()
    }

    /// The doubts that could change its answer.
    pub fn relevant_doubts(&self) -> Vec<&Doubt> {
        relevant_doubts(self.answer.as_ref(), &self.run.doubts)
    }

    /// Whether bytes were not counted but estimated: samples times the mean sample size of DLIO's generator.
    pub fn is_estimated(&self) -> bool {
        self.run.provenance(&DELIVERED_WHOLE) == Some(Provenance::Estimated)
    }

    /// The population standard deviation over epochs, which is not a measure of replicates.
    pub fn stdev(&self, metric: &Metric) -> Option<f64> {
        self.run.metric(metric)?;
        let series = self.run.series.get(&metric.id)?;
        metric::stdev(&series.iter().copied().flatten().collect::<Vec<f64>>())
    }

    /// All metrics of the run.
    pub fn metrics(&self) -> Vec<OtherNumber<'_>> {
        let mut metrics = Vec::new();
        for metric in METRICS {
            let known = self.run.metric(metric).zip(self.run.provenance(metric));
            let value = known.map(|(number, provenance)| Value { number, provenance });
            metrics.push(OtherNumber { name: metric.label(), unit: metric.unit.name(), value });
        }
        metrics.extend(self.run.figures());
        metrics
    }
}

impl Serialize for ReportedRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = &self.run;
        let object = ReportedRunOutput {
            path: run.path.display().to_string(),
            link: self.link.as_deref(),
            source: self.source,
            workload: &run.workload,
            parameter: &run.parameter,
            value: &run.value,
            factors: &self.factors,
            replicate: run.replicate,
            host: run.hostname.as_deref(),
            hosts: run.hosts,
            accelerators: run.accelerators,
            started: run.started.as_deref().unwrap_or_default(),
            epochs: run.epochs,
            au: ReportedAu {
                reported_percent: run.reported_au_percent(),
                windowed_percent: run.metric(&AU_WINDOWED),
                windowed_stdev_percent: self.stdev(&AU_WINDOWED),
                all_steps_percent: run.metric(&AU_ALL_STEPS),
                sustained_percent: run.metric(&AU_SUSTAINED),
            },
            throughput: ReportedThroughput {
                samples_per_second: run.metric(&SAMPLES_WHOLE),
                bytes_per_second: run.metric(&DELIVERED_WHOLE),
                is_estimated: self.is_estimated(),
                windowed_mib_per_second: run.metric(&NOMINAL_WINDOWED).map(|rate| rate / MIB),
                windowed_stdev_mib_per_second: self.stdev(&NOMINAL_WINDOWED).map(|rate| rate / MIB),
            },
            answer: self.answer.as_ref(),
            doubts: self.doubts(),
            unused: self.unused(),
            metrics: self.metrics().into_iter().map(ReportedMetric::new).collect(),
        };
        object.serialize(serializer)
    }
}

/// A run in the JSON of a report.
#[derive(Serialize, JsonSchema)]
struct ReportedRunOutput<'a> {
    /// Its folder.
    path: String,
    /// The record, or another file with the numbers, as a relative URL.
    link: Option<&'a str>,
    /// Index of the source in `sources`.
    source: usize,
    /// Its workload.
    workload: &'a str,
    /// The parameter that was varied.
    parameter: &'a str,
    /// Value of the parameter.
    value: &'a str,
    /// Levels of the factors of its workload.
    factors: &'a BTreeMap<String, String>,
    /// Number among the runs of its experiment.
    replicate: Option<u32>,
    /// The machine of rank 0.
    host: Option<&'a str>,
    /// Number of machines.
    hosts: Option<u64>,
    /// Emulated accelerators.
    accelerators: Option<u32>,
    /// Local start time; empty if unknown.
    started: &'a str,
    /// Epochs with steps.
    epochs: u64,
    /// Utilisations.
    au: ReportedAu,
    /// Rates.
    throughput: ReportedThroughput,
    /// Whether its accelerators were fed; `null` for runs of other programs.
    answer: Option<&'a Answer>,
    /// Names of its doubts.
    doubts: Vec<&'a str>,
    /// Reason why the run counts for no experiment; `null` if it counts.
    unused: Option<&'a str>,
    /// All metrics.
    metrics: Vec<ReportedMetric<'a>>,
}

/// Utilisations in percent.
#[derive(Serialize, JsonSchema)]
struct ReportedAu {
    /// As `summary.json` reports it.
    reported_percent: Option<f64>,
    /// DLIO's formula over the steps.
    windowed_percent: Option<f64>,
    /// Its deviation over epochs.
    windowed_stdev_percent: Option<f64>,
    /// Over all steps.
    all_steps_percent: Option<f64>,
    /// The sustained utilisation.
    sustained_percent: Option<f64>,
}

/// Rates of samples and bytes.
#[derive(Serialize, JsonSchema)]
struct ReportedThroughput {
    /// Over whole epochs.
    samples_per_second: Option<f64>,
    /// Bytes that were read, over whole epochs.
    bytes_per_second: Option<f64>,
    /// Whether the bytes are estimated as samples times the mean size of a sample.
    is_estimated: bool,
    /// In DLIO's window, by the nominal size of a sample.
    windowed_mib_per_second: Option<f64>,
    /// Its deviation over epochs.
    windowed_stdev_mib_per_second: Option<f64>,
}

/// A metric of a run.
#[derive(Serialize, JsonSchema)]
struct ReportedMetric<'a> {
    /// Its name.
    name: &'a str,
    /// Its unit.
    unit: &'static str,
    /// Value; `null` if unknown.
    value: Option<f64>,
    /// Provenance of the value; no key for unknown values.
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
}

impl<'a> ReportedMetric<'a> {
    fn new(metric: OtherNumber<'a>) -> Self {
        let OtherNumber { name, unit, value } = metric;
        let provenance = value.map(|value| value.provenance);
        ReportedMetric { name, unit, value: value.map(|value| value.number), provenance }
    }
}

/// A description that is needed to repeat the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Method {
    /// Name of the description: `Order`.
    pub name: String,
    /// One or several sentences.
    pub says: String,
    /// Shell commands.
    pub commands: Vec<String>,
}

impl RecommendationText {
    /// The shared levels as text: `` `processes` 2, `batch_size` 4 ``.
    pub(crate) fn shared_levels(&self) -> String {
        let held = self.held.iter().map(|(name, level)| format!("`{name}` {level}"));
        held.collect::<Vec<_>>().join(", ")
    }

    /// The workload with the shared levels.
    pub(crate) fn heading(&self) -> String {
        let at = (!self.held.is_empty()).then(|| format!(" at {}", self.shared_levels()));
        format!("{}{}", self.workload, at.unwrap_or_default())
    }
}

impl ReportAdvice {
    /// The commands of changes that helped in trials, or of all changes without trials.
    pub fn commands(&self) -> Vec<&str> {
        let is_kept =
            |row: &&ReportChange| self.trials.is_none() || row.advice.outcome == Outcome::Helps;
        self.changes
            .iter()
            .filter(is_kept)
            .filter_map(|row| row.advice.command.as_deref())
            .collect()
    }
}

impl Report {
    /// The answer in one line, or the first opening lines of the same name; empty without any.
    pub fn headlines(&self) -> Vec<&str> {
        if let Some(answer) = self.answer.as_ref().and_then(|answer| answer.says.first()) {
            return vec![answer];
        }
        let lines = self.opening.iter().take_while(|line| line.name == self.opening[0].name);
        lines.map(|line| line.value.as_str()).collect()
    }

    /// Whether there are several sources. Runs then need the name of their source.
    pub fn has_several_sources(&self) -> bool {
        1 < self.sources.len()
    }

    /// Runs that count for experiments.
    pub(crate) fn used(&self) -> impl Iterator<Item = &ReportedRun> {
        self.runs.iter().filter(|run| run.unused().is_none())
    }

    /// Where a doubt was seen that could change the answer of the run there.
    pub(crate) fn relevant_seen<'a>(
        &'a self,
        doubt: &'a SeenDoubt,
    ) -> impl Iterator<Item = &'a Seen> {
        let is_relevant = |index: usize| {
            let relevant = self.runs[index].relevant_doubts().into_iter();
            relevant
                .map(|doubt| (&doubt.name, doubt.severity))
                .any(|known| known == (&doubt.name, doubt.severity))
        };
        doubt.seen.iter().filter(move |seen| seen.run.is_none_or(is_relevant))
    }

    /// The number of runs with at least one doubt that could change their answer.
    pub fn doubted_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.relevant_doubts().is_empty()).count()
    }
}
