//! Files that runs leave in a folder: those that another must not be mixed with, and those that are ours.

use crate::import::{HYDRA_FOLDERS, left_by_runs};
use crate::place::{SUPERSEDED, make_run_dir};
use crate::state::STUDY_FILES;
use feedrate_measure::dlio::{self, HYDRA_FILES};
use feedrate_measure::plot_data;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{NAMES_FILE, RECORD_FILE, sync_folder};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The first name of what another run has left in `folder`, if any has.
pub fn left_by_another(folder: &Path) -> Option<String> {
    let names = folder.join(NAMES_FILE).symlink_metadata().is_ok().then(|| NAMES_FILE.into());
    left_by_runs(folder).into_iter().chain(names).next()
}

/// Put what other runs have left in `folder` into a folder of its own in it, called after the time; files of others stay. Says where
/// it is then; `None` where there was nothing.
///
/// # Errors
/// It cannot be moved.
pub fn put_results_aside(folder: &Path, stamp: &str, hydra: &str) -> io::Result<Option<PathBuf>> {
    let mut names = left_by_runs(folder);
    if names.is_empty() {
        return Ok(None);
    }
    let is_hydras = HYDRA_FILES.iter().any(|name| folder.join(hydra).join(name).is_file());
    let is_named = !hydra.is_empty() && !hydra.contains('/') && is_hydras;
    if is_named && !names.iter().any(|name| name == hydra) {
        names.push(hydra.into());
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
    let record_file = [NAMES_FILE, RECORD_FILE].map(str::to_string);
    dlio::file_names(record).chain(hydra).chain(named).chain(record_file).collect()
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
        let aside = put_results_aside(folder, "2026", ".hydra").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026"));
        for (names, inside) in [(&of_run[..], &*aside), (&of_others, folder)] {
            for name in names {
                assert_eq!(fs::read_to_string(inside.join(name)).unwrap(), *name);
            }
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), of_others.len() + 1);
        assert_eq!(put_results_aside(folder, "2026", ".hydra").unwrap(), None);
        fs::write(folder.join("dlio.log"), "another").unwrap();
        let aside = put_results_aside(folder, "2026", ".hydra").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026-2"));
        // A folder of Hydra's that has another name, and one of that name that is somebody else's.
        for (inside, moves) in [("config.yaml", true), ("notes.txt", false)] {
            fs::write(folder.join("dlio.log"), "another").unwrap();
            fs::create_dir_all(folder.join("own")).unwrap();
            fs::write(folder.join("own").join(inside), "a").unwrap();
            let aside = put_results_aside(folder, "2027", "own").unwrap().unwrap();
            assert_eq!(aside.join("own").join(inside).is_file(), moves);
        }
    }
}
