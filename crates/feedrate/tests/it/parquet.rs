//! Folders of parquet as pyarrow and pandas write it: every column of a row group is read, decoded or not.

use crate::harness::{Test, venv_python};
use serde_json::{Value, json};

fn run(test: &Test, folder: &str, more: &[&str]) -> Value {
    let data = format!("theirs/{folder}");
    let arguments = ["run", "--data", &data, "--json", "--quiet", "train.epochs=1", "--batch", "4"];
    let answer = test.feedrate(&[&arguments, more].concat());
    assert_eq!(answer.code, 0, "{folder}: {}", answer.stderr);
    answer.json()
}

#[test]
fn what_scan_accepts_is_run_with_all_columns() {
    let test = Test::new();
    let printed = test.python(&venv_python(), "parquet.py", ["theirs"].map(String::from));
    let cases: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(cases.as_object().unwrap().len(), 18);
    for (name, case) in cases.as_object().unwrap() {
        let scanned = test.feedrate(&["scan", &format!("theirs/{name}"), "--json"]);
        assert_eq!(scanned.code, 0, "{name}: {}", scanned.stderr);
        assert_eq!(scanned.json()["samples"], case["rows"], "{name}");
        let json = run(&test, name, &["reader.read_threads=1"]);
        // The last batch is left out unless it is full.
        let in_batches = case["rows"].as_u64().unwrap() / 4 * 4;
        assert_eq!(json["latency"]["sample"]["count"], in_batches, "{name}");
        let read = json["bytes"]["logical"].as_u64().unwrap();
        let expected = case["read"].as_u64().unwrap();
        let difference = expected.abs_diff(read);
        assert!(difference <= expected / 40, "{name}: {read} bytes read of {expected}");
        let is_doubted = json["doubts"].to_string().contains("members_not_decoded");
        assert_eq!(json!(is_doubted), json!(case["undecoded"] != 0), "{name}: {}", json["doubts"]);
    }
    let all = run(&test, "thumb", &[])["bytes"]["logical"].as_u64().unwrap();
    let thumbs = run(&test, "thumb", &["dataset.parquet.columns=[thumb]"]);
    let read = thumbs["bytes"]["logical"].as_u64().unwrap();
    assert!(read < all / 2, "{read} of {all} bytes");
    let repeated = ["dataset.members=[thumb]", "--write-yaml", "thumb.yaml"];
    let by_member = run(&test, "thumb", &repeated)["doubts"].to_string();
    let again = test.feedrate(&["run", "thumb.yaml", "--json", "--quiet"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    for doubts in [by_member, again.json()["doubts"].to_string()] {
        assert!(!doubts.contains("stale_data"), "{doubts}");
        assert!(doubts.contains("bytes_left_unread"), "{doubts}");
    }
}

/// Sizes of rows differ, and only some are examined. A run that is repeated from its workload finds what the first run found.
#[test]
fn the_workload_of_a_folder_repeats_its_run() {
    let test = Test::new();
    test.python(&venv_python(), "parquet.py", ["theirs"].map(String::from));
    for name in ["null_images", "tokens", "shards"] {
        run(&test, name, &["--write-yaml", &format!("{name}.yaml")]);
        let again = test.feedrate(&["run", &format!("{name}.yaml"), "--json", "--quiet"]);
        assert_eq!(again.code, 0, "{name}: {}", again.stderr);
        let doubts = again.json()["doubts"].to_string();
        assert!(!doubts.contains("stale_data"), "{name}: {doubts}");
    }
}

/// MLPerf's reader fetches row groups without decompressing them.
#[test]
fn columns_of_dlio_are_generated_and_read() {
    let test = Test::new();
    test.write(
        "workload.yaml",
        "model: {name: x}\nframework: pytorch\nworkflow: {generate_data: true, train: true}\n\
         dataset:\n  data_folder: data\n  format: parquet\n  num_files_train: 2\n  num_samples_per_file: 100\n  \
         parquet:\n    row_group_size: 30\n    read_mode: row_group\n    columns:\n    \
         - {name: a, dtype: float32, size: 64, read: true}\n    - {name: b, dtype: int8}\n    - {name: c, dtype: int64}\n\
         reader: {data_loader: pytorch, batch_size: 4, read_threads: 1}\n\
         train: {epochs: 1, computation_time: 0.001}\n",
    );
    let generated = test.feedrate(&["generate", "workload.yaml"]);
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    assert_eq!(generated.stderr.matches("warning").count(), 0, "{}", generated.stderr);
    let verified = test.feedrate(&["generate", "workload.yaml", "--verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    let file = &test.data_files(".parquet")[0];
    let script = "import sys, pyarrow.parquet as pq; file = pq.ParquetFile(sys.argv[1]); table = file.read(); \
                  print(file.metadata.num_row_groups, table.num_rows, [str(kind) for kind in table.schema.types])";
    let printed = std::process::Command::new(venv_python())
        .args(["-c", script, file.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&printed.stdout).trim(),
        "4 100 ['list<element: float not null>', 'int8', 'int64']",
        "{}",
        String::from_utf8_lossy(&printed.stderr)
    );
    let json = test.run_json(&["reader.verify=true"]);
    assert_eq!(json["latency"]["sample"]["count"], 200);
    let read = json["bytes"]["logical"].as_u64().unwrap();
    let files: u64 =
        test.data_files(".parquet").iter().map(|file| file.metadata().unwrap().len()).sum();
    // The files are shorter than the read of a file's end, which serves the samples too.
    assert_eq!(read, files);
    let values = 200 * (64 * 4 + 1 + 8);
    assert!((values..values * 5 / 4).contains(&files), "{files} bytes for {values} of values");
    // A reader of whole row groups finds the same columns in files of other programs, of which it selects some.
    let foreign =
        ["--foreign", "--data", "theirs", "dataset.num_files_train=1", "reader.decode=false"];
    let script = "import sys, os, pyarrow.parquet as pq; os.mkdir('theirs'); \
                  pq.write_table(pq.read_table(sys.argv[1]), 'theirs/x.parquet', row_group_size=30)";
    let status = std::process::Command::new(venv_python())
        .args(["-c", script, file.to_str().unwrap()])
        .current_dir(test.path("."))
        .status();
    assert!(status.unwrap().success());
    let json = test.run_json(&foreign);
    assert_eq!(json["latency"]["sample"]["count"], 100);
    assert!(!json["doubts"].to_string().contains("stale_data"), "{}", json["doubts"]);
}
