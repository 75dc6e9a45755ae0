//! The summary of a run: the object of `--json`. Every number follows from the record; `null` is "cannot be known".

use crate::access::Access;
use crate::checkpoints::CheckpointSummary;
use crate::derived::{Derived, StallTime, Time};
use crate::doubt::{self, Doubt};
use crate::metric::{self, Metric, NotMeasurable, Quantiles};
use crate::phase::{self, Phase};
use crate::record::{EpochRecord, HostEpoch, Record};
use crate::verdict::{self, Verdict};
use crate::window::{Scope, seconds};
use serde::Serialize;

/// One run, summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The run's folder, as the caller knows it; `null` until set.
    pub run_dir: Option<String>,
    /// The workload's name.
    pub workload: String,
    /// Emulated accelerators.
    pub accelerators: u32,
    /// Epochs of which all accelerators have told.
    pub epochs: u64,
    /// Steps of an epoch: of the longest that ran, else as planned.
    pub steps: u64,
    /// Utilisation over the run.
    pub au: Au,
    /// Rates over the run.
    pub throughput: Throughput,
    /// Seconds of an accelerator, in the mean.
    pub time: Time,
    /// The parts of `time.load_s`.
    pub stall: StallTime,
    /// Bytes over the run.
    pub bytes: Bytes,
    /// How files were read over the run.
    pub access: Access,
    /// Latencies over the run.
    pub latency: Latencies,
    /// Reasons not to believe, the worst first.
    pub doubts: Vec<Doubt>,
    /// What the run was bound by.
    pub verdict: Verdict,
    /// The same for each epoch.
    pub per_epoch: Vec<EpochSummary>,
    /// Epochs, evaluations, and before, during and after checkpoints.
    pub phases: Vec<Phase>,
    /// The evaluations; `null` where there were none.
    pub evaluation: Option<EvaluationSummary>,
    /// The checkpoints; `null` where there were none.
    pub checkpoint: Option<CheckpointSummary>,
    /// Whether the run reached its end.
    pub complete: bool,
}

/// One epoch, summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `Summary` and `HostEpoch`")]
pub struct EpochSummary {
    pub epoch: u32,
    pub steps: u64,
    pub duration_s: Option<f64>,
    pub au: Au,
    pub throughput: Throughput,
    pub time: Time,
    pub stall: StallTime,
    pub bytes: Bytes,
    pub latency: Latencies,
    pub host: Host,
}

/// All evaluations, summed up. Rates are whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `Summary`")]
pub struct EvaluationSummary {
    pub evaluations: u64,
    pub steps: u64,
    pub au: Au,
    pub throughput: Throughput,
    pub time: Time,
    pub stall: StallTime,
    pub bytes: Bytes,
    /// One for each; its epoch is the one it came after.
    pub per_evaluation: Vec<EpochSummary>,
}

/// The three utilisations in percent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct Au {
    pub windowed_percent: Option<f64>,
    pub all_steps_percent: Option<f64>,
    pub sustained_percent: Option<f64>,
    pub sustained_needs_steps: u64,
    /// Why there is no `sustained_percent`.
    #[serde(skip)]
    pub sustained_missing: Option<NotMeasurable>,
}

/// Three rates, each in the window and over whole epochs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct Throughput {
    pub delivered_bytes_per_second: Rate,
    pub nominal_bytes_per_second: Rate,
    pub samples_per_second: Rate,
}

/// One rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Over the window of au_windowed.
    pub windowed: Option<f64>,
    /// Over whole epochs.
    pub whole: Option<f64>,
}

/// Bytes that read calls returned, and bytes from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct Bytes {
    /// `null` where not all accelerators have told.
    pub logical: Option<u64>,
    pub device: Option<u64>,
}

/// Quantiles of the three latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct Latencies {
    pub open: Quantiles,
    pub read: Quantiles,
    pub sample: Quantiles,
}

/// What the machine did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in `HostEpoch`")]
pub struct Host {
    pub cpu_busy_share: Option<f64>,
    pub process_cpu_s: Option<f64>,
    pub device_read_bytes: Option<u64>,
    pub device_write_bytes: Option<u64>,
    pub resident_before_bytes: Option<u64>,
    pub resident_after_bytes: Option<u64>,
}

impl Summary {
    /// Of a record.
    pub fn of(record: &Record) -> Self {
        let derived = Derived::of(record);
        let doubts = doubt::doubts(&derived);
        let verdict = verdict::of(&derived, &doubts);
        let run = |metric: &Metric| (metric.of_run)(record);
        let steps = if record.epochs.is_empty() {
            record.plan.train.steps_in_epoch(1)
        } else {
            derived.steps
        };
        Summary {
            run_dir: None,
            workload: record.plan.workload.clone(),
            accelerators: record.plan.accelerators,
            epochs: Scope::all(record).count() as u64,
            steps,
            au: Au::of(record, derived.au_sustained, run),
            throughput: Throughput::of(run),
            time: derived.time,
            stall: derived.stall,
            bytes: Bytes { logical: logical_bytes(&derived), device: derived.device_bytes },
            access: Access::of(record),
            latency: Latencies {
                open: metric::OPEN_LATENCY.of_run(record),
                read: metric::READ_LATENCY.of_run(record),
                sample: metric::SAMPLE_LATENCY.of_run(record),
            },
            doubts,
            verdict,
            per_epoch: record.epochs.iter().map(|epoch| EpochSummary::of(record, epoch)).collect(),
            phases: phase::phases(record),
            evaluation: record.of_evaluations().as_ref().map(EvaluationSummary::of),
            checkpoint: CheckpointSummary::of(record),
            complete: record.complete,
        }
    }
}

impl EvaluationSummary {
    /// `record`: as [`Record::of_evaluations`] makes it.
    fn of(record: &Record) -> Self {
        let derived = Derived::of(record);
        let run = |metric: &Metric| (metric.of_run)(record);
        EvaluationSummary {
            evaluations: Scope::all(record).count() as u64,
            steps: derived.steps,
            au: Au::of(record, derived.au_sustained, run),
            throughput: Throughput::of(run),
            time: derived.time,
            stall: derived.stall,
            bytes: Bytes { logical: logical_bytes(&derived), device: derived.device_bytes },
            per_evaluation: record.epochs.iter().map(|e| EpochSummary::of(record, e)).collect(),
        }
    }
}

impl EpochSummary {
    /// Of an epoch of a record.
    pub fn of(record: &Record, epoch: &EpochRecord) -> Self {
        let scope = Scope { plan: &record.plan, epoch };
        let value = |metric: &Metric| (metric.of_epoch)(scope);
        let host = if scope.is_whole() { epoch.host.clone() } else { HostEpoch::default() };
        EpochSummary {
            epoch: epoch.number,
            steps: scope.steps(),
            duration_s: scope.wall_s(),
            au: Au::of_epoch(scope, value),
            throughput: Throughput::of(value),
            time: Time::of(value),
            stall: StallTime::of(value),
            bytes: Bytes {
                logical: scope.is_whole().then(|| read_bytes(epoch)),
                device: host.process_device_read_bytes,
            },
            latency: Latencies {
                open: metric::OPEN_LATENCY.of_epoch(scope),
                read: metric::READ_LATENCY.of_epoch(scope),
                sample: metric::SAMPLE_LATENCY.of_epoch(scope),
            },
            host: Host {
                cpu_busy_share: host.cpu_busy_share,
                process_cpu_s: host.process_cpu_ns.map(seconds),
                device_read_bytes: host.device_read_bytes,
                device_write_bytes: host.device_write_bytes,
                resident_before_bytes: host.resident_before_bytes,
                resident_after_bytes: host.resident_after_bytes,
            },
        }
    }
}

/// Where all epochs were broken off before all told, nothing is known.
fn logical_bytes(derived: &Derived) -> Option<u64> {
    let none_is_whole = Scope::all(derived.record).next().is_none();
    let is_unknown = none_is_whole && !derived.record.epochs.is_empty();
    (!is_unknown).then_some(derived.logical_bytes)
}

fn read_bytes(epoch: &EpochRecord) -> u64 {
    epoch.accelerators.iter().map(|accelerator| accelerator.io.read_bytes).sum()
}

impl Au {
    fn of(record: &Record, sustained: Option<f64>, run: impl Fn(&Metric) -> Option<f64>) -> Self {
        let missing = || Scope::all(record).find_map(|scope| metric::sustained(scope).err());
        Au {
            windowed_percent: run(&metric::AU_WINDOWED),
            all_steps_percent: run(&metric::AU_ALL_STEPS),
            sustained_percent: sustained,
            sustained_needs_steps: metric::sustained_needs_steps(&record.plan),
            sustained_missing: if sustained.is_none() { missing() } else { None },
        }
    }

    fn of_epoch(scope: Scope, value: impl Fn(&Metric) -> Option<f64>) -> Self {
        let sustained = metric::sustained(scope);
        Au {
            windowed_percent: value(&metric::AU_WINDOWED),
            all_steps_percent: value(&metric::AU_ALL_STEPS),
            sustained_percent: sustained.ok(),
            sustained_needs_steps: metric::sustained_needs_steps(scope.plan),
            sustained_missing: sustained.err(),
        }
    }
}

impl Throughput {
    fn of(value: impl Fn(&Metric) -> Option<f64>) -> Self {
        let rate = |windowed, whole| Rate { windowed: value(windowed), whole: value(whole) };
        Throughput {
            delivered_bytes_per_second: rate(&metric::DELIVERED_WINDOWED, &metric::DELIVERED_WHOLE),
            nominal_bytes_per_second: rate(&metric::NOMINAL_WINDOWED, &metric::NOMINAL_WHOLE),
            samples_per_second: rate(&metric::SAMPLES_WINDOWED, &metric::SAMPLES_WHOLE),
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

    #[test]
    fn the_object_has_the_promised_keys() {
        let value = serde_json::to_value(Summary::of(&simple(&[(10, 5, 1, 100), (20, 5, 0, 100)])))
            .unwrap();
        let top = [
            "run_dir",
            "workload",
            "accelerators",
            "epochs",
            "steps",
            "au",
            "throughput",
            "time",
            "stall",
            "bytes",
            "access",
            "latency",
            "doubts",
            "verdict",
            "per_epoch",
            "phases",
            "evaluation",
            "checkpoint",
            "complete",
        ];
        assert_eq!(keys(&value), top);
        assert_eq!(
            keys(&value["au"]),
            ["windowed_percent", "all_steps_percent", "sustained_percent", "sustained_needs_steps"]
        );
        assert_eq!(
            keys(&value["throughput"]),
            ["delivered_bytes_per_second", "nominal_bytes_per_second", "samples_per_second"]
        );
        assert_eq!(keys(&value["throughput"]["samples_per_second"]), ["windowed", "whole"]);
        assert_eq!(keys(&value["time"]), ["load_s", "compute_s", "barrier_s"]);
        assert_eq!(keys(&value["stall"]), ["open_s", "read_s", "decode_s", "queue_s"]);
        assert_eq!(keys(&value["bytes"]), ["logical", "device"]);
        assert_eq!(
            keys(&value["access"]),
            [
                "reads",
                "opens",
                "files",
                "request_bytes",
                "sequential_share",
                "consecutive_share",
                "read_amplification"
            ]
        );
        assert_eq!(
            keys(&value["latency"]["read"]),
            ["count", "p50_s", "p90_s", "p99_s", "p99_9_s", "max_s"]
        );
        assert_eq!(keys(&value["verdict"]), ["name", "evidence"]);
        assert_eq!(keys(&value["doubts"][0]), ["name", "severity", "evidence", "advice", "facts"]);
        assert_eq!(value["per_epoch"][0]["epoch"], 1);
    }

    #[test]
    fn what_cannot_be_known_is_null() {
        let value = serde_json::to_value(Summary::of(&simple(&[(1000, 1000, 0, 5)]))).unwrap();
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
        let nothing = Summary::of(&record(plan(2, 7), vec![]));
        assert_eq!((nothing.steps, nothing.epochs, nothing.au.all_steps_percent), (7, 0, None));
    }

    #[test]
    fn the_same_follows_from_the_file() {
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
        let again = file::read(folder.path()).unwrap();
        assert_eq!(again, record);
        assert_eq!(Summary::of(&again), Summary::of(&record));
    }
}
