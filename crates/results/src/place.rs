//! The folders of results: `<results>/<model>/<experiment>/<time>/`, and where those go that count no more.

use crate::experiment::Experiment;
use crate::import::{HYDRA_FOLDERS, left_by_runs};
use crate::row::Row;
use crate::state::STUDY_FILES;
use feedrate_measure::dlio::{self, HYDRA_FILES};
use feedrate_measure::plot_data;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{RECORD_FILE, sync_folder};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Folder of runs that were not finished.
pub const INCOMPLETE: &str = "incomplete";
/// Folder of runs whose row was set back.
pub const SUPERSEDED: &str = "superseded";

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

/// The first name of what another run has left in `folder`, if any has.
pub fn left_by_another(folder: &Path) -> Option<String> {
    left_by_runs(folder).into_iter().next()
}

/// Put what other runs have left in `folder` into a folder of its own in it, called after the time; files of others stay. Says where
/// it is then; `None` where there was nothing.
///
/// # Errors
/// It cannot be moved.
pub fn put_results_aside(folder: &Path, stamp: &str) -> io::Result<Option<PathBuf>> {
    let names = left_by_runs(folder);
    if names.is_empty() {
        return Ok(None);
    }
    let aside = make_run_dir(&folder.join(SUPERSEDED), stamp)?;
    for name in names {
        fs::rename(folder.join(&name), aside.join(&name))?;
    }
    sync_folder(&aside)?;
    sync_folder(folder)?;
    Ok(Some(aside))
}

/// Folders in a run's folder that are ours.
pub fn own_folders() -> Vec<String> {
    HYDRA_FOLDERS.map(str::to_string).into()
}

/// Files that are ours in the folder of a run with this record, which comes last.
pub fn own_files(record: &Record) -> Vec<String> {
    let hydra = own_folders()
        .into_iter()
        .flat_map(|folder| HYDRA_FILES.map(|name| format!("{folder}/{name}")));
    let named = STUDY_FILES.iter().chain(&plot_data::NAMES).map(|name| (*name).to_string());
    let record_file = std::iter::once(RECORD_FILE.to_string());
    dlio::file_names(record).chain(hydra).chain(named).chain(record_file).collect()
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
    fn results_are_put_aside_whole_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join(".hydra")).unwrap();
        let of_run = [
            ".hydra/config.yaml",
            "0_output.json",
            "31_per_epoch_stats.json",
            "3_load_and_proc_times.json",
            "dlio.log",
            "phases.csv",
            "record.json",
            "summary.json",
        ];
        let of_others =
            ["notes_output.json", "results.csv", "x_20260101_000000_metadata.json", "summary.txt"];
        for name in of_run.iter().chain(&of_others) {
            fs::write(folder.join(name), *name).unwrap();
        }
        assert_eq!(left_by_another(folder).as_deref(), Some(".hydra"));
        let aside = put_results_aside(folder, "2026").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026"));
        for (names, inside) in [(&of_run[..], &*aside), (&of_others, folder)] {
            for name in names {
                assert_eq!(fs::read_to_string(inside.join(name)).unwrap(), *name);
            }
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), of_others.len() + 1);
        assert_eq!(put_results_aside(folder, "2026").unwrap(), None);
        fs::write(folder.join("dlio.log"), "another").unwrap();
        let aside = put_results_aside(folder, "2026").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026-2"));
    }

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
