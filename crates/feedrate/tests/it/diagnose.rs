//! `feedrate diagnose`: ceilings of storages of known cost, in memory, where the part that was made slow has to be named.

use crate::harness::{Answer, Mounted, Test, signal, until};
use crate::schema::holds;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// 10 000 samples of 65 536 bytes are needed in a second.
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

fn diagnosed(test: &Test, more: &[&str]) -> Value {
    let mut arguments = vec!["diagnose", "workload.yaml", "--json", "--budget", "1400ms"];
    arguments.extend(more);
    let answer = test.feedrate(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

/// Samples per second of a ceiling.
#[track_caller]
fn rate(told: &Value, name: &str) -> f64 {
    let ceilings = told["ceilings"].as_array().unwrap();
    let of = ceilings.iter().find(|of| of["name"] == name).unwrap();
    of["samples_per_second"].as_f64().unwrap_or_else(|| panic!("{name}: {told}"))
}

#[track_caller]
fn check_drop(more: &[&str], name: &str) -> Value {
    let told = diagnosed(&Test::with(FAST), more);
    holds("diagnose", &told);
    assert_eq!(told["largest_drop"]["name"], name, "{told}");
    assert_eq!(told["needed_samples_per_second"], 10_000.0);
    told
}

/// Only root may drop what the kernel keeps of files; others are measured as without.
#[test]
fn cold_opens_say_whether_they_were() {
    let test = Test::with(FAST);
    let told = diagnosed(&test, &["--cold", "storage.storage_type=file"]);
    let opens = &told["ceilings"].as_array().unwrap()[1];
    let is_allowed = fs::write("/proc/sys/vm/drop_caches", "2").is_ok();
    assert_eq!(opens["name"], "opens");
    assert_eq!(opens["read_from"], if is_allowed { json!("cold") } else { Value::Null }, "{told}");
    assert!(0.0 < rate(&told, "opens"), "{told}");
}

#[test]
fn a_throttle_is_the_ceiling_of_the_file_system() {
    let told = check_drop(&["storage.throttle.bytes_per_second=20MB/s"], "file_system");
    // Where time cuts a run short, some reads are of samples that are none.
    let bytes = told["bytes_per_sample"].as_f64().unwrap();
    assert!((65536.0..80_000.0).contains(&bytes), "{told}");
    let (ceiling, throttle) = (rate(&told, "file_system") * bytes, 20e6);
    // No read ends before it is served; a machine that has no core to give may let some wait.
    assert!(ceiling <= throttle && 0.6 * throttle <= ceiling, "{told}");
    for other in ["opens", "decode"] {
        assert!(rate(&told, "file_system") < rate(&told, other), "{other}: {told}");
    }
    assert!(rate(&told, "loader") < rate(&told, "decode"), "{told}");
    assert_eq!(told["schema"], "diagnose/3");
}

#[test]
fn the_part_that_was_made_slow_is_named() {
    // Two readers at a time wait 10 ms for each read, sixteen wait side by side.
    let latency = ["storage.throttle.latency_seconds=0.01", "train.computation_time=0.003"];
    let told = diagnosed(&Test::with(FAST), &latency);
    assert_eq!(told["largest_drop"]["name"], "file_system", "{told}");
    assert!(rate(&told, "file_system") <= 200.0, "{told}");
    let told = check_drop(&["storage.delay.open_seconds=0.02"], "opens");
    assert!(rate(&told, "opens") <= 100.0 && 100.0 < rate(&told, "file_system"), "{told}");
    let told = check_drop(&["reader.preprocess_time=0.02"], "decode");
    assert!(rate(&told, "decode") <= 100.0 && 100.0 < rate(&told, "opens"), "{told}");
    // What is needed is known before anything runs: 4 samples a minute, of each of two accelerators.
    let fed = diagnosed(&Test::with(FAST), &["-n", "2", "train.computation_time=60"]);
    assert_eq!(fed["largest_drop"], Value::Null);
    assert_eq!(fed["needed_samples_per_second"], 8.0 / 60.0);
}

#[test]
fn what_cannot_be_measured_is_null_and_says_why() {
    let test = Test::with(FAST);
    let more = ["dataset.format=synthetic", "train.computation_time=0"];
    let told = diagnosed(&test, &more);
    for of in &told["ceilings"].as_array().unwrap()[..2] {
        assert_eq!(of["not_measured"], "no_files", "{told}");
        assert_eq!(of["bytes_per_second"], Value::Null);
    }
    assert_eq!(told["needed_samples_per_second"], Value::Null);
    assert!(rate(&told, "loader") > 0.0);
    // A tmpfs has no device, though it takes O_DIRECT: reads of it by many threads are slower than the loader's.
    let _memory = Mounted::tmpfs(&test.path("memory"), "size=64m");
    let in_memory = ["storage.storage_type=local_fs", "dataset.format=npz", "--data", "memory"];
    let told = diagnosed(&test, &in_memory);
    for of in [0, 3].map(|at| &told["ceilings"][at]) {
        assert_eq!(of["not_measured"], "stays_in_memory", "{told}");
    }
    for (more, words) in [
        (vec!["--budget", "0"], ["`--budget` of 0 s", "hint:"]),
        (vec!["--out", "a.png"], ["`--out a.png`", "hint:"]),
        (vec!["--out", "workload.svg"], ["is there already", "--force"]),
    ] {
        test.write("workload.svg", "mine");
        test.feedrate(&[&["diagnose", "workload.yaml"], &more[..]].concat()).refuses(2, &words);
    }
    assert_eq!(fs::read(test.path("workload.svg")).unwrap(), b"mine");
}

/// 4 samples in 0.4 ms are needed: workers have 2 ms of work for each, or the training's process takes 20 ms for a batch.
#[test]
fn the_client_is_a_part_of_its_own() {
    let told = check_drop(&["client.per_sample=0.002"], "client");
    // The last sample may be cut short.
    assert!(rate(&told, "client") <= 1100.0, "{told}");
    // What the others are good for has none of it.
    assert!(1100.0 < rate(&told, "decode"), "{told}");
    assert!(told["ceilings"][3]["own_per_second"].as_f64().unwrap() <= 550.0, "{told}");
    let told = check_drop(&["client.receive_per_batch=0.02"], "client");
    // Computing is not done meanwhile.
    assert!(rate(&told, "client") <= 4.0 / 0.0204, "{told}");
    let has_client = |told: &Value| told["ceilings"].to_string().contains("\"client\"");
    assert!(has_client(&told) && !has_client(&diagnosed(&Test::with(FAST), &[])));
}

/// Names, bytes and times of all files of a dataset.
fn state(test: &Test) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let files = test.data_files("").into_iter();
    files
        .map(|path| {
            let modified = path.metadata().unwrap().modified().unwrap();
            (path.clone(), (fs::read(&path).unwrap(), modified))
        })
        .collect()
}

#[test]
fn files_stay_as_they_are_and_the_report_of_a_run_has_the_ceilings() {
    let test = Test::with(FAST);
    let file = ["storage.storage_type=local_fs", "dataset.format=npz"];
    let told = diagnosed(&test, &[&file[..], &["--out", "ceilings.svg"]].concat());
    assert!(rate(&told, "decode") > 0.0, "{told}");
    let svg = fs::read_to_string(test.path("ceilings.svg")).unwrap();
    assert!(svg.contains("largest drop") || told["largest_drop"].is_null(), "{svg}");
    let data = test.data_files("manifest.json");
    let folder = data[0].parent().unwrap().to_path_buf();
    // Files of others, in which nothing of ours lies.
    for own in test.data_files("").iter().filter(|file| file.parent() == Some(&folder)) {
        fs::remove_file(own).unwrap();
    }
    let before = state(&test);
    let foreign = ["--foreign", "--data", folder.to_str().unwrap()];
    diagnosed(&test, &[&file[..], &foreign].concat());
    assert!(state(&test) == before, "a file of others was changed");
    test.run_json(&[&file[..], &foreign].concat());
    let run_dir = test.files_below("results", "record.json")[0].parent().unwrap().to_path_buf();
    let answer = test.feedrate(&["report", run_dir.to_str().unwrap(), "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let opening = report["opening"].as_array().unwrap();
    assert!(opening.iter().any(|line| line["name"] == "Ceilings"), "{report}");
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.iter().any(|figure| figure["name"] == "ceilings"));
    // Another way of reading is another diagnosis.
    test.run_json(
        &[&file[..], &foreign, &["reader.read_threads=1", "--run-dir", "other"]].concat(),
    );
    let answer = test.feedrate(&["report", "other", "--json"]);
    assert!(!answer.stdout.contains("\"Ceilings\""), "{}", answer.stdout);
}

#[test]
fn the_page_fits_on_a_screen_and_opens_with_the_answer() {
    let test = Test::with(FAST);
    // A tenth of what is needed else: whoever takes the processors meanwhile makes no other part too slow.
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

/// The files of somebody, by the words of a training's script: no workload is asked for, and the folder of the diagnosis tells it again.
#[test]
fn a_folder_of_files_is_diagnosed_as_it_is_run_and_shown_again() {
    let test = Test::new();
    fs::create_dir(test.path("photos")).unwrap();
    for file in 0..12 {
        test.write(&format!("photos/{file}.bin"), "x".repeat(50_000));
    }
    let words = ["--data", "photos", "--batch", "3", "--workers", "4", "--compute", "1s"];
    let more = ["diagnose", "--budget", "700ms", "--write-yaml", "photos.yaml", "--json"];
    let answer = test.feedrate(&[&more[..], &words].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let told = answer.json();
    let loader = &told["loader"];
    assert_eq!((&loader["batch_size"], &loader["workers"]), (&json!(3), &json!(4)), "{told}");
    assert_eq!(told["needed_samples_per_second"], 3.0);
    let slices = told["ceilings"][2]["slices_samples_per_second"].as_array();
    assert!(slices.is_some_and(|slices| (1..=5).contains(&slices.len())), "{told}");
    // The workload that it wrote asks for the same.
    let planned = test.feedrate(&["plan", "photos.yaml", "--json"]).json();
    assert_eq!(planned["plan"]["loader"]["workers"], 4, "{planned}");
    let folder = test.files_below("results", "diagnosis.json")[0].parent().unwrap().to_path_buf();
    let folder = folder.to_str().unwrap();
    let shown = test.feedrate(&["show", folder, "--json"]);
    assert_eq!(shown.json(), told);
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
fn what_was_measured_is_told_and_kept_where_the_results_have_no_room() {
    let test = Test::with(FAST);
    let _full = Mounted::tmpfs(&test.path("full"), "size=4k");
    let words = ["diagnose", "workload.yaml", "--budget", "700ms", "--results", "full/results"];
    let answer = Answer::of(&test.command(&words).env("TMPDIR", test.path("")).output().unwrap());
    assert!(answer.stdout.starts_with("workload: "), "{}", answer.stdout);
    let kept = answer.stdout.lines().find_map(|line| line.strip_prefix("Results: ")).unwrap();
    let kept = fs::read(Path::new(kept).join("diagnosis.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&kept).unwrap()["ceilings"].is_array());
    answer.refuses(1, &["the results are in", "No space left", "hint:"]);
}

#[test]
fn a_diagnosis_that_is_interrupted_tells_what_it_has_and_no_drop() {
    let test = Test::with(&FAST.replace("storage_type: memory", "storage_type: local_fs"));
    let mut command = test.command(&["diagnose", "workload.yaml", "--budget", "700s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_made = |manifest: &PathBuf| fs::read_to_string(manifest).unwrap().contains("complete");
    until("a dataset", || test.files_below("data", "manifest.json").iter().any(is_made));
    signal("-INT", child.id());
    let answer = Answer::of(&child.wait_with_output().unwrap());
    answer.refuses(130, &["interrupted: the diagnosis is not saved"]);
    assert!(answer.stdout.contains(": interrupted, so the bottleneck is not known"));
    assert!(answer.stdout.contains(" loader ") && !test.path("results").exists());
}
