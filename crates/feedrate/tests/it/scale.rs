//! `feedrate scale`: the largest number that a storage of known rate can feed. Long because each test is one answer of the command.

use crate::harness::{Answer, MountedDisk, Test, wait_until};
use crate::schema::assert_matches_schema;
use serde_json::Value;
use std::process::Stdio;

/// Each accelerator reads 65,536 bytes in each step of 20 ms, or 3.2768 MB/s. The storage serves 19 MB/s in total. With n accelerators the
/// utilisation is 19 ÷ 3.2768 ÷ n = 5.8 ÷ n: 96.7 % for 6, 82.9 % for 7.
const WORKLOAD: &str = "\
model:
  name: limited
framework: pytorch
dataset:
  data_folder: data
  format: raw
  num_files_train: 8
  record_length_bytes: 65536
reader:
  data_loader: pytorch
  batch_size: 1
  read_threads: 1
train:
  epochs: 3
  computation_time: 0.02
storage:
  storage_type: memory
  throttle:
    bytes_per_second: 19005440
";

/// Checks that the answer is `limit`. Because of noise, numbers next to the limit may be undecided.
#[track_caller]
fn check_limit(report: &Value, code: i32, limit: u64) {
    let undecided = &report["not_decided"];
    let [low, high] = [0, 1].map(|index| undecided[index].as_u64());
    assert_eq!(code, if undecided.is_null() { 0 } else { 4 }, "{report}");
    let [certain, fails] = ["certain", "fails"].map(|key| report[key].as_u64());
    let certain = certain.unwrap_or_else(|| panic!("nothing holds: {report}"));
    let fails = fails.unwrap_or_else(|| panic!("nothing fails: {report}"));
    assert!((limit - 2..=limit).contains(&certain), "{report}");
    assert!((limit + 1..=limit + 2).contains(&fails), "{report}");
    assert_eq!(low.unwrap_or(limit + 1), certain + 1, "{report}");
    assert_eq!(high.unwrap_or(limit), fails - 1, "{report}");
}

#[test]
fn the_limit_of_a_storage_of_known_rate_is_found() {
    let test = Test::with_workload(WORKLOAD);
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90", "--max", "16", "--json"]);
    let report = answer.json();
    assert_matches_schema("scale", &report);
    check_limit(&report, answer.code, 6);
    let runs = report["runs"].as_u64().unwrap();
    assert!(runs <= 20, "{runs}");
    // Each accelerator needs 8 steps of one sample. The workload's 8 files are enough for one accelerator, 32 files for four, and so on.
    assert_eq!(report["overrides"][0], "train.epochs=1");
    assert_eq!(report["overrides"][1], "dataset.num_files_train=128");
    let notes = report["notes"].as_array().unwrap();
    for (note, files) in notes.iter().zip([32, 128]) {
        let expected = format!("dataset: {files} files instead of 8, ");
        assert!(note.as_str().unwrap().starts_with(&expected), "{notes:?}");
    }
    assert_eq!(notes.len(), 2);
    assert!(answer.stderr.contains("run 1: 1 accelerator: AU "), "{}", answer.stderr);
    assert!(answer.stderr.contains(" %, reaches 90 %, "), "{}", answer.stderr);
    assert!(answer.stderr.contains(" %, below 90 %, "), "{}", answer.stderr);
    let numbers = report["numbers"].as_array().unwrap();
    let fails = report["fails"].as_u64().unwrap();
    let failing = numbers.iter().find(|row| row["number"] == fails).unwrap();
    assert!(failing["state"] == "fails" && 2 <= failing["values"].as_array().unwrap().len());
    assert!(failing["interval"]["high"].as_f64().unwrap() < 90.0, "{failing}");
    // For full utilisation, each accelerator needs 3.2768 MB/s.
    let lacks = report["lacks_bytes_per_second"].as_f64().unwrap();
    let needs = fails as f64 * 3_276_800.0;
    let percent = failing["mean"].as_f64().unwrap();
    assert!((lacks / needs - (0.9 - percent / 100.0)).abs() < 0.02, "{lacks}: {failing}");
    let why = report["why"].as_str().unwrap();
    assert!(why.contains("% AU, target 90 %") && why.contains("eeds "), "{why}");
    let mut datasets = Vec::new();
    let near_limit = numbers.iter().filter(|row| 4 <= row["number"].as_u64().unwrap());
    for dir in near_limit.flat_map(|row| row["run_dirs"].as_array().unwrap()) {
        let dir = dir.as_str().unwrap();
        assert!(dir.starts_with(report["results"].as_str().unwrap()), "{dir}");
        let record = std::fs::read(test.path(dir).join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        datasets.push(record["plan"]["dataset"].clone());
    }
    assert!(4 <= datasets.len() && (datasets.len() as u64) < runs, "{datasets:?}");
    datasets.dedup();
    assert_eq!(datasets.len(), 1, "all runs near the limit read the same dataset: {datasets:?}");
    // The same command finds its earlier runs, and needs no new run.
    let again = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--json"];
    let again = test.feedrate(&again);
    assert!(again.stderr.contains("note: no run was made now"), "{}", again.stderr);
    // The plain read is measured again.
    let without_plain_read = |mut answer: Value| {
        answer.as_object_mut().unwrap().remove("plain_read").unwrap();
        answer
    };
    assert_eq!(without_plain_read(again.json()), without_plain_read(report.clone()));
    let page = test.feedrate(&["report", report["results"].as_str().unwrap(), "--json"]).json();
    assert_eq!(page["opening"][0]["name"], "Answer");
    let answer = page["opening"][0]["value"].as_str().unwrap();
    assert!(answer.contains("at ≥ 90 % AU (sustained)"), "{answer}");
    let dir = report["results"].as_str().unwrap();
    let shown = test.feedrate(&["show", dir, "--json"]).json();
    assert_eq!(shown["numbers"], report["numbers"], "the search, not its newest run");
    test.feedrate(&["report", dir, "-o", "page.html"]).warns(&[]);
    let figures = page["figures"].as_array().unwrap().len();
    crate::report::browse(&test, &test.path("page.html"), figures, "scale");
    let mut figures = page["figures"].as_array().unwrap().iter();
    assert!(figures.any(|figure| figure["name"] == "scaling"), "{page}");
    let rows = test.feedrate(&["study", "status", dir, "--json"]).json();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(runs as usize), "{rows}");
}

#[test]
fn only_results_of_the_same_search_are_its_answer() {
    let test = Test::with_workload(WORKLOAD);
    let [results, data] = ["out", "data"].map(|name| test.path(name).display().to_string());
    let search = ["scale", "workload.yaml", "--au", "5", "--max", "1", "--json", "--quiet"];
    let search = [&search[..], &["--results", &results, "--data", &data]].concat();
    let first = test.feedrate(&search).json();
    for name in ["other", "wrong"] {
        std::fs::create_dir(test.path(name)).unwrap();
    }
    std::fs::copy(test.path("workload.yaml"), test.path("other/workload.yaml")).unwrap();
    test.write("workload.yaml", WORKLOAD.replace("0.02", "0.03"));
    let output = test.command(&search).current_dir(test.path("other")).output().unwrap();
    let other = Answer::from_output(&output).json();
    assert_eq!((&other["certain"], &other["runs"]), (&1.into(), &first["runs"]));
    assert_ne!(other["results"], first["results"], "a search of another file is another search");
    test.write("workload.yaml", WORKLOAD);
    let dir = first["results"].as_str().unwrap();
    assert_eq!(test.feedrate(&["show", dir, "--json"]).json()["numbers"], first["numbers"]);
    test.write(
        "wrong/conclusion.json",
        r#"{"lines":[],"schema":"scale","answer":[],"rest":[],"object":[1,2]}"#,
    );
    test.feedrate(&["show", "wrong", "--json"]).refuses(2, &["`wrong` cannot be read: "]);
    let csv = format!("{dir}/study.csv");
    let [from_csv, from_folder] = [&csv[..], dir]
        .map(|path| test.feedrate(&["report", path, "--json"]).json()["opening"][0].clone());
    assert_eq!(from_csv, from_folder);
    let mut command = test.command(&[&search[..], &["--again"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let conclusion = test.path(dir).join("conclusion.json");
    assert!(conclusion.exists());
    wait_until("the search restarts", || !conclusion.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!conclusion.exists(), "a restarted search has no answer");
}

/// A step computes for 20 ms, and the training process needs 20 ms to receive a batch: 50 % utilisation with any storage.
#[test]
fn no_run_is_needed_if_the_client_alone_misses_the_target() {
    let test = Test::with_workload(WORKLOAD);
    let search =
        ["scale", "workload.yaml", "--max", "16", "client.receive_per_batch=0.02", "--quiet"];
    let answer = test.feedrate(&[&search[..], &["--au", "90", "--json"]].concat());
    let report = answer.json();
    assert_eq!((answer.code, &report["runs"], &report["certain"]), (3, &0.into(), &Value::Null));
    assert_eq!((&report["fails"], &report["stopped"]), (&1.into(), &Value::Null));
    let why = "the client alone limits AU to 50.0 %, below the target of 90 %, on any storage";
    assert_eq!(report["why"], why);
    let page = test.feedrate(&[&search[..], &["--au", "90"]].concat()).stdout;
    assert!(
        page.starts_with("Not even 1 accelerator (workload) at ≥ 90 % AU (sustained)"),
        "{page}"
    );
    // With a target that the client permits, runs are needed.
    let answer =
        test.feedrate(&[&search[..], &["--au", "40", "--max-runs", "1", "--json"]].concat());
    assert_eq!(answer.json()["runs"], 1);
}

#[test]
fn undecided_numbers_are_printed_when_the_budget_ends() {
    let test = Test::with_workload(WORKLOAD);
    let search = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--quiet"];
    // One run at a number decides nothing, and the dataset is enough for four accelerators only.
    let answer = test.feedrate(&[&search[..], &["--max-runs", "3"]].concat());
    assert_eq!(answer.code, 4, "{answer:?}");
    let first = answer.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("Nothing at ≥ 90 % AU (sustained) for certain; 1 to 4 not decided"),
        "{first}"
    );
    assert!(first.ends_with("; 2 need 6.55 MB/s for 100 %"), "{first}");
    assert!(answer.stdout.contains("Not decided: `--max-runs 3` is reached"), "{answer:?}");
    let answer = test.feedrate(&[&search[..], &["--budget", "0", "--results", "other"]].concat());
    assert!(answer.stdout.contains("would probably exceed the `--budget` of 0 s"), "{answer:?}");
    assert_eq!((answer.code, answer.stdout.contains("\n1 run in ")), (4, true), "{answer:?}");
}

#[test]
fn a_dry_run_forecasts_runs_bytes_and_time() {
    let test = Test::with_workload(WORKLOAD);
    let search = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--dry-run", "--quiet"];
    let forecast = test.feedrate(&[&search[..], &["--json"]].concat()).json();
    // 128 samples of 64 KiB: 8 steps of 16 accelerators read each once. One accelerator reads the workload's own eight.
    assert_eq!(forecast["dataset_bytes"], 128 * 65536);
    assert_eq!(forecast["read_bytes_per_run"], serde_json::json!([8 * 65536, 128 * 65536]));
    let datasets = forecast["datasets"].as_array().unwrap().iter();
    let datasets: Vec<_> =
        datasets.map(|dataset| (dataset["max"].as_u64(), dataset["files"].as_u64())).collect();
    let expected = [(1, 8), (4, 32), (16, 128)].map(|(max, files)| (Some(max), Some(files)));
    assert_eq!(datasets, expected);
    // 1 GB/s feeds all 16 accelerators. The forecast has one run at each number up to 4, and two at 4, 8 and 16 with the last dataset.
    let fast = &forecast["if_storage_delivers"][0];
    assert_eq!((&fast["certain"], &fast["generated_bytes"]), (&16.into(), &(168 * 65536).into()));
    assert_eq!((&forecast["max_runs"], &forecast["runs_without_noise"]), (&20.into(), &12.into()));
    assert_eq!(
        (&forecast["seconds_per_run_least"], &forecast["budget_s"]),
        (&0.16.into(), &1800.0.into())
    );
    let page = test.feedrate(&search).stdout;
    assert!(
        page.contains("8.4 MB: enough for 16 accelerators")
            && page.contains("in 30 min (`--budget`)"),
        "{page}"
    );
    assert!(!test.path("results").exists());
}

#[test]
fn a_run_served_from_memory_ends_the_search() {
    let on_disk = WORKLOAD.replace("storage_type: memory", "storage_type: local_fs");
    let test = Test::with_workload(on_disk.split("  throttle:").next().unwrap());
    // Without `--au`, the target is the workload's `metric.au`.
    let arguments = ["scale", "workload.yaml", "metric.au=0.8", "--max", "4", "--json"];
    test.feedrate(&["generate", "workload.yaml", "dataset.num_files_train=32"]);
    let answer = test.feedrate(&arguments);
    let report = answer.json();
    // The files were just written, so they are in the page cache.
    let stopped = report["stopped"].as_str().unwrap();
    assert!(
        stopped.contains("run 1, 1 accelerator, does not show the storage's speed"),
        "{stopped}"
    );
    assert_eq!((answer.code, report["runs"].as_u64()), (4, Some(1)), "{report}");
    assert_eq!(report["bound"], 80.0);
    assert!(report["certain"].is_null(), "{report}");
    let searched = &report["numbers"][0];
    assert!(searched["values"] == serde_json::json!([]) && searched["mean"].is_null(), "{report}");
}

#[test]
fn other_keys_and_responses_can_be_searched() {
    let test = Test::with_workload(WORKLOAD);
    let scale = ["scale", "workload.yaml", "--key", "reader.batch_size"];
    // With almost no compute time, even the smallest number misses the target.
    let fast = ["train.computation_time=0.0001", "--quiet"];
    let target = ["--response", "au_all_steps", "--au", "99.9"];
    let answer = test.feedrate(&[&scale[..], &target, &fast].concat());
    assert_eq!((answer.code, answer.stderr.as_str()), (3, ""), "{answer:?}");
    // Such short steps may cause a doubt, which changes "Not even" to "PROBABLY not even".
    assert!(
        answer
            .stdout
            .contains("ot even reader.batch_size=1 (workload) at ≥ 99.9 % AU (all steps); 1 fails\nWhy 1 fails: all-steps AU "),
        "{}",
        answer.stdout
    );
    // Low durations are good, so no number misses the target. The search ends at batches of eight, since there are eight files.
    let target = ["--response", "duration_s", "--at-least", "1000", "--json"];
    let report = test.feedrate(&[&scale[..], &target, &fast].concat()).json();
    assert_eq!(
        (report["certain"].as_u64(), report["runs"].as_u64()),
        (Some(8), Some(5)),
        "{report}"
    );
    assert!(report["why"].as_str().unwrap().contains("batches of `9`"), "{report}");
    assert_eq!(report["overrides"].as_array().unwrap().len(), 0);
    // The smallest number that reaches the target.
    let target = ["--response", "duration_s", "--au", "1000", "--find", "smallest", "--json"];
    let max = ["--max", "1"];
    let report = test.feedrate(&[&scale[..], &target, &max, &fast].concat()).json();
    assert_eq!(
        (report["certain"].as_u64(), report["runs"].as_u64()),
        (Some(1), Some(2)),
        "{report}"
    );
    assert_eq!(report["why"], "", "a smaller one is looked for");
}

#[test]
fn impossible_searches_are_refused_before_anything_runs() {
    let test = Test::with_workload(WORKLOAD);
    for (arguments, words) in [
        // Eight samples are eight steps of one accelerator, or four steps of two.
        (
            &["--au", "90", "--from", "2", "dataset.num_files_train=8"][..],
            &["2 accelerators an epoch has 4 steps", "needs 8", "use a larger dataset"][..],
        ),
        (&["--au", "90", "-n", "4"], &["`--accelerators` is the number that the search varies"]),
        (&["--au", "nan"], &["`--au NaN` is not a number"]),
        (&["--au", "inf", "--response", "duration_s"], &["`--au inf` is not a number"]),
        (&["--au", "90", "metric.au=0.8"], &["contradicts `metric.au`", "leave `metric.au`"]),
        (&["--response", "duration_s"], &["`duration_s` has no default target", "--at-least"]),
        (&["--au", "0.9"], &["`--au 0.9` is not a percentage", "write `90`"]),
        (&["--au", "1"], &["`--au 1` is not a percentage", "write `100`"]),
        (&["--max-data", "4"], &["'4' for '--max-data <SIZE>'", "with its unit"]),
        (&["--au", "1000"], &["`--au 1000` is not a percentage", "between 0 and 100"]),
        (&["--au", "90", "--response", "au"], &["no response `au`", "au_windowed_percent"]),
        (&["--au", "90", "--key", "reader.read_thread"], &["did you mean `reader.read_threads`"]),
        (&["--au", "90", "--from", "4", "--max", "3"], &["--from 4"]),
        (&["--au", "90", "--key", "reader.batch_size", "reader.batch_size=2"], &["leave it out"]),
        (&["--au", "90", "--budget", "soon"], &["invalid value 'soon' for '--budget"]),
        // The scale leaves 4 of 8 files, but one accelerator needs 8.
        (
            &["--au", "90", "--scale", "0.5", "--max", "3"],
            &[
                "`--scale 0.5` makes a dataset too small for 1 accelerator",
                "`--scale 0.938` is large enough; or ",
                "`--response au_all_steps`",
            ],
        ),
        (
            &["--scale", "0.5", "--from", "2"],
            &["too small for 2 accelerators", "leave out `--scale`"],
        ),
        // The scaled dataset is too small for one step.
        (
            &["--scale", "0.1", "reader.batch_size=2"],
            &["`--scale 0.1` makes a dataset too small for 1 accelerator", "leave out `--scale`"],
        ),
    ] {
        let search = [&["scale", "workload.yaml"], arguments].concat();
        test.feedrate(&search).refuses(2, words);
    }
    assert!(!test.path("results").exists());
}

#[test]
fn the_dataset_is_limited_by_the_disk_space() {
    let on_disk = WORKLOAD.replace("storage_type: memory", "storage_type: local_fs");
    let test = Test::with_workload(on_disk.split("  throttle:").next().unwrap());
    let disk = MountedDisk::tmpfs(&test.path("small"), "size=3m");
    let root = disk.0.join("absent").to_string_lossy().into_owned();
    let search = ["scale", "workload.yaml", "--data", &root, "--dry-run"];
    let forecast = test.feedrate(&[&search[..], &["--max", "64", "--json"]].concat()).json();
    // 8 files of 64 KiB leave space for a dataset of 32 files, but for no larger one.
    let files =
        forecast["datasets"].as_array().unwrap().iter().map(|dataset| dataset["files"].as_u64());
    assert_eq!(files.collect::<Vec<_>>(), [Some(8), Some(32)]);
    assert_eq!((&forecast["max"], &forecast["free_bytes"]), (&4.into(), &(3 << 20).into()));
    let page = test.feedrate(&search).stdout;
    for words in [
        "absent, which does not exist yet: on ",
        "3.1 MB free",
        "for 5 accelerators, the dataset needs 2.6 MB",
    ] {
        assert!(page.contains(words), "{page}");
    }
    // Within 10.5 MB, datasets of 8, 32 and 120 files are generated.
    let page = test.feedrate(&["scale", "workload.yaml", "--max-data", "10.5MB", "--dry-run"]);
    assert!(page.stdout.contains("for 16 accelerators, the dataset needs"), "{page:?}");
    assert!(page.stdout.contains("but `--max-data` leaves 14.2 kB"), "{page:?}");
    assert!(page.stdout.contains("enough for 15 accelerators"), "{page:?}");
    let little = ["scale", "workload.yaml", "--max-data", "300kB", "--dry-run"];
    test.feedrate(&little).refuses(2, &["`--max-data` leaves 300 kB", "raise `--max-data`"]);
    test.feedrate(&["scale", "workload.yaml", "--max-data", "much"]).refuses(2, &["`200GB`"]);
    // The space is too small for a run that is long enough for `au_sustained`.
    let disk = MountedDisk::tmpfs(&test.path("smaller"), "size=256k");
    let root = disk.0.to_string_lossy().into_owned();
    let search = ["scale", "workload.yaml", "--data", &root, "--max", "4", "--dry-run"];
    let words =
        ["for 1 accelerator, the dataset needs ", "only 262.1 kB are free", "--scale 0.43`"];
    test.feedrate(&search).refuses(2, &words);
    // Foreign files need no further space.
    std::fs::write(disk.0.join("1.raw"), [0; 65536]).unwrap();
    let foreign = ["--foreign", "dataset.num_files_train=8"];
    assert!(!test.feedrate(&[&search[..], &foreign].concat()).stderr.contains("are free"));
    let hinted = ["--response", "au_all_steps", "--scale", "0.43"];
    let answer = test.feedrate(&[&search[..], &hinted].concat());
    assert!(answer.stdout.contains("3 files"), "{answer:?}");
}

/// Files that no worker lacks, also if that takes more than the response needs.
#[test]
fn a_generated_dataset_has_a_file_for_each_worker() {
    let shards = WORKLOAD
        .replace("  num_files_train: 8\n", "  num_files_train: 4\n  num_samples_per_file: 64\n")
        .replace("format: raw", "format: tfrecord")
        .replace("data_loader: pytorch", "data_loader: tensorflow")
        .replace("read_threads: 1", "read_threads: 4")
        .replace("storage_type: memory", "storage_type: local_fs");
    let test = Test::with_workload(shards.split("  throttle:").next().unwrap());
    let files = |more: &[&str]| {
        let search = ["scale", "workload.yaml", "--max", "4", "--dry-run", "--json"];
        let forecast = test.feedrate(&[&search[..], more].concat()).json();
        let datasets = forecast["datasets"].as_array().unwrap().iter();
        Vec::from_iter(datasets.map(|dataset| {
            [&dataset["max"], &dataset["files"]].map(|number| number.as_u64().unwrap())
        }))
    };
    // Four files have enough samples for four accelerators, each of which needs files for four workers. The ranges of two accelerators may share a file.
    assert_eq!(files(&[]), [[1, 4], [4, 13]]);
    // There is no space for the second dataset.
    assert_eq!(files(&["--max-data", "20MB"]), [[1, 4], [4, 4]]);
    let search = ["scale", "workload.yaml", "--max", "4", "--max-data", "20MB", "--dry-run"];
    let page = test.feedrate(&search).stdout;
    assert_eq!(page.matches("4 files, ").count(), 1, "{page}");
    assert!(page.contains(": enough for 4 accelerators"), "{page}");
}

/// A second epoch would come partly from the page cache.
#[test]
fn runs_are_one_epoch_for_each_utilisation() {
    let test = Test::with_workload(WORKLOAD);
    for response in ["au_sustained", "au_all_steps", "au_windowed"] {
        let search = ["scale", "workload.yaml", "--max", "1", "--dry-run", "--json"];
        let forecast = test.feedrate(&[&search[..], &["--response", response]].concat()).json();
        assert_eq!(forecast["overrides"][0], "train.epochs=1", "{response}");
    }
}

/// The loader holds two batches. At a target of 90 %, an epoch whose start counts needs 2 × 2 ÷ (1 − 0.9) = 40 steps, at least 50.
#[test]
fn epochs_are_long_enough_if_their_start_counts() {
    let test = Test::with_workload(WORKLOAD);
    let forecast = |more: &[&str]| {
        let search = ["scale", "workload.yaml", "--response", "au_all_steps", "--au", "90"];
        let options = ["--max", "4", "--dry-run", "--json"];
        test.feedrate(&[&search[..], &options, more].concat()).json()
    };
    let files = |forecast: &Value| {
        let datasets = forecast["datasets"].as_array().unwrap().iter();
        Vec::from_iter(datasets.map(|dataset| {
            [&dataset["max"], &dataset["files"]].map(|number| number.as_u64().unwrap())
        }))
    };
    assert_eq!(files(&forecast(&[])), [[1, 50], [4, 200]]);
    // The user's own choice of the length stays.
    assert_eq!(files(&forecast(&["dataset.num_files_train=8"])), [[4, 8]]);
    assert_eq!(files(&forecast(&["train.epochs=2"])), [[4, 8]]);
    // No longer epoch fits into this limit.
    let limited = forecast(&["--max-data", "1MB", "storage.storage_type=local_fs"]);
    assert_eq!(files(&limited), [[4, 8]]);
    let note = "no longer epoch fits: its start lowers AU";
    assert!(limited["notes"].as_array().unwrap().contains(&note.into()), "{limited}");
}

#[test]
fn a_failed_run_ends_the_search_with_its_reason() {
    let test =
        Test::with_workload(&WORKLOAD.replace("storage_type: memory", "storage_type: local_fs"));
    test.write("data", "not a folder");
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90"]);
    answer.refuses(2, &["row 1 (workload/1_epochs_1 replicate 1): ", "data", "use another folder"]);
    // After the cause is removed, the same command continues.
    std::fs::remove_file(test.path("data")).unwrap();
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90", "--max-runs", "1"]);
    assert!(answer.code == 4 && answer.stderr.contains("run 1: 1 accelerator"), "{answer:?}");
}

#[test]
fn ctrl_c_ends_the_search_and_its_run() {
    let test = Test::with_workload(WORKLOAD);
    let arguments = ["scale", "workload.yaml", "--au", "90", "train.computation_time=3600"];
    let mut command = test.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while test.files_below("results", "record.json").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the search ended by itself");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    Answer::from_output(&child.wait_with_output().unwrap()).refuses(130, &["interrupted"]);
    let record = test.files_below("results", "record.json").pop().unwrap();
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["stopped_because"], "interrupted");
}

#[test]
fn a_workload_without_training_is_not_searched() {
    let test = Test::new();
    test.feedrate(&["scale", "llama3_8b"])
        .refuses(2, &["`llama3_8b` only writes and reads checkpoints", "feedrate run llama3_8b"]);
}

/// A search reads the user's files, and leaves nothing beside them or in the working folder.
#[test]
fn a_search_on_own_files_writes_no_checkpoints() {
    let test = Test::with_workload(&format!("{WORKLOAD}workflow:\n  checkpoint: true\n"));
    std::fs::create_dir(test.path("own")).unwrap();
    for file in 0..8 {
        std::fs::write(test.path(&format!("own/{file}.raw")), vec![1; 65_536]).unwrap();
    }
    let answer = test.feedrate(&[
        "scale",
        "workload.yaml",
        "storage.storage_type=local_fs",
        "--data",
        "own",
        "--foreign",
        "--response",
        "au_all_steps",
        "--au",
        "1.5",
        "--max",
        "1",
        "--max-runs",
        "1",
    ]);
    assert!(test.path("results").exists(), "{}", answer.stderr);
    let found = std::fs::read_dir(test.path("own")).unwrap();
    assert_eq!(found.count(), 8);
    assert!(!test.path("checkpoints").exists());
}
