//! All combinations of formats, loaders and engines, with varying file access. Each runs and verifies every byte, or is refused with the
//! expected reason.

use crate::harness::Test;
use serde_json::Value;

const SMALL: &str = "\
model:
  name: pairs
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 8
  num_samples_per_file: 4
  record_length_bytes: 4096
reader:
  batch_size: 2
  read_threads: 2
train:
  epochs: 2
";

const ACCESSES: [&str; 4] = ["multi", "shared", "same", "collective"];

fn names(test: &Test, family: &str) -> Vec<(String, String)> {
    let listed = test.feedrate(&["list", family, "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let items = listed["members"].as_array().unwrap();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_string();
    items.iter().map(|item| (text(item, "name"), text(item, "notes"))).collect()
}

/// Expected reason for refusing a format with an engine, from their abilities.
fn expected_refusal(format: &str, engine: &str) -> Option<&'static str> {
    let no_files = format.contains("no_files");
    let mapped = format.contains("mapped") && !engine.contains("mapped");
    let other_library = engine.contains("serves_samples") && !format.contains("serves_samples");
    if format.contains("read_only") {
        Some("are read, but not generated")
    } else if no_files {
        Some("has no engines")
    } else if other_library {
        Some("cannot read format")
    } else if mapped {
        Some("needs memory-mapped files")
    } else {
        None
    }
}

fn check_all_pairs(loader: &str) {
    let test = Test::with_workload(SMALL);
    let engines = names(&test, "engines");
    assert!(names(&test, "loaders").iter().any(|(name, _)| name == loader));
    let mut pair = 0;
    for (format, format_abilities) in names(&test, "formats") {
        for (engine, engine_abilities) in &engines {
            pair += 1;
            let access = ACCESSES[pair % ACCESSES.len()];
            // An image holds one sample.
            let samples = if ["png", "jpeg"].contains(&format.as_str()) { 1 } else { 4 };
            let settings = [
                format!("dataset.format={format}"),
                format!("dataset.num_samples_per_file={samples}"),
                format!("reader.data_loader={loader}"),
                format!("reader.file_access={access}"),
                format!("storage.engine={engine}"),
            ];
            let mut arguments = vec!["run", "workload.yaml", "-n", "2", "--quiet"];
            arguments.extend(settings.iter().map(String::as_str));
            if !format_abilities.contains("lossy") && !format_abilities.contains("no_files") {
                arguments.push("--verify");
            }
            let answer = test.feedrate(&arguments);
            match expected_refusal(&format_abilities, engine_abilities) {
                Some(why) => answer.refuses(2, &[why, "hint:"]),
                None => assert_eq!(answer.code, 0, "{settings:?}: {}", answer.stderr),
            }
        }
    }
}

#[test]
fn every_format_and_engine_works_with_pytorch() {
    check_all_pairs("pytorch");
}

#[test]
fn every_format_and_engine_works_with_tensorflow() {
    check_all_pairs("tensorflow");
}

#[test]
fn every_format_and_engine_works_with_dali() {
    check_all_pairs("dali");
}

#[test]
fn every_format_and_engine_works_with_native() {
    check_all_pairs("native");
}

#[test]
fn every_loader_has_a_test() {
    let loaders: Vec<String> =
        names(&Test::new(), "loaders").into_iter().map(|(name, _)| name).collect();
    assert_eq!(loaders, ["pytorch", "tensorflow", "dali", "native"]);
}

#[test]
fn formats_without_files_need_no_storage() {
    let test = Test::with_workload(SMALL);
    for format in ["synthetic", "null"] {
        let key = format!("dataset.format={format}");
        let json = test.run_json(&[&key, "reader.data_loader=native"]);
        assert_eq!(json["complete"], true);
        assert!(test.data_files("").is_empty(), "{format}");
        test.feedrate(&["run", "workload.yaml", &key, "--verify"])
            .refuses(2, &["it has no generated content", "hint:"]);
    }
}

#[test]
fn memory_mapped_files_are_read_completely() {
    let test = Test::with_workload(SMALL);
    let json = test.run_json(&["dataset.format=mmap_indexed_binary", "--cold"]);
    assert_eq!(json["bytes"]["logical"].as_u64().unwrap() / (2 * 8 * 4 * 4096), 1);
    test.feedrate(&[
        "run",
        "workload.yaml",
        "dataset.format=mmap_indexed_binary",
        "reader.odirect=true",
    ])
    .refuses(2, &["reader.odirect", "needs memory-mapped files", "hint:"]);
    test.feedrate(&[
        "run",
        "workload.yaml",
        "dataset.format=mmap_indexed_binary",
        "storage.storage_type=memory",
    ])
    .refuses(2, &["which storage `memory` does not support", "indexed_binary"]);
}

#[test]
fn contradictory_engines_are_refused() {
    let test = Test::with_workload(SMALL);
    test.feedrate(&["run", "workload.yaml", "reader.odirect=true", "storage.engine=psync"])
        .refuses(2, &["reader.odirect", "hint:"]);
    test.feedrate(&["run", "workload.yaml", "storage.engine=nosuch"])
        .refuses(2, &["no engine `nosuch`", "psync, mmap, direct"]);
    let json = test.run_json(&["reader.odirect=true", "--verify"]);
    assert_eq!(json["complete"], true);
}

/// The tests above cover other formats with this engine.
#[test]
fn the_engine_libhdf5_exists_if_the_feature_is_enabled() {
    let test = Test::with_workload(SMALL);
    let library = ["dataset.format=hdf5", "storage.engine=libhdf5"];
    let run = [&["run", "workload.yaml"][..], &library].concat();
    if cfg!(feature = "libhdf5") {
        assert_eq!(test.run_json(&[&library[..], &["--verify"]].concat())["complete"], true);
        test.feedrate(&[&run[..], &["--foreign"]].concat())
            .refuses(2, &["engine `libhdf5` cannot read foreign files", "hint:"]);
        test.feedrate(&[&run[..], &["storage.storage_type=memory"]].concat())
            .refuses(2, &["storage `memory` has no engines", "hint:"]);
    } else {
        test.feedrate(&run)
            .refuses(2, &["there is no engine `libhdf5`", "a build with `--features libhdf5`"]);
    }
}
