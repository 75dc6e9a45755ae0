//! Requests of runs to their files and how they read them, by their configs. A folder without one is taken to be like those beside it, but for what its name, its log
//! and its summary tell: only where all of those use one folder of data.

use super::{Study, study_of, usual};
use crate::import::Origin;
use crate::run::Run;
use feedrate_spec::workload::KEYS;
use std::collections::{BTreeMap, HashMap};

/// By key, as configs have them.
type Settings = BTreeMap<String, String>;

/// Requests of one run.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Folder of the dataset, as it is configured.
    pub(super) folder: String,
    /// The same with the folder that the job ran in; `None` where that is not known.
    pub(super) path: Option<String>,
    /// File format.
    pub(super) format: String,
    /// Folders that training files are spread over: DLIO stops where it finds others.
    pub(super) subfolders: String,
    /// Settings that decide the bytes of the files, by key of `dataset`; without DLIO's defaults.
    pub(super) files: Settings,
    /// Settings that decide how long their reading takes, beside batch and threads.
    pub(super) reading: String,
    /// Whether workers do more than reading.
    pub(super) preprocesses: bool,
    /// Whether the run leaves its files.
    pub(super) keeps_files: bool,
    /// Whether there is no config, so that runs beside it told.
    pub(super) is_assumed: bool,
}

/// Settings of the loader that DLIO reads and does not use, or for evaluation only.
const NOT_READING: [&str; 2] = ["file_access", "batch_size_eval"];
/// Used for tfrecord files only.
const OF_TFRECORD: [&str; 3] = ["transfer_size", "shuffle_size", "computation_threads"];
/// A configured length and one that follows from rates differ by less.
const SAME_LENGTH: f64 = 1e-3;

/// For each run, what it asks; `None` where nobody knows.
pub(super) fn asked(runs: &[Run]) -> Vec<Option<Asked>> {
    let mut told: HashMap<Study, Vec<usize>> = HashMap::new();
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.dataset_use.store.is_some()) {
        told.entry(study_of(run)).or_default().push(index);
    }
    let is_one = |members: &Vec<usize>| {
        let stores = || members.iter().map(|index| &runs[*index].dataset_use.store);
        stores().all(|store| Some(store) == stores().next())
    };
    let usual: HashMap<Study, (usize, Settings)> = told
        .iter()
        .filter(|(_, members)| is_one(members))
        .map(|(study, members)| {
            let usual = usual(runs, members).into_iter();
            let settings = usual.map(|(key, (value, _))| (key.to_string(), value.to_string()));
            (*study, (members[0], settings.collect()))
        })
        .collect();
    let asked = runs.iter().map(|run| match &run.dataset_use.store {
        Some(store) => Some(Asked::new(run, store, &run.dataset_use.asked)),
        None if run.origin == Origin::Feedrate => None,
        None => {
            let (like, usual) = usual.get(&study_of(run))?;
            let store = runs[*like].dataset_use.store.as_ref()?;
            Some(Asked { is_assumed: true, ..Asked::new(run, store, &assumed(run, usual)) })
        }
    });
    asked.collect()
}

/// The usual settings, but for those that the run's folder tells.
fn assumed(run: &Run, usual: &Settings) -> Settings {
    let mut settings = usual.clone();
    let mut keys: Vec<&str> = run.parameter.split(',').collect();
    let values: Vec<&str> = run.value.split(',').collect();
    if keys.len() != values.len() {
        keys.clear();
    }
    for (key, value) in keys.iter().zip(&values) {
        let is_named = |path: &str| path.rsplit_once('.').is_some_and(|(_, last)| last == *key);
        let sections = ["dataset.", "reader.", "train."];
        let is_of = |path: &str| sections.iter().any(|section| path.starts_with(section));
        if let Some(known) = KEYS.iter().find(|one| is_named(one.path) && is_of(one.path)) {
            settings.insert(known.path.into(), (*value).into());
        }
    }
    let mut tell = |key: &str, value: Option<u64>| {
        settings.extend(value.map(|value| (key.to_string(), value.to_string())));
    };
    tell("dataset.num_files_train", run.files);
    tell("dataset.num_samples_per_file", run.samples_per_file);
    tell("reader.batch_size", run.batch_size);
    if let Some(length) = run.record_length_bytes {
        let key = "dataset.record_length_bytes".to_string();
        let known = settings.get(&key).and_then(|text| text.parse::<f64>().ok());
        if known.is_none_or(|known| SAME_LENGTH < (length / known - 1.0).abs()) {
            settings.insert(key, length.round().to_string());
        }
    }
    settings
}

impl Asked {
    fn new(run: &Run, store: &str, settings: &Settings) -> Self {
        let given = |key: &str| settings.get(key).map(String::as_str);
        let of_root = [":", ".:", "./:"].iter().find_map(|plain| store.strip_prefix(plain));
        let folder = of_root.unwrap_or(store).to_string();
        let job_folder = run.dataset_use.job_folder.as_deref();
        let job_folder = if folder.starts_with('/') { Some("") } else { job_folder };
        let path = job_folder.map(|job| match job {
            "" => folder.clone(),
            job => format!("{job}/{folder}"),
        });
        let format = given("dataset.format").or(run.format.as_deref()).unwrap_or("tfrecord");
        let reader = reader(settings);
        Asked {
            folder,
            path,
            subfolders: given("dataset.num_subfolders_train").unwrap_or("0").into(),
            files: files(settings, format),
            reading: reading(settings, &reader, format),
            preprocesses: reader.keys().any(|key| key.starts_with("preprocess_time")),
            keeps_files: !matches!(given("dataset.keep_files"), Some("false" | "False")),
            is_assumed: false,
            format: format.into(),
        }
    }
}

/// Settings that decide the bytes. The number of files does not: DLIO draws the same sizes for the first of many as for few, and reads as many as it asks for.
fn files(settings: &Settings, format: &str) -> Settings {
    let given = |key: &str| {
        let value = settings.get(&format!("dataset.{key}"))?;
        (!is_default("dataset", key, value)).then(|| (key.to_string(), value.clone()))
    };
    let is_image = ["jpeg", "png"].contains(&format);
    let has_dims = given("record_dims").is_some();
    let is_compressed = given("compression").is_some() && ["hdf5", "csv"].contains(&format);
    let is_gzip = settings.get("dataset.compression").is_some_and(|name| name == "gzip");
    let keys = [
        ("record_dims", true),
        ("record_length_bytes", !has_dims),
        ("record_length_bytes_stdev", !has_dims),
        ("num_samples_per_file", !is_image),
        ("record_element_type", !is_image),
        ("compression", is_compressed),
        ("compression_level", is_compressed && is_gzip && format == "hdf5"),
    ];
    let keys = keys.into_iter().filter(|(_, counts)| *counts).map(|(key, _)| key);
    let mut files: Settings = keys.filter_map(given).collect();
    // A section of its own, whole or key by key.
    let of_hdf5 = settings
        .keys()
        .filter_map(|key| key.strip_prefix("dataset."))
        .filter(|key| format == "hdf5" && (*key == "hdf5" || key.starts_with("hdf5.")));
    files.extend(of_hdf5.filter_map(given));
    files
}

/// By key of `reader`, without defaults.
fn reader(settings: &Settings) -> Settings {
    let of_reader = settings
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("reader.")?.to_string(), value.clone())));
    // Whatever DLIO is given for `read_type` means memory.
    let is_told =
        |(key, value): &(String, String)| key == "read_type" || !is_default("reader", key, value);
    of_reader.filter(is_told).collect()
}

fn reading(settings: &Settings, reader: &Settings, format: &str) -> String {
    let number = |key: &str, default: u64| {
        reader.get(key).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let is_torch = reader.get("data_loader").is_some_and(|loader| loader == "pytorch");
    let (threads, prefetch) = (number("read_threads", 1), number("prefetch_size", 2));
    let mut parts: Settings = reader
        .iter()
        .filter(|(key, _)| !NOT_READING.contains(&key.as_str()))
        .filter(|(key, _)| format == "tfrecord" || !OF_TFRECORD.contains(&key.as_str()))
        // The loader `pytorch` reads in the order of names, whatever is set.
        .filter(|(key, _)| !is_torch || !key.ends_with("_shuffle"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // As `torch_data_loader.py` divides it among its workers.
    let ahead = if is_torch && threads > 0 { prefetch.div_ceil(threads) } else { prefetch };
    parts.insert("prefetch_size".into(), ahead.to_string());
    for key in [
        "train.computation_time",
        "train.computation_time_stdev",
        "dataset.record_length_bytes_resize",
    ] {
        parts.extend(settings.get(key).map(|value| (key.to_string(), value.clone())));
    }
    parts.into_iter().map(|(key, value)| format!("{key}={value};")).collect()
}

fn is_default(section: &str, key: &str, value: &str) -> bool {
    default(section, key).is_some_and(|default| default == value)
}

/// DLIO's default.
pub(super) fn default(section: &str, key: &str) -> Option<&'static str> {
    let path = |known: &str| {
        known.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')) == Some(key)
    };
    KEYS.iter().find(|known| path(known.path)).map(|known| known.default)
}
