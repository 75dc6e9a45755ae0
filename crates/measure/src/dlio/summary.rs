//! `summary.json`: the hosts, the run's averages.

use super::{Evaluations, Object, host};
use crate::checkpoints::dlio_four;
use crate::derived::Derived;
use crate::metric::{
    AU_WINDOWED, METRICS, Metric, NOMINAL_WHOLE, NOMINAL_WINDOWED, SAMPLES_WHOLE, SAMPLES_WINDOWED,
    Shown,
};
use crate::record::{CheckpointKind, Record};
use crate::window::Scope;
use feedrate_spec::units::MIB;
use serde_json::Value;

pub(super) fn summary_json(derived: &Derived, evaluations: &Evaluations) -> Value {
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
    let caching = host::each(derived, |system| host::potential_caching(derived, system));
    summary.put_known("potential_caching", caching);
    summary.put_known("host_cpuinfo", host::lines(&system.cpuinfo));
    summary.put_known("host_meminfo", host::lines(&system.meminfo));
    let memory = host::each(derived, |system| system.memory_bytes.map(host::gib));
    summary.put_known("host_memory_GB", memory);
    summary.put("data_size_per_host_GB", host::gib(host::bytes_per_host(derived)));
    summary.put("epochs", Scope::all(record).count());
    summary.put_text("end", &record.ended);
    summary.put_known("hosts", host::machines(derived));
    summary.into()
}

/// DLIO's keys first, then ours.
fn metric(derived: &Derived, evaluations: &Evaluations) -> Object {
    let mut object = Object::default();
    checkpoints(&mut object, derived.record);
    nine(&mut object, "train", derived, [&SAMPLES_WINDOWED, &NOMINAL_WINDOWED]);
    if let Some(evaluations) = &evaluations.0 {
        // DLIO leaves no step of an evaluation out of its throughput.
        nine(&mut object, "eval", &Derived::new(evaluations), [&SAMPLES_WHOLE, &NOMINAL_WHOLE]);
    }
    for metric in METRICS {
        if let Some((key, unit)) = metric.added_as {
            object.put_known(key, derived.value(metric).map(|value| value / unit));
        } else if metric.shown == Shown::OwnLine {
            object.put_known(&format!("train_{}", metric.id.name()), derived.value(metric));
        }
    }
    object
}

/// Utilisation and rates of training or evaluation, as DLIO names them.
fn nine(object: &mut Object, what: &str, derived: &Derived, [samples, bytes]: [&Metric; 2]) {
    let record = derived.record;
    let au_stdev = AU_WINDOWED.stdev_over_epochs(record);
    let samples_stdev = samples.stdev_over_epochs(record);
    let bytes_stdev = bytes.stdev_over_epochs(record).map(|stdev| stdev / MIB);
    let bytes_mean = bytes.of_run(record).map(|mean| mean / MIB);
    for (key, value) in [
        ("au_percentage", each_epoch(record, &AU_WINDOWED)),
        ("au_mean_percentage", derived.value(&AU_WINDOWED).map(Value::from)),
        ("au_meet_expectation", meets_expectation(derived).map(Value::from)),
        ("au_stdev_percentage", au_stdev.map(Value::from)),
        ("throughput_samples_per_second", each_epoch(record, samples)),
        ("throughput_mean_samples_per_second", samples.of_run(record).map(Value::from)),
        ("throughput_stdev_samples_per_second", samples_stdev.map(Value::from)),
        ("io_mean_MB_per_second", bytes_mean.map(Value::from)),
        ("io_stdev_MB_per_second", bytes_stdev.map(Value::from)),
    ] {
        object.put_known(&format!("{what}_{key}"), value);
    }
}

/// In GiB, which DLIO calls GB.
fn checkpoints(object: &mut Object, record: &Record) {
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        let [rate, rate_stdev, duration_s, stdev_s] = dlio_four(record, kind);
        for (key, value) in [
            ("io_mean_GB_per_second", rate),
            ("io_stdev_GB_per_second", rate_stdev),
            ("duration_mean_seconds", duration_s),
            ("duration_stdev_seconds", stdev_s),
        ] {
            object.put_known(&format!("{}_checkpoint_{key}", kind.name()), value);
        }
    }
    let first = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
    object.put_known("checkpoint_size_GB", first.map(|one| host::gib(one.bytes)));
}

/// A list has an entry for each epoch, or is left out.
fn each_epoch(record: &Record, metric: &Metric) -> Option<Value> {
    let list: Vec<f64> = metric.of_epochs(record).into_iter().collect::<Option<_>>()?;
    (!list.is_empty()).then(|| list.into())
}

/// `success` if the windowed utilisation reaches `metric.au`.
pub(super) fn meets_expectation(derived: &Derived) -> Option<&'static str> {
    let target = derived.record.plan.metric.au_target_percent;
    derived.value(&AU_WINDOWED).map(|au| if target <= au { "success" } else { "fail" })
}
