//! Requests of runs to their files and how they read them, by their configs. A folder without one is taken to be like those beside it, but for what its name, its log
//! and its summary tell: only where all of those use one folder of data.

use super::{Usual, usual};
use crate::import::DlioAbility::{HasOwnReader, HasOwnSection, IsCompressed, IsImage, KeepsOrder};
use crate::import::dlio_has;
use crate::run::{Run, Settings, grouped};
use feedrate_spec::workload::KEYS;
use std::collections::BTreeMap;

/// Requests of one run.
#[derive(Clone, Debug)]
pub(super) struct AskedFiles {
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
/// Sections of settings that folders are named after.
const SECTIONS: [&str; 3] = ["dataset.", "reader.", "train."];
/// A configured length and one that follows from rates differ by less.
const SAME_LENGTH: f64 = 1e-3;

/// For each run, what it asks; `None` where nobody knows.
pub(super) fn asked(runs: &[Run]) -> Vec<Option<AskedFiles>> {
    let mut told = grouped(runs, |run| run.dataset_use.store.is_some(), Run::study_key);
    // Only where all of them use one folder of data.
    told.retain(|_, members| {
        let mut stores = members.iter().map(|index| &runs[*index].dataset_use.store);
        let first = stores.next();
        stores.all(|store| Some(store) == first)
    });
    let usual: BTreeMap<_, Usual> =
        told.iter().map(|(study, members)| (study, usual(runs, members))).collect();
    let asked = runs.iter().map(|run| match &run.dataset_use.store {
        Some(store) => Some(AskedFiles::new(run, store, &run.dataset_use.asked)),
        None if run.is_own() => None,
        None => {
            let like = told.get(&run.study_key())?[0];
            let store = runs[like].dataset_use.store.as_ref()?;
            let settings = assumed(run, usual.get(&run.study_key())?);
            Some(AskedFiles { is_assumed: true, ..AskedFiles::new(run, store, &settings) })
        }
    });
    asked.collect()
}

/// The usual settings, but for those that the run's folder tells.
fn assumed(run: &Run, usual: &Usual) -> Settings {
    let usual = usual.iter().map(|(key, (value, _))| (key.to_string(), value.to_string()));
    let mut settings: Settings = usual.collect();
    let [keys, values] = [&run.parameter, &run.value].map(|all| all.split(',').collect::<Vec<_>>());
    let is_told = keys.len() == values.len();
    for (key, value) in keys.iter().zip(&values).take(if is_told { keys.len() } else { 0 }) {
        let path = KEYS.iter().map(|known| known.path).find(|path| {
            let is_named = path.rsplit_once('.').is_some_and(|(_, last)| last == *key);
            is_named && SECTIONS.iter().any(|section| path.starts_with(section))
        });
        settings.extend(path.map(|path| (path.to_string(), value.to_string())));
    }
    for (key, value) in [
        ("dataset.num_files_train", run.files),
        ("dataset.num_samples_per_file", run.samples_per_file),
        ("reader.batch_size", run.batch_size),
    ] {
        settings.extend(value.map(|value| (key.to_string(), value.to_string())));
    }
    if let Some(length) = run.record_length_bytes {
        let key = "dataset.record_length_bytes".to_string();
        let known = settings.get(&key).and_then(|text| text.parse::<f64>().ok());
        if known.is_none_or(|known| SAME_LENGTH < (length / known - 1.0).abs()) {
            settings.insert(key, length.round().to_string());
        }
    }
    settings
}

impl AskedFiles {
    fn new(run: &Run, store: &str, settings: &Settings) -> Self {
        let given = |key: &str| settings.get(key).map(String::as_str);
        let in_root = [":", ".:", "./:"].iter().find_map(|plain| store.strip_prefix(plain));
        let folder = in_root.unwrap_or(store).to_string();
        let job_folder = run.dataset_use.job_folder.as_deref();
        let path = if folder.starts_with('/') {
            Some(folder.clone())
        } else {
            job_folder.map(|job| format!("{job}/{folder}"))
        };
        let format = given("dataset.format").or(run.format.as_deref()).unwrap_or("tfrecord");
        // Whatever DLIO is given for `read_type` means memory.
        let reader = section(settings, "reader", &["read_type"]);
        AskedFiles {
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
    let mut files = section(settings, "dataset", &[]);
    let is_image = dlio_has(format, IsImage);
    let has_dims = files.contains_key("record_dims");
    let is_compressed = files.contains_key("compression") && dlio_has(format, IsCompressed);
    let has_section = dlio_has(format, HasOwnSection);
    let is_gzip = files.get("compression").is_some_and(|name| name == "gzip");
    files.retain(|key, _| match key.as_str() {
        "record_dims" => true,
        "record_length_bytes" | "record_length_bytes_stdev" => !has_dims,
        "num_samples_per_file" | "record_element_type" => !is_image,
        "compression" => is_compressed,
        "compression_level" => is_compressed && is_gzip && has_section,
        // A section of its own, whole or key by key.
        key => has_section && key.split('.').next() == Some(format),
    });
    files
}

/// Settings of a section by the rest of their keys, without defaults but of those that are `told` whatever they are.
fn section(settings: &Settings, section: &str, told: &[&str]) -> Settings {
    let own = settings.iter().filter_map(|(key, value)| {
        let key = key.strip_prefix(section)?.strip_prefix('.')?;
        let is_told = told.contains(&key) || default(section, key) != Some(value);
        is_told.then(|| (key.to_string(), value.clone()))
    });
    own.collect()
}

fn reading(settings: &Settings, reader: &Settings, format: &str) -> String {
    let is_torch = reader.get("data_loader").is_some_and(|loader| dlio_has(loader, KeepsOrder));
    let [threads, prefetch] = [("read_threads", 1_u64), ("prefetch_size", 2)]
        .map(|(key, default)| reader.get(key).and_then(|of| of.parse().ok()).unwrap_or(default));
    let mut parts = reader.clone();
    parts.retain(|key, _| {
        let is_read = !NOT_READING.contains(&key.as_str());
        let is_of_format = dlio_has(format, HasOwnReader) || !OF_TFRECORD.contains(&key.as_str());
        // The loader `pytorch` reads in the order of names, whatever is set.
        is_read && is_of_format && !(is_torch && key.ends_with("_shuffle"))
    });
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

/// DLIO's default.
pub(super) fn default(section: &str, key: &str) -> Option<&'static str> {
    let path = format!("{section}.{key}");
    KEYS.iter().find(|known| known.path == path).map(|known| known.default)
}
