//! Tests of a study's state as read from its settings and result folders.

use super::*;
use crate::place::{INCOMPLETE, make_run_dir};
use feedrate_measure::example::simple;
use feedrate_measure::record::{StudyRun, file};
use std::fs;
use std::path::{Path, PathBuf};

/// Kind of outcome of an attempt.
#[derive(Clone, Copy)]
enum OutcomeKind {
    Running,
    Complete,
    Marked,
    Superseded,
    Failed,
    Retried,
    Interrupted,
}
use OutcomeKind::{Complete, Failed, Interrupted, Marked, Retried, Running, Superseded};

fn attempt(number: u64, row: &Row, kind: OutcomeKind) -> Attempt {
    let checked = CheckResult { duration_s: 1.5, ..CheckResult::default() };
    let failed = |is_retried| Outcome::Failed { reason: "no space".into(), is_retried };
    let outcome = match kind {
        Running => Outcome::Running,
        Complete => Outcome::Complete(None),
        Marked => Outcome::Complete(Some(checked)),
        Superseded => Outcome::Superseded,
        Failed => failed(false),
        Retried => failed(true),
        Interrupted => Outcome::Interrupted,
    };
    Attempt { number, key: row.key(), run_dir: format!("results/{number}").into(), outcome }
}

/// Formats the status of each row and the number of the attempt that determines it.
fn statuses(rows: &[Row], attempts: &[Attempt]) -> Vec<String> {
    let state = StudyState { attempts: attempts.to_vec(), ..StudyState::default() };
    let describe = |state: &RowState| {
        let number = state.attempt.map_or("-".into(), |attempt| attempt.number.to_string());
        let reason = state.reason().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{} {number}{reason}", state.status.name())
    };
    state.row_states(rows).iter().map(describe).collect()
}

#[test]
fn the_status_of_a_row_follows_from_csv_and_folders() {
    let row = Row::new("w", 2);
    let done = Row { done: true, ..row.clone() };
    for (row, kind, expected) in [
        (&row, &[][..], "pending -"),
        (&done, &[], "done -"),
        (&row, &[Running], "running 1"),
        (&row, &[Interrupted], "pending 1"),
        (&row, &[Failed], "failed 1: no space"),
        (&row, &[Failed, Interrupted], "pending 2"),
        (&row, &[Retried], "pending -"),
        (&row, &[Complete], "done 1"),
        (&done, &[Complete], "done 1"),
        (&row, &[Marked], "pending 1"),
        (&row, &[Superseded], "pending -"),
        (&row, &[Retried, Marked], "pending 2"),
        (&done, &[Failed], "done -"),
    ] {
        let attempts: Vec<Attempt> =
            kind.iter().zip(1..).map(|(kind, number)| attempt(number, row, *kind)).collect();
        assert_eq!(statuses(std::slice::from_ref(row), &attempts), [expected]);
    }
}

#[test]
fn rows_with_equal_keys_are_matched_by_their_number() {
    let row = Row::new("w", 2);
    let done = Row { done: true, note: "another word".into(), ..row.clone() };
    let first = [attempt(1, &row, Marked)];
    let check = |rows: &[&Row], attempts: &[Attempt], expected: &[&str]| {
        let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
        assert_eq!(statuses(&rows, attempts), expected);
    };
    check(&[&done, &row], &first, &["done 1", "pending -"]);
    check(&[&row, &done], &first, &["pending -", "done 1"]);
    check(&[&row, &row], &first, &["pending 1", "pending -"]);
    check(&[&done, &done], &first, &["done 1", "done -"]);
    let both = [first[0].clone(), attempt(2, &row, Complete)];
    check(&[&row, &done], &both, &["done 2", "done 1"]);
    // The other row was deleted during the run: the remaining row has the unchecked result.
    check(&[&row], &both, &["done 2"]);
}

fn settings(csv: &Path) -> StudySettings {
    let folder = csv.parent().unwrap();
    StudySettings {
        csv: csv.into(),
        id: "this".into(),
        folder: folder.into(),
        results: folder.join("results"),
        mlperf_folder: None,
        data: Some("/mnt/data".into()),
        config_dir: None,
        scale: 1.0,
        shrink_records: 1.0,
        cache: "as-is".into(),
        now_s: None,
        launching: LaunchSettings::default(),
    }
}

fn study(folder: &Path) -> StudyFiles {
    fs::create_dir_all(folder.join("s.study")).unwrap();
    fs::write(folder.join("s.csv"), "model,processes,run\nw,2,N\n").unwrap();
    StudyFiles::new(&folder.join("s.csv")).unwrap()
}

#[test]
fn a_study_that_was_moved_adjusts_its_paths_and_a_copy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = study(&folder.path().join("here"));
    settings(Path::new("/no/such/s.csv")).write(&files).unwrap();
    let here = files.csv.parent().unwrap();
    let state = StudyState::read(&files).unwrap();
    assert_eq!(state.settings, Some(settings(&files.csv)));
    assert_eq!(state.settings.unwrap().results, here.join("results"));
    StudyState::open(&files, &files.lock().unwrap()).unwrap();
    assert_eq!(StudySettings::read(&files).unwrap(), Some(settings(&files.csv)));
    let other = study(&folder.path().join("other"));
    settings(&files.csv).write(&other).unwrap();
    // What only reads, as `analyze` does, reads the copied results.
    let copied = StudyState::read(&other).unwrap().settings.unwrap();
    assert_eq!(copied.results, other.csv.with_file_name("results"));
    let error = StudyState::open(&other, &other.lock().unwrap()).unwrap_err();
    assert!(error.to_string().contains("was copied from"), "{error}");
    assert!(error.hint().unwrap().contains("remove `"));
}

#[test]
fn a_study_with_a_journal_of_an_older_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = study(folder.path());
    fs::write(files.state.join("journal.jsonl"), "{}\n").unwrap();
    let error = StudyState::read(&files).unwrap_err();
    assert!(error.to_string().ends_with("cannot be read; nothing was changed"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.starts_with("move `")));
    // The state of this version next to the journal is read.
    settings(&files.csv).write(&files).unwrap();
    assert_eq!(StudyState::read(&files).unwrap().settings, Some(settings(&files.csv)));
}

/// Returns the description of an attempt of this study.
fn about(number: u64) -> StudyRun {
    StudyRun {
        id: Some("this".into()),
        key: Some(Row::new("w", 2).key().0),
        attempt: number,
        ..StudyRun::default()
    }
}

/// Creates a run below the results of a study in `folder`.
fn run(folder: &Path, complete: bool, about: Option<&StudyRun>) -> PathBuf {
    let run_dir = make_run_dir(&folder.join("results/w/2"), "2026").unwrap();
    let mut record = simple(&[(1000, 1000, 0, 1)]);
    record.complete = complete;
    if let Some(about) = about {
        write_about(&run_dir, about).unwrap();
    }
    file::write(&run_dir, &record).unwrap();
    run_dir
}

#[test]
fn outcomes_are_read_from_folders() {
    let folder = tempfile::tempdir().unwrap();
    let files = study(folder.path());
    settings(&files.csv).write(&files).unwrap();
    for number in 1..=6 {
        run(folder.path(), number != 6, Some(&about(number)));
    }
    let foreign = StudyRun { id: Some("another".into()), ..about(7) };
    run(folder.path(), true, Some(&foreign));
    run(folder.path(), true, None);
    let mut attempts = StudyState::read(&files).unwrap().attempts;
    assert!(attempts[..5].iter().all(|attempt| attempt.outcome == Outcome::Complete(None)));
    assert_eq!((attempts.len(), &attempts[5].outcome), (6, &Outcome::Running));
    attempts[0].mark_checked(CheckResult { duration_s: 2.0, ..CheckResult::default() }).unwrap();
    attempts[1].supersede().unwrap();
    attempts[2].give_up(Some("no space".into())).unwrap();
    attempts[3].give_up(Some("no space".into())).unwrap();
    attempts[3].retry().unwrap();
    attempts[5].give_up(None).unwrap();
    assert!(attempts[5].run_dir.parent().unwrap().ends_with(INCOMPLETE));
    let read = StudyState::read(&files).unwrap();
    assert_eq!(read.attempts, attempts);
    assert!(read.has_results());
    fs::remove_file(attempts[0].run_dir.join("record.json")).unwrap();
    let gone = StudyState::read(&files).unwrap();
    assert_eq!(gone.attempts[0].outcome, Outcome::Running);
}

/// Opening a pipe would block until another process opens it for writing.
#[test]
fn a_pipe_in_the_state_of_a_study_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let files = study(folder.path());
    settings(&files.csv).write(&files).unwrap();
    let run_dir = run(folder.path(), true, Some(&about(1)));
    for pipe in
        [run_dir.join("failed.txt"), run_dir.join("study.json"), files.state.join("settings.json")]
    {
        let before = fs::read(&pipe);
        let _ = fs::remove_file(&pipe);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(StudyState::read(&files).is_err(), "{}", pipe.display());
        fs::remove_file(&pipe).unwrap();
        if let Ok(before) = before {
            fs::write(&pipe, before).unwrap();
        }
    }
}
