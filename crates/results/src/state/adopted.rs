//! Results of rows that another program ran and marked as done, such as the notebook of perf_2025. They are found by the names of their folders,
//! `<results>/<model>/<experiment>/<time>/`.

use super::attempt::{ABOUT_FILE, Attempt, CheckResult, Outcome};
use super::status::{Status, row_states};
use crate::place::{INCOMPLETE, SUPERSEDED, experiment_dir, model_name};
use crate::row::Row;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// File that each run with results has in DLIO's layout. A run that only generates data has none.
const SUMMARY: &str = "summary.json";

/// Number of all adopted attempts.
pub const ADOPTED: u64 = 0;

/// Returns an attempt for each row that is marked as done and has no attempt, but a result in one of the `results` folders.
pub(super) fn adopt(rows: &[Row], attempts: &[Attempt], results: &[PathBuf]) -> Vec<Attempt> {
    let mut adopted: Vec<Attempt> = Vec::new();
    let mut has_model: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    let states = row_states(rows, attempts);
    for (row, state) in rows.iter().zip(states) {
        if state.status != Status::Done || state.attempt.is_some() {
            continue;
        }
        let folders = has_model.entry(&row.model).or_insert_with(|| {
            let name = model_name(&row.model);
            results.iter().filter(|results| results.join(&name).is_dir()).collect()
        });
        let runs = folders.iter().flat_map(|results| runs_in(&experiment_dir(results, row, rows)));
        let is_free = |run: &PathBuf| adopted.iter().all(|other| other.run_dir != *run);
        if let Some(run_dir) = runs.filter(is_free).max() {
            let outcome = Outcome::Complete(Some(CheckResult::default()));
            adopted.push(Attempt { number: ADOPTED, key: row.key(), run_dir, outcome });
        }
    }
    adopted
}

/// Returns the folders of runs of other programs in the folder of an experiment, and the folder itself if it is one.
fn runs_in(experiment: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(experiment).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| ![INCOMPLETE, SUPERSEDED].iter().any(|aside| folder.ends_with(aside)));
    folders.push(experiment.to_path_buf());
    folders.retain(|run| run.join(SUMMARY).is_file() && !run.join(ABOUT_FILE).exists());
    folders
}
