//! Finds files that earlier runs left in a result folder, moves them aside, and lists the names of feedrate's files.

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

/// Returns whether earlier runs left results in `folder`.
pub fn has_results(folder: &Path) -> bool {
    !left_by_runs(folder).is_empty()
}

/// Returns the name of the first file or folder that an earlier run left in `folder`.
pub fn first_leftover(folder: &Path) -> Option<String> {
    let names = folder.join(NAMES_FILE).symlink_metadata().is_ok().then(|| NAMES_FILE.into());
    left_by_runs(folder).into_iter().chain(names).next()
}

/// Moves the files of earlier runs in `folder` to a subfolder of `superseded` named `stamp`; the user's files stay, except a file with the name
/// `log`, which the next run's log gets. `hydra` is the name of Hydra's folder. Returns the subfolder, or `None` if there was nothing to move.
///
/// # Errors
/// A file cannot be moved.
pub fn move_results_aside(
    folder: &Path,
    stamp: &str,
    hydra: &str,
    log: &str,
) -> io::Result<Option<PathBuf>> {
    let mut names = left_by_runs(folder);
    if folder.join(log).symlink_metadata().is_ok() && !names.iter().any(|name| name == log) {
        names.push(log.into());
    }
    if names.is_empty() {
        return Ok(None);
    }
    let has_hydra_files = HYDRA_FILES.iter().any(|name| folder.join(hydra).join(name).is_file());
    let is_hydra_folder = !hydra.is_empty() && !hydra.contains('/') && has_hydra_files;
    if is_hydra_folder && !names.iter().any(|name| name == hydra) {
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

/// Returns the names of the folders that feedrate creates in a run's folder.
pub fn feedrate_folders() -> Vec<String> {
    HYDRA_FOLDERS.map(str::to_string).into()
}

/// Returns the names of feedrate's files in the folder of a run with this record. The record file is the last.
pub fn feedrate_files(record: &Record) -> Vec<String> {
    let hydra = feedrate_folders()
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
    fn all_files_of_a_run_are_moved_aside_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join(".hydra")).unwrap();
        let run_files = [
            ".hydra/config.yaml",
            "0_output.json",
            "31_per_epoch_stats.json",
            "3_load_and_proc_times.json",
            "dlio.log",
            "phases.csv",
            "record.json",
            "summary.json",
        ];
        let user_files =
            ["notes_output.json", "results.csv", "x_20260101_000000_metadata.json", "summary.txt"];
        for name in run_files.iter().chain(&user_files) {
            fs::write(folder.join(name), *name).unwrap();
        }
        assert_eq!(first_leftover(folder).as_deref(), Some(".hydra"));
        let aside = move_results_aside(folder, "2026", ".hydra", "dlio.log").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026"));
        for (names, inside) in [(&run_files[..], &*aside), (&user_files, folder)] {
            for name in names {
                assert_eq!(fs::read_to_string(inside.join(name)).unwrap(), *name);
            }
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), user_files.len() + 1);
        assert_eq!(move_results_aside(folder, "2026", ".hydra", "dlio.log").unwrap(), None);
        fs::write(folder.join("dlio.log"), "another").unwrap();
        let aside = move_results_aside(folder, "2026", ".hydra", "dlio.log").unwrap().unwrap();
        assert_eq!(aside, folder.join("superseded/2026-2"));
        // Hydra's folder under another name, and a user's folder of that name.
        for (inside, moves) in [("config.yaml", true), ("notes.txt", false)] {
            fs::write(folder.join("dlio.log"), "another").unwrap();
            fs::create_dir_all(folder.join("own")).unwrap();
            fs::write(folder.join("own").join(inside), "a").unwrap();
            let aside = move_results_aside(folder, "2027", "own", "dlio.log").unwrap().unwrap();
            assert_eq!(aside.join("own").join(inside).is_file(), moves);
        }
        // The next run's log would replace a user's file.
        for name in ["notes_output.json", "link"] {
            std::os::unix::fs::symlink("nothing", folder.join("link")).unwrap();
            let aside = move_results_aside(folder, "2028", "", name).unwrap().unwrap();
            let is_in = |folder: &Path| folder.join(name).symlink_metadata().is_ok();
            assert!(is_in(&aside) && !is_in(folder), "{name}");
            let _ = fs::remove_file(folder.join("link"));
        }
    }
}
