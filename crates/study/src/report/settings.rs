//! What runs were asked for, by one set of keys whoever ran them: those of our plan, or DLIO's where the plan has none. Which of them are factors.

use crate::case::Case;
use crate::runs::{self, Settings};
use feedrate_measure::record::Record;
use std::collections::{BTreeMap, BTreeSet};

/// (row of the table of workloads, key of the plan, the same of DLIO, name as a factor).
pub(super) const ROWS: &[(&str, &str, &str, &str)] = &[
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

/// Of DLIO's keys, those that say where things lie and what a run does, not what is studied.
const NO_SETTINGS: &[&str] = &["output", "workflow", "metric", "profiling"];

/// Of a run that anybody made.
pub(super) fn settings(case: &Case, record: &Record, is_own: bool) -> Settings {
    if is_own {
        return runs::settings(&record.plan);
    }
    let is_place = |key: &str| {
        let section = key.split('.').next().unwrap_or_default();
        key.ends_with("_folder") || key.ends_with("_root") || NO_SETTINGS.contains(&section)
    };
    let asked = case.origin.asked.iter();
    let mut settings: Settings = asked
        .map(|(key, value)| (of_dlio(key), value))
        .filter(|(key, _)| !is_place(key))
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect();
    settings.insert("workload".into(), case.workload.clone());
    if let Some(accelerators) = case.accelerators {
        settings.insert(ACCELERATORS.into(), accelerators.to_string());
    }
    settings
}

/// The key of our plan for one of DLIO's.
fn of_dlio(key: &str) -> &str {
    let key_of_reader = key.strip_prefix("data_reader.").unwrap_or_default();
    let is = |dlio: &str| {
        dlio == key
            || (!key_of_reader.is_empty() && dlio.strip_prefix("reader.") == Some(key_of_reader))
    };
    ROWS.iter().find(|(.., dlio, _)| !dlio.is_empty() && is(dlio)).map_or(key, |(_, plan, ..)| plan)
}

/// What runs of a workload differ in: for each run the level of each factor. Of settings that always change together the first is kept,
/// those of [`ROWS`] before others; what a run has not is `unset`.
pub(super) fn factors(runs: &[&Settings]) -> Vec<BTreeMap<String, String>> {
    let place = |key: &str| ROWS.iter().position(|(_, plan, ..)| *plan == key);
    let keys: BTreeSet<&str> = runs.iter().flat_map(|run| run.keys().map(String::as_str)).collect();
    let mut keys: Vec<&str> = keys.into_iter().collect();
    keys.sort_by_key(|key| place(key).unwrap_or(ROWS.len()));
    let mut levels: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); runs.len()];
    let mut known: BTreeSet<Vec<usize>> = BTreeSet::new();
    for key in keys {
        let of: Vec<&str> =
            runs.iter().map(|run| run.get(key).map_or("unset", String::as_str)).collect();
        // Which runs are alike, whatever the levels are called.
        let alike: Vec<usize> = of
            .iter()
            .map(|level| of.iter().position(|other| other == level).unwrap_or(0))
            .collect();
        if alike.iter().all(|first| *first == 0) || !known.insert(alike) {
            continue;
        }
        let name = place(key).map_or(key, |at| ROWS[at].3);
        for (levels, level) in levels.iter_mut().zip(of) {
            levels.insert(name.into(), level.into());
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_what_differs_once() {
        let run = |batch: &str, format: &str, threads: Option<&str>| {
            let mut settings = Settings::from([
                ("loader.batch_size".to_string(), batch.to_string()),
                ("dataset.format".into(), format.into()),
                ("dataset.encoding".into(), format!("of {format}")),
                ("model".into(), "m".into()),
            ]);
            settings.extend(threads.map(|threads| ("x.threads".into(), threads.into())));
            settings
        };
        let runs = [run("1", "npz", Some("2")), run("2", "npz", None), run("2", "png", None)];
        let found = factors(&runs.iter().collect::<Vec<_>>());
        let text: Vec<String> = found.iter().map(|levels| format!("{levels:?}")).collect();
        assert_eq!(text[0], r#"{"batch_size": "1", "format": "npz"}"#);
        assert_eq!(text[2], r#"{"batch_size": "2", "format": "png"}"#);
    }

    #[test]
    fn dlios_keys_have_ours() {
        for (dlio, expected) in [
            ("reader.batch_size", "loader.batch_size"),
            ("data_reader.read_threads", "loader.workers"),
            ("dataset.format", "dataset.format"),
            ("reader.transfer_size", "reader.transfer_size"),
        ] {
            assert_eq!(of_dlio(dlio), expected);
        }
    }
}
