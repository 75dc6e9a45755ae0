//! `feedrate study run`: studies finish in spite of kills, full disks and edits.

use crate::harness::{Answer, MountedDisk, Test, venv_python};
use feedrate_measure::record::Record;
use feedrate_results::load_run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A run takes about 0.2 s, long enough to be killed in.
pub(crate) const WORKLOAD: &str = "\
model:
  name: tiny
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 16
  record_length_bytes: 20000
reader:
  data_loader: pytorch
  batch_size: 2
train:
  epochs: 1
  computation_time: 0.02
";

/// Rows in the order of the perf_2025 study: some share a dataset, others have another dataset, and the last returns to the first.
const STUDY: &str = "\
model,epochs,processes,overrides,run
# Baseline
workload.yaml,2,1,,N
workload.yaml,1,2,,N

# Vary format
workload.yaml,1,2,++workload.dataset.format=hdf5,N
# Vary record_length
workload.yaml,1,2,++workload.dataset.record_length_bytes=10000,N
workload.yaml,1,2,++workload.dataset.record_length_bytes=40000,N
# The baseline's dataset again
workload.yaml,1,2,\"++workload.reader.batch_size=1 ++workload.reader.read_threads=2\",N
";

pub(crate) fn study(csv: &str) -> Test {
    let test = Test::with_workload(WORKLOAD);
    test.write("study.csv", csv);
    test
}

pub(crate) fn run(test: &Test, more: &[&str]) -> Answer {
    test.feedrate(&[&["study", "run", "study.csv"], more].concat())
}

fn csv(test: &Test) -> String {
    fs::read_to_string(test.path("study.csv")).unwrap()
}

/// Folders of runs below `folder`, without runs that were moved aside.
pub(crate) fn run_dirs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.join("record.json").exists() {
            found.push(path);
        } else if path.is_dir() && !path.ends_with("incomplete") && !path.ends_with("superseded") {
            found.extend(run_dirs(&path));
        }
    }
    found.sort();
    found
}

/// The experiment and record of each run.
fn records(test: &Test) -> Vec<(String, Record)> {
    let load = |run_dir: PathBuf| {
        let experiment = run_dir.parent().unwrap().file_name().unwrap();
        (experiment.to_string_lossy().into_owned(), load_run(&run_dir).unwrap())
    };
    run_dirs(&test.path("results/workload")).into_iter().map(load).collect()
}

/// Checks that each row ran once, with the right dataset.
#[track_caller]
fn check_complete(test: &Test) {
    assert_eq!(csv(test), STUDY.replace(",N\n", ",Y\n"));
    let seen: Vec<(String, String, f64, u64, bool)> = records(test)
        .into_iter()
        .map(|(experiment, record)| {
            let plan = &record.plan;
            let dataset = &plan.dataset;
            let batch = plan.loader.batch_size;
            (experiment, dataset.format.clone(), dataset.record_bytes, batch, record.complete)
        })
        .collect();
    let row = |experiment: &str, format: &str, bytes, batch| {
        (experiment.to_string(), format.to_string(), bytes, batch, true)
    };
    assert_eq!(
        seen,
        [
            row("1", "npz", 20000.0, 2),
            row("2", "npz", 20000.0, 2),
            row("2_batch_size=1,read_threads=2", "npz", 20000.0, 1),
            row("2_format_hdf5", "hdf5", 20000.0, 2),
            row("2_record_length_bytes_10000", "npz", 10000.0, 2),
            row("2_record_length_bytes_40000", "npz", 40000.0, 2),
        ]
    );
}

#[test]
fn each_row_runs_once_with_its_own_dataset_and_datasets_are_shared() {
    let test = study(STUDY);
    let answer = run(&test, &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("6 runs finished now; 6 of 6 done"), "{}", answer.stdout);
    check_complete(&test);
    assert_eq!(answer.stderr.matches("generating").count(), 4, "{}", answer.stderr);
    for number in 1..=6 {
        let place = format!("[{number}/6] ");
        let mut row_lines = answer.stderr.lines().filter(|line| line.starts_with(&place));
        assert!(row_lines.any(|line| line.contains(": AU ")), "{number}");
    }
    assert!(answer.stdout.contains("Next: feedrate report study.csv -o report.html"));
    let (_, record) = &records(&test)[2];
    let study = record.study.as_ref().unwrap();
    assert_eq!(study.overrides.len(), 2);
    assert_eq!((study.experiment.as_str(), study.attempt), ("2_batch_size=1,read_threads=2", 6));
    let again = run(&test, &[]);
    assert!(again.stdout.contains("0 runs finished now"), "{}", again.stdout);
}

fn start_runner(test: &Test) -> Child {
    let mut command = test.command(&["study", "run", "study.csv"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Number of files below a folder.
fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}

/// Number of files of the study: state, logs and results.
fn count_study_files(test: &Test) -> usize {
    count_files(&test.path("study.study")) + count_files(&test.path("results"))
}

/// Waits until the study has `count` files, or the runner has exited.
fn wait_for_files(test: &Test, count: usize, runner: &mut Child) {
    while count_study_files(test) < count && runner.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

fn kill(runner: &mut Child) {
    runner.kill().unwrap();
    runner.wait().unwrap();
}

#[test]
fn a_study_finishes_even_if_its_runner_is_killed_many_times() {
    let test = study(STUDY);
    let mut kills = 0;
    loop {
        let before = count_study_files(&test);
        let mut runner = start_runner(&test);
        // Each runner is killed one file later than the previous one.
        wait_for_files(&test, before + 1 + kills % 24, &mut runner);
        if let Some(ended) = runner.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            break;
        }
        kill(&mut runner);
        kills += 1;
        assert!(kills < 200);
    }
    assert!(10 <= kills, "only {kills}");
    check_complete(&test);
}

#[test]
fn a_second_runner_is_refused_and_a_killed_runner_frees_the_lock() {
    let test = study(STUDY);
    let mut runner = start_runner(&test);
    wait_for_files(&test, 2, &mut runner);
    run(&test, &[]).refuses(2, &["another runner is running", "(process ", "hint:"]);
    kill(&mut runner);
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
}

#[test]
fn a_run_waits_for_the_supervisor_of_a_runner_that_was_killed() {
    let test = study("model,processes,run\nworkload.yaml,1,N\n");
    let mut runner = start_runner(&test);
    // When the first task starts, the runner has already checked the lock.
    while !test.path("study.study/logs/1-generate").exists() {
        std::thread::yield_now();
    }
    let lock = fs::File::open(test.path("study.study/running")).unwrap();
    lock.lock().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(lock);
    assert!(runner.wait().unwrap().success());
    assert!(csv(&test).ends_with(",Y\n"));
}

#[test]
fn a_failed_row_stays_pending_with_its_reason() {
    let test = study(STUDY);
    let answer = run(&test, &["--only", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let small = MountedDisk::tmpfs(&test.path("data"), "size=600k");
    let answer = run(&test, &["--only", "2_record_length_bytes_40000", "--only", "2"]);
    answer.refuses(1, &["2_record_length_bytes_40000: failed", "room"]);
    assert!(csv(&test).contains("=40000,N\n"));
    let status = test.feedrate(&["study", "status", "study.csv"]);
    assert!(
        status.stdout.contains("1 failed") && status.stdout.contains("room"),
        "{}",
        status.stdout
    );
    drop(small);
    // The row is not run again, and the exit code still reports the failure.
    let answer = run(&test, &[]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(csv(&test).contains("=40000,N\n"));
    let answer = run(&test, &["--retry"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    check_complete(&test);
    let show = test.feedrate(&["study", "status", "study.csv", "*40000"]);
    assert!(show.stdout.contains("failed: ") && show.stdout.contains("done in"), "{}", show.stdout);
}

#[test]
fn datasets_are_deleted_if_not_all_fit_on_the_disk() {
    let test = study(STUDY);
    let _small = MountedDisk::tmpfs(&test.path("data"), "size=900k");
    let answer = run(&test, &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("deleting "), "{}", answer.stderr);
    check_complete(&test);
}

#[test]
fn on_a_full_disk_no_row_is_marked_as_done() {
    let test = Test::with_workload(WORKLOAD);
    let disk = MountedDisk::tmpfs(&test.path("full"), "size=64k");
    fs::write(disk.0.join("study.csv"), STUDY).unwrap();
    let fill = || fs::write(disk.0.join("filler"), vec![1; 1 << 20]).unwrap_err();
    fill();
    let run = |more: &[&str]| test.feedrate(&[&["study", "run", "full/study.csv"], more].concat());
    let answer = run(&[]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("No space left"), "{}", answer.stderr);
    assert_eq!(fs::read_to_string(disk.0.join("study.csv")).unwrap(), STUDY);
    fs::remove_file(disk.0.join("filler")).unwrap();
    let answer = run(&["--limit", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn settings_of_all_runs_cannot_change() {
    let test = study(STUDY);
    assert_eq!(run(&test, &["--scale", "0.5", "--limit", "1"]).code, 0);
    run(&test, &["--scale", "0.25"]).refuses(2, &["`--scale` is 0.25 now, and was 0.5", "hint:"]);
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
    let scales: Vec<u64> =
        records(&test).iter().map(|(_, record)| record.plan.dataset.files_train).collect();
    assert_eq!(scales, [8, 8]);
}

#[test]
fn impossible_rows_are_reported_before_any_run() {
    let test = study(
        "model,processes,overrides,run\nworkload.yaml,1,,N\nno_such,1,,N\nworkload.yaml,1,reader.batch_sise=2,N\nworkload.yaml,1,study.cache=lukewarm,N\n",
    );
    let problems = ["no bundled workload `no_such`", "reader.batch_size", "lukewarm"];
    run(&test, &["--only", "#2", "--only", "#3", "--only", "#4"])
        .refuses(2, &[&["row 2 (no_such/1)", "row 3", "row 4"][..], &problems].concat());
    assert_eq!(run_dirs(&test.path("results")), Vec::<PathBuf>::new());
    let answer = run(&test, &[]);
    answer.refuses(1, &problems);
    assert_eq!(run_dirs(&test.path("results")).len(), 1);
    run(&test, &["--launch", "teleport", "--only", "1"])
        .refuses(2, &["'teleport' for '--launch", "mpirun"]);
}

#[test]
fn a_dry_run_lists_the_runs_and_runs_nothing() {
    let test = study(STUDY);
    let answer = run(&test, &["--dry-run", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let runs = plan["runs"].as_array().unwrap();
    let generated: Vec<bool> =
        runs.iter().map(|run| run["generate_bytes"].as_u64().unwrap() > 0).collect();
    assert_eq!(generated, [true, false, true, true, true, false]);
    assert_eq!(plan["fits_disk"], true);
    assert!(!test.path("study.study").exists() && !test.path("data").exists());
}

#[test]
fn hooks_run_before_their_runs_with_the_level() {
    let test = study(
        "model,processes,overrides,run\n# hook note: echo \"$1\" >> levels\nworkload.yaml,1,study.hook.note=fast,N\nworkload.yaml,1,study.hook.note=slow,N\n",
    );
    run(&test, &[]).refuses(2, &["hook note: \"echo \\\"$1\\\" >> levels\"", "add `--trust`"]);
    assert!(!test.path("levels").exists());
    let answer = run(&test, &["--trust"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(fs::read_to_string(test.path("levels")).unwrap(), "fast\nslow\n");
}

/// Otherwise a run would look for its dataset in another folder than the one in which it was generated.
#[test]
fn all_commands_of_a_study_have_the_same_time() {
    let test = study("model,epochs,processes,run\nworkload.yaml,1,1,N\nworkload.yaml,2,1,N\n");
    test.write("workload.yaml", WORKLOAD.replace("folder: data", "folder: data/${now:%s}"));
    let answer = run(&test, &[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let settings = fs::read_to_string(test.path("study.study/settings.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let names = fs::read_dir(test.path("data")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(names, [settings["now_s"].to_string()]);
}

#[test]
fn a_time_outside_of_the_calendar_is_refused() {
    let test = Test::with_workload(WORKLOAD);
    for (now, code) in [("0", 0), ("253402207200", 0), ("253402207201", 2), ("-999999999999", 2)] {
        let answer = test.feedrate(&["plan", "workload.yaml", "--now", now]);
        assert_eq!(answer.code, code, "{now}: {}", answer.stderr);
        if code == 2 {
            answer.refuses(2, &[&format!("--now={now}"), "give seconds since 1970"]);
        }
    }
}

#[test]
fn pandas_reads_the_csv_of_a_study() {
    let test = study(STUDY);
    assert_eq!(run(&test, &["--limit", "2"]).code, 0);
    let counts = test.python(&venv_python(), "study.py", ["study.csv"]);
    assert_eq!(String::from_utf8(counts).unwrap(), "6 rows, 2 done, 4 pending\n");
}

#[test]
fn a_moved_study_continues_and_a_copied_study_does_not_change_the_original() {
    let test = study(STUDY);
    fs::create_dir(test.path("a")).unwrap();
    for name in ["study.csv", "workload.yaml"] {
        fs::rename(test.path(name), test.path("a").join(name)).unwrap();
    }
    let run_in = |folder: &str, more: &[&str]| {
        let mut command = test.command(&["study", "run", "study.csv"]);
        Answer::from_output(&command.args(more).current_dir(test.path(folder)).output().unwrap())
    };
    assert_eq!(run_in("a", &["--limit", "1"]).code, 0);
    fs::rename(test.path("a"), test.path("b")).unwrap();
    let answer = run_in("b", &["--limit", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(run_dirs(&test.path("b/results")).len(), 2);
    let copied = test.program("cp", &["-r", "b", "c"]).status().unwrap();
    assert!(copied.success());
    run_in("c", &[]).refuses(2, &["was copied from", "remove `", "hint:"]);
    assert_eq!(run_dirs(&test.path("b/results")).len(), 2);
    fs::remove_dir_all(test.path("c/study.study")).unwrap();
    assert_eq!(run_in("c", &["--limit", "1", "--results", "own"]).code, 0);
    assert_eq!(run_dirs(&test.path("b/results")).len(), 2);
}

#[test]
fn a_missing_file_of_a_dataset_is_generated_again_on_retry() {
    let test = study("model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n");
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
    fs::remove_file(&test.data_files(".npz")[3]).unwrap();
    let answer = run(&test, &[]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    // No other row is pending, and the exit code still reports the failure.
    assert_eq!(run(&test, &[]).code, 1);
    let answer = run(&test, &["--retry"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn generation_counts_in_the_time_budget() {
    let test = study(
        "model,processes,overrides,run\nworkload.yaml,1,dataset.record_length_bytes=500000000,N\n",
    );
    let answer = run(&test, &["--time-budget", "1s"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("more than is left of the time budget"), "{}", answer.stderr);
    assert!(!test.path("data").exists());
}

#[test]
fn unknown_rows_and_impossible_settings_are_refused() {
    let test = study(STUDY);
    run(&test, &["--only", "nosuch"])
        .refuses(2, &["no row of the study is called `nosuch`", "hint:"]);
    let answer = run(&test, &["--launch", "local", "--accelerators-per-rank", "2"]);
    answer.refuses(2, &["row 1 and 5 more"]);
    assert!(!test.path("study.study/settings.json").exists());
}

#[test]
fn a_workload_that_changes_between_replicates_causes_a_doubt() {
    let test = study("model,processes,run\nworkload.yaml,1,N\nworkload.yaml,1,N\n");
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
    test.write("workload.yaml", WORKLOAD.replace("0.02", "0.01"));
    let answer = run(&test, &[]);
    assert!(answer.stderr.contains("doubts: replicates_differ"), "{}", answer.stderr);
    let status = test.feedrate(&["study", "status", "study.csv"]);
    assert!(status.stdout.contains("replicates_differ"), "{}", status.stdout);
}

#[test]
fn status_lists_rows_that_are_marked_as_done_without_a_result() {
    let test = study(&STUDY.replacen("1,2,,N", "1,2,,Y", 1));
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
    fs::remove_dir_all(test.path("results")).unwrap();
    let status = test.feedrate(&["study", "status", "study.csv"]);
    for words in ["Y, no result here", "2 rows marked `Y` without a result here"] {
        assert!(status.stdout.contains(words), "no `{words}` in {}", status.stdout);
    }
    let answer = run(&test, &["--limit", "1"]);
    assert!(answer.stdout.contains("3 of 6 done"), "{}", answer.stdout);
}

#[test]
fn status_counts_the_rows_that_cannot_run() {
    let test = study("model,processes,run\nworkload.yaml,1,N\nnosuch,1,N\n");
    let status = test.feedrate(&["study", "status", "study.csv"]).stdout;
    let last = status.lines().last().unwrap();
    assert!(last.contains("2 pending, about "), "{status}");
    assert!(last.contains("; 1 cannot run: `feedrate study run --dry-run "), "{status}");
    assert!(last.ends_with("/study.csv`"), "{status}");
}

#[test]
fn a_study_without_rows_is_refused() {
    let test = study("model,processes,run\n");
    run(&test, &[]).refuses(2, &["no row of the study is called"]);
}

#[test]
fn a_run_on_a_busy_machine_gets_a_doubt() {
    let test = study("model,processes,run\nworkload.yaml,1,N\n");
    let is_busy = AtomicBool::new(true);
    let answer = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while is_busy.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut runner = test.command(&["study", "run", "study.csv"]);
        let answer = Answer::from_output(&runner.env("FEEDRATE_LOOK_S", "0.3").output().unwrap());
        is_busy.store(false, Relaxed);
        answer
    });
    assert!(answer.stderr.contains("doubts: device_not_quiet"), "{}", answer.stderr);
}
