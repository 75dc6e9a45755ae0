//! Metrics: one file a metric, one row (or one for each variant) in [`METRICS`]. A metric reads a record and nothing else.
//!
//! To add one: write its file with a `pub static` [`Metric`], add its `mod` line and row here, and its entry in docs/guide/numbers.md.
//! It is then in `run`, `show`, `--json`, DLIO's `summary.json`, `list`, the csv of reports, `--response` and on the axes of plots.

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
#[cfg(test)]
mod tests;

pub use access::{
    AMPLIFICATION, CONSECUTIVE, FILES, IN_FLIGHT, IO_TIME_PERCENT, OVERLAP, SEQUENTIAL,
    UNIQUE_BYTES,
};
pub use au_all_steps::AU_ALL_STEPS;
pub use au_sustained::{AU_SUSTAINED, NotMeasurable, sustained, sustained_needs_steps};
pub(crate) use au_sustained::{SteadyReads, read_in_window};
pub use au_windowed::{AU_WINDOWED, block_au_percent};
pub use bytes::{DEVICE_BYTES, LOGICAL_BYTES};
pub use delivered::{DELIVERED_WHOLE, DELIVERED_WINDOWED};
pub use device::{DEVICE_PER_SECOND, GPU_UTILISATION};
pub use duration::DURATION_S;
pub use latency::{OPEN_LATENCY, Quantiles, READ_LATENCY, SAMPLE_LATENCY};
pub use nominal::{NOMINAL_WHOLE, NOMINAL_WINDOWED};
pub use samples::{SAMPLES_WHOLE, SAMPLES_WINDOWED, block_samples_per_second};
pub use stall::{
    STALL_CLIENT, STALL_DECODE, STALL_OPEN, STALL_PERCENT, STALL_QUEUE, STALL_READ, STALL_SKEW,
};
pub use time::{BARRIER_S, COMPUTE_S, LOAD_S};

pub use crate::stats::mean;

use crate::record::{AcceleratorEpoch, IoCounters, Record};
use crate::stats::{self, Interval};
use crate::window::Scope;
use feedrate_spec::names;
use feedrate_spec::plan::Plan;
use feedrate_spec::refusal::Refusal;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Every metric, in the order the docs show them.
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
    &UNIQUE_BYTES,
    &OVERLAP,
];

/// A number that follows from a record. `None` is "cannot be known", and never stands for 0.
#[derive(Debug)]
pub struct Metric {
    /// Name in `--response`, columns and JSON.
    pub id: MetricId,
    /// Name in lists, which have the unit beside it; empty where it is that of `id`.
    pub label: &'static str,
    /// Subject of sentences.
    pub title: &'static str,
    /// Name on axes and over plots; empty where it is `title`.
    pub axis: &'static str,
    /// How values are written, and how they vary.
    pub unit: Unit,
    /// Whether more or less is good.
    pub better: Better,
    /// One sentence without its full stop.
    pub definition: &'static str,
    /// Paper or program that defines it so; feedrate itself where a row does not say.
    pub source: &'static str,
    /// Place in the JSON of a summary, by keys with dots between.
    pub path: &'static str,
    /// All of this must be known.
    pub basis: &'static [Basis],
    /// Place on the page of a run.
    pub shown: Shown,
    /// How values follow from a record.
    pub figure: Figure,
    /// Key of DLIO's `summary.json`, and what to multiply its number by.
    pub reported_as: Option<(&'static str, f64)>,
    /// Key that our `summary.json` has beside DLIO's, and what to divide the number by. Without one, a metric that has a line of its own
    /// is there as `train_` and its name.
    pub added_as: Option<(&'static str, f64)>,
}

/// Fields that most rows leave as they are here.
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
    shown: Shown::OwnLine,
    figure: Figure::OfEpochs(|_| None, Fold::Sum),
    reported_as: None,
    added_as: None,
};

/// The same of those that stand on a line with others: the page of a run and `summary.json` have no line of their own for them.
const COMPOSED: Metric = Metric { shown: Shown::Composed, ..METRIC };

/// How values of accelerators, epochs and the run follow from a record.
#[derive(Debug)]
pub enum Figure {
    /// A value of each accelerator in each epoch, put together over accelerators, then over epochs.
    OfAccelerators(fn(Scope, &AcceleratorEpoch) -> Option<f64>, Fold, Fold),
    /// A value of each epoch as a whole, put together over epochs.
    OfEpochs(fn(Scope) -> Option<f64>, Fold),
    /// An amount of each accelerator in each epoch, by the length of epochs.
    PerSecond(fn(Scope, &AcceleratorEpoch) -> f64),
    /// From the counters of workers, all counted together.
    OfCounters(fn(&IoCounters) -> Option<f64>),
    /// From the plan and other metrics.
    Derived(fn(&Plan, ValueOf) -> Option<f64>),
}

/// Values of other metrics, of the same accelerator, epoch or run.
type ValueOf<'a> = &'a dyn Fn(&Metric) -> Option<f64>;

/// How several values become one.
#[derive(Clone, Copy, Debug)]
pub enum Fold {
    /// Over epochs, the mean of those that have a value.
    Mean,
    /// If each has a value.
    Sum,
    /// If each has a value.
    Most,
    /// The last epoch's, of what is counted from the start of the run.
    Last,
}

impl Fold {
    fn of_all(self, values: &[f64]) -> Option<f64> {
        match self {
            Fold::Mean => mean(values),
            Fold::Sum => (!values.is_empty()).then(|| values.iter().sum()),
            Fold::Most => values.iter().copied().reduce(f64::max),
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
    #[expect(missing_docs, reason = "the names say it")]
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
    /// A value as people read it.
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

    /// Whether values are amounts per second.
    pub fn is_rate(self) -> bool {
        matches!(self, Unit::SamplesPerSecond | Unit::BytesPerSecond)
    }

    /// Whether values are whole numbers.
    pub fn is_count(self) -> bool {
        matches!(self, Unit::Bytes | Unit::Files)
    }
}

/// Whether more or less is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Better {
    Higher,
    Lower,
}

/// Place of a metric on the page of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// On a line of its own.
    OwnLine,
    /// On a line that is composed of several, or on none.
    Composed,
}

/// Knowledge of a run that a metric needs. A record of ours has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Load and compute time of each step, and when blocks began and ended.
    Steps,
    /// Waits at the barrier.
    Barriers,
    /// The steps of every rank.
    AllRanks,
    /// Samples in a batch.
    BatchSize,
    /// Configured bytes of a sample.
    RecordLength,
    /// Counters and times of opens, reads and decoding.
    Reads,
    /// Counters of the machine.
    Host,
}

names! {
    /// How a number came to be known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Provenance {
        /// From what a run of ours counted and timed.
        Measured = "measured",
        /// From the step times or totals that another program left.
        Recomputed = "recomputed",
        /// From a model of what was not counted.
        Estimated = "estimated",
        /// As another program or a publication says.
        Reported = "reported",
    }
}

/// A number, and how it came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Value {
    pub number: f64,
    pub provenance: Provenance,
}

/// Values of a run; without those that cannot be known.
pub type Values = BTreeMap<MetricId, Value>;

/// Values of a record of ours.
pub fn values(record: &Record) -> Values {
    collect(Provenance::Measured, |metric| metric.of_run(record))
}

/// Values of one epoch of a record of ours.
pub fn values_of_epoch(scope: Scope) -> Values {
    collect(Provenance::Measured, |metric| metric.of_epoch(scope))
}

/// Values of a record that is made of another program's step times, as far as `known` is enough for them.
pub fn recomputed(record: &Record, known: &[Basis]) -> Values {
    collect(Provenance::Recomputed, |metric| {
        let is_known = metric.basis.iter().all(|basis| known.contains(basis));
        if is_known { metric.of_run(record) } else { None }
    })
}

/// Values that DLIO's `summary.json` reports; `number` looks up a key.
pub fn reported(number: impl Fn(&str) -> Option<f64>) -> Values {
    collect(Provenance::Reported, |metric| {
        let (key, factor) = metric.reported_as?;
        Some(number(key)? * factor)
    })
}

fn collect(provenance: Provenance, number: impl Fn(&Metric) -> Option<f64>) -> Values {
    let mut values = Values::new();
    for metric in METRICS {
        if let Some(number) = number(metric).filter(|number| number.is_finite()) {
            values.insert(metric.id, Value { number, provenance });
        }
    }
    values
}

/// No metric has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no response `{0}`")]
pub struct UnknownMetric(pub String);

impl From<UnknownMetric> for Refusal {
    fn from(error: UnknownMetric) -> Self {
        Refusal::new(error.to_string(), error.hint())
    }
}

impl UnknownMetric {
    /// Names that there are.
    pub fn hint(&self) -> String {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.id.name()).collect();
        format!("one of {}", names.join(", "))
    }
}

impl Metric {
    /// By its name in responses or lists, with or without `_percent`.
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

    /// Name in lists, which have the unit beside it.
    pub fn label(&self) -> &'static str {
        if self.label.is_empty() { self.id.name() } else { self.label }
    }

    /// Definition and source in a sentence.
    pub fn meaning(&self) -> String {
        format!("{} ({}).", self.definition, self.source)
    }

    /// The middle of several runs, and its interval: the mean of percentages, the geometric mean of rates and durations, which vary by
    /// factors. `None` of fewer than two runs.
    pub fn middle(&self, values: &[f64], confidence: f64) -> Option<Interval> {
        match self.unit {
            Unit::Percent => stats::percent_interval(values, confidence),
            _ => stats::geometric_mean_interval(values, confidence),
        }
    }

    /// Whether all that it needs is known. Of a loop that was watched it is what lies between two batches, the size of these where the
    /// plan has it, and the machine.
    fn is_known(&self, is_watched: bool, plan: &Plan) -> bool {
        !is_watched
            || self.basis.iter().all(|basis| match basis {
                Basis::Steps | Basis::AllRanks | Basis::Host => true,
                Basis::BatchSize => plan.loader.batch_size > 0,
                Basis::Barriers | Basis::RecordLength | Basis::Reads => false,
            })
    }

    /// Value of one accelerator in one epoch.
    pub fn of_accelerator(&self, scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
        if !self.is_known(scope.is_watched, scope.plan) {
            return None;
        }
        match self.figure {
            Figure::OfAccelerators(value, ..) => value(scope, accelerator),
            Figure::OfEpochs(..) => None,
            Figure::PerSecond(amount) => Some(amount(scope, accelerator) / scope.wall_s()?),
            Figure::OfCounters(value) => value(&accelerator.io),
            Figure::Derived(value) => {
                value(scope.plan, &|metric| metric.of_accelerator(scope, accelerator))
            }
        }
    }

    /// Value of one epoch, over its accelerators; `None` where not all have told.
    pub fn of_epoch(&self, scope: Scope) -> Option<f64> {
        if !scope.is_whole() || !self.is_known(scope.is_watched, scope.plan) {
            return None;
        }
        let over_accelerators = match self.figure {
            Figure::OfAccelerators(_, over_accelerators, _) => over_accelerators,
            Figure::OfEpochs(value, _) => return value(scope),
            Figure::PerSecond(_) => Fold::Sum,
            Figure::OfCounters(value) => return value(&counters([scope])),
            Figure::Derived(value) => {
                return value(scope.plan, &|metric| metric.of_epoch(scope));
            }
        };
        let each = scope.epoch.accelerators.iter().map(|one| self.of_accelerator(scope, one));
        over_accelerators.of_all(&each.collect::<Option<Vec<_>>>()?)
    }

    /// Value of the run, over the epochs of which all accelerators have told.
    pub fn of_run(&self, record: &Record) -> Option<f64> {
        if !self.is_known(record.watched.is_some(), &record.plan) {
            return None;
        }
        match self.figure {
            Figure::OfAccelerators(_, _, Fold::Mean) | Figure::OfEpochs(_, Fold::Mean) => {
                mean(&self.of_epochs(record).into_iter().flatten().collect::<Vec<_>>())
            }
            Figure::OfEpochs(_, Fold::Last) => self.of_epochs(record).pop()?,
            Figure::OfAccelerators(_, _, over_epochs) | Figure::OfEpochs(_, over_epochs) => {
                let epochs: Option<Vec<f64>> = self.of_epochs(record).into_iter().collect();
                over_epochs.of_all(&epochs?)
            }
            Figure::PerSecond(amount) => {
                let (mut amounts, mut wall_s) = (0.0, 0.0);
                for scope in Scope::all(record) {
                    let each = scope.epoch.accelerators.iter().map(|one| amount(scope, one));
                    amounts += each.sum::<f64>();
                    wall_s += scope.wall_s().unwrap_or(0.0);
                }
                (wall_s > 0.0).then(|| amounts / wall_s)
            }
            Figure::OfCounters(value) => value(&counters_of_run(record)),
            Figure::Derived(value) => value(&record.plan, &|metric| metric.of_run(record)),
        }
    }

    /// The value of each epoch of which all accelerators have told.
    pub fn of_epochs(&self, record: &Record) -> Vec<Option<f64>> {
        Scope::all(record).map(|scope| self.of_epoch(scope)).collect()
    }

    /// Population deviation over the epochs that have a value.
    pub fn stdev_over_epochs(&self, record: &Record) -> Option<f64> {
        stdev(&self.of_epochs(record).into_iter().flatten().collect::<Vec<_>>())
    }
}

/// Population standard deviation, as `numpy.std`; `None` of nothing.
pub fn stdev(values: &[f64]) -> Option<f64> {
    let mean_value = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean_value).powi(2)).collect();
    mean(&squares).map(f64::sqrt)
}

/// Counters of all accelerators over the run.
pub fn counters_of_run(record: &Record) -> IoCounters {
    counters(Scope::all(record))
}

/// Counters of all accelerators over some epochs.
pub(crate) fn counters<'a>(epochs: impl IntoIterator<Item = Scope<'a>>) -> IoCounters {
    let mut sum = IoCounters::default();
    for scope in epochs {
        scope.epoch.accelerators.iter().for_each(|accelerator| sum.add(&accelerator.io));
    }
    sum
}
