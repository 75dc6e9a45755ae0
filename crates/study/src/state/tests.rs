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
    Event::Finished { attempt, duration_s: 1.5, doubts: Vec::new() }
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

#[test]
fn a_row_stands_where_csv_and_journal_say() {
    let row = Row::new("w", 2);
    let done = Row { done: true, ..row.clone() };
    let name = |row: &Row, events: &[Event]| {
        let history = History::of(events.to_vec());
        let id = &row_ids([row])[0];
        match status(row, id, &history) {
            Status::Pending => "pending".to_string(),
            Status::Done(attempt) => format!("done {:?}", attempt.map(|a| a.number)),
            Status::Unmarked(attempt) => format!("unmarked {}", attempt.number),
            Status::SetBack(attempt) => format!("set back {}", attempt.number),
            Status::Failed(attempt, reason) => format!("failed {}: {reason}", attempt.number),
            Status::Left(attempt) => format!("left {}", attempt.number),
        }
    };
    let marked = |attempt| Event::Marked { attempt };
    for (row, events, expected) in [
        (&row, vec![], "pending"),
        (&done, vec![], "done None"),
        (&row, vec![begun(1, &row, 0)], "left 1"),
        (&row, vec![begun(1, &row, 0), Event::BrokenOff { attempt: 1 }], "pending"),
        (&row, vec![begun(1, &row, 0), failed(1)], "failed 1: no space"),
        (&row, vec![begun(1, &row, 0), finished(1)], "unmarked 1"),
        (&done, vec![begun(1, &row, 0), finished(1)], "done Some(1)"),
        (&row, vec![begun(1, &row, 0), finished(1), marked(1)], "set back 1"),
        (
            &row,
            vec![begun(1, &row, 0), finished(1), marked(1), Event::Superseded { attempt: 1 }],
            "pending",
        ),
        (&done, vec![begun(1, &row, 0), failed(1)], "done None"),
        (&row, vec![begun(1, &row, 1), finished(1)], "pending"),
    ] {
        assert_eq!(name(row, &events), expected);
    }
}

#[test]
fn rows_that_ask_for_the_same_are_told_apart_by_their_order() {
    let row = Row::new("w", 2);
    let other = Row { note: "another word".into(), order: Some(9), ..row.clone() };
    let ids = row_ids([&row, &Row::new("v", 2), &other]);
    assert_eq!((ids[0].ordinal, ids[1].ordinal, ids[2].ordinal), (0, 0, 1));
    assert_eq!(ids[0].key, ids[2].key);
}
