//! Studies with files from other people: no code in them is executed without trust, and workloads beside the CSV are noted.

use crate::harness::{Answer, Test};
use crate::study::{WORKLOAD, run, run_dirs, study};
use feedrate_results::import::fake::Fake;
use feedrate_results::load_run;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Somebody else may have written the study's folder.
#[test]
fn scripts_and_paths_in_a_received_study_folder_are_not_used() {
    let test = study("model,processes,run\nworkload.yaml,1,N\n");
    let text = |name: &str| fs::read_to_string(test.path(name)).unwrap_or_default();
    test.write("victim.txt", "text");
    let script = format!("touch {}\n", test.path("ran").display());
    for folder in ["logs/1-run", "logs/1-generate"] {
        fs::create_dir_all(test.path("study.study").join(folder)).unwrap();
    }
    for name in ["x.sh", "logs/1-run/cleanup.sh", "logs/1-generate/cleanup.sh"] {
        test.write(&format!("study.study/{name}"), &script);
    }
    let running = serde_json::json!({
        "cleanup": test.path("study.study/x.sh"),
        "stderr": test.path("victim.txt"),
    });
    test.write("study.study/running", running.to_string());
    let answer = run(&test, &["--limit", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!test.path("ran").exists());
    assert_eq!(text("victim.txt"), "text");

    let settings = text("study.study/settings.json");
    fs::write(test.path("study.csv"), "model,processes,run\nworkload.yaml,2,N\n").unwrap();
    let change_settings = |key: &str, value: &str| {
        let mut settings: Value = serde_json::from_str(&settings).unwrap();
        settings["launching"][key] = Value::from(vec![value]);
        test.write("study.study/settings.json", settings.to_string());
    };
    change_settings("arguments", "bash");
    run(&test, &[]).refuses(2, &["--launcher-argument \"bash\"", "`--trust`"]);
    change_settings("prologue", "touch ran");
    run(&test, &[]).refuses(2, &["--prologue \"touch ran\"", "hint: ", "`--trust`"]);
    assert!(!test.path("ran").exists());
    let answer = run(&test, &["--trust"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(test.path("ran").exists());
    let answer = run(&test, &["--prologue", "touch ran"]);
    assert_eq!(answer.code, 0, "commands on the command line are trusted: {}", answer.stderr);
}

/// Scripts in the study's folder are not trusted. The job to cancel is determined from the study and the last attempt.
#[test]
fn the_job_of_a_killed_supervisor_is_cancelled_by_a_new_script() {
    let test = study("model,processes,run\nworkload.yaml,1,N\nworkload.yaml,2,N\n");
    assert_eq!(run(&test, &["--limit", "1"]).code, 0);
    let settings = fs::read_to_string(test.path("study.study/settings.json")).unwrap();
    let settings = settings.replace("\"local\"", "\"sbatch\"");
    test.write("study.study/settings.json", settings);
    test.write("study.study/running", "running\n");
    let logs = fs::canonicalize(test.path("study.study/logs")).unwrap();
    test.write("study.study/logs/1-run/cleanup.sh", "touch ran\n");
    fs::create_dir(test.path("bin")).unwrap();
    let (job, other) = (logs.join("1-run/job.sh"), logs.join("2-run/job.sh"));
    let queue =
        format!("[ -e cancelled ] || printf '7 {}\\n8 {}\\n'", job.display(), other.display());
    for (name, script) in [("squeue", &*queue), ("scancel", "echo \"$@\" >> cancelled")] {
        let path = test.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", test.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = test.command(&["study", "run", "study.csv", "--limit", "0"]);
    let answer = Answer::from_output(&command.env("PATH", path).output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(fs::read_to_string(test.path("cancelled")).unwrap(), "7\n");
    assert_eq!(fs::read_to_string(test.path("study.study/running")).unwrap(), "");
    assert!(!test.path("ran").exists());
}

#[test]
fn a_workload_beside_the_csv_takes_precedence_over_a_bundled_workload() {
    let test = Test::new();
    fs::create_dir(test.path("mine")).unwrap();
    test.write("mine/quickstart.yaml", WORKLOAD);
    let design = ["study", "new", "--design", "full_factorial", "--model", "quickstart"];
    let more = ["--factor", "reader.batch_size=1,2", "-o", "mine/study.csv"];
    let check_note = |answer: &Answer| {
        answer.warns(&["workload `quickstart` is `", "/quickstart.yaml`, not the bundled one"]);
    };
    check_note(&test.feedrate(&[&design[..], &more].concat()));
    let study = |command: &str, more: &[&str]| {
        test.feedrate(&[&["study", command, "mine/study.csv"], more].concat())
    };
    check_note(&test.feedrate(&["slurm", "mine/study.csv", "--time", "1:00:00"]));
    let plan = study("run", &["--dry-run"]);
    check_note(&plan);
    assert!(plan.stdout.contains("generate 3"), "16 files of 20 kB: {}", plan.stdout);
    check_note(&study("run", &["--limit", "1"]));
    let [run_dir] = &run_dirs(&test.path("results"))[..] else { panic!("one run") };
    assert_eq!(load_run(run_dir).unwrap().plan.dataset.files_train, 16);
}

/// In perf_2025's folder, the CSV is in `analysis` and the workloads are in `config/workload`.
#[test]
fn workloads_of_a_config_folder_take_precedence_over_bundled_ones() {
    let test = Test::new();
    for folder in ["analysis", "config/workload", "other/workload"] {
        fs::create_dir_all(test.path(folder)).unwrap();
    }
    test.write("config/workload/quickstart.yaml", WORKLOAD);
    test.write("other/workload/quickstart.yaml", WORKLOAD.replace("train: 16", "train: 24"));
    test.write("analysis/study.csv", "model,processes,run\nquickstart,1,N\n");
    let run =
        |more: &[&str]| test.feedrate(&[&["study", "run", "analysis/study.csv"], more].concat());
    let plan = run(&["--dry-run"]);
    plan.warns(&[
        "workload `quickstart` is `",
        "/config/workload/quickstart.yaml`, not the bundled one",
    ]);
    let forecast = run(&["--dry-run", "--json", "--config-dir", "other"]).json();
    let workload = forecast["runs"][0]["workload"].as_str().unwrap().to_string();
    assert!(workload.ends_with("/other/workload/quickstart.yaml"), "{forecast}");
    run(&["--config-dir", "nowhere"]).refuses(2, &["`--config-dir", "has no folder `workload`"]);
    run(&["--config-dir", "other"]).warns(&["/other/workload/quickstart.yaml`"]);
    let [run_dir] = &run_dirs(&test.path("results"))[..] else { panic!("one run") };
    let record = load_run(run_dir).unwrap();
    assert_eq!(record.plan.dataset.files_train, 24);
    assert_eq!(record.study.unwrap().workload, Some(workload));
    let csv = "model,processes,run\nquickstart,1,Y\nquickstart,2,N\n";
    test.write("analysis/study.csv", csv);
    run(&[]).warns(&["/other/workload/quickstart.yaml`"]);
    run(&["--config-dir", "config"]).refuses(2, &["`--config-dir` is"]);
}

fn study_row(test: &Test, row: &str) -> String {
    test.feedrate(&["study", "status", "analysis/study.csv", row]).stdout
}

/// perf_2025's notebook copies `hydra_log/MODEL` to `results/MODEL/ID` and marks the row.
#[test]
fn rows_that_a_notebook_ran_are_adopted() {
    let test = Test::new();
    for folder in ["analysis", "config/workload", "scratch", "results/tiny"] {
        fs::create_dir_all(test.path(folder)).unwrap();
    }
    test.write("config/workload/tiny.yaml", WORKLOAD);
    let rows = |mark: &str| {
        format!(
            "model,epochs,processes,overrides,run\ntiny,1,1,++workload.reader.batch_size=4,{mark}\n\
             tiny,1,1,,Y\ntiny,1,2,++workload.reader.batch_size=4,N\n"
        )
    };
    test.write("analysis/study.csv", rows("Y"));
    let program = env!("CARGO_BIN_EXE_dlio_benchmark");
    let conf = test.path("config");
    for phase in [
        ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"],
        ["++workload.workflow.train=True", "++workload.reader.batch_size=4"],
    ] {
        let mut command = test.program(program, &["workload=tiny", "--config-dir"]);
        let output = command.arg(&conf).args(phase).current_dir(test.path("scratch")).output();
        let answer = Answer::from_output(&output.unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let [adopted] = &run_dirs(&test.path("scratch"))[..] else { panic!("one run") };
    fs::remove_file(adopted.join("record.json")).unwrap();
    let results = test.path("results/tiny/1_batch_size_4");
    fs::rename(test.path("scratch/hydra_log/tiny"), &results).unwrap();
    let adopted = results.join(adopted.file_name().unwrap());

    let study = |command: &[&str]| test.feedrate(&[command, &["analysis/study.csv"]].concat());
    let status = study(&["study", "status", "--json"]).json();
    let folder = |row: usize| status["rows"][row]["run_dir"].as_str().map(fs::canonicalize);
    assert_eq!(folder(0).unwrap().unwrap(), fs::canonicalize(&adopted).unwrap(), "{status}");
    assert!(folder(1).is_none(), "{status}");
    let au = status["rows"][0]["imported"]["au_all_steps_percent"].as_f64();
    assert!(au > Some(0.0) && status["rows"][2]["imported"].is_null(), "{status}");
    let table = study(&["study", "status"]).stdout;
    assert!(!table.contains("0 s"), "the duration is unknown: {table}");
    let is_known = |line: &&str| line.contains("1_batch_size_4") && line.contains(" % ");
    assert!(table.lines().any(|line| is_known(&line)), "{table}");
    let details = study_row(&test, "#1");
    assert!(details.contains("all steps ") && !details.contains("all steps -"), "{details}");
    let report = study(&["report", "-o", "report.md"]);
    assert!(report.code == 0, "{}", report.stderr);
    assert!(fs::read_to_string(test.path("report.md")).unwrap().contains("1_batch_size_4"));

    fs::create_dir(test.path("data")).unwrap();
    let answer = test.feedrate(&["study", "run", "analysis/study.csv", "--data", "data"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(adopted.join("summary.json").exists(), "the notebook's result stays");
    let states = study(&["study", "status", "--json"]).json();
    let states: Vec<_> =
        states["rows"].as_array().unwrap().iter().map(|row| row["status"].clone()).collect();
    assert_eq!(states, ["done", "done", "done"]);
}

/// A folder of adopted results may contain thousands of other runs.
#[test]
fn status_reads_each_adopted_result_once_and_no_others() {
    let test = Test::new();
    let rows = "w,4,Y\n".repeat(3);
    test.write("study.csv", format!("model,processes,run\n{rows}"));
    let adopted = ["2026-01-01", "2026-01-02", "2026-01-03"].map(|time| format!("4/{time}"));
    let others = ["8/2026-01-04", "8/2026-01-05"].map(String::from);
    for (number, run) in (1..).zip(adopted.iter().chain(&others)) {
        let start_s = 3600.0 * f64::from(number);
        Fake { start_s, ..Fake::default() }.write(&test.path("results/w"), run);
    }
    // The number of times that each run's file of steps is opened.
    let opens = |arguments: &[&str]| {
        let strace = ["-f", "-qq", "-e", "trace=openat", "-o", "calls"];
        let feedrate = [env!("CARGO_BIN_EXE_feedrate"), "study", "status", "study.csv"];
        let output = test.program("strace", &[&strace[..], &feedrate, arguments].concat()).output();
        let answer =
            Answer::from_output(&output.expect("cannot start strace: run `cargo xtask setup`"));
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let calls = fs::read_to_string(test.path("calls")).unwrap();
        let count = |run: &String| calls.matches(&format!("/w/{run}/0_output.json")).count();
        (adopted.each_ref().map(count), others.each_ref().map(count))
    };
    assert_eq!(opens(&[]), ([1; 3], [0; 2]));
    assert_eq!(opens(&["--json"]), ([1; 3], [0; 2]));
    assert_eq!(opens(&["w"]), ([1; 3], [1; 2]), "details compare with all runs of a workload");
}

#[test]
fn a_row_that_cannot_be_planned_fails_and_the_others_run() {
    let rows = "model,processes,overrides,run\nworkload.yaml,1,,N\nworkload.yaml,2,reader.batch_size=100,N\n";
    let test = study(rows);
    let plan = test.feedrate(&["study", "run", "study.csv", "--dry-run"]);
    plan.refuses(
        1,
        &[
            "cannot run: row 2 (workload/2_batch_size_100): ",
            "the dataset has 16",
            "memory can hold the dataset",
        ],
    );
    let answer = run(&test, &[]);
    answer.refuses(
        1,
        &[
            "1 row cannot run, for the reasons below; 1 other row can",
            "row 2 (2_batch_size_100): failed: ",
            "need 200 samples for one step, the dataset has 16",
        ],
    );
    assert!(
        answer.stdout.contains("1 run finished now; 1 of 2 done, 0 pending, 1 failed"),
        "{}",
        answer.stdout
    );
    let csv = fs::read_to_string(test.path("study.csv")).unwrap();
    assert!(csv.contains(",,Y\n") && csv.contains("=100,N\n"), "{csv}");
    let status = test.feedrate(&["study", "status", "study.csv"]);
    assert!(status.stdout.contains("need 200 samples for one step"), "{}", status.stdout);
    assert_eq!(run(&test, &[]).code, 1, "it is not tried again");
    assert_eq!(run(&test, &["--retry"]).code, 1);
}
