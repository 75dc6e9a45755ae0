//! Foreign files of which a part is not read: the answer says so, and is unknown if that part was never seen.

use crate::harness::{TINY, Test, venv_python};
use serde_json::Value;
use std::fs;

/// Reads take at least 2 ms, so that the page cache does not matter, and every answer that is known is YES.
const FED: [&str; 5] =
    ["--json", "--quiet", "train.epochs=1", "storage.delay.read_seconds=0.002", "metric.au=0.001"];

fn run(test: &Test, folder: &str, more: &[&str]) -> Value {
    let arguments = ["run", "--data", folder, "--compute", "1ms", "--batch", "1"];
    let answer = test.feedrate(&[&arguments, &FED[..], more].concat());
    assert_eq!(answer.code, 0, "{folder}: {}", answer.stderr);
    answer.json()
}

/// Whether the answer is unknown because values were not read.
fn is_data_unread(json: &Value) -> bool {
    json["answer"]["unknown_because"] == "data-unread"
}

/// Whether the answer is unknown. On a busy machine that delays reads further, another reason than the values that were not read may come first.
fn is_unanswered(json: &Value) -> bool {
    is_data_unread(json) || json["answer"]["unknown_because"] == "cache-fed"
}

fn evidence<'a>(json: &'a Value, name: &str) -> Option<&'a str> {
    let doubts = json["doubts"].as_array().unwrap();
    doubts.iter().find(|doubt| doubt["name"] == name)?["evidence"].as_str()
}

/// Folders of files that `unread.py` writes.
fn files(kinds: &[&str]) -> Test {
    let test = Test::new();
    test.python(&venv_python(), "unread.py", [&["."], kinds].concat());
    test
}

#[test]
fn files_with_external_links_leave_the_answer_unknown() {
    let test = files(&["linked"]);
    let json = run(&test, "linked", &["--write-yaml", "linked.yaml"]);
    let again = test.feedrate(&[&["run", "linked.yaml"], &FED[..]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    for json in [json, again.json()] {
        assert!(is_unanswered(&json), "{}", json["answer"]);
        let expected = "values of images are stored elsewhere and not read";
        assert_eq!(evidence(&json, "values_elsewhere"), Some(expected));
    }
    // Samples consist of what the user names.
    let choice = ["dataset.members=[labels]", "--write-yaml", "chosen.yaml"];
    let chosen = run(&test, "linked", &choice);
    let again = test.feedrate(&[&["run", "chosen.yaml"], &FED[..]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    for json in [chosen, again.json()] {
        assert!(!is_data_unread(&json), "{}", json["answer"]);
        assert_eq!(evidence(&json, "values_elsewhere"), None);
        assert_eq!(evidence(&json, "bytes_left_unread"), None);
    }
}

/// The file with the link or the paths is not among those that are opened for their members.
#[test]
fn values_outside_of_late_files_are_found_by_a_scan_and_by_a_run() {
    let test = files(&["late_links", "late_paths"]);
    for (folder, name, choice) in [
        ("late_links", "masks", Some("dataset.members=[images]")),
        ("late_links_latest", "masks", Some("dataset.members=[images]")),
        ("late_paths", "image", Some("dataset.parquet.columns=[label]")),
        ("late_paths_arrow", "image", None),
    ] {
        let yaml = format!("{folder}.yaml");
        let scanned = run(&test, folder, &["--write-yaml", &yaml]);
        // The run itself has to find the values.
        let again = test.feedrate(&[&["run", &yaml], &FED[..]].concat());
        assert_eq!(again.code, 0, "{}", again.stderr);
        for json in [scanned, again.json()] {
            assert!(is_unanswered(&json), "{folder}: {}", json["answer"]);
            let expected = format!("values of {name} are stored elsewhere and not read");
            assert_eq!(evidence(&json, "values_elsewhere"), Some(&*expected), "{folder}");
        }
        if let Some(choice) = choice {
            let chosen = run(&test, folder, &[choice]);
            assert_eq!(evidence(&chosen, "values_elsewhere"), None, "{folder}");
            assert!(!is_data_unread(&chosen), "{folder}: {}", chosen["answer"]);
        }
    }
    let chosen = run(&test, "late_paths", &["dataset.parquet.columns=[image]"]);
    assert!(is_unanswered(&chosen), "{}", chosen["answer"]);
    let scanned = test.feedrate(&["scan", "late_paths_arrow"]).stdout;
    assert!(scanned.contains("reads `image`; values of `image` are stored elsewhere"), "{scanned}");
}

#[test]
fn the_share_of_unread_bytes_is_that_of_all_files() {
    let test = files(&["late"]);
    for (folder, names) in
        [("late_hdf5", "`images`, not `labels`"), ("late_npz", "`image`, not `label`")]
    {
        let scanned = test.feedrate(&["scan", folder]);
        assert!(
            scanned.stdout.contains("of the bytes, estimated from 16 files"),
            "{}",
            scanned.stdout
        );
        let json = run(&test, folder, &[]);
        let found = evidence(&json, "bytes_left_unread").unwrap_or_default();
        let is_known = (1..20)
            .any(|percent| found == format!("an epoch reads {percent} % of the files: {names}"));
        assert!(is_known, "{folder}: {found}");
    }
}

#[test]
fn a_dataset_for_each_sample_is_a_doubt() {
    let test = files(&["one_each", "many"]);
    for (folder, parts) in
        [("one_each", "100 parts like `image_0`"), ("one_each_npz", "20 parts like `arr_0`")]
    {
        let expected = format!("each of {parts} could be a sample");
        let scanned = test.feedrate(&["scan", folder]);
        assert!(scanned.stdout.contains(&expected), "{}", scanned.stdout);
        let json = run(&test, folder, &[]);
        let found = evidence(&json, "samples_guessed").unwrap_or_default();
        assert!(found.starts_with(&expected), "{folder}: {found}");
    }
    let chosen = run(&test, "one_each", &["dataset.members=[image_0, image_1]"]);
    assert_eq!(evidence(&chosen, "samples_guessed"), None);
    let scanned = test.feedrate(&["scan", "many"]);
    let unread =
        "not `metadata/0000`, `metadata/0001`, `metadata/0002`, `metadata/0003` and 1,496 more";
    assert!(scanned.stdout.contains(unread), "{}", scanned.stdout);
    // None of the datasets that are named alike is read.
    assert!(!scanned.stdout.contains("could be a sample"), "{}", scanned.stdout);
}

/// All of a chunk is read with its samples, also if it is longer than its dataset.
#[test]
fn unused_parts_of_chunks_are_not_left_unread() {
    let test = files(&["long_chunks"]);
    for folder in ["long_chunks", "long_chunks_gzip"] {
        let scanned = test.feedrate(&["scan", folder]);
        let (_, share) = scanned.stdout.split_once("reads `images` (").unwrap();
        let (percent, _) = share.split_once(" % of the bytes").unwrap();
        assert!(percent.parse::<u32>().unwrap() > 80, "{folder}: {}", scanned.stdout);
        let json = run(&test, folder, &[]);
        assert_eq!(evidence(&json, "bytes_left_unread"), None, "{folder}");
    }
}

/// Hugging Face's tables of images contain their paths, unless the images are embedded.
#[test]
fn images_outside_of_their_table_leave_the_answer_unknown() {
    let test = files(&["paths", "saved", "saved_missing", "missing"]);
    for (folder, elsewhere) in [
        ("paths", Some("image")),
        ("paths_arrow", Some("image")),
        ("mixed", Some("image")),
        ("mixed_arrow", Some("image")),
        ("embedded", None),
        ("embedded_arrow", None),
        // Paths of embedded images are null.
        ("saved", None),
        ("saved_missing", None),
        ("pages", Some("pages")),
        // Images that are missing are nowhere else.
        ("missing", None),
        ("missing_arrow", None),
    ] {
        let json = run(&test, folder, &[]);
        let is_as_expected =
            if elsewhere.is_some() { is_unanswered(&json) } else { !is_data_unread(&json) };
        assert!(is_as_expected, "{folder}: {}", json["answer"]);
        let expected =
            elsewhere.map(|name| format!("values of {name} are stored elsewhere and not read"));
        assert_eq!(evidence(&json, "values_elsewhere"), expected.as_deref(), "{folder}");
    }
    let arguments = ["run", "--data", "paths_arrow", "--compute", "1ms", "dataset.members=[label]"];
    let refused = test.feedrate(&[&arguments, &FED[..]].concat());
    refused.refuses(2, &["`dataset.members` has no effect on files of the format arrow"]);
    let labels =
        run(&test, "paths", &["dataset.parquet.columns=[label]", "--write-yaml", "labels.yaml"]);
    let again = test.feedrate(&[&["run", "labels.yaml"], &FED[..]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    for json in [labels, again.json()] {
        assert_eq!(evidence(&json, "values_elsewhere"), None);
        assert!(!is_data_unread(&json), "{}", json["answer"]);
    }
}

#[test]
fn files_of_other_kinds_with_much_of_the_folder_are_a_doubt() {
    let test = files(&["masks", "many"]);
    let json = run(&test, "masks", &[]);
    let found = evidence(&json, "files_left_out").unwrap_or_default();
    let expected = "the 20 png files are 30 % of the folder's bytes; left out: 20 bin";
    assert_eq!(found, expected);
    let json = run(&test, "many", &[]);
    assert_eq!(evidence(&json, "files_left_out"), None);
}

#[test]
fn members_without_effect_are_refused_for_foreign_files() {
    let test = Test::with_workload(TINY);
    let foreign = ["run", "workload.yaml", "--foreign", "--data", "theirs", "dataset.format=npy"];
    let counts =
        ["dataset.num_files_train=2", "dataset.num_samples_per_file=1", "reader.batch_size=1"];
    for number in 0..2 {
        let mut file = b"\x93NUMPY\x01\x00\x3e\x00{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }     \n".to_vec();
        file.extend([0; 4]);
        fs::create_dir_all(test.path("theirs/train")).unwrap();
        fs::write(test.path(&format!("theirs/train/{number}.npy")), file).unwrap();
    }
    let plain = test.feedrate(&[&foreign[..], &counts].concat());
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    let refused = test.feedrate(&[&foreign[..], &counts, &["dataset.members=[x]"]].concat());
    refused.refuses(2, &["`dataset.members` has no effect on files of the format npy"]);
}

#[test]
fn verification_does_not_tolerate_broken_foreign_files() {
    let test = Test::with_workload(TINY);
    let settings = [
        "dataset.format=npz",
        "dataset.num_files_train=40",
        "reader.batch_size=2",
        "train.epochs=1",
    ];
    let generated = test.feedrate(&[&["generate", "workload.yaml"], &settings[..]].concat());
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    let manifest = &test.data_files("manifest.json")[0];
    let folder = manifest.parent().unwrap().to_string_lossy().into_owned();
    fs::remove_file(manifest).unwrap();
    let foreign = ["run", "workload.yaml", "--foreign", "--data", &folder];
    let run = |more: &[&str]| test.feedrate(&[&foreign[..], &settings, more].concat());
    let verified = run(&["reader.verify=true"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    // Not among the files that are opened before the run.
    let late =
        test.data_files(".npz").into_iter().find(|path| path.to_string_lossy().contains("_38_"));
    fs::write(late.unwrap(), [7; 3000]).unwrap();
    let tolerated = run(&[]);
    assert_eq!(tolerated.code, 0, "{}", tolerated.stderr);
    run(&["reader.verify=true"]).refuses(1, &["_38_"]);
}

/// The metadata of a file with many datasets is kept for its next samples.
#[test]
fn metadata_of_many_datasets_is_read_once() {
    let test = files(&["very_many"]);
    let json = run(&test, "very_many", &["--workers", "1", "storage.delay.read_seconds=0"]);
    assert_eq!(json["latency"]["sample"]["count"], 10);
    let file_bytes = fs::metadata(test.path("very_many/a.h5")).unwrap().len();
    let read_bytes = json["bytes"]["logical"].as_u64().unwrap();
    assert!(read_bytes < 4 * file_bytes, "{read_bytes} of {file_bytes} bytes");
}
