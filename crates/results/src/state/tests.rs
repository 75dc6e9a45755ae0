//! Journals that survive, and what they say of rows.

use super::*;
use crate::row::Row;
use std::io::Write;
use std::path::Path;

fn begun(attempt: u64, row: &Row, ordinal: u32) -> Event {
    Event::Begun {
        attempt,
        key: row.key(),
        ordinal,
        run_dir: format!("results/{attempt}").into(),
        at: String::new(),
    }
}

fn finished(attempt: u64) -> Event {
    Event::Finished { attempt, result: Checked { duration_s: 1.5, ..Checked::default() } }
}

fn failed(attempt: u64) -> Event {
    Event::Failed { attempt, reason: "no space".into() }
}

#[test]
fn what_was_added_is_read_again_and_a_torn_line_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let row = Row::new("w", 2);
    let events = [begun(1, &row, 0), finished(1), Event::Marked { attempt: 1 }];
    let (mut journal, before) = Journal::open(&path).unwrap();
    assert_eq!(before, []);
    for event in &events {
        journal.add(event).unwrap();
    }
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"event\":\"fini").unwrap();
    assert_eq!(Journal::read(&path).unwrap(), events);
    let (mut journal, read) = Journal::open(&path).unwrap();
    assert_eq!(read, events);
    journal.add(&failed(2)).unwrap();
    assert_eq!(Journal::read(&path).unwrap().last(), Some(&failed(2)));
}

#[test]
fn what_is_no_journal_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, "{\"event\":\"marked\",\"attempt\":1}\nnonsense\n").unwrap();
    let error = Journal::open(&path).unwrap_err().to_string();
    assert!(error.contains("line 2 of the journal"), "{error}");
    let error = Journal::open(Path::new("/no/such/folder/journal.jsonl")).unwrap_err().to_string();
    assert!(error.contains("cannot open the journal"), "{error}");
}

/// A word for each row, with the attempt that it is from.
fn told(rows: &[Row], events: &[Event]) -> Vec<String> {
    let history = History::of(events.to_vec());
    let word = |place: &Place| match place.status {
        Status::Pending => "pending".to_string(),
        Status::Done(attempt) => format!("done {:?}", attempt.map(|a| a.number)),
        Status::Unmarked(attempt) => format!("unmarked {}", attempt.number),
        Status::SetBack(attempt) => format!("set back {}", attempt.number),
        Status::Failed(attempt, reason) => format!("failed {}: {reason}", attempt.number),
        Status::Left(attempt) => format!("left {}", attempt.number),
    };
    places(rows, &history).iter().map(word).collect()
}

fn marked(attempt: u64) -> Event {
    Event::Marked { attempt }
}

#[test]
fn a_row_stands_where_csv_and_journal_say() {
    let row = Row::new("w", 2);
    let done = Row { done: true, ..row.clone() };
    let superseded = Event::Superseded { attempt: 1 };
    for (row, events, expected) in [
        (&row, vec![], "pending"),
        (&done, vec![], "done None"),
        (&row, vec![begun(1, &row, 0)], "left 1"),
        (&row, vec![begun(1, &row, 0), Event::BrokenOff { attempt: 1 }], "pending"),
        (&row, vec![begun(1, &row, 0), failed(1)], "failed 1: no space"),
        (&row, vec![begun(1, &row, 0), finished(1)], "unmarked 1"),
        (&done, vec![begun(1, &row, 0), finished(1)], "done Some(1)"),
        (&row, vec![begun(1, &row, 0), finished(1), marked(1)], "set back 1"),
        (&row, vec![begun(1, &row, 0), finished(1), marked(1), superseded], "pending"),
        (&done, vec![begun(1, &row, 0), failed(1)], "done None"),
    ] {
        assert_eq!(told(std::slice::from_ref(row), &events), [expected]);
    }
}

#[test]
fn rows_that_ask_for_the_same_are_matched_by_their_number() {
    let row = Row::new("w", 2);
    let done = Row { done: true, note: "another word".into(), ..row.clone() };
    let first = [begun(1, &row, 0), finished(1), marked(1)];
    let check = |rows: &[&Row], more: &[Event], expected: &[&str]| {
        let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
        assert_eq!(told(&rows, &[&first[..], more].concat()), expected);
    };
    check(&[&done, &row], &[], &["done Some(1)", "pending"]);
    check(&[&row, &done], &[], &["pending", "done Some(1)"]);
    check(&[&row, &row], &[], &["set back 1", "pending"]);
    check(&[&done, &done], &[], &["done Some(1)", "done None"]);
    let second = [begun(2, &row, 1), finished(2)];
    check(&[&row, &done], &second, &["unmarked 2", "done Some(1)"]);
    // Its neighbour was deleted while it ran: it is not the one that was set back.
    check(&[&row], &second, &["unmarked 2"]);
    let ids: Vec<u32> = places(&[row.clone(), done, row], &History::of(first.to_vec()))
        .iter()
        .map(|of| of.id.ordinal)
        .collect();
    assert_eq!(ids, [1, 0, 2]);
}

fn settings(csv: &str) -> Event {
    let folder = Path::new(csv).parent().unwrap();
    Event::Settings(Settings {
        csv: csv.into(),
        id: "1".into(),
        folder: folder.into(),
        results: folder.join("results"),
        data: Some("/mnt/data".into()),
        scale: 1.0,
        shrink_records: 1.0,
        cache: "as-is".into(),
        launching: Launching::default(),
    })
}

#[test]
fn a_study_that_was_moved_takes_its_paths_along_and_a_copy_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("s.csv");
    let row = Row::new("w", 2);
    let event = Event::Begun {
        attempt: 1,
        key: row.key(),
        ordinal: 0,
        run_dir: "/no/such/results/w/2/now".into(),
        at: String::new(),
    };
    let mut history = History::of(vec![settings("/no/such/s.csv"), event]);
    assert!(history.come_along(&csv).unwrap().is_some());
    assert_eq!(history.attempts[0].run_dir, folder.path().join("results/w/2/now"));
    let settings = history.settings.clone().unwrap();
    assert_eq!(settings.data.as_deref(), Some(Path::new("/mnt/data")));
    assert_eq!(settings.folder, folder.path());
    assert!(history.come_along(&csv).unwrap().is_none());
    std::fs::write(&csv, "").unwrap();
    let error = history.come_along(Path::new("/elsewhere/s.csv")).unwrap_err();
    assert_eq!(error.original, csv);
}
