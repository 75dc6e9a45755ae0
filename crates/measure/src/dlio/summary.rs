//! `summary.json`: the machines and the averages of a run.

use super::{Evaluations, host, to_value, without_unknown};
use crate::checkpoints::dlio_figures;
use crate::derived::Derived;
use crate::metric::{
    AU_WINDOWED, METRICS, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, Placement, SAMPLES_WHOLE,
    SAMPLES_WINDOWED,
};
use crate::record::{CheckpointKind, Record};
use crate::window::Scope;
use feedrate_spec::units::MIB;
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
#[expect(non_snake_case, reason = "DLIO's keys")]
struct SummaryFile<'a> {
    start: &'a str,
    num_accelerators: u32,
    num_hosts: usize,
    hostname: &'a str,
    metric: Value,
    num_files_train: u64,
    num_files_eval: u64,
    num_samples_per_file: u64,
    host_cpu_count: Option<Vec<u32>>,
    host_processor_name: &'a str,
    potential_caching: Option<Vec<u64>>,
    host_cpuinfo: Option<Value>,
    host_meminfo: Option<Value>,
    host_memory_GB: Option<Vec<f64>>,
    data_size_per_host_GB: f64,
    epochs: usize,
    end: &'a str,
    hosts: Option<Vec<Value>>,
}

pub(super) fn summary_json(derived: &Derived, evaluations: &Evaluations) -> Value {
    let record = derived.record;
    let system = &record.system;
    let dataset = &record.plan.dataset;
    without_unknown(SummaryFile {
        start: &record.started,
        num_accelerators: record.plan.accelerators,
        num_hosts: record.machines().len(),
        hostname: &system.hostname,
        metric: metric_entry(derived, evaluations),
        num_files_train: dataset.files_train,
        num_files_eval: dataset.files_eval,
        num_samples_per_file: dataset.samples_per_file,
        host_cpu_count: host::value_per_machine(derived, host::cpu_count),
        host_processor_name: &system.processor,
        potential_caching: host::value_per_machine(derived, |system| {
            host::potential_caching(derived, system)
        }),
        host_cpuinfo: host::proc_object(&system.cpuinfo),
        host_meminfo: host::proc_object(&system.meminfo),
        host_memory_GB: host::value_per_machine(derived, |system| {
            system.memory_bytes.map(host::gib)
        }),
        data_size_per_host_GB: host::gib(host::bytes_per_host(derived)),
        epochs: Scope::whole_epochs(record).count(),
        end: &record.ended,
        hosts: host::machine_entries(derived),
    })
}

/// The value of `metric`: DLIO's keys first, then the keys that feedrate adds.
fn metric_entry(derived: &Derived, evaluations: &Evaluations) -> Value {
    let mut object = Map::new();
    insert_checkpoints(&mut object, derived.record);
    insert(&mut object, "train", averages(derived, &SAMPLES_WINDOWED, &NOMINAL_WINDOWED));
    if let Some(evaluations) = &evaluations.record {
        // DLIO's throughput of an evaluation includes all of its steps.
        let values = averages(&Derived::new(evaluations), &SAMPLES_WHOLE, &NOMINAL_WHOLE);
        insert(&mut object, "eval", values);
    }
    let epochs = Scope::whole_epochs(derived.record).map(|scope| scope.epoch.number);
    let empty_count = epochs.filter(|number| evaluations.is_empty_after(*number)).count();
    if 0 < empty_count {
        let target_percent = derived.record.plan.metric.au_target_percent;
        insert(&mut object, "eval", empty_averages(empty_count, target_percent));
    }
    for metric in METRICS {
        let value = derived.value(metric);
        if let Some((key, unit)) = metric.added_as {
            object.insert(key.into(), to_value(value.map(|value| value / unit)));
        } else if metric.placement == Placement::OwnLine {
            object.insert(format!("train_{}", metric.id.name()), to_value(value));
        }
    }
    without_unknown(object)
}

/// DLIO's keys of training and evaluation, without their prefix.
const KEYS: [&str; 9] = [
    "au_percentage",
    "au_mean_percentage",
    "au_meet_expectation",
    "au_stdev_percentage",
    "throughput_samples_per_second",
    "throughput_mean_samples_per_second",
    "throughput_stdev_samples_per_second",
    "io_mean_MB_per_second",
    "io_stdev_MB_per_second",
];

/// Utilisation and rates of training or evaluation, in the order of [`KEYS`].
fn averages(derived: &Derived, samples: &Metric, bytes: &Metric) -> [Value; 9] {
    let record = derived.record;
    [
        to_value(epoch_values(record, &AU_WINDOWED)),
        to_value(derived.value(&AU_WINDOWED)),
        to_value(meets_expectation(derived)),
        to_value(AU_WINDOWED.stdev_over_epochs(record)),
        to_value(epoch_values(record, samples)),
        to_value(samples.run_value(record)),
        to_value(samples.stdev_over_epochs(record)),
        to_value(bytes.run_value(record).map(|mean| mean / MIB)),
        to_value(bytes.stdev_over_epochs(record).map(|stdev| stdev / MIB)),
    ]
}

/// The same keys for evaluations without files: all values are 0.
fn empty_averages(evaluations: usize, target_percent: f64) -> [Value; 9] {
    KEYS.map(|key| match key {
        "au_percentage" | "throughput_samples_per_second" => to_value(vec![0.0; evaluations]),
        "au_meet_expectation" => expectation_text(target_percent, 0.0).into(),
        _ => 0.0.into(),
    })
}

fn insert(object: &mut Map<String, Value>, prefix: &str, values: [Value; 9]) {
    object.extend(KEYS.iter().map(|key| format!("{prefix}_{key}")).zip(values));
}

/// Inserts figures of checkpoints. DLIO calls GiB GB.
fn insert_checkpoints(object: &mut Map<String, Value>, record: &Record) {
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        let figures = dlio_figures(record, kind);
        for (key, value) in [
            ("io_mean_GB_per_second", figures.gib_per_second),
            ("io_stdev_GB_per_second", figures.gib_per_second_stdev),
            ("duration_mean_seconds", figures.duration_s),
            ("duration_stdev_seconds", figures.duration_stdev_s),
        ] {
            object.insert(format!("{}_checkpoint_{key}", kind.name()), to_value(value));
        }
    }
    let first = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
    let size = first.map(|checkpoint| host::gib(checkpoint.bytes));
    object.insert("checkpoint_size_GB".into(), to_value(size));
}

/// Values of all epochs; `None` if one of them is unknown, as DLIO's lists have an entry for each epoch.
fn epoch_values(record: &Record, metric: &Metric) -> Option<Vec<f64>> {
    let list: Vec<f64> = metric.epoch_values(record).into_iter().collect::<Option<_>>()?;
    (!list.is_empty()).then_some(list)
}

/// Returns `success` if the windowed utilisation reaches `metric.au`, otherwise `fail`; `None` if it is unknown.
pub(super) fn meets_expectation(derived: &Derived) -> Option<&'static str> {
    let target = derived.record.plan.metric.au_target_percent;
    derived.value(&AU_WINDOWED).map(|au| expectation_text(target, au))
}

pub(super) fn expectation_text(target_percent: f64, au_percent: f64) -> &'static str {
    if target_percent <= au_percent { "success" } else { "fail" }
}
