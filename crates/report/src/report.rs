//! The report of one or several sources of results, as plain data: `gather` fills it, `output` writes it.

use crate::table::Table;
use feedrate_analysis::finding::{EffectUnit, Kind};
use feedrate_measure::doubt::Severity;
use feedrate_measure::metric::Provenance;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that a report says. Text may have words in backticks: keys, names, commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Its heading.
    pub title: String,
    /// Program and version that made it.
    pub program: String,
    /// Folders and studies that were given, in this order.
    pub sources: Vec<Source>,
    /// The most important first.
    pub findings: Vec<Finding>,
    /// The worst first.
    pub doubts: Vec<Doubt>,
    /// In the order of reading.
    pub figures: Vec<Figure>,
    /// Figures that these runs have not enough for.
    pub not_drawn: Vec<NotDrawn>,
    /// In the order they were started.
    pub runs: Vec<Run>,
    /// Folders that are not used.
    pub left_out: Vec<LeftOut>,
    /// How the runs were made.
    pub methods: Vec<Method>,
    /// The machines: component and specification.
    pub setups: Vec<Table>,
    /// The settings of each workload; those that were varied with all their values.
    pub configuration: Table,
}

/// A folder or study that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// As it was given.
    pub path: String,
    /// Runs that are used.
    pub runs: usize,
}

/// A sentence that the runs support, or one that says what cannot be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// With its numbers and intervals.
    pub says: String,
    /// Its subject.
    pub kind: Kind,
    /// The workload; several are joined by commas.
    pub workload: String,
    /// The response it is about; `null` where it is about several.
    pub response: Option<&'static str>,
    /// The factors it is about.
    pub factors: Vec<String>,
    /// Whether it holds.
    pub support: Support,
    /// Effects, intervals and p behind the sentence.
    pub figures: Vec<Fact>,
    /// The same as numbers.
    pub numbers: Vec<Number>,
    /// Runs it rests on, as indexes of [`Report::runs`].
    pub runs: Vec<usize>,
    /// Reasons not to believe it.
    pub doubts: Vec<String>,
}

/// A number of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// The quantity: `8 against 4`.
    pub of: String,
    /// Its unit.
    pub unit: EffectUnit,
    /// The estimate.
    pub value: f64,
    /// The furthest from measured of the values behind it.
    pub provenance: Option<Provenance>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How often such an interval holds the truth, as a share; `null` without one.
    pub confidence: Option<f64>,
    /// Runs on the side that has fewer.
    pub n: usize,
    /// Chance of so much if there were nothing; corrected by Holm's method for all `tests` of the response.
    pub p: Option<f64>,
    /// Tests that p is corrected for.
    pub tests: Option<usize>,
    /// Share of the variation of the response, in percent.
    pub share_percent: Option<f64>,
}

/// Whether a finding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// A name and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Fact {
    pub name: String,
    pub value: String,
}

/// A doubt, and the runs that deserve it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// Stable name in snake_case.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// In which runs, each with its figures.
    pub seen: Vec<Seen>,
}

/// A doubt in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// An index of [`Report::runs`]; `None` where it is not about one run.
    pub run: Option<usize>,
    /// With figures.
    pub evidence: String,
    /// Advice.
    pub advice: String,
}

/// A picture. In its SVG marks and labels of a series carry `data-series`, with the series' name, so that it can be hidden; a `<title>` in a mark
/// is what is shown when it is pointed at. It has no ids, scripts or styles: they would meet those of the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// A stable name, as `feedrate plot` has it.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Explains marks and intervals, and names what was left out.
    pub caption: String,
    /// The picture on a light ground.
    #[serde(skip)]
    pub svg: String,
    /// The same on a dark one.
    #[serde(skip)]
    pub svg_dark: Option<String>,
    /// Series that can be hidden.
    pub series: Vec<String>,
    /// The numbers behind it.
    pub values: Table,
}

/// A figure that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotDrawn {
    /// As `feedrate plot` has it.
    pub name: String,
    /// Names what is missing.
    pub why: String,
    /// Advice.
    pub hint: String,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Run {
    /// Its folder.
    pub path: String,
    /// Its record, or whatever its numbers come from, as a relative URL from where the report lies.
    pub link: Option<String>,
    /// An index of [`Report::sources`].
    pub source: usize,
    /// The workload's name.
    pub workload: String,
    /// The parameter that was varied: `batch_size`; of a baseline `processes`.
    pub parameter: String,
    /// Its value.
    pub value: String,
    /// Levels of the factors of its workload, by the names that findings and figures use.
    pub factors: BTreeMap<String, String>,
    /// Number among the runs of its experiment: the study's, or in the order they were started.
    pub replicate: Option<u32>,
    /// The machine of rank 0.
    pub host: Option<String>,
    /// Machines.
    pub hosts: Option<u64>,
    /// Emulated accelerators; DLIO's ranks.
    pub accelerators: Option<u32>,
    /// Local wall-clock start.
    pub started: String,
    /// Epochs that were measured.
    pub epochs: u64,
    /// Utilisation.
    pub au: Au,
    /// Rates.
    pub throughput: Throughput,
    /// Names of doubts.
    pub doubts: Vec<String>,
    /// Reason why it counts for no experiment; `None` of one that does.
    pub unused: Option<String>,
    /// Every metric of it.
    pub metrics: Vec<Metric>,
}

/// Utilisations in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Au {
    /// As its files had it, right or wrong.
    pub reported_percent: Option<f64>,
    /// DLIO's definition, recomputed.
    pub windowed_percent: Option<f64>,
    /// Its population deviation over epochs, which is no measure of replicates.
    pub windowed_stdev_percent: Option<f64>,
    /// Over the whole time.
    pub all_steps_percent: Option<f64>,
    /// The rate that can go on.
    pub sustained_percent: Option<f64>,
}

/// Rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Throughput {
    /// Over whole epochs.
    pub samples_per_second: Option<f64>,
    /// Bytes that were read, over whole epochs.
    pub bytes_per_second: Option<f64>,
    /// Whether these bytes are not counted: samples times the mean size that DLIO's generator draws.
    pub is_estimated: bool,
    /// DLIO's figure with the steps counted right: nominal bytes in its window, in 2^20 bytes.
    pub windowed_mib_per_second: Option<f64>,
    /// Its population deviation over epochs.
    pub windowed_stdev_mib_per_second: Option<f64>,
}

/// A number of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `measure::metric::Metric`")]
pub struct Metric {
    pub name: String,
    pub unit: String,
    /// `None` where it cannot be known.
    pub value: Option<f64>,
    /// How it came to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// A folder that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its folder.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// One thing that whoever repeats the runs must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Method {
    /// `Order`.
    pub name: String,
    /// In sentences.
    pub says: String,
    /// To be typed, one a line.
    pub commands: Vec<String>,
}

impl Report {
    /// Whether runs must be told apart by where they come from.
    pub fn has_several_sources(&self) -> bool {
        1 < self.sources.len()
    }

    /// Runs with at least one doubt.
    pub fn doubted_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.doubts.is_empty()).count()
    }
}
