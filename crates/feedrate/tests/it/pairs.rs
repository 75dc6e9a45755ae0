//! Every format with every loader and every engine, each way of sharing files: it runs and every byte is compared, or
//! the planner says why not.

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

/// Why a pair cannot be, by what the lists say of its members.
fn refusal(format: &str, engine: &str) -> Option<&'static str> {
    let no_files = format.contains("no_files");
    let mapped = format.contains("mapped") && !engine.contains("mapped");
    let other_library = engine.contains("serves_samples") && !format.contains("serves_samples");
    if no_files {
        Some("has no engines")
    } else if other_library {
        Some("cannot read format")
    } else if mapped {
        Some("needs memory-mapped files")
    } else {
        None
    }
}

fn all_pairs_of(loader: &str) {
    let test = Test::with(SMALL);
    let engines = names(&test, "engines");
    assert!(names(&test, "loaders").iter().any(|(name, _)| name == loader));
    let mut turn = 0;
    for (format, format_abilities) in names(&test, "formats") {
        for (engine, engine_abilities) in &engines {
            turn += 1;
            let access = ACCESSES[turn % ACCESSES.len()];
            // A picture holds one sample.
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
            match refusal(&format_abilities, engine_abilities) {
                Some(why) => answer.refuses(2, &[why, "hint:"]),
                None => assert_eq!(answer.code, 0, "{settings:?}: {}", answer.stderr),
            }
        }
    }
}

#[test]
fn every_format_and_engine_with_pytorch() {
    all_pairs_of("pytorch");
}

#[test]
fn every_format_and_engine_with_tensorflow() {
    all_pairs_of("tensorflow");
}

#[test]
fn every_format_and_engine_with_dali() {
    all_pairs_of("dali");
}

#[test]
fn every_format_and_engine_with_native() {
    all_pairs_of("native");
}

/// These four are all there are.
#[test]
fn no_loader_is_left_out() {
    let loaders: Vec<String> =
        names(&Test::new(), "loaders").into_iter().map(|(name, _)| name).collect();
    assert_eq!(loaders, ["pytorch", "tensorflow", "dali", "native"]);
}

#[test]
fn formats_without_files_need_no_storage() {
    let test = Test::with(SMALL);
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
fn the_map_of_an_indexed_file_is_really_read() {
    let test = Test::with(SMALL);
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
fn engines_that_contradict_are_refused() {
    let test = Test::with(SMALL);
    test.feedrate(&["run", "workload.yaml", "reader.odirect=true", "storage.engine=psync"])
        .refuses(2, &["reader.odirect", "hint:"]);
    test.feedrate(&["run", "workload.yaml", "storage.engine=nosuch"])
        .refuses(2, &["no engine `nosuch`", "psync, mmap, direct"]);
    let json = test.run_json(&["reader.odirect=true", "--verify"]);
    assert_eq!(json["complete"], true);
}

/// Other formats are refused by every pair above.
#[test]
fn the_engine_of_hdf5s_library_is_there_where_it_was_built() {
    let test = Test::with(SMALL);
    let library = ["dataset.format=hdf5", "storage.engine=libhdf5"];
    let asked = [&["run", "workload.yaml"][..], &library].concat();
    if cfg!(feature = "libhdf5") {
        assert_eq!(test.run_json(&[&library[..], &["--verify"]].concat())["complete"], true);
        test.feedrate(&[&asked[..], &["--foreign"]].concat())
            .refuses(2, &["engine `libhdf5` cannot detect the content of files", "hint:"]);
        test.feedrate(&[&asked[..], &["storage.storage_type=memory"]].concat())
            .refuses(2, &["storage `memory` has no engines", "hint:"]);
    } else {
        test.feedrate(&asked)
            .refuses(2, &["there is no engine `libhdf5`", "a build with `--features libhdf5`"]);
    }
}
