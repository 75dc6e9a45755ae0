//! What runs were asked for, by one set of keys whoever ran them: those of our plan, or DLIO's where the plan has none.

use super::Case;
use crate::runs::Settings;

/// (row of the table of workloads, key of the plan, the same of DLIO, name as a factor).
pub const ROWS: &[(&str, &str, &str, &str)] = &[
    ("Model", "model", "model.name", "model"),
    ("Framework", "framework", "framework", "framework"),
    ("Accelerators", ACCELERATORS, "", "processes"),
    ("Format", "dataset.format", "dataset.format", "format"),
    ("Training files", "dataset.files_train", "dataset.num_files_train", "num_files_train"),
    (
        "Samples per file",
        "dataset.samples_per_file",
        "dataset.num_samples_per_file",
        "num_samples_per_file",
    ),
    (
        "Record (bytes)",
        "dataset.record_bytes",
        "dataset.record_length_bytes",
        "record_length_bytes",
    ),
    (
        "Record deviation (bytes)",
        "dataset.record_stdev_bytes",
        "dataset.record_length_bytes_stdev",
        "record_length_bytes_stdev",
    ),
    ("Storage", "storage.kind", "storage.storage_type", "storage_type"),
    ("Engine", "storage.engine", "storage.engine", "engine"),
    ("Throttle (bytes/s)", "storage.throttle_bytes_per_second", "", "throttle_bytes_per_second"),
    ("Throttle latency (s)", "storage.throttle_latency_s", "", "throttle_latency_s"),
    ("Delay (s)", "storage.delay_s", "", "delay_s"),
    ("Loader", "loader.kind", "reader.data_loader", "data_loader"),
    ("Batch size", "loader.batch_size", "reader.batch_size", "batch_size"),
    ("Read threads", "loader.workers", "reader.read_threads", "read_threads"),
    ("Prefetch", "loader.prefetch_size", "reader.prefetch_size", "prefetch_size"),
    ("File shuffle", "loader.file_shuffle", "reader.file_shuffle", "file_shuffle"),
    ("Sample shuffle", "loader.sample_shuffle", "reader.sample_shuffle", "sample_shuffle"),
    ("Epochs", "train.epochs", "train.epochs", "epochs"),
    (
        "Compute time of a step (s)",
        "train.compute.mean",
        "train.computation_time",
        "computation_time",
    ),
    ("Page cache", "train.cache", "", "cache"),
    ("Checkpoints", "checkpoint.format", "workflow.checkpoint", "checkpoint"),
];

const ACCELERATORS: &str = "accelerators";

/// What DLIO takes where nothing is given, of what results are compared by.
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

/// Of a run of DLIO: what its config asked for. Without a config it is not known, but for what overrides tell.
pub(super) fn of_dlio(case: &Case, has_config: bool) -> Settings {
    let defaults = DEFAULTS.iter().filter(|_| has_config).map(|(key, value)| (*key, *value));
    let asked = case.origin.asked.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    // Later ones win.
    let all = defaults.chain(asked).map(|(key, value)| (key_of_dlio(key).into(), value.into()));
    let mut settings: Settings = all.collect();
    settings.insert("workload".into(), case.workload.clone());
    if let Some(accelerators) = case.accelerators {
        settings.insert(ACCELERATORS.into(), accelerators.to_string());
    }
    settings
}

/// The key of our plan for one of DLIO's.
fn key_of_dlio(key: &str) -> &str {
    let row = ROWS.iter().find(|(.., dlio, _)| !dlio.is_empty() && *dlio == key);
    row.map_or(key, |(_, plan, ..)| plan)
}

/// The name that a key of settings has as a factor.
pub fn factor(key: &str) -> &str {
    ROWS.iter().find(|(_, plan, ..)| *plan == key).map_or(key, |(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dlios_keys_have_ours() {
        for (dlio, expected) in [
            ("reader.batch_size", "loader.batch_size"),
            ("dataset.format", "dataset.format"),
            ("workflow.checkpoint", "checkpoint.format"),
            ("reader.transfer_size", "reader.transfer_size"),
        ] {
            assert_eq!(key_of_dlio(dlio), expected);
        }
    }
}
