//! The dataset that a run was configured to read, with its location and the times of use. [`crate::relations`] decides whether the run may have read
//! another dataset.

use crate::import::{Config, Imported, override_key, time_of_name};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::Record;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The dataset that a run was configured to read.
#[derive(Clone, Debug, Default)]
pub struct DatasetUse {
    /// Time of the start in microseconds. The epoch is arbitrary.
    pub started_us: Option<i64>,
    /// Time of the end, likewise.
    pub ended_us: Option<i64>,
    /// Time at which the run finished generating a dataset, or the start of the run if the log does not contain that time. `None` if it generated none.
    pub generated_us: Option<i64>,
    /// Whether the run was configured to generate a dataset and its log does not show the end of generation.
    pub is_generation_unfinished: bool,
    /// Location of the dataset according to the config. `None` without a config.
    pub store: Option<String>,
    /// Folder that a relative `store` refers to; `None` if unknown.
    pub job_folder: Option<String>,
    /// Memory of the hosts according to DLIO's files.
    pub memory_bytes: Option<u64>,
    /// Settings that affect the run, by key; empty without config and overrides.
    pub configured: BTreeMap<String, String>,
    /// Keys that an override sets or deletes.
    pub overridden: Vec<String>,
    /// Hash of all step times; `None` without steps.
    pub fingerprint: Option<u64>,
}

impl DatasetUse {
    /// Reads times and fingerprint from a record.
    pub(super) fn from_steps(record: &Record) -> Self {
        DatasetUse {
            started_us: micros(&record.started),
            ended_us: micros(&record.ended),
            fingerprint: fingerprint(record),
            ..DatasetUse::default()
        }
    }

    /// Adds the contents of config and log to `from_steps`.
    pub(super) fn from_files(path: &Path, imported: &Imported, from_steps: DatasetUse) -> Self {
        let config = &imported.config;
        let configured = configured_settings(config);
        let overrides = config.overrides.as_deref().unwrap_or_default();
        let started_us = micros(&imported.started)
            .or_else(|| imported.log.started.as_deref().and_then(micros))
            .or_else(|| time_of_name(path));
        let generated_us = imported.log.generated.as_deref().and_then(micros).or(started_us);
        let is_done = is_generated(imported);
        DatasetUse {
            started_us,
            ended_us: micros(&imported.ended),
            generated_us: if imported.generates() && is_done { generated_us } else { None },
            is_generation_unfinished: imported.generates() && !is_done,
            store: store(imported),
            job_folder: job_folder(imported),
            memory_bytes: imported.system.memory_bytes,
            overridden: overridden_keys(overrides, &configured),
            configured,
            ..from_steps
        }
    }

    /// Adds start, machines and plan to the fingerprint, which makes it unique: no machine starts two runs of a plan in the same microsecond.
    pub(super) fn make_unique(&mut self, record: &Record) {
        let hostnames = record.machines().iter().map(|machine| &machine.hostname);
        let plan = serde_json::to_string(&record.plan).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, &record.started, hostnames.collect::<Vec<_>>(), plan).hash(&mut hasher);
        self.fingerprint = Some(hasher.finish());
    }
}

/// Returns whether data generation finished according to the log, or the log does not cover it.
fn is_generated(imported: &Imported) -> bool {
    let log = &imported.log;
    let has_steps = imported.record.is_some();
    log.generated.is_some() || log.started.is_none() || (log.has_gap && has_steps)
}

fn store(imported: &Imported) -> Option<String> {
    let root = imported.config.text(&["storage.storage_root"]).unwrap_or_default();
    let folder = data_folder(imported)?.display().to_string();
    Some(if ["", ".", "./"].contains(&&*root) { folder } else { format!("{root}:{folder}") })
}

fn data_folder(imported: &Imported) -> Option<PathBuf> {
    let config = &imported.config;
    let folder = config.text(&["dataset.data_folder"]);
    let folder = folder.or_else(|| config.is_known().then(|| "./data/".to_string()))?;
    Some(Path::new(&folder).components().collect())
}

/// Returns the job's working folder, to which relative paths refer. DLIO's result folder is below it.
fn job_folder(imported: &Imported) -> Option<String> {
    let (job, _) = imported.log.folder.as_deref()?.split_once("/hydra_log/")?;
    Some(job.to_string())
}

/// Returns the settings that affect a run: all except locations and the evaluation of results.
fn configured_settings(config: &Config) -> BTreeMap<String, String> {
    let mut settings = config.settings();
    settings.retain(|key, _| !is_irrelevant(key));
    settings
}

/// Returns whether a key is a location or concerns only the evaluation of results.
fn is_irrelevant(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    let section = key.split('.').next().unwrap_or_default();
    last.ends_with("folder")
        || ["storage_root", "log_file", "iostat_devices"].contains(&last)
        || section == "metric"
        // May contain credentials.
        || key.starts_with("storage.storage_options")
}

/// Returns the keys that overrides set or delete, and the configured keys below them.
fn overridden_keys(overrides: &[String], configured: &BTreeMap<String, String>) -> Vec<String> {
    let mut keys: Vec<String> = overrides.iter().filter_map(|text| override_key(text)).collect();
    let is_below = |key: &&String| {
        let mut rests = keys.iter().filter_map(|section| key.strip_prefix(section.as_str()));
        rests.any(|rest| rest.starts_with('.'))
    };
    let below: Vec<String> = configured.keys().filter(is_below).cloned().collect();
    keys.extend(below);
    keys
}

fn fingerprint(record: &Record) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut steps = 0;
    for epoch in &record.epochs {
        for block in epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks) {
            steps += block.steps();
            (&block.load_ns, &block.compute_ns, block.end_ns - block.start_ns.min(block.end_ns))
                .hash(&mut hasher);
        }
    }
    (steps > 0).then(|| hasher.finish())
}
