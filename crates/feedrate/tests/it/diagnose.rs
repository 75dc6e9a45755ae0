//! `feedrate diagnose`: ceilings of emulated storage with known costs. The diagnosis must name the part that was made slow.

use crate::harness::{Answer, MountedDisk, Test, send_signal, wait_until};
use crate::schema::assert_matches_schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A workload in memory that needs 10,000 samples of 65,536 bytes per second.
const FAST: &str = "\
model:
  name: fast
framework: pytorch
dataset:
  data_folder: data
  format: raw
  num_files_train: 64
  record_length_bytes: 65536
reader:
  data_loader: pytorch
  batch_size: 4
  read_threads: 2
train:
  computation_time: 0.0004
storage:
  storage_type: memory
";

fn diagnose(test: &Test, more: &[&str]) -> Value {
    let mut arguments = vec!["diagnose", "workload.yaml", "--json", "--budget", "1400ms"];
    arguments.extend(more);
    let answer = test.feedrate(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

/// Samples per second of a ceiling.
#[track_caller]
fn rate(diagnosis: &Value, name: &str) -> f64 {
    let ceilings = diagnosis["ceilings"].as_array().unwrap();
    let ceiling = ceilings.iter().find(|ceiling| ceiling["name"] == name).unwrap();
    ceiling["samples_per_second"].as_f64().unwrap_or_else(|| panic!("{name}: {diagnosis}"))
}

#[track_caller]
fn check_drop(more: &[&str], name: &str) -> Value {
    let diagnosis = diagnose(&Test::with_workload(FAST), more);
    assert_matches_schema("diagnose", &diagnosis);
    assert_eq!(diagnosis["largest_drop"]["name"], name, "{diagnosis}");
    assert_eq!(diagnosis["needed_samples_per_second"], 10_000.0);
    diagnosis
}

/// Only root may drop cached metadata. Without permission the opens are measured as without `--cold`.
#[test]
fn cold_opens_report_whether_metadata_was_dropped() {
    let test = Test::with_workload(FAST);
    let diagnosis = diagnose(&test, &["--cold", "storage.storage_type=file"]);
    let opens = &diagnosis["ceilings"].as_array().unwrap()[1];
    let is_allowed = fs::write("/proc/sys/vm/drop_caches", "2").is_ok();
    assert_eq!(opens["name"], "opens");
    assert_eq!(
        opens["read_from"],
        if is_allowed { json!("cold") } else { Value::Null },
        "{diagnosis}"
    );
    assert!(0.0 < rate(&diagnosis, "opens"), "{diagnosis}");
}

#[test]
fn a_throttle_is_the_ceiling_of_the_file_system() {
    let diagnosis = check_drop(&["storage.throttle.bytes_per_second=20MB/s"], "file_system");
    // A run that ends by time has read parts of samples that do not count.
    let bytes = diagnosis["bytes_per_sample"].as_f64().unwrap();
    assert!((65536.0..80_000.0).contains(&bytes), "{diagnosis}");
    let (ceiling, throttle) = (rate(&diagnosis, "file_system") * bytes, 20e6);
    // The throttle delays each read; on a busy machine the rate may be lower.
    assert!(ceiling <= throttle && 0.6 * throttle <= ceiling, "{diagnosis}");
    for other in ["opens", "decode"] {
        assert!(rate(&diagnosis, "file_system") < rate(&diagnosis, other), "{other}: {diagnosis}");
    }
    assert!(rate(&diagnosis, "loader") < rate(&diagnosis, "decode"), "{diagnosis}");
    assert_eq!(diagnosis["schema"], "diagnose/3");
}

#[test]
fn the_slowed_part_is_named() {
    // Each read waits 10 ms, with two readers at a time or sixteen.
    let latency = ["storage.throttle.latency_seconds=0.01", "train.computation_time=0.003"];
    let diagnosis = diagnose(&Test::with_workload(FAST), &latency);
    assert_eq!(diagnosis["largest_drop"]["name"], "file_system", "{diagnosis}");
    assert!(rate(&diagnosis, "file_system") <= 200.0, "{diagnosis}");
    let diagnosis = check_drop(&["storage.delay.open_seconds=0.02"], "opens");
    assert!(
        rate(&diagnosis, "opens") <= 100.0 && 100.0 < rate(&diagnosis, "file_system"),
        "{diagnosis}"
    );
    let diagnosis = check_drop(&["reader.preprocess_time=0.02"], "decode");
    assert!(
        rate(&diagnosis, "decode") <= 100.0 && 100.0 < rate(&diagnosis, "opens"),
        "{diagnosis}"
    );
    // The required rate follows from the plan: two accelerators with 4 samples a minute each.
    let fed = diagnose(&Test::with_workload(FAST), &["-n", "2", "train.computation_time=60"]);
    assert_eq!(fed["largest_drop"], Value::Null);
    assert_eq!(fed["needed_samples_per_second"], 8.0 / 60.0);
}

#[test]
fn ceilings_that_cannot_be_measured_are_null_with_a_reason() {
    let test = Test::with_workload(FAST);
    let more = ["dataset.format=synthetic", "train.computation_time=0"];
    let diagnosis = diagnose(&test, &more);
    for ceiling in &diagnosis["ceilings"].as_array().unwrap()[..2] {
        assert_eq!(ceiling["not_measured"], "no_files", "{diagnosis}");
        assert_eq!(ceiling["bytes_per_second"], Value::Null);
    }
    assert_eq!(diagnosis["needed_samples_per_second"], Value::Null);
    assert!(rate(&diagnosis, "loader") > 0.0);
    // A tmpfs accepts O_DIRECT but has no device, so the ceilings of storage mean nothing there.
    let _memory = MountedDisk::tmpfs(&test.path("memory"), "size=64m");
    let in_memory = ["storage.storage_type=local_fs", "dataset.format=npz", "--data", "memory"];
    let diagnosis = diagnose(&test, &in_memory);
    for ceiling in [0, 3].map(|index| &diagnosis["ceilings"][index]) {
        assert_eq!(ceiling["not_measured"], "stays_in_memory", "{diagnosis}");
    }
    for (more, words) in [
        (vec!["--budget", "0"], ["`--budget` of 0 s", "hint:"]),
        (vec!["--out", "a.jpg"], ["`a.jpg` does not end in", "hint:"]),
        (vec!["--out", "workload.svg"], ["is there already", "--force"]),
    ] {
        test.write("workload.svg", "mine");
        test.feedrate(&[&["diagnose", "workload.yaml"], &more[..]].concat()).refuses(2, &words);
    }
    assert_eq!(fs::read(test.path("workload.svg")).unwrap(), b"mine");
}

/// 4 samples are needed every 0.4 ms. Workers need 2 ms per sample, or the training process needs 20 ms per batch.
#[test]
fn the_client_has_its_own_ceiling() {
    let diagnosis = check_drop(&["client.per_sample=0.002"], "client");
    // The measurement may end within a sample.
    assert!(rate(&diagnosis, "client") <= 1100.0, "{diagnosis}");
    // The ceilings of other parts do not include the client.
    assert!(1100.0 < rate(&diagnosis, "decode"), "{diagnosis}");
    assert!(diagnosis["ceilings"][3]["own_per_second"].as_f64().unwrap() <= 550.0, "{diagnosis}");
    let diagnosis = check_drop(&["client.receive_per_batch=0.02"], "client");
    // The training process does not compute while it receives a batch.
    assert!(rate(&diagnosis, "client") <= 4.0 / 0.0204, "{diagnosis}");
    let has_client = |diagnosis: &Value| diagnosis["ceilings"].to_string().contains("\"client\"");
    assert!(has_client(&diagnosis) && !has_client(&diagnose(&Test::with_workload(FAST), &[])));
}

/// Content and modification time of each file of the dataset.
fn file_states(test: &Test) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let files = test.data_files("").into_iter();
    files
        .map(|path| {
            let modified = path.metadata().unwrap().modified().unwrap();
            (path.clone(), (fs::read(&path).unwrap(), modified))
        })
        .collect()
}

#[test]
fn files_are_not_changed_and_the_report_of_a_run_has_the_ceilings() {
    let test = Test::with_workload(FAST);
    let file = ["storage.storage_type=local_fs", "dataset.format=npz"];
    let diagnosis = diagnose(&test, &[&file[..], &["--out", "ceilings.svg"]].concat());
    assert!(rate(&diagnosis, "decode") > 0.0, "{diagnosis}");
    let svg = fs::read_to_string(test.path("ceilings.svg")).unwrap();
    assert!(svg.contains("largest drop") || diagnosis["largest_drop"].is_null(), "{svg}");
    let data = test.data_files("manifest.json");
    let folder = data[0].parent().unwrap().to_path_buf();
    // Makes the dataset foreign by removing feedrate's files.
    for file in test.data_files("").iter().filter(|path| path.parent() == Some(&folder)) {
        fs::remove_file(file).unwrap();
    }
    let before = file_states(&test);
    let foreign = ["--foreign", "--data", folder.to_str().unwrap()];
    diagnose(&test, &[&file[..], &foreign].concat());
    assert!(file_states(&test) == before, "a foreign file was changed");
    test.run_json(&[&file[..], &foreign].concat());
    let run_dir = test.files_below("results", "record.json")[0].parent().unwrap().to_path_buf();
    let answer = test.feedrate(&["report", run_dir.to_str().unwrap(), "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let opening = report["opening"].as_array().unwrap();
    assert!(opening.iter().any(|line| line["name"] == "Ceilings"), "{report}");
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.iter().any(|figure| figure["name"] == "ceilings"));
    // A diagnosis with other reader settings does not apply to the run.
    test.run_json(
        &[&file[..], &foreign, &["reader.read_threads=1", "--run-dir", "other"]].concat(),
    );
    let answer = test.feedrate(&["report", "other", "--json"]);
    assert!(!answer.stdout.contains("\"Ceilings\""), "{}", answer.stdout);
}

#[test]
fn the_page_fits_on_a_screen_and_opens_with_the_answer() {
    let test = Test::with_workload(FAST);
    // A tenth of the usual required rate, so that other load on the machine makes no other part too slow.
    let slow = ["reader.preprocess_time=0.02", "train.computation_time=0.004"];
    let answer =
        test.feedrate(&[&["diagnose", "workload.yaml", "--budget", "1400ms"], &slow[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(lines[0].starts_with("workload: the largest drop is at decode: "), "{}", lines[0]);
    assert!(lines.len() <= 24, "{}", answer.stdout);
    let table = &lines[3..9];
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    let written = test.files_below("results", "diagnosis.json");
    assert_eq!(written.len(), 1);
    assert!(written[0].with_file_name("ceilings.svg").exists());
}

/// The user's files need no workload. `show` prints the saved diagnosis again.
#[test]
fn a_folder_of_files_is_diagnosed_without_a_workload_and_shown_again() {
    let test = Test::new();
    fs::create_dir(test.path("photos")).unwrap();
    for file in 0..12 {
        test.write(&format!("photos/{file}.bin"), "x".repeat(50_000));
    }
    let words = ["--data", "photos", "--batch", "3", "--workers", "4", "--compute", "1s"];
    let more = ["diagnose", "--budget", "700ms", "--write-yaml", "photos.yaml", "--json"];
    let answer = test.feedrate(&[&more[..], &words].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let diagnosis = answer.json();
    let loader = &diagnosis["loader"];
    assert_eq!((&loader["batch_size"], &loader["workers"]), (&json!(3), &json!(4)), "{diagnosis}");
    assert_eq!(diagnosis["needed_samples_per_second"], 3.0);
    let slices = diagnosis["ceilings"][2]["slices_samples_per_second"].as_array();
    assert!(slices.is_some_and(|slices| (1..=5).contains(&slices.len())), "{diagnosis}");
    // The written workload has the same settings.
    let planned = test.feedrate(&["plan", "photos.yaml", "--json"]).json();
    assert_eq!(planned["plan"]["loader"]["workers"], 4, "{planned}");
    let folder = test.files_below("results", "diagnosis.json")[0].parent().unwrap().to_path_buf();
    let folder = folder.to_str().unwrap();
    let shown = test.feedrate(&["show", folder, "--json"]);
    assert_eq!(shown.json(), diagnosis);
    assert!(
        test.feedrate(&["show", folder])
            .stdout
            .starts_with("photos: every part reaches the 3 samples/s")
    );
    for command in ["report", "analyze"] {
        test.feedrate(&[command, folder]).refuses(2, &["it is a diagnosis", "feedrate show"]);
    }
    test.write(&format!("{folder}/diagnosis.json"), "{}");
    test.feedrate(&["show", folder]).refuses(2, &["of another version", "`feedrate diagnose`"]);
}

#[test]
fn a_diagnosis_is_printed_and_saved_elsewhere_if_the_results_folder_is_full() {
    let test = Test::with_workload(FAST);
    let _full = MountedDisk::tmpfs(&test.path("full"), "size=4k");
    let words = ["diagnose", "workload.yaml", "--budget", "700ms", "--results", "full/results"];
    let answer =
        Answer::from_output(&test.command(&words).env("TMPDIR", test.path("")).output().unwrap());
    assert!(answer.stdout.starts_with("workload: "), "{}", answer.stdout);
    let saved = answer.stdout.lines().find_map(|line| line.strip_prefix("Results: ")).unwrap();
    let saved = fs::read(Path::new(saved).join("diagnosis.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&saved).unwrap()["ceilings"].is_array());
    answer.refuses(1, &["the results are in", "No space left", "hint:"]);
}

#[test]
fn an_interrupted_diagnosis_prints_its_ceilings_and_no_bottleneck() {
    let test = Test::with_workload(&FAST.replace("storage_type: memory", "storage_type: local_fs"));
    let mut command = test.command(&["diagnose", "workload.yaml", "--budget", "700s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_complete =
        |manifest: &PathBuf| fs::read_to_string(manifest).unwrap().contains("complete");
    wait_until("a dataset", || test.files_below("data", "manifest.json").iter().any(is_complete));
    send_signal("-INT", child.id());
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    answer.refuses(130, &["interrupted: the diagnosis is not saved"]);
    assert!(answer.stdout.contains(": interrupted, so the bottleneck is not known"));
    assert!(answer.stdout.contains(" loader ") && !test.path("results").exists());
}
