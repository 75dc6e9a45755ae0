//! Settings of runs from any source under common keys: the keys of feedrate's plan, or DLIO's keys for settings that the plan does not have. Also
//! describes the place of a run: program, machine and device.

use super::Run;
use crate::import::leaves;
use feedrate_measure::record::{Record, System};
use feedrate_spec::plan::Plan;
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings by key, such as `4` for `loader.workers`. Values are in JSON's notation, and null values are left out.
pub type Settings = BTreeMap<String, String>;

/// Rows of the table of workloads: title, key of the plan, and key of DLIO.
pub const ROWS: &[(&str, &str, &str)] = &[
    ("Model", "model", "model.name"),
    ("Framework", "framework", "framework"),
    ("Accelerators", ACCELERATORS, ""),
    ("Format", "dataset.format", "dataset.format"),
    ("Training files", "dataset.files_train", "dataset.num_files_train"),
    ("Samples per file", "dataset.samples_per_file", "dataset.num_samples_per_file"),
    ("Record (bytes)", "dataset.record_bytes", "dataset.record_length_bytes"),
    ("Record deviation (bytes)", "dataset.record_stdev_bytes", "dataset.record_length_bytes_stdev"),
    ("Storage", "storage.kind", "storage.storage_type"),
    ("Engine", "storage.engine", "storage.engine"),
    ("Throttle (bytes/s)", "storage.throttle_bytes_per_second", ""),
    ("Throttle latency (s)", "storage.throttle_latency_s", ""),
    ("Throttle (reads)", "storage.throttle_concurrency", ""),
    ("Delay (s)", "storage.delay_s", ""),
    ("Delay of opens (s)", "storage.open_delay_s", ""),
    ("Delay of reads (s)", "storage.read_delay_s", ""),
    ("Loader", "loader.kind", "reader.data_loader"),
    ("Batch size", "loader.batch_size", "reader.batch_size"),
    ("Read threads", "loader.workers", "reader.read_threads"),
    ("Requests in flight", "loader.requests.in_flight", "reader.in_flight"),
    ("Prefetch", "loader.prefetch_size", "reader.prefetch_size"),
    ("File shuffle", "loader.file_shuffle", "reader.file_shuffle"),
    ("Sample shuffle", "loader.sample_shuffle", "reader.sample_shuffle"),
    ("Epochs", "train.epochs", "train.epochs"),
    ("Compute time of a step (s)", "train.compute.mean", "train.computation_time"),
    ("Page cache", "train.cache", ""),
    ("Checkpoints", "checkpoint.format", ""),
    ("Checkpoints", "workflow.checkpoint", "workflow.checkpoint"),
];

/// Key of the number of accelerators.
pub(crate) const ACCELERATORS: &str = "accelerators";

/// DLIO's defaults of settings by which results are compared.
const DEFAULTS: [(&str, &str); 9] = [
    ("dataset.num_files_train", "8"),
    ("dataset.num_samples_per_file", "1"),
    ("reader.batch_size", "1"),
    ("reader.prefetch_size", "2"),
    ("reader.read_threads", "1"),
    ("train.epochs", "1"),
    ("workflow.checkpoint", "false"),
    ("workflow.evaluation", "false"),
    ("workflow.generate_data", "false"),
];

/// Returns the settings in the config of a DLIO run, or in its overrides if there is no config.
pub(super) fn from_dlio(run: &Run, has_config: bool) -> Settings {
    let mut settings = Settings::new();
    if has_config {
        settings.extend(DEFAULTS.map(|(key, value)| (plan_key(key).into(), value.into())));
    }
    let configured = run.dataset_use.configured.iter();
    settings.extend(configured.map(|(key, value)| (plan_key(key).into(), value.clone())));
    settings.insert("workload".into(), run.workload.clone());
    if let Some(accelerators) = run.accelerators {
        settings.insert(ACCELERATORS.into(), accelerators.to_string());
    }
    settings
}

/// Returns the key of the plan for a key of DLIO, or the same key if the plan has none.
fn plan_key(key: &str) -> &str {
    let row = ROWS.iter().find(|(.., dlio)| !dlio.is_empty() && *dlio == key);
    row.map_or(key, |(_, plan, _)| plan)
}

/// Returns the name of a setting as a factor: the last component of DLIO's key.
pub fn factor(key: &str) -> &str {
    let row = ROWS.iter().find(|(_, plan, _)| *plan == key);
    match (key, row) {
        (ACCELERATORS, _) => "processes",
        ("model", _) => "model",
        ("checkpoint.format", _) => "checkpoint",
        (_, None) => key,
        (_, Some((_, plan, dlio))) => {
            let known = if dlio.is_empty() { plan } else { dlio };
            known.rsplit_once('.').map_or(known, |(_, leaf)| leaf)
        }
    }
}

/// Keys of a plan that follow from other keys, or concern only the observation and evaluation of a run.
const DERIVED_KEYS: &[&str] = &[
    "checkpoint.rank_bytes_max",
    "checkpoint.state",
    "checkpoint.total_bytes",
    "checkpoint.total_files",
    "core_config",
    "dataset.extension",
    "doubts",
    "loader.batches_in_flight",
    "loader.held_at_start",
    "loader.held_batches",
    "loader.requests.unit",
    "metric.au_target_percent",
    "metric.expect",
    "storage.has_no_device",
    "storage.passes_page_cache",
    "train.steps_per_epoch",
];

/// Settings that another setting determines unless the user changes them, each with that setting.
pub const IMPLIED: &[(&str, &str)] = &[("loader.decodes_members", "dataset.format")];

/// Keys in which replicates may differ.
const SEEDS: &[&str] = &["loader.order_seed", "loader.preprocess_seed", "train.compute_seed"];

/// Returns the settings of a plan that determine its experiment.
pub fn settings(plan: &Plan) -> Settings {
    // Every plan can be represented in JSON.
    let mut settings = leaves(&serde_json::to_value(plan).unwrap_or_default(), text);
    settings.retain(|key, _| {
        let base_key = key.strip_prefix("evaluation.").unwrap_or(key);
        let ignored = DERIVED_KEYS.iter().chain(SEEDS);
        let mut rests = ignored.filter_map(|prefix| base_key.strip_prefix(prefix));
        !rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    settings
}

/// Keys that the record of a watched training loop may contain. Values that are 0 or empty are unknown.
const WATCHED_KEYS: [&str; 6] =
    ["workload", "model", "framework", ACCELERATORS, "loader.kind", "loader.batch_size"];

/// Returns the settings in a record. Settings that are unknown for a watched training loop are left out.
pub(super) fn from_record(record: &Record) -> Settings {
    let mut settings = settings(&record.plan);
    if let Some(watched) = &record.watched {
        settings.retain(|key, value| {
            WATCHED_KEYS.contains(&key.as_str()) && !matches!(value.as_str(), "" | "0")
        });
        let workers = watched.workers.map(|workers| workers.to_string());
        settings.extend(workers.map(|workers| ("loader.workers".to_string(), workers)));
    }
    settings
}

/// Formats a value, with integers such as 100000.0 as `100000`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => match value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15) {
            Some(integer) => format!("{integer:.0}"),
            None => value.to_string(),
        },
    }
}

/// Describes the place of a run: program, machines, kernel, and the file system and device of the dataset.
pub(super) fn place(program: &str, system: &System, machines: &[System]) -> Settings {
    let mount = system.data_mount.as_ref();
    let hostnames: Vec<&str> = machines.iter().map(|machine| &*machine.hostname).collect();
    let parts = [
        ("program", Some(program.to_string())),
        ("machine", Some(hostnames.join(" "))),
        ("kernel", Some(system.kernel.clone())),
        ("file system", mount.map(|mount| mount.file_system.clone())),
        ("device", mount.map(|mount| mount.source.clone())),
    ];
    let known = parts.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::plan;
    use feedrate_spec::mlperf::CoreConfig;
    use feedrate_spec::plan::Cache;
    use serde_json::json;

    #[test]
    fn keys_of_dlio_map_to_keys_of_the_plan() {
        for (dlio, expected) in [
            ("reader.batch_size", "loader.batch_size"),
            ("dataset.format", "dataset.format"),
            ("workflow.checkpoint", "workflow.checkpoint"),
            ("reader.transfer_size", "reader.transfer_size"),
        ] {
            assert_eq!(plan_key(dlio), expected);
        }
    }

    #[test]
    fn seeds_and_derived_keys_are_not_settings() {
        let settings_after = |change: fn(&mut Plan)| {
            let mut plan = plan(2, 7);
            change(&mut plan);
            settings(&plan)
        };
        let same = settings_after(|_| {});
        assert_eq!(same["accelerators"], "2");
        assert_eq!(
            (same["loader.workers"].as_str(), same["dataset.format"].as_str()),
            ("1", "npy")
        );
        assert_eq!(same, settings_after(|plan| plan.loader.order_seed += 1));
        assert_eq!(same, settings_after(|plan| plan.train.compute_seed += 1));
        let core_config = |plan: &mut Plan| {
            plan.core_config = CoreConfig::new(&json!({"dataset": {"format": "npy"}}));
            assert!(plan.core_config.is_some());
        };
        assert_eq!(same, settings_after(core_config));
        assert_ne!(same, settings_after(|plan| plan.dataset.content_seed += 1));
        assert_ne!(same, settings_after(|plan| plan.train.cache = Cache::Cold));
    }
}
