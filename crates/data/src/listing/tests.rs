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
