//! Metrics, each with a row in [`METRICS`]. The variants of a metric share a file. A metric depends only on a record.
//!
//! To add one, write its file with a `pub static` [`Metric`], and add its `mod` line and row here. Every output then shows it.
//! Long because the table has a row for each metric.

mod au_windowed;
mod au_all_steps;
mod au_sustained;
mod samples;
mod delivered;
mod nominal;
mod time;
mod duration;
mod stall;
mod latency;
mod bytes;
mod device;
mod access;
mod sums;
#[cfg(test)]
mod tests;

pub use access::{
    AMPLIFICATION, CONSECUTIVE, FILES, IN_FLIGHT, IO_TIME_PERCENT, OVERLAP, REQUESTS_IN_FLIGHT,
    SEQUENTIAL, UNIQUE_BYTES,
};
pub use au_all_steps::AU_ALL_STEPS;
pub use au_sustained::{AU_SUSTAINED, NotMeasurable, sustained_needs_steps, sustained_percent};
pub(crate) use au_sustained::{SteadyReads, steady_reads};
pub use au_windowed::{AU_WINDOWED, block_au_percent};
pub use bytes::{DEVICE_BYTES, LOGICAL_BYTES};
pub use delivered::{DELIVERED_WHOLE, DELIVERED_WINDOWED};
pub use device::{DEVICE_PER_SECOND, GPU_UTILISATION};
pub use duration::DURATION_S;
pub use latency::{OPEN_LATENCY, Quantiles, READ_LATENCY, SAMPLE_LATENCY};
pub use nominal::{NOMINAL_WHOLE, NOMINAL_WINDOWED};
pub use samples::{SAMPLES_WHOLE, SAMPLES_WINDOWED, block_samples_per_second};
pub(crate) use stall::client_share_of_decoding;
pub use stall::{
    STALL_CLIENT, STALL_DECODE, STALL_OPEN, STALL_PERCENT, STALL_QUEUE, STALL_READ, STALL_SKEW,
};
pub(crate) use sums::counters;
pub use sums::counters_of_run;
pub use time::{BARRIER_S, COMPUTE_S, LOAD_S};

use crate::record::{AcceleratorEpoch, IoCounters, Record};
pub use crate::stats::mean;
use crate::stats::{self, Interval};
use crate::window::Scope;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use sums::Portion;

/// All metrics, in the order of the documentation.
pub static METRICS: &[&Metric] = &[
    &AU_ALL_STEPS,
    &AU_WINDOWED,
    &AU_SUSTAINED,
    &SAMPLES_WINDOWED,
    &SAMPLES_WHOLE,
    &DELIVERED_WINDOWED,
    &DELIVERED_WHOLE,
    &NOMINAL_WINDOWED,
    &NOMINAL_WHOLE,
    &LOAD_S,
    &COMPUTE_S,
    &BARRIER_S,
    &DURATION_S,
    &STALL_PERCENT,
    &STALL_OPEN,
    &STALL_READ,
    &STALL_DECODE,
    &STALL_CLIENT,
    &STALL_QUEUE,
    &STALL_SKEW,
    &OPEN_LATENCY,
    &READ_LATENCY,
    &SAMPLE_LATENCY,
    &LOGICAL_BYTES,
    &DEVICE_BYTES,
    &DEVICE_PER_SECOND,
    &GPU_UTILISATION,
    &SEQUENTIAL,
    &CONSECUTIVE,
    &AMPLIFICATION,
    &FILES,
    &IO_TIME_PERCENT,
    &IN_FLIGHT,
    &REQUESTS_IN_FLIGHT,
    &UNIQUE_BYTES,
    &OVERLAP,
];

/// A number computed from a record. An unknown value is `None`, never 0.
#[derive(Debug)]
pub struct Metric {
    /// Name in `--response`, columns and JSON.
    pub id: MetricId,
    /// Name in lists that show the unit separately; empty if it equals the name of `id`.
    pub label: &'static str,
    /// Subject of sentences.
    pub title: &'static str,
    /// Title of axes and plots; empty if it equals `title`.
    pub axis: &'static str,
    /// Unit, which determines how values are formatted and averaged.
    pub unit: Unit,
    /// Whether higher or lower values are better.
    pub better: Better,
    /// One sentence without its full stop.
    pub definition: &'static str,
    /// Paper or program that defines the metric; `feedrate` by default.
    pub source: &'static str,
    /// Path in the JSON of a summary: keys separated by dots.
    pub path: &'static str,
    /// Data in a record that must be known.
    pub basis: &'static [Basis],
    /// Place on the page of a run.
    pub placement: Placement,
    /// How values are computed.
    pub formula: Formula,
    /// Key of DLIO's `summary.json`, and the factor that converts its number to this metric.
    pub reported_as: Option<(&'static str, f64)>,
    /// Key added to DLIO's `summary.json`, with the divisor to its number. Others with a line on a run's page become `train_` + name.
    pub added_as: Option<(&'static str, f64)>,
}

/// Defaults of a row.
const METRIC: Metric = Metric {
    id: MetricId(""),
    label: "",
    title: "",
    axis: "",
    unit: Unit::Ratio,
    better: Better::Higher,
    definition: "",
    source: "feedrate",
    path: "",
    basis: &[],
    placement: Placement::OwnLine,
    formula: Formula::PerEpoch(|_| None, Fold::Sum),
    reported_as: None,
    added_as: None,
};

/// Defaults of a metric that shares a line on the page of a run and has no key in `summary.json`.
const COMPOSED: Metric = Metric { placement: Placement::Composed, ..METRIC };

/// How values of accelerators, epochs and the run are computed from a record.
#[derive(Debug)]
pub enum Formula {
    /// A value for each accelerator in each epoch, combined over accelerators and then over epochs.
    PerAccelerator(fn(Scope, &AcceleratorEpoch) -> Option<f64>, Fold, Fold),
    /// A value for each epoch, combined over epochs.
    PerEpoch(fn(Scope) -> Option<f64>, Fold),
    /// A share for each accelerator in each epoch. Parts and wholes are added over accelerators and epochs.
    Percent(fn(&AcceleratorEpoch) -> Option<Portion>),
    /// An amount for each accelerator in each epoch, divided by the length of epochs.
    PerSecond(fn(Scope, &AcceleratorEpoch) -> f64),
    /// A value computed from the added counters of workers.
    FromCounters(fn(&IoCounters) -> Option<f64>),
    /// A value computed from the plan and other metrics.
    FromMetrics(fn(&Plan, ValueOf) -> Option<f64>),
}

/// Looks up other metrics of the same accelerator, epoch or run.
type ValueOf<'a> = &'a dyn Fn(&Metric) -> Option<f64>;

/// How several values are combined into one.
#[derive(Clone, Copy, Debug)]
pub enum Fold {
    /// The mean. Over epochs, unknown values are ignored.
    Mean,
    /// The sum; unknown if a value is unknown.
    Sum,
    /// The largest; unknown if a value is unknown.
    Max,
    /// The value of the last epoch, for counters that start at 0 with the run.
    Last,
}

impl Fold {
    fn combine(self, values: &[f64]) -> Option<f64> {
        match self {
            Fold::Mean => mean(values),
            Fold::Sum => (!values.is_empty()).then(|| values.iter().sum()),
            Fold::Max => values.iter().copied().reduce(f64::max),
            Fold::Last => values.last().copied(),
        }
    }
}

/// Stable name of a metric in snake_case, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct MetricId(&'static str);

impl MetricId {
    /// The name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

names! {
    /// Unit of a metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the names are self-explanatory")]
    pub enum Unit {
        Percent = "percent",
        SamplesPerSecond = "samples/s",
        BytesPerSecond = "bytes/s",
        Seconds = "s",
        Bytes = "bytes",
        Files = "files",
        Share = "share",
        Ratio = "ratio",
    }
}

impl Unit {
    /// Formats a limit with its unit. A percentage keeps all digits.
    pub fn limit_text(self, limit: f64) -> String {
        if self == Unit::Percent { format!("{limit} %") } else { self.text(limit) }
    }

    /// Formats a value with its unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Percent => format!("{value:.1} %"),
            Unit::SamplesPerSecond => units::per_second(value, "samples"),
            Unit::BytesPerSecond => units::bytes_per_second(value),
            Unit::Seconds => units::seconds(value),
            Unit::Bytes => units::bytes(value as u64),
            Unit::Files => units::counted(value as u64, "file"),
            Unit::Share => format!("{:.0} %", 100.0 * value),
            Unit::Ratio => format!("{value:.2}"),
        }
    }

    /// Computes the average of several runs with its confidence interval, as [`Metric::average_interval`] does.
    pub fn average_interval(self, values: &[f64], confidence: f64) -> Option<Interval> {
        match self {
            Unit::Percent => stats::percent_interval(values, confidence),
            _ => stats::geometric_mean_interval(values, confidence),
        }
    }

    /// Whether values are amounts per second.
    pub fn is_rate(self) -> bool {
        matches!(self, Unit::SamplesPerSecond | Unit::BytesPerSecond)
    }

    /// Whether values are whole numbers.
    pub fn is_count(self) -> bool {
        matches!(self, Unit::Bytes | Unit::Files)
    }
}

/// Whether higher or lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Better {
    Higher,
    Lower,
}

/// Place of a metric on the page of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On a separate line.
    OwnLine,
    /// On a line with other metrics, or not at all.
    Composed,
}

/// Data in a record that a metric needs. Records written by feedrate have all data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Load and compute time of each step, and start and end of blocks.
    Steps,
    /// Waiting time at barriers.
    Barriers,
    /// The steps of all ranks.
    AllRanks,
    /// Number of samples in a batch.
    BatchSize,
    /// Configured bytes per sample.
    RecordLength,
    /// Counters and times of opens, reads and decoding.
    Reads,
    /// Counters of the machine.
    Host,
}

names! {
    /// Origin of a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Provenance {
        /// Measured in a run of feedrate.
        Measured = "measured",
        /// Computed from the step times or totals of another program.
        Recomputed = "recomputed",
        /// Estimated by a model.
        Estimated = "estimated",
        /// Taken over from another program or a publication.
        Reported = "reported",
    }
}

/// A number with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Value {
    pub number: f64,
    pub provenance: Provenance,
}

/// The known values of a run.
pub type Values = BTreeMap<MetricId, Value>;

/// Computes the values of a record written by feedrate.
pub fn measured_values(record: &Record) -> Values {
    collect_values(Provenance::Measured, |metric| metric.run_value(record))
}

/// Computes the values of one epoch of a record written by feedrate.
pub fn measured_epoch_values(scope: Scope) -> Values {
    collect_values(Provenance::Measured, |metric| metric.epoch_value(scope))
}

/// Computes the values of a record that was created from another program's step times. Metrics whose basis is not in `known` are omitted.
pub fn recomputed_values(record: &Record, known: &[Basis]) -> Values {
    collect_values(Provenance::Recomputed, |metric| {
        let is_known = metric.basis.iter().all(|basis| known.contains(basis));
        if is_known { metric.run_value(record) } else { None }
    })
}

/// Returns the values in DLIO's `summary.json`. `number` looks up a key.
pub fn reported_values(number: impl Fn(&str) -> Option<f64>) -> Values {
    collect_values(Provenance::Reported, |metric| {
        let (key, factor) = metric.reported_as?;
        Some(number(key)? * factor)
    })
}

fn collect_values(provenance: Provenance, number: impl Fn(&Metric) -> Option<f64>) -> Values {
    let mut values = Values::new();
    for metric in METRICS {
        if let Some(number) = number(metric).filter(|number| number.is_finite()) {
            values.insert(metric.id, Value { number, provenance });
        }
    }
    values
}

/// Error: no metric has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no response `{0}`")]
pub struct UnknownMetric(pub String);

impl From<UnknownMetric> for Refusal {
    fn from(error: UnknownMetric) -> Self {
        Refusal::new(error.to_string(), error.hint())
    }
}

impl UnknownMetric {
    /// Lists the names of all metrics.
    pub fn hint(&self) -> String {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.id.name()).collect();
        format!("one of {}", names.join(", "))
    }
}

impl Metric {
    /// Whether it is a utilisation.
    pub fn is_utilisation(&self) -> bool {
        self.id.name().starts_with("au_")
    }

    /// Finds a metric by its id or label; `_percent` may be omitted.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn find(name: &str) -> Result<&'static Metric, UnknownMetric> {
        let found = METRICS.iter().copied().find(|metric| {
            let id = metric.id.name();
            id == name || metric.label() == name || id.strip_suffix("_percent") == Some(name)
        });
        found.ok_or_else(|| UnknownMetric(name.into()))
    }

    /// Name in lists that show the unit separately.
    pub fn label(&self) -> &'static str {
        if self.label.is_empty() { self.id.name() } else { self.label }
    }

    /// Definition and source in a sentence.
    pub fn meaning(&self) -> String {
        format!("{} ({}).", self.definition, self.source)
    }

    /// Computes the average of several runs with its confidence interval: the mean for percentages, and for rates and durations the geometric
    /// mean, as their variation is multiplicative. `None` for fewer than two runs.
    pub fn average_interval(&self, values: &[f64], confidence: f64) -> Option<Interval> {
        self.unit.average_interval(values, confidence)
    }

    /// Whether the metric's basis is known. For a watched loop, only the steps, the machine and possibly the batch size are known.
    fn is_known(&self, is_watched: bool, plan: &Plan) -> bool {
        !is_watched
            || self.basis.iter().all(|basis| match basis {
                Basis::Steps | Basis::AllRanks | Basis::Host => true,
                Basis::BatchSize => plan.loader.batch_size > 0,
                Basis::Barriers | Basis::RecordLength | Basis::Reads => false,
            })
    }

    /// Computes the value of one accelerator in one epoch.
    pub fn accelerator_value(&self, scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
        if !self.is_known(scope.is_watched, scope.plan) {
            return None;
        }
        match self.formula {
            Formula::PerAccelerator(value, ..) => value(scope, accelerator),
            Formula::PerEpoch(..) => None,
            Formula::Percent(portion) => portion(accelerator).map(Portion::percent),
            Formula::PerSecond(amount) => Some(amount(scope, accelerator) / scope.wall_s()?),
            Formula::FromCounters(value) => value(&accelerator.io),
            Formula::FromMetrics(value) => {
                value(scope.plan, &|metric| metric.accelerator_value(scope, accelerator))
            }
        }
    }

    /// Computes the value of one epoch over its accelerators; `None` unless the epoch is whole (see [`Scope::is_whole`]).
    pub fn epoch_value(&self, scope: Scope) -> Option<f64> {
        if !scope.is_whole() || !self.is_known(scope.is_watched, scope.plan) {
            return None;
        }
        let over_accelerators = match self.formula {
            Formula::PerAccelerator(_, over_accelerators, _) => over_accelerators,
            Formula::PerEpoch(value, _) => return value(scope),
            Formula::Percent(portion) => {
                return Portion::sum_epoch(scope, portion).map(Portion::percent);
            }
            Formula::PerSecond(_) => Fold::Sum,
            Formula::FromCounters(value) => return value(&counters([scope])),
            Formula::FromMetrics(value) => {
                return value(scope.plan, &|metric| metric.epoch_value(scope));
            }
        };
        let accelerators = scope.epoch.accelerators.iter();
        let values: Option<Vec<f64>> =
            accelerators.map(|accelerator| self.accelerator_value(scope, accelerator)).collect();
        over_accelerators.combine(&values?)
    }

    /// Computes the value of the run over its whole epochs.
    pub fn run_value(&self, record: &Record) -> Option<f64> {
        if !self.is_known(record.watched.is_some(), &record.plan) {
            return None;
        }
        match self.formula {
            Formula::PerAccelerator(_, _, Fold::Mean) | Formula::PerEpoch(_, Fold::Mean) => {
                mean(&self.epoch_values(record).into_iter().flatten().collect::<Vec<_>>())
            }
            Formula::PerEpoch(_, Fold::Last) => self.epoch_values(record).pop()?,
            Formula::PerAccelerator(_, _, over_epochs) | Formula::PerEpoch(_, over_epochs) => {
                let epochs: Option<Vec<f64>> = self.epoch_values(record).into_iter().collect();
                over_epochs.combine(&epochs?)
            }
            Formula::Percent(portion) => {
                let epochs = Scope::whole_epochs(record);
                let known = epochs.filter_map(|scope| Portion::sum_epoch(scope, portion));
                known.reduce(Portion::add).map(Portion::percent)
            }
            Formula::PerSecond(amount) => {
                let mut total = 0.0;
                let mut wall_s = 0.0;
                for scope in Scope::whole_epochs(record) {
                    let accelerators = scope.epoch.accelerators.iter();
                    total +=
                        accelerators.map(|accelerator| amount(scope, accelerator)).sum::<f64>();
                    wall_s += scope.wall_s().unwrap_or(0.0);
                }
                (wall_s > 0.0).then(|| total / wall_s)
            }
            Formula::FromCounters(value) => value(&counters_of_run(record)),
            Formula::FromMetrics(value) => value(&record.plan, &|metric| metric.run_value(record)),
        }
    }

    /// Computes the value of each whole epoch.
    pub fn epoch_values(&self, record: &Record) -> Vec<Option<f64>> {
        Scope::whole_epochs(record).map(|scope| self.epoch_value(scope)).collect()
    }

    /// Population standard deviation over the epochs with a known value.
    pub fn stdev_over_epochs(&self, record: &Record) -> Option<f64> {
        stdev(&self.epoch_values(record).into_iter().flatten().collect::<Vec<_>>())
    }
}

/// Population standard deviation, like `numpy.std`; `None` without values.
pub fn stdev(values: &[f64]) -> Option<f64> {
    let mean_value = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean_value).powi(2)).collect();
    mean(&squares).map(f64::sqrt)
}
