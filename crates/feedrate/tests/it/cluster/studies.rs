//! Studies in jobs, and jobs of studies.

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

/// Submit a job of the study.
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

/// All rows are done, each once, by so many processes.
#[track_caller]
fn is_done(cluster: &Cluster, processes: &[usize]) {
    assert_eq!(csv(cluster), STUDY.replace(",N\n", ",Y\n"), "{}", cluster.logs());
    let whole = |record: &&serde_json::Value| record["complete"] == true;
    let records = cluster.records("results");
    let of = |record: &serde_json::Value| record["processes"].as_array().map_or(1, Vec::len);
    let mut seen: Vec<usize> = records.iter().filter(whole).map(of).collect();
    seen.sort_unstable();
    assert_eq!(seen, processes);
}

#[test]
fn a_study_in_a_job_and_in_an_array_of_jobs() {
    let cluster = cluster();
    let job = submit(&cluster, &["--tasks-per-node=2"]);
    assert_eq!(cluster.ended(&job), ["COMPLETED"], "{}", cluster.logs());
    is_done(&cluster, &[1, 2, 2]);

    std::fs::remove_dir_all(cluster.test.path("results")).unwrap();
    std::fs::remove_dir_all(cluster.test.path("study.study")).unwrap();
    cluster.test.write("study.csv", STUDY);
    let job = submit(&cluster, &["--launch=local", "--array=4"]);
    assert_eq!(cluster.ended(&job), ["COMPLETED"; 4], "{}", cluster.logs());
    is_done(&cluster, &[1, 1, 1]);
}

#[test]
fn a_study_goes_on_in_a_job_that_is_requeued() {
    let cluster = cluster();
    let longer = TINY.replace("epochs: 2", "epochs: 2\n  computation_time: 0.5");
    cluster.test.write("workload.yaml", longer);
    let job = submit(&cluster, &["--tasks-per-node=2"]);
    let has_record = |cluster: &Cluster| !cluster.records("results").is_empty();
    cluster.until("a run has begun", has_record);
    cluster.slurm("scontrol", &["requeue", &job]).warns(&[]);
    cluster.until("the job is queued again", |cluster| {
        cluster.values(&job, "JobState") == ["PENDING"]
    });
    // Slurm would wait two minutes; within the second of the requeue it would start nothing of this job.
    let soon = ["update", &format!("JobId={job}"), "StartTime=now+2"];
    cluster.slurm("scontrol", &soon).warns(&[]);
    assert_eq!(cluster.ended(&job), ["COMPLETED"], "{}", cluster.logs());
    is_done(&cluster, &[1, 2, 2]);
}

#[test]
fn each_run_may_be_a_job_of_its_own_and_ends_with_its_runner() {
    let cluster = cluster();
    let study = ["study", "run", "study.csv", "--launch=sbatch"];
    let run = || cluster.command(FEEDRATE, &study);
    let longer = TINY.replace("epochs: 2", "epochs: 2\n  computation_time: 1000");
    cluster.test.write("workload.yaml", longer);
    let mut runner = run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_record = |cluster: &Cluster| !cluster.records("results").is_empty();
    cluster.until("a run has begun", has_record);
    let id = runner.id().to_string();
    assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    runner.wait().unwrap();
    let queue = |cluster: &Cluster| cluster.slurm("squeue", &["-h"]).stdout;
    cluster.until("its job is gone", |cluster| queue(cluster).is_empty());
    assert_eq!(csv(&cluster), STUDY);

    cluster.test.write("workload.yaml", TINY);
    let answer = cluster.slurm(FEEDRATE, &study);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    is_done(&cluster, &[1, 2, 2]);
}
