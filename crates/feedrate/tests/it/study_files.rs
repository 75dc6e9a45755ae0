//! Studies with files from other people: no code in them is executed without trust, and workloads beside the CSV are noted.

use crate::harness::{Answer, Test};
use crate::study::{WORKLOAD, run, run_dirs, study};
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
        answer.warns(&["workload `quickstart` is `", "/quickstart.yaml` beside the study"]);
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
