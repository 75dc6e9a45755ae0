//! The folders of results: `<results>/<model>/<experiment>/<time>/`, and where those go that count no more.

use crate::experiment::Experiment;
use crate::row::Row;
use feedrate_measure::record::file::{read_bounded, sync_folder};
use feedrate_spec::escape;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Folder of runs that were not finished.
pub const INCOMPLETE: &str = "incomplete";
/// Folder of runs whose row was set back.
pub const SUPERSEDED: &str = "superseded";
/// The longest that is read of what a command wrote.
const BYTES_MAX: u64 = 16 << 20;

/// The folder of all runs of a row's experiment.
pub fn experiment_dir(results: &Path, row: &Row, rows: &[Row]) -> PathBuf {
    results.join(model_name(&row.model)).join(Experiment::new(row, rows).id())
}

/// Name of a model's folder: the name of a workload, or of its file.
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

/// Name of a row: `unet3d_h100_custom/4_batch_size_1`, with its replicate where it has one.
pub fn label(row: &Row, rows: &[Row]) -> String {
    let id = Experiment::new(row, rows).id();
    let replicate = row.replicate.map_or(String::new(), |number| format!(" replicate {number}"));
    format!("{}/{id}{replicate}", model_name(&row.model))
}

/// The same for people who look at one study: without the model where all of its rows have the same.
pub fn short_label(row: &Row, rows: &[Row]) -> String {
    let label = label(row, rows);
    let is_alone = rows.iter().all(|other| other.model == row.model);
    match label.split_once('/') {
        Some((_, rest)) if is_alone => rest.into(),
        _ => label,
    }
}

/// A folder below `experiment` that was never there before, called after the time.
///
/// # Errors
/// It cannot be made.
pub fn make_run_dir(experiment: &Path, stamp: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(experiment)?;
    for n in 1.. {
        let name = if n == 1 { stamp.to_string() } else { format!("{stamp}-{n}") };
        if [INCOMPLETE, SUPERSEDED].iter().any(|aside| experiment.join(aside).join(&name).exists())
        {
            continue;
        }
        match fs::create_dir(experiment.join(&name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| experiment.join(name)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The result that a command wrote in its folder; `None` where there is none that can be read.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = read_bounded(path, BYTES_MAX).ok()?;
    serde_json::from_slice(&escape::json_texts(&bytes)).ok()
}

/// A folder itself, and those in it whose names begin so.
pub(crate) fn with_those_inside(around: &Path, prefix: &str) -> Vec<PathBuf> {
    let inside = around.read_dir().into_iter().flatten().flatten();
    let own = inside.filter(|of| of.file_name().to_string_lossy().starts_with(prefix));
    std::iter::once(around.to_path_buf()).chain(own.map(|of| of.path())).collect()
}

/// `None` where there is no such file.
pub(crate) fn absent<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Put a run aside, under `incomplete` or `superseded` of its experiment, where it is no replicate. Says where it is then; one
/// that is not there, or is empty, is gone afterwards.
///
/// # Errors
/// It cannot be moved.
pub fn put_aside(run_dir: &Path, under: &str) -> io::Result<PathBuf> {
    let (Some(experiment), Some(name)) = (run_dir.parent(), run_dir.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let aside = experiment.join(under);
    if fs::remove_dir(run_dir).is_ok() || !run_dir.exists() {
        return Ok(aside.join(name));
    }
    fs::create_dir_all(&aside)?;
    fs::rename(run_dir, aside.join(name))?;
    sync_folder(&aside)?;
    sync_folder(experiment)?;
    Ok(aside.join(name))
}

/// Make a run's folder durable, and its name in all folders above it up to `results`.
///
/// # Errors
/// A folder cannot be synced.
pub fn sync(run_dir: &Path, results: &Path) -> io::Result<()> {
    for entry in fs::read_dir(run_dir)? {
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
    fn a_run_dir_is_never_one_that_was_there() {
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
}
