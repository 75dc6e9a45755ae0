//! Results of rows that are marked as done, but were run by another program, such as the notebook of perf_2025, or by a study that was copied without its
//! state. They are found by the names of their folders, `<results>/<model>/<experiment>/<time>/`. A run of another program whose settings contradict the row's is not
//! its result; a run of a study must be of the same row.

use super::attempt::{ABOUT_FILE, Attempt, CheckResult, Outcome, read_result};
use super::status::{Status, row_states};
use crate::import::{SUMMARY, normalized_text, recorded_settings, setting_key};
use crate::place::{INCOMPLETE, SUPERSEDED, experiment_dir, model_name};
use crate::row::{Row, RowKey};
use feedrate_measure::record::file::read_folder;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Number of all adopted attempts.
pub const ADOPTED: u64 = 0;

/// A run of another program that has the folder of a row's results, but other settings than the row.
#[derive(Clone, Debug, PartialEq)]
pub struct ContradictingRun {
    /// The row.
    pub key: RowKey,
    /// Folder of the run.
    pub run_dir: PathBuf,
    /// The settings that differ: `reader.batch_size is 4 instead of 8`.
    pub differences: Vec<String>,
}

/// Runs of other programs in the folders of rows that are marked as done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Adopted {
    /// The results of rows.
    pub attempts: Vec<Attempt>,
    /// Runs that are not the results of their rows.
    pub contradicting: Vec<ContradictingRun>,
}

/// A run that may become the result of a row.
struct Candidate {
    run_dir: PathBuf,
    /// The row of another study that it is the checked result of; `None` for a run of another program.
    result: Option<(RowKey, CheckResult)>,
}

/// Returns an attempt for each row that is marked as done and has no attempt, but a result in one of the `results` folders. `id` is the study's identity.
pub(super) fn adopt(
    rows: &[Row],
    attempts: &[Attempt],
    results: &[PathBuf],
    id: Option<&str>,
) -> Adopted {
    let mut adopted = Adopted::default();
    // The same folder may be given by several paths.
    let results: BTreeSet<PathBuf> =
        results.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let mut with_model: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    // Runs of each experiment that are left, in the order of their times.
    let mut left: BTreeMap<PathBuf, Vec<Candidate>> = BTreeMap::new();
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
            let experiments = folders.iter().map(|results| results.join(experiment));
            let mut runs: Vec<Candidate> =
                experiments.flat_map(|experiment| runs_in(&experiment, id)).collect();
            // The folder of the experiment itself has no time.
            runs.sort_by_cached_key(|run| {
                let name = run.run_dir.file_name().map(OsStr::to_os_string);
                (!run.run_dir.ends_with(experiment), name)
            });
            runs
        });
        let key = row.key();
        let is_possible = |run: &Candidate| match &run.result {
            Some((run_key, _)) => *run_key == key,
            None => true,
        };
        while let Some(index) = runs.iter().rposition(is_possible) {
            let Candidate { run_dir, result } = runs.remove(index);
            let key = key.clone();
            if let Some((_, checked)) = result {
                let outcome = Outcome::Complete(Some(checked));
                adopted.attempts.push(Attempt { number: ADOPTED, key, run_dir, outcome });
                break;
            }
            let differences = differences(row, &run_dir);
            if !differences.is_empty() {
                adopted.contradicting.push(ContradictingRun { key, run_dir, differences });
                continue;
            }
            let outcome = Outcome::Complete(Some(CheckResult::default()));
            adopted.attempts.push(Attempt { number: ADOPTED, key, run_dir, outcome });
            break;
        }
    }
    adopted
}

/// Returns the settings in which a run contradicts its row. Settings that the run did not record contradict nothing.
fn differences(row: &Row, run_dir: &Path) -> Vec<String> {
    let recorded = recorded_settings(run_dir);
    let set = row.settings.iter().filter_map(|setting| {
        // Lists are written in many ways.
        let value = setting.value.as_deref().filter(|value| !value.starts_with(['[', '{']))?;
        Some((setting_key(&setting.key), normalized_text(value.trim_matches(['\'', '"']))))
    });
    let epochs = row.epochs.map(|epochs| ("train.epochs".to_string(), epochs.to_string()));
    let seed = row.seed.map(|seed| ("train.seed".to_string(), seed.to_string()));
    let expected = set.chain(epochs).chain(seed).filter_map(|(key, expected)| {
        let found = recorded.values.get(&key).filter(|found| **found != expected)?;
        Some(format!("{key} is {found} instead of {expected}"))
    });
    let accelerators = recorded.accelerators.filter(|found| *found != u64::from(row.accelerators));
    let accelerators = accelerators
        .map(|found| format!("it has {found} accelerators instead of {}", row.accelerators));
    expected.chain(accelerators).collect()
}

/// Returns the runs of other programs and the results of other studies in the folder of an experiment, and the folder itself if it is one.
fn runs_in(experiment: &Path, id: Option<&str>) -> Vec<Candidate> {
    let entries = read_folder(experiment).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| ![INCOMPLETE, SUPERSEDED].iter().any(|aside| folder.ends_with(aside)));
    folders.push(experiment.to_path_buf());
    let runs = folders.into_iter().filter_map(|run_dir| {
        if run_dir.join(ABOUT_FILE).exists() {
            let result = Some(read_result(&run_dir, id)?);
            return Some(Candidate { run_dir, result });
        }
        // A run that only generates data has no summary.
        let has_summary = run_dir.join(SUMMARY).is_file();
        has_summary.then_some(Candidate { run_dir, result: None })
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use crate::state::write_about;
    use feedrate_measure::record::StudyRun;
    use feedrate_measure::record::file::RECORD_FILE;
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
        let adopted = adopt(&rows, &[], &results, None).attempts;
        let found: Vec<_> = adopted.iter().map(|attempt| attempt.run_dir.clone()).collect();
        assert_eq!(found, [place("a", "2026-01-02"), place("b", "2026-01-01"), place("b", "")]);
        let keys: BTreeSet<_> = adopted.iter().map(|attempt| attempt.key.clone()).collect();
        assert_eq!(keys.len(), 3);
    }

    #[test]
    fn checked_results_of_another_study_are_those_of_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let rows: Vec<Row> = (1..=4)
            .map(|number| Row { done: true, replicate: Some(number), ..Row::new("w", 1) })
            .collect();
        let write = |time: &str, row: &Row, is_checked: bool| {
            let run = experiment_dir(&folder, row, &rows).join(time);
            fs::create_dir_all(&run).unwrap();
            let key = Some(row.key().0);
            let about = StudyRun { id: Some("first".into()), key, ..StudyRun::default() };
            write_about(&run, &about).unwrap();
            fs::write(run.join(RECORD_FILE), "{}").unwrap();
            let checked = CheckResult { duration_s: 7.0, ..CheckResult::default() };
            if is_checked {
                let text = serde_json::to_string(&checked).unwrap();
                fs::write(run.join("checked.json"), text).unwrap();
            }
            run
        };
        let second = write("1", &rows[1], true);
        let first = write("2", &rows[0], true);
        write("3", &rows[2], false);
        let adopt = |id| adopt(&rows, &[], std::slice::from_ref(&folder), id).attempts;
        let expected = [(&rows[0], &first), (&rows[1], &second)].map(|(row, run_dir)| {
            let checked = CheckResult { duration_s: 7.0, ..CheckResult::default() };
            let outcome = Outcome::Complete(Some(checked));
            Attempt { number: ADOPTED, key: row.key(), run_dir: run_dir.clone(), outcome }
        });
        assert_eq!(adopt(None), expected);
        assert_eq!(adopt(Some("second")), expected);
        // A study's own attempts are read elsewhere.
        assert_eq!(adopt(Some("first")), []);
    }

    #[test]
    fn a_run_with_other_settings_is_not_the_result_of_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let settings =
            ["reader.batch_size=8", "dataset.format='npz'", "workload.reader.read_threads=2"];
        let settings = settings.map(|text| Setting::parse(text).unwrap()).to_vec();
        let row = Row { done: true, epochs: Some(5), seed: Some(7), settings, ..Row::new("w", 4) };
        let write = |time: &str, summary: &str, config: Option<&str>| {
            let run = experiment_dir(&folder, &row, std::slice::from_ref(&row)).join(time);
            fs::create_dir_all(run.join(".hydra")).unwrap();
            fs::write(run.join(SUMMARY), summary).unwrap();
            if let Some(config) = config {
                fs::write(run.join(".hydra/config.yaml"), config).unwrap();
            }
            run
        };
        let other = "workload:\n  data_reader: {batch_size: 4}\n  reader: {batch_size: 8}\n  train: {epochs: 1, seed: 8}\n";
        let equal = "workload:\n  reader: {batch_size: 8.0}\n  dataset: {format: npz}\n  train: {epochs: 5, seed: 7}\n";
        let newest = write("3", "{\"num_accelerators\": 4}", Some(other));
        let second = write("2", "{\"num_accelerators\": 2}", Some(equal));
        let first = write("1", "{\"num_accelerators\": 4}", Some(equal));
        let unknown = write("0", "{}", None);
        let rows = [row.clone(), row.clone(), row.clone()];
        let adopted = adopt(&rows, &[], std::slice::from_ref(&folder), None);
        let taken: Vec<_> = adopted.attempts.iter().map(|attempt| &attempt.run_dir).collect();
        assert_eq!(taken, [&first, &unknown]);
        let contradicting: Vec<_> = adopted
            .contradicting
            .iter()
            .map(|run| (&run.run_dir, run.differences.join("; ")))
            .collect();
        let settings = "reader.batch_size is 4 instead of 8; train.epochs is 1 instead of 5; train.seed is 8 instead of 7";
        let accelerators = "it has 2 accelerators instead of 4";
        assert_eq!(
            contradicting,
            [(&newest, settings.to_string()), (&second, accelerators.to_string())]
        );
    }
}
