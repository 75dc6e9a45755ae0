//! Results of rows that another program ran and marked as done, such as the notebook of perf_2025. They are found by the names of their folders,
//! `<results>/<model>/<experiment>/<time>/`.

use super::attempt::{ABOUT_FILE, Attempt, CheckResult, Outcome};
use super::status::{Status, row_states};
use crate::import::SUMMARY;
use crate::place::{INCOMPLETE, SUPERSEDED, experiment_dir, model_name};
use crate::row::Row;
use feedrate_measure::record::file::read_folder;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Number of all adopted attempts.
pub const ADOPTED: u64 = 0;

/// Returns an attempt for each row that is marked as done and has no attempt, but a result in one of the `results` folders.
pub(super) fn adopt(rows: &[Row], attempts: &[Attempt], results: &[PathBuf]) -> Vec<Attempt> {
    let mut adopted: Vec<Attempt> = Vec::new();
    // The same folder may be given by several paths.
    let results: BTreeSet<PathBuf> =
        results.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let mut with_model: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    // Runs of each experiment that are left, in the order of their times.
    let mut left: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let states = row_states(rows, attempts);
    for (row, state) in rows.iter().zip(states) {
        if state.status != Status::Done || state.attempt.is_some() {
            continue;
        }
        let folders = with_model.entry(&row.model).or_insert_with(|| {
            let name = model_name(&row.model);
            results.iter().filter(|results| results.join(&name).is_dir()).collect()
        });
        if folders.is_empty() {
            continue;
        }
        let experiment = experiment_dir(Path::new(""), row, rows);
        let runs = left.entry(experiment).or_insert_with_key(|experiment| {
            let mut runs: Vec<PathBuf> =
                folders.iter().flat_map(|results| runs_in(&results.join(experiment))).collect();
            // The folder of the experiment itself has no time.
            runs.sort_by_cached_key(|run| {
                (!run.ends_with(experiment), run.file_name().map(OsStr::to_os_string))
            });
            runs
        });
        if let Some(run_dir) = runs.pop() {
            let outcome = Outcome::Complete(Some(CheckResult::default()));
            adopted.push(Attempt { number: ADOPTED, key: row.key(), run_dir, outcome });
        }
    }
    adopted
}

/// Returns the folders of runs of other programs in the folder of an experiment, and the folder itself if it is one.
fn runs_in(experiment: &Path) -> Vec<PathBuf> {
    let entries = read_folder(experiment).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| ![INCOMPLETE, SUPERSEDED].iter().any(|aside| folder.ends_with(aside)));
    folders.push(experiment.to_path_buf());
    // A run that only generates data has no summary.
    folders.retain(|run| run.join(SUMMARY).is_file() && !run.join(ABOUT_FILE).exists());
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_run_is_the_result_of_one_row_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let rows: Vec<Row> = (1..=5)
            .map(|number| Row { done: true, replicate: Some(number), ..Row::new("w", 1) })
            .collect();
        let [first, second] = ["a", "b"].map(|name| folder.join(name));
        let runs = [("a", "2026-01-02"), ("b", "2026-01-01"), ("a", "superseded"), ("b", "")];
        let place = |results: &str, time: &str| {
            experiment_dir(&folder.join(results), &rows[0], &rows).join(time)
        };
        for (results, time) in runs {
            fs::create_dir_all(place(results, time)).unwrap();
            fs::write(place(results, time).join(SUMMARY), "{}").unwrap();
        }
        let results = [second.clone(), first.clone(), second.join("../a"), folder.join("none")];
        let adopted = adopt(&rows, &[], &results);
        let found: Vec<_> = adopted.iter().map(|attempt| attempt.run_dir.clone()).collect();
        assert_eq!(found, [place("a", "2026-01-02"), place("b", "2026-01-01"), place("b", "")]);
        let keys: BTreeSet<_> = adopted.iter().map(|attempt| attempt.key.clone()).collect();
        assert_eq!(keys.len(), 3);
    }
}
