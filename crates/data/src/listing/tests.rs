//! Purposes of folders, and endings beyond those that are told apart.

use super::*;

#[test]
fn splits_may_have_a_year() {
    let purposes = ["train2017", "Val_1", "trainers", "7"].map(FilePurpose::of_folder);
    use FilePurpose::{Evaluation, Train, Unknown};
    assert_eq!(purposes, [Train, Evaluation, Unknown, Unknown]);
}

/// Endings beyond those that are told apart are of no format, however their files begin.
#[test]
fn endings_beyond_the_most_are_others() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for inner in ["a", "b"] {
        std::fs::create_dir_all(data.join(inner)).unwrap();
    }
    for number in 0..GROUPS_MAX + 10 {
        std::fs::write(data.join(format!("a/x.e{number}")), "?").unwrap();
    }
    for number in 0..3 {
        std::fs::write(data.join(format!("b/{number}.png")), b"\x89PNG\r\n\x1a\n").unwrap();
    }
    let listing = list(&data, &folder.path().join("names")).unwrap();
    let kinds = listing.kinds();
    assert_eq!((kinds.len(), &kinds[0]), (GROUPS_MAX + 1, &("others".to_string(), 13)));
    assert_eq!(listing.commonest().map(|format| format.member().name), Some("raw"));
}

/// Whatever lies beside them, the files that are taken are those whose format was told.
#[test]
fn what_is_taken_is_what_was_told() {
    for (files, expected) in [
        (&[("raw", 1, 10), ("xyz", 2, 90)][..], ("raw", "xyz", 2)),
        (&[("raw", 3, 90), ("xyz", 2, 10)], ("raw", "raw", 3)),
        (&[("csv", 3, 90), ("xyz", 2, 10)], ("csv", "csv", 3)),
        (&[("csv", 1, 20), ("png", 2, 10), ("xyz", 3, 15)], ("raw", "xyz", 3)),
        (&[("csv", 1, 20), ("png", 2, 10)], ("png", "png", 2)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        for (ending, count, bytes) in files {
            for number in 0..*count {
                let mut content = b"\x89PNG\r\n\x1a\n".to_vec();
                content.resize(*bytes, b'1');
                let content = if *ending == "png" { content } else { vec![b'1'; *bytes] };
                std::fs::write(data.join(format!("{number}.{ending}")), content).unwrap();
            }
        }
        let listing = list(&data, &folder.path().join("names")).unwrap();
        let format = listing.commonest().unwrap();
        let taken = listing.take(format).unwrap();
        let found = (format.member().name, taken.kind.as_str(), taken.train.files);
        assert_eq!(found, expected, "{files:?}");
    }
}

/// Text that only its name has told to be a table is read as plain bytes, whatever else lies there.
#[test]
fn what_was_chosen_may_be_taken_as_plain_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for (name, bytes) in [("1.csv", 30), ("2.csv", 30), ("notes.md", 50)] {
        std::fs::write(data.join(name), vec![b'x'; bytes]).unwrap();
    }
    let listing = list(&data, &folder.path().join("names")).unwrap();
    assert_eq!(listing.commonest().unwrap().member().name, "csv");
    let taken = listing.take(format::plain()).unwrap();
    assert_eq!((taken.kind.as_str(), taken.train.files), ("csv", 2));
}
