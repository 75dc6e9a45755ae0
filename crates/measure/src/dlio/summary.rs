//! `summary.json`: the hosts, the run's averages.

use super::{Evaluations, Object, host};
use crate::checkpoints::dlio_four;
use crate::derived::Derived;
use crate::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, DELIVERED_WINDOWED, Metric, NOMINAL_WHOLE,
    NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
};
use crate::record::{CheckpointKind, Record, System};
use crate::window::Scope;
use feedrate_spec::units::MIB;
use serde_json::Value;

pub(super) fn of(derived: &Derived, evaluations: &Evaluations) -> Value {
    let record = derived.record;
    let (system, dataset) = (&record.system, &record.plan.dataset);
    let mut summary = Object::default();
    summary.put_text("start", &record.started);
    summary.put("num_accelerators", record.plan.accelerators);
    summary.put("num_hosts", record.machines().len());
    summary.put_text("hostname", &system.hostname);
    summary.put("metric", metric(derived, evaluations));
    summary.put("num_files_train", dataset.files_train);
    summary.put("num_files_eval", dataset.files_eval);
    summary.put("num_samples_per_file", dataset.samples_per_file);
    summary.put_known("host_cpu_count", host::each(derived, host::cpu_count));
    summary.put_text("host_processor_name", &system.processor);
    let fits = |system: &_| host::potential_caching(derived, system);
    summary.put_known("potential_caching", host::each(derived, fits));
    summary.put_known("host_cpuinfo", host::lines(&system.cpuinfo));
    summary.put_known("host_meminfo", host::lines(&system.meminfo));
    let memory = |system: &System| system.memory_bytes.map(host::gib);
    summary.put_known("host_memory_GB", host::each(derived, memory));
    summary.put("data_size_per_host_GB", host::gib(host::bytes_per_host(derived)));
    summary.put("epochs", Scope::all(record).count());
    summary.put_text("end", &record.ended);
    summary.put_known("hosts", host::machines(derived));
    summary.into()
}

/// DLIO's keys first, then ours.
fn metric(derived: &Derived, evaluations: &Evaluations) -> Object {
    let record = derived.record;
    let mut object = Object::default();
    checkpoints(&mut object, record);
    nine(&mut object, "train", derived, [&SAMPLES_WINDOWED, &NOMINAL_WINDOWED]);
    if let Some(evaluations) = &evaluations.0 {
        // DLIO leaves no step of an evaluation out of its throughput.
        nine(&mut object, "eval", &Derived::of(evaluations), [&SAMPLES_WHOLE, &NOMINAL_WHOLE]);
    }
    object.put_known("train_au_all_steps_percentage", derived.value(&AU_ALL_STEPS));
    object.put_known("train_au_sustained_percentage", derived.value(&AU_SUSTAINED));
    object.put_known(
        "train_io_delivered_mean_MB_per_second",
        mib((DELIVERED_WINDOWED.of_run)(record)),
    );
    object
}

fn mib(bytes: Option<f64>) -> Option<f64> {
    bytes.map(|bytes| bytes / MIB)
}

/// Utilisation and rates of training or evaluation, as DLIO names them.
fn nine(object: &mut Object, what: &str, derived: &Derived, [samples, bytes]: [&Metric; 2]) {
    let record = derived.record;
    let run = |metric: &Metric| (metric.of_run)(record);
    let stdev = |metric: &Metric| metric.stdev_over_epochs(record);
    let mut put =
        |key: &str, value: Option<Value>| object.put_known(&format!("{what}_{key}"), value);
    let number = |value: Option<f64>| value.map(Value::from);
    let list = |metric| each_epoch(record, metric).map(Value::from);
    put("au_percentage", list(&AU_WINDOWED));
    put("au_mean_percentage", number(derived.value(&AU_WINDOWED)));
    put("au_meet_expectation", meets_expectation(derived).map(Value::from));
    put("au_stdev_percentage", number(stdev(&AU_WINDOWED)));
    put("throughput_samples_per_second", list(samples));
    put("throughput_mean_samples_per_second", number(run(samples)));
    put("throughput_stdev_samples_per_second", number(stdev(samples)));
    put("io_mean_MB_per_second", number(mib(run(bytes))));
    put("io_stdev_MB_per_second", number(mib(stdev(bytes))));
}

/// In GiB, which DLIO calls GB.
fn checkpoints(object: &mut Object, record: &Record) {
    for (what, kind) in [("save", CheckpointKind::Save), ("load", CheckpointKind::Load)] {
        let keys = ["io_mean_GB_per_second", "io_stdev_GB_per_second"];
        let keys = keys.into_iter().chain(["duration_mean_seconds", "duration_stdev_seconds"]);
        for (key, value) in keys.zip(dlio_four(record, kind)) {
            object.put_known(&format!("{what}_checkpoint_{key}"), value);
        }
    }
    let first = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
    object.put_known("checkpoint_size_GB", first.map(|one| host::gib(one.bytes)));
}

/// A list has an entry for each epoch, or is left out.
fn each_epoch(record: &Record, metric: &Metric) -> Option<Vec<f64>> {
    metric
        .of_epochs(record)
        .into_iter()
        .collect::<Option<Vec<f64>>>()
        .filter(|list| !list.is_empty())
}

/// `success` if the windowed utilisation reaches `metric.au`.
pub(super) fn meets_expectation(derived: &Derived) -> Option<&'static str> {
    let target = derived.record.plan.metric.au_target_percent;
    derived.value(&AU_WINDOWED).map(|au| if target <= au { "success" } else { "fail" })
}
