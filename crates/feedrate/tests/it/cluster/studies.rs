//! Studies that run in a job, and studies that start a job for each run.

use super::{Cluster, FEEDRATE};
use crate::harness::TINY;
use crate::slurm::STUDY;
use std::process::{Command, Stdio};

fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.test.write("workload.yaml", TINY);
    cluster.test.write("study.csv", STUDY);
    cluster
}

/// Submits a job of the study, and returns its number.
#[track_caller]
fn submit(cluster: &Cluster, more: &[&str]) -> String {
    let words = ["slurm", "study.csv", "--time=10", "-o", "study.sh", "--force"];
    let written = cluster.test.feedrate(&[&words[..], more].concat());
    assert_eq!(written.code, 0, "{}", written.stderr);
    let submitted = cluster.slurm("sbatch", &["--parsable", "--output=%A_%a.out", "study.sh"]);
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    submitted.stdout.trim().to_string()
}

fn csv(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.test.path("study.csv")).unwrap()
}

/// Checks that each row is done and ran once, and the numbers of processes of the runs.
#[track_caller]
fn check_done(cluster: &Cluster, processes: &[usize]) {
    assert_eq!(csv(cluster), STUDY.replace(",N\n", ",Y\n"), "{}", cluster.logs());
    let is_complete = |record: &&serde_json::Value| record["complete"] == true;
    let records = cluster.records("results");
    let process_count =
        |record: &serde_json::Value| record["processes"].as_array().map_or(1, Vec::len);
    let mut counts: Vec<usize> = records.iter().filter(is_complete).map(process_count).collect();
    counts.sort_unstable();
    assert_eq!(counts, processes);
}

#[test]
fn a_study_runs_in_a_job_and_in_an_array_of_jobs() {
    let cluster = cluster();
    let job = submit(&cluster, &["--tasks-per-node=2"]);
    assert_eq!(cluster.wait_for_end(&job), ["COMPLETED"], "{}", cluster.logs());
    check_done(&cluster, &[1, 2, 2]);

    std::fs::remove_dir_all(cluster.test.path("results")).unwrap();
    std::fs::remove_dir_all(cluster.test.path("study.study")).unwrap();
    cluster.test.write("study.csv", STUDY);
    let job = submit(&cluster, &["--launch=local", "--array=4"]);
    assert_eq!(cluster.wait_for_end(&job), ["COMPLETED"; 4], "{}", cluster.logs());
    check_done(&cluster, &[1, 1, 1]);
}

#[test]
fn a_study_continues_in_a_requeued_job() {
    let cluster = cluster();
    let longer = TINY.replace("epochs: 2", "epochs: 2\n  computation_time: 0.5");
    cluster.test.write("workload.yaml", longer);
    let job = submit(&cluster, &["--tasks-per-node=2"]);
    let has_record = |cluster: &Cluster| !cluster.records("results").is_empty();
    cluster.wait_until("a run has begun", has_record);
    cluster.slurm("scontrol", &["requeue", &job]).warns(&[]);
    cluster.wait_until("the job is queued again", |cluster| {
        cluster.values(&job, "JobState") == ["PENDING"]
    });
    // By default Slurm waits two minutes. It does not start a job in the second in which the job was requeued.
    let soon = ["update", &format!("JobId={job}"), "StartTime=now+2"];
    cluster.slurm("scontrol", &soon).warns(&[]);
    assert_eq!(cluster.wait_for_end(&job), ["COMPLETED"], "{}", cluster.logs());
    check_done(&cluster, &[1, 2, 2]);
}

#[test]
fn a_run_can_be_a_job_that_ends_with_the_runner() {
    let cluster = cluster();
    let study = ["study", "run", "study.csv", "--launch=sbatch"];
    let run = || cluster.command(FEEDRATE, &study);
    let longer = TINY.replace("epochs: 2", "epochs: 2\n  computation_time: 1000");
    cluster.test.write("workload.yaml", longer);
    let mut runner = run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_record = |cluster: &Cluster| !cluster.records("results").is_empty();
    cluster.wait_until("a run has begun", has_record);
    let id = runner.id().to_string();
    assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    runner.wait().unwrap();
    let queue = |cluster: &Cluster| cluster.slurm("squeue", &["-h"]).stdout;
    cluster.wait_until("its job is gone", |cluster| queue(cluster).is_empty());
    assert_eq!(csv(&cluster), STUDY);

    cluster.test.write("workload.yaml", TINY);
    let answer = cluster.slurm(FEEDRATE, &study);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    check_done(&cluster, &[1, 2, 2]);
}
