//! Settings by one set of keys whoever ran: those of our plan, or DLIO's where the plan has none. The place it ran at likewise.

use super::Run;
use crate::import::leaves;
use feedrate_measure::record::{Record, System};
use feedrate_spec::plan::Plan;
use serde_json::Value;
use std::collections::BTreeMap;

/// Decisions for a run, by key: `loader.workers` is `4`. Values as JSON writes them; what is null is left out.
pub type Settings = BTreeMap<String, String>;

/// (row of the table of workloads, key of the plan, the same of DLIO).
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
    ("Prefetch", "loader.prefetch_size", "reader.prefetch_size"),
    ("File shuffle", "loader.file_shuffle", "reader.file_shuffle"),
    ("Sample shuffle", "loader.sample_shuffle", "reader.sample_shuffle"),
    ("Epochs", "train.epochs", "train.epochs"),
    ("Compute time of a step (s)", "train.compute.mean", "train.computation_time"),
    ("Page cache", "train.cache", ""),
    ("Checkpoints", "checkpoint.format", ""),
    ("Checkpoints", "workflow.checkpoint", "workflow.checkpoint"),
];

pub(crate) const ACCELERATORS: &str = "accelerators";

/// DLIO's defaults of settings that results are compared by.
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

/// The settings of a DLIO run by its config; without one, as far as overrides tell.
pub(super) fn from_dlio(run: &Run, has_config: bool) -> Settings {
    let defaults: &[(&str, &str)] = if has_config { &DEFAULTS } else { &[] };
    let defaults = defaults.iter().map(|(key, value)| (*key, *value));
    let asked =
        run.dataset_use.configured.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    // Later ones win.
    let all = defaults.chain(asked).map(|(key, value)| (key_of_dlio(key).into(), value.into()));
    let mut settings: Settings = all.collect();
    settings.insert("workload".into(), run.workload.clone());
    if let Some(accelerators) = run.accelerators {
        settings.insert(ACCELERATORS.into(), accelerators.to_string());
    }
    settings
}

/// The key of our plan for one of DLIO's.
fn key_of_dlio(key: &str) -> &str {
    let row = ROWS.iter().find(|(.., dlio)| !dlio.is_empty() && *dlio == key);
    row.map_or(key, |(_, plan, _)| plan)
}

/// The name that a key of settings has as a factor: the last word of it, as DLIO has it.
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

/// Follows from other settings, or says how a run is watched and judged, not what is run.
const NO_SETTINGS: &[&str] = &[
    "checkpoint.rank_bytes_max",
    "checkpoint.state",
    "checkpoint.total_bytes",
    "checkpoint.total_files",
    "dataset.extension",
    "doubts",
    "loader.batches_in_flight",
    "loader.held_at_start",
    "loader.held_batches",
    "metric.au_target_percent",
    "storage.passes_page_cache",
    "train.steps_per_epoch",
];

/// Replicates may differ in these.
const SEEDS: &[&str] = &["loader.order_seed", "loader.preprocess_seed", "train.compute_seed"];

/// The settings that make a run of this plan the experiment it is.
pub fn settings(plan: &Plan) -> Settings {
    // A plan is all of JSON's kinds.
    let mut settings = leaves(&serde_json::to_value(plan).unwrap_or_default(), text);
    settings.retain(|key, _| {
        let key = key.strip_prefix("evaluation.").unwrap_or(key);
        let mut rests = NO_SETTINGS.iter().chain(SEEDS).filter_map(|of| key.strip_prefix(of));
        !rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    settings
}

/// Settings that a loop which was watched may tell, where they are neither 0 nor empty.
const OF_WATCHED: [&str; 6] =
    ["workload", "model", "framework", ACCELERATORS, "loader.kind", "loader.batch_size"];

/// The settings of a run of ours, or of a loop that was watched: what that does not tell is left out.
pub(super) fn of_record(record: &Record) -> Settings {
    let mut settings = settings(&record.plan);
    if let Some(watched) = &record.watched {
        settings.retain(|key, value| {
            OF_WATCHED.contains(&key.as_str()) && !matches!(value.as_str(), "" | "0")
        });
        let workers = watched.workers.map(|workers| workers.to_string());
        settings.extend(workers.map(|workers| ("loader.workers".to_string(), workers)));
    }
    settings
}

/// As people write it: `100000`, for 100000.0.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => match value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15) {
            Some(whole) => format!("{whole:.0}"),
            None => value.to_string(),
        },
    }
}

/// The machine, its kernel, and the device under the dataset.
pub(super) fn place(program: &str, system: &System, machines: &[System]) -> Settings {
    let mount = system.data_mount.as_ref();
    let hostnames: Vec<&str> = machines.iter().map(|one| &*one.hostname).collect();
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
    use feedrate_spec::plan::Cache;

    #[test]
    fn dlios_keys_have_ours() {
        for (dlio, expected) in [
            ("reader.batch_size", "loader.batch_size"),
            ("dataset.format", "dataset.format"),
            ("workflow.checkpoint", "workflow.checkpoint"),
            ("reader.transfer_size", "reader.transfer_size"),
        ] {
            assert_eq!(key_of_dlio(dlio), expected);
        }
    }

    #[test]
    fn seeds_and_what_follows_from_others_are_no_settings() {
        let of = |change: fn(&mut Plan)| {
            let mut plan = plan(2, 7);
            change(&mut plan);
            settings(&plan)
        };
        let same = of(|_| {});
        assert_eq!(same["accelerators"], "2");
        assert_eq!(
            (same["loader.workers"].as_str(), same["dataset.format"].as_str()),
            ("1", "npy")
        );
        assert_eq!(same, of(|plan| plan.loader.order_seed += 1));
        assert_eq!(same, of(|plan| plan.train.compute_seed += 1));
        assert_ne!(same, of(|plan| plan.dataset.content_seed += 1));
        assert_ne!(same, of(|plan| plan.train.cache = Cache::Cold));
    }
}
