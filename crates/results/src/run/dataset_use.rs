//! The dataset that a run was to read, where and when: whether it may have read another is judged among runs.

use crate::import::{Config, Imported, same_text, time_of_name};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::Record;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The dataset that a run was to read.
#[derive(Clone, Debug, Default)]
pub struct DatasetUse {
    /// Microseconds; only differences mean something.
    pub started_us: Option<i64>,
    /// Likewise.
    pub ended_us: Option<i64>,
    /// When the dataset it made was whole; its start where the log does not say. `None` if it made none.
    pub generated_us: Option<i64>,
    /// It was to make a dataset, and its log does not say that it was done.
    pub is_generation_unfinished: bool,
    /// Where the dataset lies, as the config has it. `None` without a config.
    pub store: Option<String>,
    /// The folder that a relative `store` is in; `None` where it is not known.
    pub job_folder: Option<String>,
    /// Memory of the hosts, as DLIO's files have it.
    pub memory_bytes: Option<u64>,
    /// All that was asked for, by key; empty where there is no config.
    pub asked: BTreeMap<String, String>,
    /// Keys of `asked` that an override set.
    pub overridden: Vec<String>,
    /// Hash of all times of all steps; `None` without steps.
    pub fingerprint: Option<u64>,
}

impl DatasetUse {
    /// From steps, whoever wrote them.
    pub(super) fn from_steps(record: &Record) -> Self {
        DatasetUse {
            started_us: micros(&record.started),
            ended_us: micros(&record.ended),
            fingerprint: fingerprint(record),
            ..DatasetUse::default()
        }
    }

    /// With what config and log add to `known` from steps.
    pub(super) fn from_files(path: &Path, imported: &Imported, known: DatasetUse) -> Self {
        let config = &imported.config;
        let asked = asked(config);
        let given = config.overrides.as_deref().unwrap_or_default();
        let started_us = micros(&imported.started);
        let started_us = started_us.or_else(|| imported.log.started.as_deref().and_then(micros));
        let started_us = started_us.or_else(|| time_of_name(path));
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
            overridden: overridden(given, &asked),
            asked,
            ..known
        }
    }

    /// Make the fingerprint that of start, machines and plan, too: no machine starts two runs of a plan in the same microsecond.
    pub(super) fn tell_apart(&mut self, record: &Record) {
        let hostnames = record.machines().iter().map(|one| &one.hostname);
        let plan = serde_json::to_string(&record.plan).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, &record.started, hostnames.collect::<Vec<_>>(), plan).hash(&mut hasher);
        self.fingerprint = Some(hasher.finish());
    }
}

/// Whether the log says that data generation was done, or is not there to say it.
fn is_generated(imported: &Imported) -> bool {
    let (log, has_steps) = (&imported.log, imported.record.is_some());
    log.generated.is_some() || log.started.is_none() || (log.is_cut && has_steps)
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

/// A relative folder lies in the folder the job ran in, which DLIO's own folder of results is in.
fn job_folder(imported: &Imported) -> Option<String> {
    let (job, _) = imported.log.folder.as_deref()?.split_once("/hydra_log/")?;
    Some(job.to_string())
}

/// All that a run was asked for, but where things lie, what it is called and what is expected of it. Overrides stand for a config that is not there.
fn asked(config: &Config) -> BTreeMap<String, String> {
    let given = config.overrides.iter().flatten().filter_map(|text| {
        let (key, value) = key_of_override(text).zip(text.split_once('='))?;
        Some((key, same_text(value.1.trim().trim_matches(['\'', '"']))))
    });
    let all = if config.is_known() { config.leaves() } else { given.collect() };
    let mut asked = BTreeMap::new();
    for (key, value) in all.into_iter().filter(|(key, _)| !is_aside(key)) {
        match key.strip_prefix("data_reader.") {
            // DLIO takes it where there are both.
            Some(_) => drop(asked.insert(one_name(&key), value)),
            None => drop(asked.entry(one_name(&key)).or_insert(value)),
        }
    }
    asked
}

/// Whether a key says where things lie, or what is made of the results.
fn is_aside(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    let section = key.split('.').next().unwrap_or_default();
    last.ends_with("folder")
        || ["storage_root", "log_file", "iostat_devices"].contains(&last)
        || section == "metric"
        // Keys to a store may be in there.
        || key.starts_with("storage.storage_options")
}

/// The name that DLIO has for a key today.
fn one_name(key: &str) -> String {
    match key {
        "dataset.record_length" => "dataset.record_length_bytes".into(),
        "dataset.record_length_stdev" => "dataset.record_length_bytes_stdev".into(),
        "dataset.record_length_resize" => "dataset.record_length_bytes_resize".into(),
        "train.computation_time.mean" => "train.computation_time".into(),
        "model" => "model.name".into(),
        key => match key.strip_prefix("data_reader.") {
            Some(key) => format!("reader.{key}"),
            None => key.into(),
        },
    }
}

/// `dataset.format` of `++workload.dataset.format=png`.
fn key_of_override(text: &str) -> Option<String> {
    let key = text.trim_start_matches(['+', '~']).split('=').next()?;
    Some(one_name(key.strip_prefix("workload.")?.trim()))
}

/// Keys of `asked` that overrides set, or set what they are in; and those that they took away.
fn overridden(overrides: &[String], asked: &BTreeMap<String, String>) -> Vec<String> {
    let mut found: Vec<String> =
        overrides.iter().filter_map(|text| key_of_override(text)).collect();
    let below = asked.keys().filter(|key| {
        let rests = found.iter().filter_map(|of| key.strip_prefix(of.as_str()));
        rests.into_iter().any(|rest| rest.starts_with('.'))
    });
    let below: Vec<String> = below.cloned().collect();
    found.extend(below);
    found
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
