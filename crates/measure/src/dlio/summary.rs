//! `summary.json`: the hosts, the run's averages.

use super::{Evaluations, host, known};
use crate::checkpoints::dlio_four;
use crate::derived::Derived;
use crate::metric::{
    AU_WINDOWED, METRICS, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
    Shown,
};
use crate::record::{CheckpointKind, Record};
use crate::window::Scope;
use feedrate_spec::units::MIB;
use serde_json::{Map, Value, json};

pub(super) fn summary_json(derived: &Derived, evaluations: &Evaluations) -> Value {
    let record = derived.record;
    let (system, dataset) = (&record.system, &record.plan.dataset);
    known(json!({
        "start": record.started,
        "num_accelerators": record.plan.accelerators,
        "num_hosts": record.machines().len(),
        "hostname": system.hostname,
        "metric": metric(derived, evaluations),
        "num_files_train": dataset.files_train,
        "num_files_eval": dataset.files_eval,
        "num_samples_per_file": dataset.samples_per_file,
        "host_cpu_count": host::each(derived, host::cpu_count),
        "host_processor_name": system.processor,
        "potential_caching": host::each(derived, |system| host::potential_caching(derived, system)),
        "host_cpuinfo": host::lines(&system.cpuinfo),
        "host_meminfo": host::lines(&system.meminfo),
        "host_memory_GB": host::each(derived, |system| system.memory_bytes.map(host::gib)),
        "data_size_per_host_GB": host::gib(host::bytes_per_host(derived)),
        "epochs": Scope::all(record).count(),
        "end": record.ended,
        "hosts": host::machines(derived),
    }))
}

/// DLIO's keys first, then ours.
fn metric(derived: &Derived, evaluations: &Evaluations) -> Value {
    let mut object = Map::new();
    checkpoints(&mut object, derived.record);
    insert(&mut object, "train", averages(derived, [&SAMPLES_WINDOWED, &NOMINAL_WINDOWED]));
    if let Some(evaluations) = &evaluations.record {
        // DLIO leaves no step of an evaluation out of its throughput.
        let whole = averages(&Derived::new(evaluations), [&SAMPLES_WHOLE, &NOMINAL_WHOLE]);
        insert(&mut object, "eval", whole);
    }
    let epochs = Scope::all(derived.record).map(|scope| scope.epoch.number);
    let empty = epochs.filter(|number| evaluations.is_empty_after(*number)).count();
    if 0 < empty {
        let target_percent = derived.record.plan.metric.au_target_percent;
        insert(&mut object, "eval", of_nothing(empty, target_percent));
    }
    for metric in METRICS {
        let value = derived.value(metric);
        if let Some((key, unit)) = metric.added_as {
            object.insert(key.into(), json!(value.map(|value| value / unit)));
        } else if metric.shown == Shown::OwnLine {
            object.insert(format!("train_{}", metric.id.name()), json!(value));
        }
    }
    known(object)
}

/// Ends of the keys of training and evaluation, as DLIO names them.
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

/// Utilisation and rates of training or evaluation.
fn averages(derived: &Derived, [samples, bytes]: [&Metric; 2]) -> [Value; 9] {
    let record = derived.record;
    [
        json!(each_epoch(record, &AU_WINDOWED)),
        json!(derived.value(&AU_WINDOWED)),
        json!(meets_expectation(derived)),
        json!(AU_WINDOWED.stdev_over_epochs(record)),
        json!(each_epoch(record, samples)),
        json!(samples.of_run(record)),
        json!(samples.stdev_over_epochs(record)),
        json!(bytes.of_run(record).map(|mean| mean / MIB)),
        json!(bytes.stdev_over_epochs(record).map(|all| all / MIB)),
    ]
}

/// The same of so many evaluations without a file.
fn of_nothing(evaluations: usize, target_percent: f64) -> [Value; 9] {
    KEYS.map(|key| match key {
        "au_percentage" | "throughput_samples_per_second" => json!(vec![0.0; evaluations]),
        "au_meet_expectation" => json!(meets(target_percent, 0.0)),
        _ => json!(0.0),
    })
}

fn insert(object: &mut Map<String, Value>, what: &str, values: [Value; 9]) {
    object.extend(KEYS.iter().map(|key| format!("{what}_{key}")).zip(values));
}

/// In GiB, which DLIO calls GB.
fn checkpoints(object: &mut Map<String, Value>, record: &Record) {
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        let [rate, rate_stdev, duration_s, stdev_s] = dlio_four(record, kind);
        for (key, value) in [
            ("io_mean_GB_per_second", rate),
            ("io_stdev_GB_per_second", rate_stdev),
            ("duration_mean_seconds", duration_s),
            ("duration_stdev_seconds", stdev_s),
        ] {
            object.insert(format!("{}_checkpoint_{key}", kind.name()), json!(value));
        }
    }
    let first = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
    object.insert("checkpoint_size_GB".into(), json!(first.map(|one| host::gib(one.bytes))));
}

/// A list has an entry for each epoch, or is left out.
fn each_epoch(record: &Record, metric: &Metric) -> Option<Vec<f64>> {
    let list: Vec<f64> = metric.of_epochs(record).into_iter().collect::<Option<_>>()?;
    (!list.is_empty()).then_some(list)
}

/// `success` if the windowed utilisation reaches `metric.au`.
pub(super) fn meets_expectation(derived: &Derived) -> Option<&'static str> {
    let target = derived.record.plan.metric.au_target_percent;
    derived.value(&AU_WINDOWED).map(|au| meets(target, au))
}

pub(super) fn meets(target_percent: f64, au_percent: f64) -> &'static str {
    if target_percent <= au_percent { "success" } else { "fail" }
}
