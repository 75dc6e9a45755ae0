//! The report of one or several sources of results, as plain data: `gather` fills it, `output` writes it. Long because it has every part of a report and of its JSON.

use crate::table::ReportTable;
use feedrate_analysis::answer::Answer;
use feedrate_analysis::finding::{EffectSize, FindingKind};
use feedrate_analysis::recommendation::Configuration;
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::{
    self, AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WHOLE, METRICS, Metric,
    NOMINAL_WINDOWED, Provenance, SAMPLES_WHOLE, Value,
};
use feedrate_results::groups::CheckpointGroup;
use feedrate_results::index::LeftOut;
use feedrate_results::run::{OtherNumber, Run};
use feedrate_results::trials::{Outcome, Tried, TriedAdvice};
use feedrate_spec::units::MIB;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Everything that a report says. Text may have words in backticks: keys, names, commands.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// Its heading.
    pub title: String,
    /// Program and version that made it.
    pub program: String,
    /// The answer, runs that must not be used, artefacts, what holds, what to do, and how much more there is.
    pub opening: Vec<OpeningLine>,
    /// Folders and studies that were given, in this order.
    pub sources: Vec<Source>,
    /// The answer of a single run of ours.
    pub answer: Option<ReportAnswer>,
    /// The first of two sources against the second; `null` of other numbers of them, and where nothing can be compared.
    pub comparison: Option<ReportComparison>,
    /// The most important first.
    pub findings: Vec<FindingText>,
    /// One for each workload with several configurations.
    pub recommendations: Vec<RecommendationText>,
    /// Changes that were tried for workloads of these runs; else, of a single run, those that are predicted to help.
    pub advice: Vec<ReportAdvice>,
    /// The worst first.
    pub doubts: Vec<SeenDoubt>,
    /// In the order of reading.
    pub figures: Vec<ReportFigure>,
    /// Figures that these runs have not enough for.
    pub not_drawn: Vec<NotDrawn>,
    /// In the order they were started.
    #[schemars(with = "Vec<ReportedRunOutput<'static>>")]
    pub runs: Vec<ReportedRun>,
    /// Runs that wrote or read checkpoints and trained nothing.
    #[serde(skip)]
    pub checkpoints: Vec<CheckpointGroup>,
    /// Folders that are not used.
    pub left_out: Vec<LeftOut>,
    /// How the runs were made.
    pub methods: Vec<Method>,
    /// The machines: component and specification.
    pub setups: Vec<ReportTable>,
    /// The settings of each workload; those that were varied with all their values.
    pub configuration: ReportTable,
}

/// A line of the opening.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpeningLine {
    /// `Over time`.
    pub name: String,
    /// In sentences.
    pub value: String,
    /// Findings that it repeats, as indexes of [`Report::findings`]; empty for a line that says something else.
    #[serde(skip)]
    pub findings: Vec<usize>,
}

/// A folder or study that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    /// As it was given.
    pub path: String,
    /// Runs that are used.
    pub runs: usize,
}

/// Whether the accelerators of a run were fed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportAnswer {
    /// In a few sentences, as the run itself said it.
    pub says: Vec<String>,
    /// As data.
    #[serde(flatten)]
    pub answer: Answer,
}

/// One source against another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportComparison {
    /// In how many comparisons the second is better or worse.
    pub says: String,
    /// A row for each experiment and response.
    pub table: ReportTable,
}

/// A sentence that the runs support, or one that says what cannot be told.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingText {
    /// With its numbers and intervals.
    pub says: String,
    /// Its subject.
    pub kind: FindingKind,
    /// The workload; several are joined by commas.
    pub workload: String,
    /// The response it is about; `null` where it is about several.
    pub response: Option<&'static str>,
    /// The factors it is about.
    pub factors: Vec<String>,
    /// Whether it holds.
    pub support: Support,
    /// Effects, intervals and p behind the sentence.
    pub figures: Vec<FindingFigure>,
    /// The same as numbers.
    pub numbers: Vec<FindingNumber>,
    /// Runs it rests on, as indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    /// Reasons not to believe it.
    pub doubts: Vec<String>,
    /// Runs that would tell what cannot be told; `null` where no runs would, or it is told.
    pub to_do: Option<String>,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingNumber {
    /// The quantity: `8 against 4`.
    pub of: String,
    /// The number.
    #[serde(flatten)]
    pub effect: EffectSize,
    /// The furthest from measured of the values behind it.
    pub provenance: Option<Provenance>,
    /// How often such an interval holds the truth, as a share; `null` without one.
    pub confidence: Option<f64>,
}

/// Whether a finding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The runs show it.
    Shown,
    /// They show it, and there is reason to doubt them.
    Doubted,
    /// They were so; no test says that others would be.
    Described,
    /// It cannot be told; the sentence says why.
    CannotBeTold,
}

impl Support {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Support::Shown => "shown",
            Support::Doubted => "shown, with doubts",
            Support::Described => "not tested",
            Support::CannotBeTold => "cannot be told",
        }
    }
}

/// The best of the tested configurations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RecommendationText {
    /// The workload.
    pub workload: String,
    /// Levels that all of these configurations have of what is no choice: accelerators, client, conditions of the storage, size of the work.
    pub held: BTreeMap<String, String>,
    /// The configuration that did best, what it takes, what was not tried.
    pub says: Vec<String>,
    /// The first of these in a few words.
    #[serde(skip)]
    pub in_short: String,
    /// Those that no other beats in both throughput and utilisation, most throughput first.
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
    /// In sentences.
    pub says: Vec<String>,
    /// The folder of the trials; `null` where nothing was tried.
    pub trials: Option<String>,
    /// The workload without any change, as it was tried.
    pub baseline: Option<Tried>,
    /// As they are advised.
    pub changes: Vec<ReportChange>,
}

/// A change, what it is predicted to bring, and what it brought.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportChange {
    /// In words.
    #[serde(skip)]
    pub change: String,
    /// Evidence of the record for it; of what was tried the reason why it is not decided.
    pub why: Option<String>,
    /// Whether the runs take it back.
    #[serde(rename = "withdrawn")]
    pub is_withdrawn: bool,
    /// As data.
    #[serde(flatten)]
    pub of: TriedAdvice,
}

/// A name and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FindingFigure {
    pub name: String,
    pub value: String,
}

/// A doubt, and the runs that deserve it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeenDoubt {
    /// Stable name in snake_case.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// In which runs, each with its figures.
    pub seen: Vec<Seen>,
}

/// A doubt in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Seen {
    /// An index of [`Report::runs`]; `None` where it is not about one run.
    pub run: Option<usize>,
    /// With figures.
    pub evidence: String,
    /// Advice.
    pub advice: String,
}

/// Parts of figures that an output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUse {
    /// None of them.
    Nothing,
    /// Their titles, captions and values.
    Values,
    /// The pictures too.
    Pictures,
}

/// A picture. In its SVG marks of a series carry `data-series`, with the series' name, so that it can be hidden; a `<title>` in a mark
/// is what is shown when it is pointed at. It has no ids, scripts or styles: they would meet those of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ReportFigure {
    /// A stable name, as `feedrate plot` has it.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Explains marks and intervals, and names what was left out.
    pub caption: String,
    /// Whether a page opens with it.
    #[serde(skip)]
    pub is_lead: bool,
    /// The picture on a light ground; empty where only its values are shown.
    #[serde(skip)]
    pub svg: String,
    /// The same on a dark one.
    #[serde(skip)]
    pub svg_dark: String,
    /// Series that can be hidden.
    pub series: Vec<String>,
    /// The numbers behind it.
    pub values: ReportTable,
    /// Draws it into a file.
    #[serde(skip)]
    pub command: String,
}

/// A figure that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotDrawn {
    /// As `feedrate plot` has it.
    pub name: String,
    /// Names what is missing.
    pub why: String,
    /// Advice.
    pub hint: String,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct ReportedRun {
    /// Its numbers; settings name host and source too.
    pub run: Run,
    /// Whether its accelerators were fed; `None` of another program's run.
    pub answer: Option<Answer>,
    /// Its record, or whatever its numbers come from, as a relative URL from where the report lies.
    pub link: Option<String>,
    /// An index of [`Report::sources`].
    pub source: usize,
    /// Levels of the factors of its workload, by the names that findings and figures use.
    pub factors: BTreeMap<String, String>,
}

impl ReportedRun {
    /// Reason why it counts for no experiment; `None` of one that does.
    pub fn unused(&self) -> Option<&str> {
        self.run.unusable.as_ref().map(|reason| reason.name())
    }

    /// Names of doubts.
    pub fn doubts(&self) -> Vec<&str> {
        self.run.doubts.iter().map(|doubt| doubt.name.as_str()).collect()
    }

    /// Whether its bytes are not counted: samples times the mean size that DLIO's generator draws.
    pub fn is_estimated(&self) -> bool {
        self.run.provenance(&DELIVERED_WHOLE) == Some(Provenance::Estimated)
    }

    /// Population deviation over the epochs that have a value, which is no measure of replicates.
    pub fn stdev(&self, metric: &Metric) -> Option<f64> {
        self.run.metric(metric)?;
        let series = self.run.series.get(&metric.id)?;
        metric::stdev(&series.iter().copied().flatten().collect::<Vec<f64>>())
    }

    /// Every metric of it.
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
            doubts: self.doubts(),
            unused: self.unused(),
            metrics: self.metrics().into_iter().map(ReportedMetric::new).collect(),
        };
        object.serialize(serializer)
    }
}

/// A run as a report's JSON has it.
#[derive(Serialize, JsonSchema)]
struct ReportedRunOutput<'a> {
    /// Its folder.
    path: String,
    /// Its record, or the file that its numbers come from, as a relative URL.
    link: Option<&'a str>,
    /// An index of `sources`.
    source: usize,
    /// Its workload.
    workload: &'a str,
    /// The parameter that was varied.
    parameter: &'a str,
    /// Its value.
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
    /// Local start; empty if it is not known.
    started: &'a str,
    /// Epochs with steps.
    epochs: u64,
    /// Utilisations.
    au: ReportedAu,
    /// Rates.
    throughput: ReportedThroughput,
    /// Names of its doubts.
    doubts: Vec<&'a str>,
    /// Why it counts for no experiment; `null` if it counts.
    unused: Option<&'a str>,
    /// Every metric of it.
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
    /// Whether these are samples times the mean size of a sample.
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
    /// `null` if it is not known.
    value: Option<f64>,
    /// How it is known; no key if it is not.
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

/// One thing that whoever repeats the runs must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Method {
    /// `Order`.
    pub name: String,
    /// In sentences.
    pub says: String,
    /// To be typed, one a line.
    pub commands: Vec<String>,
}

impl RecommendationText {
    /// Levels that all have: `` `processes` 2, `batch_size` 4 ``.
    pub(crate) fn at(&self) -> String {
        let held = self.held.iter().map(|(name, level)| format!("`{name}` {level}"));
        held.collect::<Vec<_>>().join(", ")
    }

    /// The workload, and levels that all have.
    pub(crate) fn heading(&self) -> String {
        let at = (!self.held.is_empty()).then(|| format!(" at {}", self.at()));
        format!("{}{}", self.workload, at.unwrap_or_default())
    }
}

impl ReportAdvice {
    /// Commands of the changes that help, where they were tried; else of all.
    pub fn commands(&self) -> Vec<&str> {
        let is_kept =
            |row: &&ReportChange| self.trials.is_none() || row.of.outcome == Outcome::Helps;
        self.changes.iter().filter(is_kept).filter_map(|row| row.of.command.as_deref()).collect()
    }
}

impl Report {
    /// The answer in one line; `None` where these runs have none.
    pub fn headline(&self) -> Option<&str> {
        let own = self.answer.iter().filter_map(|of| of.says.first().map(String::as_str));
        let mut all = own.chain(self.opening.first().map(|line| line.value.as_str()));
        all.next()
    }

    /// Whether runs must be told apart by where they come from.
    pub fn has_several_sources(&self) -> bool {
        1 < self.sources.len()
    }

    /// Runs that count for experiments.
    pub(crate) fn used(&self) -> impl Iterator<Item = &ReportedRun> {
        self.runs.iter().filter(|one| one.unused().is_none())
    }

    /// Runs with at least one doubt.
    pub fn doubted_runs(&self) -> usize {
        self.runs.iter().filter(|one| !one.run.doubts.is_empty()).count()
    }
}
