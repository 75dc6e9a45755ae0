//! Tests of purposes, groups and the selection of files.

use super::*;
use crate::storage;

fn list_folder(folder: &Path, index: &Path) -> Listing {
    list(folder, &*storage::open("file", folder).unwrap(), index).unwrap()
}

#[test]
fn a_folder_name_may_end_in_a_year() {
    let purposes = ["train2017", "Val_1", "trainers", "7"].map(FilePurpose::from_folder_name);
    use FilePurpose::{Evaluation, Train, Unknown};
    assert_eq!(purposes, [Train, Evaluation, Unknown, Unknown]);
}

#[test]
fn the_last_word_of_a_file_name_is_its_purpose() {
    use FilePurpose::{Evaluation, Train, Unknown};
    for (name, expected) in [
        ("my_ds-test.tfrecord-00000-of-00001", Evaluation),
        ("my_ds-train-00000-of-00002.arrow", Train),
        ("train-00000-of-00004.parquet", Train),
        ("validation.h5", Evaluation),
        ("trainers-7.h5", Unknown),
    ] {
        assert_eq!(FilePurpose::from_file_name(name), expected, "{name}");
    }
}

#[test]
fn lengths_of_sparse_files_do_not_overflow() {
    let mut tally = FileTally::default();
    for _ in 0..3 {
        tally.add(u64::MAX / 2);
    }
    assert_eq!((tally.bytes, tally.merge(tally).bytes), (u64::MAX, u64::MAX));
}

/// Beyond the limit of groups, files count as others even if their content has a known format.
#[test]
fn extensions_beyond_the_limit_are_others() {
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
    let listing = list_folder(&data, &folder.path().join("names"));
    let counts = listing.counts_by_type();
    assert_eq!((counts.len(), &counts[0]), (GROUPS_MAX + 1, &("others".to_string(), 13)));
    assert_eq!(listing.main_format().map(|format| format.member().name), Some("raw"));
}

#[test]
fn files_of_the_main_format_are_selected() {
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
        for (extension, count, bytes) in files {
            for number in 0..*count {
                let mut content = b"\x89PNG\r\n\x1a\n".to_vec();
                content.resize(*bytes, b'1');
                let content = if *extension == "png" { content } else { vec![b'1'; *bytes] };
                std::fs::write(data.join(format!("{number}.{extension}")), content).unwrap();
            }
        }
        let listing = list_folder(&data, &folder.path().join("names"));
        let format = listing.main_format().unwrap();
        let selected = listing.select(format).unwrap();
        let found = (format.member().name, selected.file_type.as_str(), selected.train.files);
        assert_eq!(found, expected, "{files:?}");
    }
}

/// Text recognised as a table only by its name can also be read as plain bytes.
#[test]
fn the_main_group_can_be_read_as_plain_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for (name, bytes) in [("1.csv", 30), ("2.csv", 30), ("notes.md", 50)] {
        std::fs::write(data.join(name), vec![b'x'; bytes]).unwrap();
    }
    let listing = list_folder(&data, &folder.path().join("names"));
    assert_eq!(listing.main_format().unwrap().member().name, "csv");
    let selected = listing.select(format::plain_bytes()).unwrap();
    assert_eq!((selected.file_type.as_str(), selected.train.files), ("csv", 2));
}

/// Megatron-LM's tokens belong to their index; other `.bin` files are left out.
#[test]
fn parts_of_other_files_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for number in 0..2 {
        std::fs::write(data.join(format!("{number}.idx")), b"MMIDIDX\0\0").unwrap();
        std::fs::write(data.join(format!("{number}.bin")), [1; 500]).unwrap();
    }
    std::fs::write(data.join("other.bin"), [1; 500]).unwrap();
    let listing = list_folder(&data, &folder.path().join("names"));
    let format = listing.main_format().unwrap();
    let selected = listing.select(format).unwrap();
    assert_eq!((format.member().name, selected.train.files), ("megatron", 2));
    assert_eq!(selected.left_out, [("bin".to_string(), 1)]);
}
