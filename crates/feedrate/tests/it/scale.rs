//! `feedrate scale`: the largest number that a storage of known rate can feed.

use crate::harness::{Answer, Mounted, Test, until};
use crate::schema::holds;
use serde_json::Value;
use std::process::Stdio;

/// Each accelerator reads 65 536 bytes in each step of 20 ms: 3.2768 MB/s. The storage serves 19 MB/s to all together, so that n of them
/// compute for 19 ÷ 3.2768 ÷ n = 5.8 ÷ n of the time: 96.7 % with 6, 82.9 % with 7.
const KNEE: &str = "\
model:
  name: knee
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

/// Where the storage feeds `knee` and no more, nothing else may be certain; noise may leave the numbers beside it open, which is told.
#[track_caller]
fn check_knee(report: &Value, code: i32, knee: u64) {
    let open = &report["not_decided"];
    let [low, high] = [0, 1].map(|at| open[at].as_u64());
    assert_eq!(code, if open.is_null() { 0 } else { 4 }, "{report}");
    let [certain, fails] = ["certain", "fails"].map(|key| report[key].as_u64());
    let certain = certain.unwrap_or_else(|| panic!("nothing holds: {report}"));
    let fails = fails.unwrap_or_else(|| panic!("nothing fails: {report}"));
    assert!((knee - 2..=knee).contains(&certain), "{report}");
    assert!((knee + 1..=knee + 2).contains(&fails), "{report}");
    assert_eq!(low.unwrap_or(knee + 1), certain + 1, "{report}");
    assert_eq!(high.unwrap_or(knee), fails - 1, "{report}");
}

#[test]
fn a_planted_knee_is_found() {
    let test = Test::with(KNEE);
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90", "--max", "16", "--json"]);
    let report = answer.json();
    holds("scale", &report);
    check_knee(&report, answer.code, 6);
    let runs = report["runs"].as_u64().unwrap();
    assert!(runs <= 20, "{runs}");
    // Each accelerator needs 8 steps of one sample: the workload's files do for one, four times as many for four, and so on.
    assert_eq!(report["overrides"][0], "train.epochs=1");
    assert_eq!(report["overrides"][1], "dataset.num_files_train=128");
    let notes = report["notes"].as_array().unwrap();
    for (note, files) in notes.iter().zip([32, 128]) {
        let expected = format!("dataset: {files} files instead of 8, ");
        assert!(note.as_str().unwrap().starts_with(&expected), "{notes:?}");
    }
    assert_eq!(notes.len(), 2);
    assert!(
        answer.stderr.contains("run 1: 1 accelerator: au_sustained_percent"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains(" %, holds, "), "{}", answer.stderr);
    assert!(answer.stderr.contains(" %, does not hold, "), "{}", answer.stderr);
    let numbers = report["numbers"].as_array().unwrap();
    let fails = report["fails"].as_u64().unwrap();
    let at = numbers.iter().find(|one| one["number"] == fails).unwrap();
    assert!(at["state"] == "fails" && 2 <= at["values"].as_array().unwrap().len());
    assert!(at["interval"]["high"].as_f64().unwrap() < 90.0, "{at}");
    // To compute all the time it needs 3.2768 MB/s each.
    let lacks = report["lacks_bytes_per_second"].as_f64().unwrap();
    let needs = fails as f64 * 3_276_800.0;
    let percent = at["mean"].as_f64().unwrap();
    assert!((lacks / needs - (0.9 - percent / 100.0)).abs() < 0.02, "{lacks}: {at}");
    let why = report["why"].as_str().unwrap();
    assert!(why.contains("% AU, target 90 %") && why.contains("eeds "), "{why}");
    let mut datasets = Vec::new();
    let edge = numbers.iter().filter(|one| 4 <= one["number"].as_u64().unwrap());
    for dir in edge.flat_map(|one| one["run_dirs"].as_array().unwrap()) {
        let dir = dir.as_str().unwrap();
        assert!(dir.starts_with(report["results"].as_str().unwrap()), "{dir}");
        let record = std::fs::read(test.path(dir).join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        datasets.push(record["plan"]["dataset"].clone());
    }
    assert!(4 <= datasets.len() && (datasets.len() as u64) < runs, "{datasets:?}");
    datasets.dedup();
    assert_eq!(datasets.len(), 1, "all runs near the edge read the same dataset: {datasets:?}");
    // The same command goes on with what was measured, which answers it.
    let again = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--json"];
    let again = test.feedrate(&again);
    assert!(again.stderr.contains("note: no run was made now"), "{}", again.stderr);
    assert_eq!(again.json(), report);
    let page = test.feedrate(&["report", report["results"].as_str().unwrap(), "--json"]).json();
    assert_eq!(page["opening"][0]["name"], "Answer");
    let answer = page["opening"][0]["value"].as_str().unwrap();
    assert!(answer.contains("at ≥ 90 % AU"), "{answer}");
    let dir = report["results"].as_str().unwrap();
    let shown = test.feedrate(&["show", dir, "--json"]).json();
    assert_eq!(shown["numbers"], report["numbers"], "the search again, not its newest run");
    test.feedrate(&["report", dir, "-o", "page.html"]).warns(&[]);
    let figures = page["figures"].as_array().unwrap().len();
    crate::report::browse(&test, &test.path("page.html"), figures, "scale");
    let mut figures = page["figures"].as_array().unwrap().iter();
    assert!(figures.any(|figure| figure["name"] == "scaling"), "{page}");
    let rows = test.feedrate(&["study", "status", dir, "--json"]).json();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(runs as usize), "{rows}");
}

#[test]
fn results_of_another_workload_or_of_an_earlier_start_are_not_shown_as_the_answer() {
    let test = Test::with(KNEE);
    let [results, data] = ["out", "data"].map(|name| test.path(name).display().to_string());
    let all = ["scale", "workload.yaml", "--au", "5", "--max", "1", "--json", "--quiet"];
    let all = [&all[..], &["--results", &results, "--data", &data]].concat();
    let first = test.feedrate(&all).json();
    for name in ["other", "wrong"] {
        std::fs::create_dir(test.path(name)).unwrap();
    }
    std::fs::copy(test.path("workload.yaml"), test.path("other/workload.yaml")).unwrap();
    test.write("workload.yaml", KNEE.replace("0.02", "0.03"));
    let output = test.command(&all).current_dir(test.path("other")).output().unwrap();
    let other = Answer::of(&output).json();
    assert_eq!((&other["certain"], &other["runs"]), (&1.into(), &first["runs"]));
    assert_ne!(other["results"], first["results"], "another file may change on its own");
    test.write("workload.yaml", KNEE);
    let dir = first["results"].as_str().unwrap();
    assert_eq!(test.feedrate(&["show", dir, "--json"]).json()["numbers"], first["numbers"]);
    test.write(
        "wrong/conclusion.json",
        r#"{"lines":[],"schema":"scale","answer":[],"rest":[],"object":[1,2]}"#,
    );
    test.feedrate(&["show", "wrong", "--json"]).refuses(2, &["`wrong` cannot be read: "]);
    let csv = format!("{dir}/study.csv");
    let [of_csv, of_dir] = [&csv[..], dir]
        .map(|path| test.feedrate(&["report", path, "--json"]).json()["opening"][0].clone());
    assert_eq!(of_csv, of_dir);
    let mut command = test.command(&[&all[..], &["--again"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let conclusion = test.path(dir).join("conclusion.json");
    assert!(conclusion.exists());
    until("a new start", || !conclusion.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!conclusion.exists(), "runs that were set back have no answer");
}

/// A step of 20 ms, and 20 ms more in which the training's process takes a batch over: 50 %, whatever the storage.
#[test]
fn what_the_client_alone_decides_takes_no_run() {
    let test = Test::with(KNEE);
    let all = ["scale", "workload.yaml", "--max", "16", "client.receive_per_batch=0.02", "--quiet"];
    let answer = test.feedrate(&[&all[..], &["--au", "90", "--json"]].concat());
    let report = answer.json();
    assert_eq!((answer.code, &report["runs"], &report["certain"]), (3, &0.into(), &Value::Null));
    assert_eq!((&report["fails"], &report["stopped"]), (&1.into(), &Value::Null));
    let why = "the client alone limits AU to 50.0 %, below the target of 90 %, on any storage";
    assert_eq!(report["why"], why);
    let page = test.feedrate(&[&all[..], &["--au", "90"]].concat()).stdout;
    assert!(page.starts_with("Not even 1 accelerator (workload) at ≥ 90 % AU"), "{page}");
    // Behind it nothing is known of the storage: runs tell.
    let answer = test.feedrate(&[&all[..], &["--au", "40", "--max-runs", "1", "--json"]].concat());
    assert_eq!(answer.json()["runs"], 1);
}

#[test]
fn what_the_budget_leaves_open_is_told() {
    let test = Test::with(KNEE);
    let all = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--quiet"];
    // One run at a number shows nothing, and there are no data for more than four.
    let answer = test.feedrate(&[&all[..], &["--max-runs", "3"]].concat());
    assert_eq!(answer.code, 4, "{answer:?}");
    let first = answer.stdout.lines().next().unwrap();
    assert_eq!(first, "Nothing at ≥ 90 % AU for certain; 1 to 4 not decided");
    assert!(answer.stdout.contains("Not decided: `--max-runs 3` is reached"), "{answer:?}");
    let answer = test.feedrate(&[&all[..], &["--budget", "0", "--results", "other"]].concat());
    assert!(answer.stdout.contains("would probably exceed the `--budget` of 0 s"), "{answer:?}");
    assert_eq!((answer.code, answer.stdout.contains("\n1 run in ")), (4, true), "{answer:?}");
}

#[test]
fn a_dry_run_tells_runs_bytes_and_time() {
    let test = Test::with(KNEE);
    let all = ["scale", "workload.yaml", "--au", "90", "--max", "16", "--dry-run", "--quiet"];
    let told = test.feedrate(&[&all[..], &["--json"]].concat()).json();
    // 128 samples of 64 KiB: 8 steps of 16 accelerators read each once. One accelerator reads the workload's own eight.
    assert_eq!(told["dataset_bytes"], 128 * 65536);
    assert_eq!(told["read_bytes_per_run"], serde_json::json!([8 * 65536, 128 * 65536]));
    let datasets = told["datasets"].as_array().unwrap().iter();
    let datasets: Vec<_> = datasets.map(|of| (of["max"].as_u64(), of["files"].as_u64())).collect();
    let expected = [(1, 8), (4, 32), (16, 128)].map(|(max, files)| (Some(max), Some(files)));
    assert_eq!(datasets, expected);
    // What 1 GB/s feeds reads 16 × 3.3 MB/s: one run of each number up to 4, and of 4, 8, 16 twice with the last dataset.
    let fast = &told["if_storage_delivers"][0];
    assert_eq!((&fast["certain"], &fast["generated_bytes"]), (&16.into(), &(168 * 65536).into()));
    assert_eq!((&told["max_runs"], &told["runs_without_noise"]), (&20.into(), &12.into()));
    assert_eq!((&told["seconds_per_run_least"], &told["budget_s"]), (&0.16.into(), &1800.0.into()));
    let page = test.feedrate(&all).stdout;
    assert!(
        page.contains("8.4 MB: enough for 16 accelerators")
            && page.contains("in 30 min (`--budget`)"),
        "{page}"
    );
    assert!(!test.path("results").exists());
}

#[test]
fn a_run_out_of_memory_ends_the_search() {
    let on_disk = KNEE.replace("storage_type: memory", "storage_type: local_fs");
    let test = Test::with(on_disk.split("  throttle:").next().unwrap());
    // Without `--au` it is what the workload asks for.
    let arguments = ["scale", "workload.yaml", "metric.au=0.8", "--max", "4", "--json"];
    test.feedrate(&["generate", "workload.yaml", "dataset.num_files_train=32"]);
    let answer = test.feedrate(&arguments);
    let report = answer.json();
    // Its files were written a moment ago.
    let stopped = report["stopped"].as_str().unwrap();
    assert!(
        stopped.contains("run 1, 1 accelerator, does not show the storage's speed"),
        "{stopped}"
    );
    assert_eq!((answer.code, report["runs"].as_u64()), (4, Some(1)), "{report}");
    assert_eq!(report["bound"], 80.0);
    assert!(report["certain"].is_null(), "{report}");
    let at = &report["numbers"][0];
    assert!(at["values"] == serde_json::json!([]) && at["mean"].is_null(), "{report}");
}

#[test]
fn other_keys_and_responses_can_be_scaled() {
    let test = Test::with(KNEE);
    let scale = ["scale", "workload.yaml", "--key", "reader.batch_size"];
    // With hardly any compute nothing is fed: what is asked for is not met even by the smallest.
    let fast = ["train.computation_time=0.0001", "--quiet"];
    let asked = ["--response", "au_all_steps", "--au", "99.9"];
    let answer = test.feedrate(&[&scale[..], &asked, &fast].concat());
    assert_eq!((answer.code, answer.stderr.as_str()), (3, ""), "{answer:?}");
    // Steps so short may last longer than asked for: then it is PROBABLY not even.
    assert!(
        answer
            .stdout
            .contains("ot even reader.batch_size=1 (workload) at ≥ 99.9 % AU; 1 fails\nWhy 1 fails: all-steps AU "),
        "{}",
        answer.stdout
    );
    // A duration is good when it is short; eight files end the search at batches of eight.
    let asked = ["--response", "duration_s", "--at-least", "1000", "--json"];
    let report = test.feedrate(&[&scale[..], &asked, &fast].concat()).json();
    assert_eq!(
        (report["certain"].as_u64(), report["runs"].as_u64()),
        (Some(8), Some(5)),
        "{report}"
    );
    assert!(report["why"].as_str().unwrap().contains("batches of `9`"), "{report}");
    assert_eq!(report["overrides"].as_array().unwrap().len(), 0);
    // The smallest that does, from below.
    let asked = ["--response", "duration_s", "--au", "1000", "--find", "smallest", "--json"];
    let one = ["--max", "1"];
    let report = test.feedrate(&[&scale[..], &asked, &one, &fast].concat()).json();
    assert_eq!(
        (report["certain"].as_u64(), report["runs"].as_u64()),
        (Some(1), Some(2)),
        "{report}"
    );
    assert_eq!(report["why"], "", "a smaller one is looked for");
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_runs() {
    let test = Test::with(KNEE);
    for (arguments, words) in [
        // Eight samples are eight steps of one accelerator, and four of two.
        (
            &["--au", "90", "--from", "2", "dataset.num_files_train=8"][..],
            &["2 accelerators an epoch has 4 steps", "needs 8", "use a larger dataset"][..],
        ),
        (&["--au", "90", "-n", "4"], &["`--accelerators` is the number that the search varies"]),
        (&["--au", "nan"], &["`--au NaN` is not a number"]),
        (&["--au", "inf", "--response", "duration_s"], &["`--au inf` is not a number"]),
        (&["--au", "90", "metric.au=0.8"], &["contradicts `metric.au`", "leave `metric.au`"]),
        (&["--response", "duration_s"], &["`duration_s` has no default target", "--at-least"]),
        (&["--au", "1000"], &["`--au 1000` is not a percentage", "between 0 and 100"]),
        (&["--au", "90", "--response", "au"], &["no response `au`", "au_windowed_percent"]),
        (&["--au", "90", "--key", "reader.read_thread"], &["did you mean `reader.read_threads`"]),
        (&["--au", "90", "--from", "4", "--max", "3"], &["--from 4"]),
        (&["--au", "90", "--key", "reader.batch_size", "reader.batch_size=2"], &["leave it out"]),
        (&["--au", "90", "--budget", "soon"], &["invalid value 'soon' for '--budget"]),
        // 4 of its 8 files, where one accelerator takes 8; 15 of 16 are 8 when rounded.
        (
            &["--au", "90", "--scale", "0.5", "--max", "3"],
            &[
                "`--scale 0.5` makes a dataset too small for 1 accelerator",
                "`--scale 0.938` is large enough",
            ],
        ),
        (
            &["--scale", "0.5", "--from", "2"],
            &["too small for 2 accelerators", "leave out `--scale`"],
        ),
        // Not one step can be made of it.
        (
            &["--scale", "0.1", "reader.batch_size=2"],
            &["`--scale 0.1` makes a dataset too small for 1 accelerator", "leave out `--scale`"],
        ),
    ] {
        let all = [&["scale", "workload.yaml"], arguments].concat();
        test.feedrate(&all).refuses(2, words);
    }
    assert!(!test.path("results").exists());
}

#[test]
fn a_dataset_is_no_larger_than_there_is_room_for() {
    let on_disk = KNEE.replace("storage_type: memory", "storage_type: local_fs");
    let test = Test::with(on_disk.split("  throttle:").next().unwrap());
    let disk = Mounted::tmpfs(&test.path("small"), "size=3m");
    let root = disk.0.join("absent").to_string_lossy().into_owned();
    let all = ["scale", "workload.yaml", "--data", &root, "--dry-run"];
    let told = test.feedrate(&[&all[..], &["--max", "64", "--json"]].concat()).json();
    // 8 files of 64 KiB each leave room for 32 more, and these for none.
    let files = told["datasets"].as_array().unwrap().iter().map(|of| of["files"].as_u64());
    assert_eq!(files.collect::<Vec<_>>(), [Some(8), Some(32)]);
    assert_eq!((&told["max"], &told["free_bytes"]), (&4.into(), &(3 << 20).into()));
    let page = test.feedrate(&all).stdout;
    for words in [
        "absent, which does not exist yet: on ",
        "3.1 MB free",
        "for 5 accelerators, the dataset needs 2.6 MB",
    ] {
        assert!(page.contains(words), "{page}");
    }
    // With 10.5 MB in all, 8, 32 and then 120 files are made.
    let page = test.feedrate(&["scale", "workload.yaml", "--max-data", "10.5MB", "--dry-run"]);
    assert!(page.stdout.contains("for 16 accelerators, the dataset needs"), "{page:?}");
    assert!(page.stdout.contains("but `--max-data` leaves 14.2 kB"), "{page:?}");
    assert!(page.stdout.contains("enough for 15 accelerators"), "{page:?}");
    let little = ["scale", "workload.yaml", "--max-data", "300kB", "--dry-run"];
    test.feedrate(&little).refuses(2, &["`--max-data` leaves 300 kB", "raise `--max-data`"]);
    test.feedrate(&["scale", "workload.yaml", "--max-data", "much"]).refuses(2, &["`200GB`"]);
    // Half a megabyte is a run; what is left of two thirds of it is none that `au_sustained` is known of.
    let disk = Mounted::tmpfs(&test.path("smaller"), "size=256k");
    let root = disk.0.to_string_lossy().into_owned();
    let all = ["scale", "workload.yaml", "--data", &root, "--max", "4", "--dry-run"];
    let words =
        ["for 1 accelerator, the dataset needs ", "only 262.1 kB are free", "--scale 0.43`"];
    test.feedrate(&all).refuses(2, &words);
    // Files of others are there already.
    std::fs::write(disk.0.join("1.raw"), [0; 65536]).unwrap();
    let foreign = ["--foreign", "dataset.num_files_train=8"];
    assert!(!test.feedrate(&[&all[..], &foreign].concat()).stderr.contains("are free"));
    let hinted = ["--response", "au_all_steps", "--scale", "0.43"];
    let answer = test.feedrate(&[&all[..], &hinted].concat());
    assert!(answer.stdout.contains("3 files"), "{answer:?}");
}

#[test]
fn a_run_that_fails_ends_the_search_and_says_why() {
    let test = Test::with(&KNEE.replace("storage_type: memory", "storage_type: local_fs"));
    test.write("data", "a file in the way");
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90"]);
    answer.refuses(2, &["row 1 (workload/1_epochs_1 replicate 1): ", "data", "point elsewhere"]);
    // The same command runs it then.
    std::fs::remove_file(test.path("data")).unwrap();
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90", "--max-runs", "1"]);
    assert!(answer.code == 4 && answer.stderr.contains("run 1: 1 accelerator"), "{answer:?}");
}

#[test]
fn ctrl_c_ends_the_search_and_its_run() {
    let test = Test::with(KNEE);
    let arguments = ["scale", "workload.yaml", "--au", "90", "train.computation_time=3600"];
    let mut command = test.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while test.files_below("results", "record.json").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    Answer::of(&child.wait_with_output().unwrap()).refuses(130, &["interrupted"]);
    let record = test.files_below("results", "record.json").pop().unwrap();
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["stopped_because"], "interrupted");
}
