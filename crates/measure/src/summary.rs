//! The summary of a run, which `--json` prints together with the answer. Every number is computed from the record; `null` means unknown.
//! Each metric is stored at the path that its table row declares, so a new metric needs no change here.

use crate::access::AccessSummary;
use crate::checkpoints::CheckpointSummary;
use crate::derived::Derived;
use crate::doubt::{self, Doubt};
use crate::histogram::Histogram;
use crate::metric::{self, Basis, METRICS, Metric, NotMeasurable, Quantiles, Values};
use crate::phase::{self, Phase};
use crate::record::{EpochRecord, HostEpoch, Record, StagingSummary};
use crate::transfers::TransferSummary;
use crate::verdict::{self, Verdict};
use crate::window::{Scope, seconds};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Summary of one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The run's folder; `null` until the caller sets it.
    pub run_dir: Option<String>,
    /// The workload's name.
    pub workload: String,
    /// Number of emulated accelerators.
    pub accelerators: u32,
    /// Number of epochs for which the record has all accelerators.
    pub epochs: u64,
    /// Steps of the longest epoch that ran, or the planned steps of an epoch if none ran.
    pub steps: u64,
    /// Metrics over the run.
    #[serde(flatten)]
    pub figures: Figures,
    /// Reasons to doubt the results, most severe first.
    pub doubts: Vec<Doubt>,
    /// What bounds the run.
    pub verdict: Verdict,
    /// Summary of each epoch.
    pub per_epoch: Vec<EpochSummary>,
    /// Phases: staging, epochs, evaluations, and the times before, during and after checkpoints.
    pub phases: Vec<Phase>,
    /// The copy that was read instead of the dataset; present only if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staging: Option<StagingSummary>,
    /// Requests to an object store, with their repetitions; present only if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferSummary>,
    /// Evaluations; `null` if there were none.
    pub evaluation: Option<EvaluationSummary>,
    /// Checkpoints; `null` if there were none.
    pub checkpoint: Option<CheckpointSummary>,
    /// Whether the run reached its end.
    pub complete: bool,
}

/// Summary of one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Summary` and `HostEpoch`")]
pub struct EpochSummary {
    pub epoch: u32,
    pub steps: u64,
    #[serde(flatten)]
    pub figures: Figures,
    pub host: HostSummary,
}

/// Summary of all evaluations. Rates include all steps.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `Summary`")]
pub struct EvaluationSummary {
    pub evaluations: u64,
    pub steps: u64,
    #[serde(flatten)]
    pub figures: Figures,
    /// Summary of each evaluation; `epoch` is the epoch before it.
    pub per_evaluation: Vec<EpochSummary>,
}

/// Metrics of a run or an epoch, with latencies and file accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Values of the metrics that are known.
    pub values: Values,
    /// Number of steps needed to measure sustained utilisation.
    pub sustained_needs_steps: u64,
    /// Reason why sustained utilisation is unknown; `None` if it is known.
    pub sustained_missing: Option<NotMeasurable>,
    /// Durations of open calls; `None` if they were not counted.
    pub open_latency: Option<Quantiles>,
    /// Durations of read calls; `None` if they were not counted.
    pub read_latency: Option<Quantiles>,
    /// Durations of whole samples; `None` if they were not counted.
    pub sample_latency: Option<Quantiles>,
    /// File accesses of a run; `None` for an epoch.
    pub access: Option<AccessSummary>,
}

/// The machine during an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `HostEpoch`")]
pub struct HostSummary {
    pub cpu_busy_share: Option<f64>,
    pub process_cpu_s: Option<f64>,
    pub major_page_faults: Option<u64>,
    pub device_read_bytes: Option<u64>,
    pub device_write_bytes: Option<u64>,
    pub resident_before_bytes: Option<u64>,
    pub resident_after_bytes: Option<u64>,
}

impl Summary {
    /// Summarises a record.
    pub fn new(record: &Record) -> Self {
        Summary::from_derived(&Derived::new(record))
    }

    /// Summarises a record, whose target may have been replaced.
    pub fn from_derived(derived: &Derived) -> Self {
        let record = derived.record;
        let doubts = doubt::doubts(derived);
        let verdict = verdict::judge(derived, &doubts);
        let steps = if record.epochs.is_empty() {
            record.plan.train.steps_in_epoch(1)
        } else {
            derived.steps
        };
        Summary {
            run_dir: None,
            workload: record.plan.workload.clone(),
            accelerators: record.plan.accelerators,
            epochs: Scope::whole_epochs(record).count() as u64,
            steps,
            figures: Figures::for_run(derived),
            doubts,
            verdict,
            per_epoch: record.epochs.iter().map(|epoch| EpochSummary::new(record, epoch)).collect(),
            phases: phase::phases(record),
            staging: record.staging.as_ref().map(StagingSummary::new),
            transfers: derived.transfers.as_ref().map(TransferSummary::new),
            evaluation: record.evaluation_record().as_ref().map(EvaluationSummary::new),
            checkpoint: CheckpointSummary::new(record),
            complete: record.complete,
        }
    }
}

impl EvaluationSummary {
    /// Summarises the evaluations in `record`, which [`Record::evaluation_record`] returned.
    fn new(record: &Record) -> Self {
        let derived = Derived::new(record);
        EvaluationSummary {
            evaluations: Scope::whole_epochs(record).count() as u64,
            steps: derived.steps,
            figures: Figures::for_run(&derived),
            per_evaluation: record.epochs.iter().map(|e| EpochSummary::new(record, e)).collect(),
        }
    }
}

impl EpochSummary {
    /// Summarises an epoch of a record.
    pub fn new(record: &Record, epoch: &EpochRecord) -> Self {
        let scope = Scope::new(record, epoch);
        let host = if scope.is_whole() { epoch.host.clone() } else { HostEpoch::default() };
        EpochSummary {
            epoch: epoch.number,
            steps: scope.steps(),
            figures: Figures::for_epoch(scope),
            host: HostSummary {
                cpu_busy_share: host.cpu_busy_share,
                process_cpu_s: host.process_cpu_ns.map(seconds),
                major_page_faults: host.major_page_faults,
                device_read_bytes: host.device_read_bytes,
                device_write_bytes: host.device_write_bytes,
                resident_before_bytes: host.resident_before_bytes,
                resident_after_bytes: host.resident_after_bytes,
            },
        }
    }
}

impl Figures {
    fn for_run(derived: &Derived) -> Self {
        let record = derived.record;
        let is_sustained = derived.value(&metric::AU_SUSTAINED).is_some();
        let missing =
            Scope::whole_epochs(record).find_map(|scope| metric::sustained_percent(scope).err());
        let has_counters = record.watched.is_none();
        let quantiles = |latency: &Histogram| has_counters.then(|| Quantiles::new(latency));
        Figures {
            values: derived.values.clone(),
            sustained_needs_steps: metric::sustained_needs_steps(&record.plan),
            sustained_missing: if is_sustained { None } else { missing },
            open_latency: quantiles(&derived.io.open_latency),
            read_latency: quantiles(&derived.io.read_latency),
            sample_latency: quantiles(&derived.io.sample_latency),
            access: has_counters.then(|| AccessSummary::new(record, &derived.io)),
        }
    }

    /// Computes the figures of a record that contains only reads, such as an imported log.
    pub fn from_reads_only(record: &Record) -> Self {
        let io = metric::counters_of_run(record);
        let mut values = metric::recomputed_values(record, &[Basis::Reads]);
        if io.read_ns == 0 {
            // The log has no durations of calls.
            values.remove(&metric::IN_FLIGHT.id);
            values.remove(&metric::IO_TIME_PERCENT.id);
        }
        Figures {
            values,
            sustained_needs_steps: 0,
            sustained_missing: Some(NotMeasurable::ReadsUnknown),
            open_latency: Some(Quantiles::new(&io.open_latency)),
            read_latency: Some(Quantiles::new(&io.read_latency)),
            sample_latency: None,
            access: Some(AccessSummary::new(record, &io)),
        }
    }

    fn for_epoch(scope: Scope) -> Self {
        let io = metric::counters([scope].into_iter().filter(|scope| scope.is_whole()));
        let quantiles = |latency: &Histogram| (!scope.is_watched).then(|| Quantiles::new(latency));
        Figures {
            values: metric::measured_epoch_values(scope),
            sustained_needs_steps: metric::sustained_needs_steps(scope.plan),
            sustained_missing: metric::sustained_percent(scope).err(),
            open_latency: quantiles(&io.open_latency),
            read_latency: quantiles(&io.read_latency),
            sample_latency: quantiles(&io.sample_latency),
            access: None,
        }
    }

    /// Value of a metric; `None` if unknown.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.id).map(|value| value.number)
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tree = Map::new();
        for metric in METRICS {
            let number = self.value(metric);
            let json = if metric.unit.is_count() {
                number.map(|number| number as u64).into()
            } else {
                number.into()
            };
            put(&mut tree, metric.path, json);
        }
        put(&mut tree, "au.sustained_needs_steps", self.sustained_needs_steps.into());
        let to_value = |latency| serde_json::to_value(latency).map_err(serde::ser::Error::custom);
        put(&mut tree, "latency.open", to_value(&self.open_latency)?);
        put(&mut tree, "latency.read", to_value(&self.read_latency)?);
        put(&mut tree, "latency.sample", to_value(&self.sample_latency)?);
        match &self.access {
            Some(access) => {
                let object = serde_json::to_value(access).map_err(serde::ser::Error::custom)?;
                for (key, value) in object.as_object().into_iter().flatten() {
                    put(&mut tree, &format!("access.{key}"), value.clone());
                }
            }
            None => drop(tree.remove("access")),
        }
        tree.serialize(serializer)
    }
}

/// Inserts a value at a path of keys separated by dots.
fn put(tree: &mut Map<String, serde_json::Value>, path: &str, json: Value) {
    let Some((key, rest)) = path.split_once('.') else {
        tree.insert(path.into(), json);
        return;
    };
    let inner = tree.entry(key).or_insert_with(|| Map::new().into());
    if let Some(inner) = inner.as_object_mut() {
        put(inner, rest, json);
    }
}

impl JsonSchema for Figures {
    fn schema_name() -> Cow<'static, str> {
        "Figures".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut tree = json_schema!({ "type": "object" }).to_value();
        for metric in METRICS {
            let number = if metric.unit.is_count() { "integer" } else { "number" };
            let leaf = json_schema!({ "type": [number, "null"], "description": metric.meaning() });
            put_schema(&mut tree, metric.path, leaf.to_value());
        }
        let steps = json_schema!({ "type": "integer" });
        put_schema(&mut tree, "au.sustained_needs_steps", steps.to_value());
        let quantiles = generator.subschema_for::<Option<Quantiles>>().to_value();
        for call in ["open", "read", "sample"] {
            put_schema(&mut tree, &format!("latency.{call}"), quantiles.clone());
        }
        let access = AccessSummary::json_schema(generator).to_value();
        for (key, leaf) in access["properties"].as_object().into_iter().flatten() {
            put_schema(&mut tree, &format!("access.{key}"), leaf.clone());
        }
        // Figures of epochs have no `access`.
        if let Some(required) = tree["required"].as_array_mut() {
            required.retain(|key| key != "access");
        }
        Schema::try_from(tree).unwrap_or_default()
    }
}

/// Inserts the schema of a value at the path where [`put`] inserts the value.
fn put_schema(schema: &mut Value, path: &str, leaf: Value) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    schema["type"] = "object".into();
    let inner = &mut schema["properties"][key];
    let is_new = inner.is_null();
    match rest {
        Some(rest) => put_schema(inner, rest, leaf),
        None => *inner = leaf,
    }
    if is_new {
        match schema["required"].as_array_mut() {
            Some(required) => required.push(key.into()),
            None => schema["required"] = vec![key].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{block, epoch, plan, record, simple};
    use crate::record::file;

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    const TOP_LEVEL_KEYS: [&str; 21] = [
        "run_dir",
        "workload",
        "accelerators",
        "epochs",
        "steps",
        "au",
        "throughput",
        "time",
        "duration_s",
        "stall",
        "latency",
        "bytes",
        "gpu_utilisation_percent",
        "access",
        "doubts",
        "verdict",
        "per_epoch",
        "phases",
        "evaluation",
        "checkpoint",
        "complete",
    ];

    /// Checks that the object at `parent` has the promised keys. Any other keys must be paths of metrics.
    #[track_caller]
    fn check_keys(summary: &serde_json::Value, parent: &str, promised: &[&str]) {
        let object =
            parent.split('.').filter(|key| !key.is_empty()).fold(summary, |value, key| &value[key]);
        let mut found = keys(object);
        found.retain(|key| {
            let path = if parent.is_empty() { key.to_string() } else { format!("{parent}.{key}") };
            promised.contains(key) || METRICS.iter().all(|metric| metric.path != path)
        });
        assert_eq!(found, promised, "{parent}");
    }

    #[test]
    fn the_object_has_the_promised_keys() {
        let summary = Summary::new(&simple(&[(10, 5, 1, 100), (20, 5, 0, 100)]));
        let value = serde_json::to_value(summary).unwrap();
        for (parent, promised) in [
            ("", &TOP_LEVEL_KEYS[..]),
            (
                "au",
                &[
                    "all_steps_percent",
                    "windowed_percent",
                    "sustained_percent",
                    "sustained_needs_steps",
                ],
            ),
            (
                "throughput",
                &[
                    "samples_per_second",
                    "delivered_bytes_per_second",
                    "nominal_bytes_per_second",
                    "device_bytes_per_second",
                ],
            ),
            ("throughput.samples_per_second", &["windowed", "whole"]),
            ("time", &["load_s", "compute_s", "barrier_s"]),
            (
                "stall",
                &["percent", "open_s", "read_s", "decode_s", "client_s", "queue_s", "skew_s"],
            ),
            ("bytes", &["logical", "device"]),
            (
                "access",
                &[
                    "sequential_share",
                    "consecutive_share",
                    "read_amplification",
                    "files",
                    "io_time_percent",
                    "mean_in_flight",
                    "requests_in_flight",
                    "unique_bytes",
                    "overlap_share",
                    "reads",
                    "opens",
                    "preparation_opens",
                    "request_bytes",
                    "bytes_per_second_by_size",
                    "files_by_ranks",
                ],
            ),
            ("latency.read", &["count", "p50_s", "p90_s", "p99_s", "p99_9_s", "p99_99_s", "max_s"]),
            ("verdict", &["name", "evidence"]),
        ] {
            check_keys(&value, parent, promised);
        }
        assert_eq!(keys(&value["doubts"][0]), ["name", "severity", "evidence", "advice", "facts"]);
        assert_eq!(value["per_epoch"][0]["epoch"], 1);
    }

    #[test]
    fn unknown_values_are_null() {
        let value = serde_json::to_value(Summary::new(&simple(&[(1000, 1000, 0, 5)]))).unwrap();
        assert!(
            value["au"]["windowed_percent"].is_null() && value["au"]["sustained_percent"].is_null()
        );
        assert_eq!(value["au"]["all_steps_percent"], 50.0);
        assert_eq!(value["au"]["sustained_needs_steps"], 8);
        assert!(
            value["throughput"]["samples_per_second"]["windowed"].is_null()
                && value["bytes"]["device"].is_null()
        );
        assert!(value["latency"]["open"]["p50_s"].is_null());
        assert!(value["access"]["request_bytes"].is_null() && value["access"]["files"].is_null());
        let without_epochs = Summary::new(&record(plan(2, 7), vec![]));
        assert_eq!(
            (
                without_epochs.steps,
                without_epochs.epochs,
                without_epochs.figures.value(&metric::AU_ALL_STEPS)
            ),
            (7, 0, None)
        );
    }

    #[test]
    fn a_record_read_from_its_file_has_the_same_summary() {
        let steps: Vec<_> =
            (0..40).map(|i| (i * 37 % 91, 300 + i % 3, i * 13 % 7, 999_983)).collect();
        let blocks = |at| vec![vec![block(at, &steps)], vec![block(at, &steps)]];
        let mut record = record(plan(2, 40), vec![epoch(1, blocks(0)), epoch(2, blocks(50_000))]);
        record.epochs[0].host.process_device_read_bytes = Some(12_345);
        for ns in 1..1000 {
            record.epochs[1].accelerators[0].io.read_latency.record(ns * ns);
        }
        let folder = tempfile::tempdir().unwrap();
        file::write(folder.path(), &record).unwrap();
        let read_back = file::read(folder.path()).unwrap();
        assert_eq!(read_back, record);
        assert_eq!(Summary::new(&read_back), Summary::new(&record));
    }
}
