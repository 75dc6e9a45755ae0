//! Folders of results, `<results>/<model>/<experiment>/<time>/`: names and creation of these folders, and the folders for runs that no longer count.

use crate::experiment::Experiment;
use crate::row::Row;
use feedrate_measure::record::file::{read_bounded, read_folder, sync_folder};
use feedrate_spec::escape;
use jiff::ToSpan;
use jiff::civil::DateTime;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Name of the folder for unfinished runs.
pub const INCOMPLETE: &str = "incomplete";
/// Name of the folder for runs whose row was reset to pending.
pub const SUPERSEDED: &str = "superseded";
/// Size limit of result files of commands.
const BYTES_MAX: u64 = 16 << 20;

/// Returns the folder with all runs of a row's experiment.
pub fn experiment_dir(results: &Path, row: &Row, rows: &[Row]) -> PathBuf {
    results.join(model_name(&row.model)).join(Experiment::new(row, rows).id())
}

/// Returns the name of a model's folder: the name of the bundled workload, or of the workload file without its extension.
pub fn model_name(model: &str) -> String {
    match Path::new(model).file_stem() {
        Some(stem)
            if model.contains('/') || model.ends_with(".yaml") || model.ends_with(".yml") =>
        {
            stem.to_string_lossy().into_owned()
        }
        _ => model.to_string(),
    }
}

/// Returns the display name of a row: `unet3d_h100_custom/4_batch_size_1`, followed by its replicate number if it has one.
pub fn label(row: &Row, rows: &[Row]) -> String {
    let id = Experiment::new(row, rows).id();
    let replicate = row.replicate.map_or(String::new(), |number| format!(" replicate {number}"));
    format!("{}/{id}{replicate}", model_name(&row.model))
}

/// Returns [`label`] without the model if all rows have the same model.
pub fn short_label(row: &Row, rows: &[Row]) -> String {
    let label = label(row, rows);
    let is_only_model = rows.iter().all(|other| other.model == row.model);
    match label.split_once('/') {
        Some((_, rest)) if is_only_model => rest.into(),
        _ => label,
    }
}

/// Creates a folder below `experiment` named `stamp`, with a number appended if a run has or had that name.
///
/// # Errors
/// The folder cannot be created.
pub fn make_run_dir(experiment: &Path, stamp: &str) -> io::Result<PathBuf> {
    let numbered = (2..).map(|number| format!("{stamp}-{number}"));
    make_first_new(experiment, std::iter::once(stamp.to_string()).chain(numbered))
}

/// Creates a folder below `experiment` with a name as in submissions to MLPerf Storage: `20261121_100000` for the stamp `2026-11-21-10-00-00`.
/// If a run has or had that name, it is the next free second, since the official checker accepts nothing but a time.
///
/// # Errors
/// The folder cannot be created, or `stamp` is not a time.
pub fn make_mlperf_run_dir(experiment: &Path, stamp: &str) -> io::Result<PathBuf> {
    let start = DateTime::strptime("%Y-%m-%d-%H-%M-%S", stamp).map_err(io::Error::other)?;
    let seconds = (0..).map_while(|seconds| start.checked_add(seconds.seconds()).ok());
    make_first_new(experiment, seconds.map(|time| time.strftime("%Y%m%d_%H%M%S").to_string()))
}

/// Creates a folder with the first of these names that no run has or had.
fn make_first_new(experiment: &Path, names: impl Iterator<Item = String>) -> io::Result<PathBuf> {
    fs::create_dir_all(experiment)?;
    for name in names {
        if [INCOMPLETE, SUPERSEDED].iter().any(|aside| experiment.join(aside).join(&name).exists())
        {
            continue;
        }
        match fs::create_dir(experiment.join(&name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result.map(|()| experiment.join(name)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Reads the JSON result of a command; `None` if the file is missing or cannot be parsed.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = read_bounded(path, BYTES_MAX).ok()?;
    serde_json::from_slice(&escape::escape_json_texts(&bytes)).ok()
}

/// Returns `folder` and its entries whose names start with `prefix`.
pub(crate) fn folder_and_entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = read_folder(folder).into_iter().flatten().flatten();
    let matching = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    std::iter::once(folder.to_path_buf()).chain(matching.map(|entry| entry.path())).collect()
}

/// Converts the error of a missing file to `None`.
pub(crate) fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Moves a run to `subfolder` (`incomplete` or `superseded`) of its experiment, where it does not count as a replicate. Returns its new path.
/// An empty folder is removed instead; a missing one is not an error.
///
/// # Errors
/// The folder cannot be moved.
pub fn put_aside(run_dir: &Path, subfolder: &str) -> io::Result<PathBuf> {
    let (Some(experiment), Some(name)) = (run_dir.parent(), run_dir.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let aside = experiment.join(subfolder);
    if fs::remove_dir(run_dir).is_ok() || !run_dir.exists() {
        return Ok(aside.join(name));
    }
    fs::create_dir_all(&aside)?;
    fs::rename(run_dir, aside.join(name))?;
    sync_folder(&aside)?;
    sync_folder(experiment)?;
    Ok(aside.join(name))
}

/// Syncs a run's folder to disk, and the folders above it up to `results`.
///
/// # Errors
/// A file or folder cannot be synced.
pub fn sync(run_dir: &Path, results: &Path) -> io::Result<()> {
    for entry in read_folder(run_dir)? {
        let path = entry?.path();
        if path.is_dir() { sync(&path, &path)? } else { fs::File::open(&path)?.sync_all()? }
    }
    for folder in run_dir.ancestors() {
        sync_folder(folder)?;
        if folder == results {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_dir_never_reuses_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = experiment_dir(folder.path(), &Row::new("dir/w.yaml", 4), &[]);
        assert_eq!(experiment, folder.path().join("w/4"));
        let first = make_run_dir(&experiment, "2026").unwrap();
        fs::write(first.join("summary.json"), "{}").unwrap();
        put_aside(&first, SUPERSEDED).unwrap();
        assert!(experiment.join("superseded/2026/summary.json").exists());
        let second = make_run_dir(&experiment, "2026").unwrap();
        assert_eq!(second, experiment.join("2026-2"));
        put_aside(&second, INCOMPLETE).unwrap();
        assert!(!second.exists() && !experiment.join(INCOMPLETE).exists());
        put_aside(&second, INCOMPLETE).unwrap();
        sync(&experiment.join("superseded/2026"), folder.path()).unwrap();
    }

    #[test]
    fn a_run_of_a_submission_is_named_after_a_free_second() {
        let folder = tempfile::tempdir().unwrap();
        let make = || make_mlperf_run_dir(folder.path(), "2026-11-21-10-59-59").unwrap();
        let first = make();
        assert_eq!(first, folder.path().join("20261121_105959"));
        fs::write(first.join("summary.json"), "{}").unwrap();
        put_aside(&first, INCOMPLETE).unwrap();
        assert_eq!(make(), folder.path().join("20261121_110000"));
        assert_eq!(make(), folder.path().join("20261121_110001"));
        assert!(make_mlperf_run_dir(folder.path(), "2026").is_err());
    }
}
