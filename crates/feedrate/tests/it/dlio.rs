//! feedrate can train on DLIO's datasets unchanged, and generates files with the same names and sizes.
//!
//! `dlio.py` runs the generators of DLIO 2.0.0, and makes the calls of later generators. The tests need the Python in `.venv`, which
//! `cargo xtask setup` installs, or the Python in `FEEDRATE_PYTHON`.

use crate::harness::{Test, venv_python};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LOADERS: [&str; 4] = ["pytorch", "tensorflow", "dali", "native"];

const FILES: &str = "num_files_train: 12, num_files_eval: 3, num_subfolders_train: 4, generation_buffer_size: 100000";

/// Equality of feedrate's and DLIO's files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equality {
    /// The same names and sizes.
    Sizes,
    /// The same names. Sizes differ, since they depend on the content, or the layout differs.
    Names,
    /// feedrate generates no files, since none are read.
    Nothing,
}

use Equality::{Names, Nothing, Sizes};

/// A dataset: format, further settings, and the expected equality of the files.
type Case = (&'static str, &'static str, Equality);

const FORMATS: &[Case] = &[
    ("npz", "", Sizes),
    ("npy", "", Sizes),
    ("csv", "", Names),
    ("jpeg", "", Names),
    ("png", "", Names),
    ("indexed_binary", "", Sizes),
    ("mmap_indexed_binary", "", Sizes),
    ("synthetic", "", Nothing),
];

#[test]
fn datasets_of_dlio_2_0_0_are_trained_on() {
    // This release has another layout of hdf5. Its tfrecords contain another size, in one byte less.
    let more = [("tfrecord", "", Names), ("hdf5", "", Names), ("hdf5", "compression: gzip", Names)];
    check("2.0.0", &[FORMATS, &more].concat());
}

#[test]
fn datasets_of_later_dlio_are_trained_on() {
    let more: &[Case] = &[
        ("tfrecord", "", Sizes),
        ("npz", "record_dims: [6, 20, 3], record_element_type: float32", Sizes),
        ("npy", "record_dims: [6, 20, 3], record_element_type: float64", Sizes),
        ("npy", "record_dims: [50], record_element_type: int16", Sizes),
        ("indexed_binary", "record_dims: [6, 20], record_element_type: int16", Sizes),
        ("tfrecord", "record_dims: [6, 20], record_element_type: float32", Sizes),
        ("csv", "compression: gzip", Names),
        ("hdf5", "", Sizes),
        ("hdf5", "record_dims: [6, 20, 3], record_element_type: float32", Sizes),
        ("hdf5", "record_dims: [1, 20, 3], record_element_type: int64", Sizes),
        ("hdf5", "record_dims: [6, 20], hdf5: {num_dset_per_record: 2}", Sizes),
        // Newer DLIO writes the metadata of HDF5 1.10, which is shorter for several datasets.
        ("hdf5", "record_dims: [5, 20, 3], hdf5: {num_dset_per_record: 5}", Names),
        ("hdf5", "record_dims: [3], hdf5: {num_dset_per_record: 3}", Names),
        ("hdf5", "record_dims: [6, 20], hdf5: {num_dset_per_record: 6}", Names),
        ("hdf5", "record_dims: [6, 20], hdf5: {chunk_dims: [1, 3, 20]}", Names),
        ("hdf5", "compression: gzip", Names),
    ];
    check("newer", &[FORMATS, more].concat());
}

#[track_caller]
fn check(version: &str, cases: &[Case]) {
    let test = Test::new();
    let named = || cases.iter().enumerate().map(|(i, case)| (format!("set{i}"), case));
    for (name, case) in named() {
        test.write(&format!("{name}.yaml"), workload(version, &name, case));
    }
    generate(&test, version, named().map(|(name, _)| format!("{name}.yaml")));
    for (name, case) in named() {
        train(&test, &name, case);
        compare(&test, &name, case);
    }
}

fn workload(version: &str, folder: &str, (format, more, _): &Case) -> String {
    let samples = if is_image(format) { 1 } else { 5 };
    // Up to 2.0.0 these keys had other names.
    let (model, length) =
        if version == "2.0.0" { ("dlio", "length") } else { ("{name: dlio}", "length_bytes") };
    let record = if more.contains("record_dims") {
        String::new()
    } else {
        format!("record_{length}: 3000, record_{length}_stdev: 1000, ")
    };
    format!(
        "\
model: {model}
framework: tensorflow
output: {{folder: results}}
dataset:
  {{{FILES}, data_folder: {folder}, format: {format}, num_samples_per_file: {samples}, {record}{more}}}
reader: {{data_loader: tensorflow, batch_size: 2, read_threads: 2}}
train: {{epochs: 2}}
"
    )
}

fn is_image(format: &str) -> bool {
    matches!(format, "jpeg" | "png")
}

fn generate(test: &Test, version: &str, workloads: impl Iterator<Item = String>) {
    let arguments = std::iter::once(version.to_string()).chain(workloads);
    test.python(&venv_python(), "dlio.py", arguments);
}

#[track_caller]
fn train(test: &Test, name: &str, (format, more, equality): &Case) {
    for loader in LOADERS {
        let loader = format!("reader.data_loader={loader}");
        let workload = format!("{name}.yaml");
        let arguments = ["run", &workload, "--foreign", "--data", name, "--json", &loader];
        let answer = test.feedrate(&arguments);
        assert_eq!(answer.code, 0, "{format} {more} {loader}: {}", answer.stderr);
        if *equality == Sizes {
            assert!(!answer.stderr.contains("on average"), "{format} {more}: {}", answer.stderr);
        }
        let output: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        let samples = if is_image(format) { 12 } else { 60 };
        assert_eq!(output["complete"], true, "{format} {more} {loader}");
        assert_eq!(output["steps"], samples / 2, "{format} {more} {loader}");
        assert_eq!(output["latency"]["sample"]["count"], 2 * samples, "{format} {more} {loader}");
        assert_eq!(
            output["bytes"]["logical"] == 0,
            *equality == Nothing,
            "{format} {more} {loader}"
        );
    }
}

#[track_caller]
fn compare(test: &Test, name: &str, (format, more, equality): &Case) {
    if *equality == Nothing {
        return;
    }
    let folder = format!("own/{name}");
    std::fs::create_dir_all(test.path(&folder)).unwrap();
    let answer = test.feedrate(&["generate", &format!("{name}.yaml"), "--data", &folder]);
    assert_eq!(answer.code, 0, "{format} {more}: {}", answer.stderr);
    let dataset = std::fs::read_dir(test.path(&folder)).unwrap().next().unwrap().unwrap().path();
    let mut ours = file_sizes(&dataset);
    ours.remove(Path::new("manifest.json"));
    ours.remove(Path::new(".feedrate.lock"));
    let theirs = file_sizes(&test.path(name));
    assert!(ours.keys().eq(theirs.keys()), "{format} {more}: {ours:?} {theirs:?}");
    if *equality == Sizes {
        assert_eq!(ours, theirs, "{format} {more}");
    }
}

/// Sizes of all files below a folder, by relative path.
fn file_sizes(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                found.insert(name, entry.metadata().unwrap().len());
            }
        }
    }
    found
}
