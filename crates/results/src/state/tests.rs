//! The state of a study, as the folders of its results and the settings beside its CSV say.

use super::*;
use crate::place::{INCOMPLETE, make_run_dir};
use feedrate_measure::example::simple;
use feedrate_measure::record::{StudyRun, file};
use std::fs;
use std::path::{Path, PathBuf};

/// Outcome of an attempt.
#[derive(Clone, Copy)]
enum Came {
    Running,
    Complete,
    Marked,
    Superseded,
    Failed,
    Retried,
    BrokenOff,
}
use Came::{BrokenOff, Complete, Failed, Marked, Retried, Running, Superseded};

fn attempt(number: u64, row: &Row, came: Came) -> Attempt {
    let checked = Checked { duration_s: 1.5, ..Checked::default() };
    let failed = |is_retried| Outcome::Failed { reason: "no space".into(), is_retried };
    let outcome = match came {
        Running => Outcome::Running,
        Complete => Outcome::Complete(None),
        Marked => Outcome::Complete(Some(checked)),
        Superseded => Outcome::Superseded,
        Failed => failed(false),
        Retried => failed(true),
        BrokenOff => Outcome::BrokenOff,
    };
    Attempt { number, key: row.key(), run_dir: format!("results/{number}").into(), outcome }
}

/// A word for each row, with the attempt that it is from.
fn told(rows: &[Row], attempts: &[Attempt]) -> Vec<String> {
    let state = StudyState { settings: None, attempts: attempts.to_vec() };
    let word = |place: &RowState| {
        let number = place.attempt.map_or("-".into(), |attempt| attempt.number.to_string());
        let reason = place.reason().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{} {number}{reason}", place.status.name())
    };
    state.places(rows).iter().map(word).collect()
}

#[test]
fn a_row_stands_where_csv_and_folders_say() {
    let row = Row::new("w", 2);
    let done = Row { done: true, ..row.clone() };
    for (row, came, expected) in [
        (&row, &[][..], "pending -"),
        (&done, &[], "done -"),
        (&row, &[Running], "running 1"),
        (&row, &[BrokenOff], "pending 1"),
        (&row, &[Failed], "failed 1: no space"),
        (&row, &[Failed, BrokenOff], "pending 2"),
        (&row, &[Retried], "pending -"),
        (&row, &[Complete], "done 1"),
        (&done, &[Complete], "done 1"),
        (&row, &[Marked], "pending 1"),
        (&row, &[Superseded], "pending -"),
        (&row, &[Retried, Marked], "pending 2"),
        (&done, &[Failed], "done -"),
    ] {
        let attempts: Vec<Attempt> =
            came.iter().zip(1..).map(|(came, number)| attempt(number, row, *came)).collect();
        assert_eq!(told(std::slice::from_ref(row), &attempts), [expected]);
    }
}

#[test]
fn rows_that_ask_for_the_same_are_matched_by_their_number() {
    let row = Row::new("w", 2);
    let done = Row { done: true, note: "another word".into(), ..row.clone() };
    let first = [attempt(1, &row, Marked)];
    let check = |rows: &[&Row], attempts: &[Attempt], expected: &[&str]| {
        let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
        assert_eq!(told(&rows, attempts), expected);
    };
    check(&[&done, &row], &first, &["done 1", "pending -"]);
    check(&[&row, &done], &first, &["pending -", "done 1"]);
    check(&[&row, &row], &first, &["pending 1", "pending -"]);
    check(&[&done, &done], &first, &["done 1", "done -"]);
    let both = [first[0].clone(), attempt(2, &row, Complete)];
    check(&[&row, &done], &both, &["done 2", "done 1"]);
    // Its neighbour was deleted while it ran: it is not the one that was set back.
    check(&[&row], &both, &["done 2"]);
}

fn settings(csv: &Path) -> StudySettings {
    let folder = csv.parent().unwrap();
    StudySettings {
        csv: csv.into(),
        id: "this".into(),
        folder: folder.into(),
        results: folder.join("results"),
        data: Some("/mnt/data".into()),
        scale: 1.0,
        shrink_records: 1.0,
        cache: "as-is".into(),
        launching: Launching::default(),
    }
}

fn study(folder: &Path) -> StudyFiles {
    fs::create_dir_all(folder.join("s.study")).unwrap();
    fs::write(folder.join("s.csv"), "model,processes,run\nw,2,N\n").unwrap();
    StudyFiles::new(&folder.join("s.csv")).unwrap()
}

#[test]
fn a_study_that_was_moved_takes_its_paths_along_and_a_copy_is_told() {
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
    let error = StudyState::read(&other).unwrap_err();
    assert!(error.to_string().contains("of which it is a copy"), "{error}");
    assert!(error.hint().unwrap().contains("remove `"));
}

#[test]
fn a_study_with_a_journal_of_an_older_version_is_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let files = study(folder.path());
    fs::write(files.state.join("journal.jsonl"), "{}\n").unwrap();
    let error = StudyState::read(&files).unwrap_err();
    assert!(error.to_string().ends_with("is not read; nothing was changed"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.starts_with("move `")));
    // What this version wrote beside it is read.
    settings(&files.csv).write(&files).unwrap();
    assert_eq!(StudyState::read(&files).unwrap().settings, Some(settings(&files.csv)));
}

/// A run of this study.
fn about(number: u64) -> StudyRun {
    StudyRun {
        id: Some("this".into()),
        key: Some(Row::new("w", 2).key().0),
        attempt: number,
        ..StudyRun::default()
    }
}

/// A run below the results of a study in `folder`.
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
fn folders_say_what_came_of_runs() {
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
    attempts[0].mark(Checked { duration_s: 2.0, ..Checked::default() }).unwrap();
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

/// What opens a pipe waits for somebody who writes.
#[test]
fn a_pipe_among_the_state_of_a_study_is_not_waited_for() {
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
