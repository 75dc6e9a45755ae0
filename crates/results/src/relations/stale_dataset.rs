//! Runs that may have read the dataset of another run, by configs and the logs of generations: DLIO reads the files with the right ending in
//! `data_folder`, whichever run made them. Files that were made without leaving a log are not known here.

use crate::import::DlioAbility::{HasOwnSection, IsCompressed, IsImage};
use crate::import::dlio_has;
use crate::run::{Activity, Run};
use feedrate_spec::workload::KEYS;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Changes of a folder that are looked through for the last one before a run.
const LOOKED_AT_MAX: usize = 1000;

/// The dataset that was made last in a run's folder, with other settings than the run's.
#[derive(Clone, Debug, PartialEq)]
pub struct StaleDataset {
    /// The run that made it, as an index.
    pub maker: usize,
    /// Settings that differ.
    pub differs: Vec<SettingDifference>,
}

/// A setting of section `dataset` that a run and the files do not share.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingDifference {
    /// Its key.
    pub key: String,
    /// Value that the run has.
    pub run: String,
    /// Value that the files were made with.
    pub files: String,
}

/// Files of one format, as configs name their folder: the folder, the format, the number of subfolders.
type DataFolder<'a> = (&'a str, &'a str, &'a str);

/// A run that made the files of a folder, or removed them.
struct FolderChange {
    run: usize,
    /// When it was done.
    at_us: Option<i64>,
    is_made: bool,
}

/// For each run, the dataset of another run that it found; `None` where it found its own, or that is not known.
pub(super) fn stale_datasets(runs: &[Run]) -> Vec<Option<StaleDataset>> {
    let started_us = |index: &usize| runs[*index].dataset_use.started_us;
    let mut by_start: Vec<usize> =
        (0..runs.len()).filter(|index| started_us(index).is_some()).collect();
    by_start.sort_by_key(started_us);
    let mut stale = vec![None; runs.len()];
    let mut folders: HashMap<DataFolder, Vec<FolderChange>> = HashMap::new();
    for index in by_start {
        let run = &runs[index];
        let Some(folder) = data_folder(run) else { continue };
        let changes = folders.entry(folder).or_default();
        let generated_us = run.dataset_use.generated_us;
        if generated_us.is_some() {
            changes.push(FolderChange { run: index, at_us: generated_us, is_made: true });
        } else if run.activity == Activity::Training && run.steps > 0 {
            stale[index] = last_dataset(runs, index, changes);
        }
        if matches!(setting(run, "keep_files"), Some("false" | "False")) && run.ended.is_some() {
            let at_us = run.dataset_use.ended_us;
            changes.push(FolderChange { run: index, at_us, is_made: false });
        }
    }
    stale
}

fn data_folder(run: &Run) -> Option<DataFolder<'_>> {
    let subfolders = setting(run, "num_subfolders_train").unwrap_or("0");
    Some((run.dataset_use.store.as_deref()?, format(run), subfolders))
}

fn setting<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.dataset_use.asked.get(&format!("dataset.{key}")).map(String::as_str)
}

fn format(run: &Run) -> &str {
    setting(run, "format").or(run.format.as_deref()).unwrap_or("tfrecord")
}

fn last_dataset(runs: &[Run], index: usize, changes: &[FolderChange]) -> Option<StaleDataset> {
    let run = &runs[index];
    let last = changes.iter().rev().take(LOOKED_AT_MAX).find(|change| {
        change.at_us <= run.dataset_use.started_us && is_one_folder(run, &runs[change.run])
    })?;
    let differs = differences(run, &runs[last.run]);
    let is_other = last.is_made && !differs.is_empty();
    is_other.then_some(StaleDataset { maker: last.run, differs })
}

/// Whether two runs that name the same folder mean one folder. A relative name is below the job's folder, which is not always known. Hosts
/// of one source are assumed to see the same files.
fn is_one_folder(run: &Run, other: &Run) -> bool {
    let is_one_source = run.source == other.source;
    let is_absolute = run.dataset_use.store.as_ref().is_some_and(|store| store.starts_with('/'));
    let is_one_path = match (&run.dataset_use.job_folder, &other.dataset_use.job_folder) {
        (Some(job), Some(other_job)) => is_absolute || job == other_job,
        _ => is_absolute || is_one_source,
    };
    let is_one_host = run.hostname.is_some() && run.hostname == other.hostname;
    is_one_path && (is_one_source || is_one_host)
}

fn differences(run: &Run, maker: &Run) -> Vec<SettingDifference> {
    let (own, made) = (file_settings(run), file_settings(maker));
    let keys: BTreeSet<&str> = own.keys().chain(made.keys()).copied().collect();
    let value = |settings: &BTreeMap<&str, &str>, key: &str| {
        settings.get(key).copied().or_else(|| default(key)).unwrap_or("not given").to_string()
    };
    let all = keys.into_iter().map(|key| SettingDifference {
        key: key.into(),
        run: value(&own, key),
        files: value(&made, key),
    });
    all.filter(|setting| setting.run != setting.files).collect()
}

/// Settings that decide the bytes of files, without DLIO's defaults. The number of files is not among them: DLIO draws the same sizes for the
/// first of many files as for few, and reads as many as it is configured for.
fn file_settings(run: &Run) -> BTreeMap<&str, &str> {
    let given = run.dataset_use.asked.iter().filter_map(|(key, value)| {
        let key = key.strip_prefix("dataset.")?;
        (default(key) != Some(value)).then_some((key, value.as_str()))
    });
    let mut files: BTreeMap<&str, &str> = given.collect();
    let format = format(run);
    let (is_image, has_section) = (dlio_has(format, IsImage), dlio_has(format, HasOwnSection));
    let has_dims = files.contains_key("record_dims");
    let is_compressed = files.contains_key("compression") && dlio_has(format, IsCompressed);
    let is_gzip = files.get("compression") == Some(&"gzip");
    files.retain(|key, _| match *key {
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

/// DLIO's default of a key of section `dataset`.
fn default(key: &str) -> Option<&'static str> {
    let path = format!("dataset.{key}");
    KEYS.iter().find(|known| known.path == path).map(|known| known.default)
}
