//! Finds runs that may have read the dataset of another run, from configs and logs. DLIO reads all files with the right extension in `data_folder`, no
//! matter which run generated them. A generation that left no log is not detected.

use crate::import::DlioAbility::{HasOwnSection, IsCompressed, IsImage};
use crate::import::dlio_has;
use crate::run::{Activity, Run};
use feedrate_spec::workload::KEYS;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of changes of a folder that are searched for the last one before a run.
const CHANGES_MAX: usize = 1000;

/// The last dataset that was generated in a run's folder, if its settings differ from the run's.
#[derive(Clone, Debug, PartialEq)]
pub struct StaleDataset {
    /// Index of the run that generated it.
    pub maker: usize,
    /// Settings that differ.
    pub differs: Vec<SettingDifference>,
}

/// A setting of the section `dataset` that differs between a run and the files.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingDifference {
    /// Key of the setting, without `dataset.`.
    pub key: String,
    /// Value in the run.
    pub run: String,
    /// Value with which the files were generated.
    pub files: String,
}

/// Identifies the files of a dataset in configs: folder, format and number of subfolders.
type DataFolder<'a> = (&'a str, &'a str, &'a str);

/// A run's generation or removal of the files in a folder.
struct FolderChange {
    run: usize,
    /// Time at which the change was complete.
    completed_us: Option<i64>,
    is_generation: bool,
}

/// Returns for each run the stale dataset that it may have read; `None` if it read its own dataset or if this is unknown.
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
            changes.push(FolderChange {
                run: index,
                completed_us: generated_us,
                is_generation: true,
            });
        } else if run.activity == Activity::Training && run.steps > 0 {
            stale[index] = last_dataset(runs, index, changes);
        }
        if matches!(setting(run, "keep_files"), Some("false" | "False")) && run.ended.is_some() {
            let completed_us = run.dataset_use.ended_us;
            changes.push(FolderChange { run: index, completed_us, is_generation: false });
        }
    }
    stale
}

fn data_folder(run: &Run) -> Option<DataFolder<'_>> {
    let subfolders = setting(run, "num_subfolders_train").unwrap_or("0");
    Some((run.dataset_use.store.as_deref()?, format(run), subfolders))
}

fn setting<'a>(run: &'a Run, key: &str) -> Option<&'a str> {
    run.dataset_use.configured.get(&format!("dataset.{key}")).map(String::as_str)
}

fn format(run: &Run) -> &str {
    setting(run, "format").or(run.format.as_deref()).unwrap_or("tfrecord")
}

fn last_dataset(runs: &[Run], index: usize, changes: &[FolderChange]) -> Option<StaleDataset> {
    let run = &runs[index];
    let last = changes.iter().rev().take(CHANGES_MAX).find(|change| {
        let is_earlier = change.completed_us <= run.dataset_use.started_us;
        is_earlier && is_same_folder(run, &runs[change.run])
    })?;
    let differs = differences(run, &runs[last.run]);
    let is_stale = last.is_generation && !differs.is_empty();
    is_stale.then_some(StaleDataset { maker: last.run, differs })
}

/// Returns whether two runs with the same folder in their configs used the same folder. Relative paths refer to the job's folder, which may be unknown.
/// Hosts of one source are assumed to share a file system.
fn is_same_folder(run: &Run, other: &Run) -> bool {
    let is_same_source = run.source == other.source;
    let is_absolute = run.dataset_use.store.as_ref().is_some_and(|store| store.starts_with('/'));
    let is_same_path = match (&run.dataset_use.job_folder, &other.dataset_use.job_folder) {
        (Some(job), Some(other_job)) => is_absolute || job == other_job,
        _ => is_absolute || is_same_source,
    };
    let is_same_host = run.hostname.is_some() && run.hostname == other.hostname;
    is_same_path && (is_same_source || is_same_host)
}

fn differences(run: &Run, maker: &Run) -> Vec<SettingDifference> {
    let run_settings = file_settings(run);
    let maker_settings = file_settings(maker);
    let keys: BTreeSet<&str> = run_settings.keys().chain(maker_settings.keys()).copied().collect();
    let value = |settings: &BTreeMap<&str, &str>, key: &str| {
        settings.get(key).copied().or_else(|| dlio_default(key)).unwrap_or("not given").to_string()
    };
    let all = keys.into_iter().map(|key| SettingDifference {
        key: key.into(),
        run: value(&run_settings, key),
        files: value(&maker_settings, key),
    });
    all.filter(|setting| setting.run != setting.files).collect()
}

/// Returns the settings that determine the contents of files and differ from DLIO's defaults. The number of files is not included: it does not change
/// the contents of each file, and DLIO reads only the configured number of files.
fn file_settings(run: &Run) -> BTreeMap<&str, &str> {
    let configured = run.dataset_use.configured.iter().filter_map(|(path, value)| {
        let key = path.strip_prefix("dataset.")?;
        (dlio_default(key) != Some(value)).then_some((key, value.as_str()))
    });
    let mut settings: BTreeMap<&str, &str> = configured.collect();
    let format = format(run);
    let is_image = dlio_has(format, IsImage);
    let has_section = dlio_has(format, HasOwnSection);
    let has_dims = settings.contains_key("record_dims");
    let is_compressed = settings.contains_key("compression") && dlio_has(format, IsCompressed);
    let is_gzip = settings.get("compression") == Some(&"gzip");
    settings.retain(|key, _| match *key {
        "record_dims" => true,
        "record_length_bytes" | "record_length_bytes_stdev" => !has_dims,
        "num_samples_per_file" | "record_element_type" => !is_image,
        "compression" => is_compressed,
        "compression_level" => is_compressed && is_gzip && has_section,
        // The format's section as a whole, or its keys.
        key => has_section && key.split('.').next() == Some(format),
    });
    settings
}

/// Returns DLIO's default for a key of the section `dataset`.
fn dlio_default(key: &str) -> Option<&'static str> {
    let path = format!("dataset.{key}");
    KEYS.iter().find(|known| known.path == path).map(|known| known.default)
}
