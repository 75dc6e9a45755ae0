//! Jobs of workloads: complete jobs, killed ranks, interrupted and requeued jobs.

use super::{Cluster, DLIO_BENCHMARK, FEEDRATE, find_task};
use crate::harness::TINY;
use std::path::Path;
use std::process::Command;

const TWO: &[&str] = &["--tasks-per-node=2", "reader.batch_size=1"];
/// Steps for several minutes, so that a test can end the job first.
const LONG: &[&str] = &["train.computation_time=0.1", "train.epochs=2000"];

fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.test.write("workload.yaml", TINY);
    cluster
}

#[track_caller]
fn check_completes(cluster: &Cluster, more: &[&str], starts: u32) {
    let job = cluster.submit(&[TWO, more].concat());
    let states = cluster.wait_for_end(&job);
    assert!(
        states.iter().all(|state| state == "COMPLETED"),
        "{more:?} {states:?}:\n{}",
        cluster.logs()
    );
    for start in 1..=starts {
        let folder = match starts {
            1 => format!("results/job-{job}/start-1"),
            _ => format!("results/job-{job}_{start}/start-1"),
        };
        let records = cluster.records(&folder);
        assert_eq!(records.len(), 1, "{folder}:\n{}", cluster.logs());
        assert_eq!(records[0]["complete"], true);
        assert_eq!(records[0]["processes"].as_array().unwrap().len(), 2, "{more:?}");
        assert_eq!(records[0]["epochs"][1]["accelerators"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn scripts_run_to_their_end() {
    let cluster = cluster();
    check_completes(&cluster, &["--mpi=pmi2", "--dlio", "--array=2"], 2);
    check_completes(&cluster, &["--mpi=pmix", "--dlio", "--cpus-per-task=2"], 1);
    check_completes(&cluster, &["--launcher=mpirun"], 1);
}

#[test]
fn srun_without_an_mpi_interface_is_refused() {
    let cluster = cluster();
    let by_default = cluster.slurm("srun", &["-n2", DLIO_BENCHMARK, "workload=quickstart"]);
    by_default
        .refuses(1, &["`srun` started several processes", "hint: start with `srun --mpi=pmix`"]);
    assert_eq!(by_default.stderr.matches("hint:").count(), 1, "{}", by_default.stderr);
    // An MPI library that does not support srun's interface starts each process as rank 0 of 1.
    let mpich = ["-n2", FEEDRATE, "run", "workload.yaml", "--mpi-library=libmpich.so.12"];
    cluster.slurm("srun", &mpich).refuses(2, &["rank 0 of 2", "rank 0 of 1", "srun --mpi=pmi2"]);
}

#[test]
fn a_killed_rank_ends_its_job_and_is_named() {
    let cluster = cluster();
    for mpi in ["--mpi=pmi2", "--mpi=pmix"] {
        let job = cluster.submit(&[TWO, LONG, &[mpi]].concat());
        cluster.wait_until("an epoch is over", |cluster| cluster.output(&job).contains("epoch 1/"));
        let id = find_task(&cluster, 1, Path::new(FEEDRATE)).unwrap().to_string();
        assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
        assert_eq!(cluster.wait_for_end(&job), ["FAILED"], "{mpi}");
        let output = cluster.output(&job);
        assert_eq!(output.matches("error: rank 1 on ").count(), 1, "{output}");
        assert!(output.contains("died without a message"), "{output}");
        let records = cluster.records(&format!("results/job-{job}"));
        assert_eq!((records.len(), &records[0]["complete"]), (1, &false.into()));
        let because = records[0]["stopped_because"].to_string();
        assert!(because.contains("rank 1"), "{because}");
    }
}

#[test]
fn an_interrupted_job_keeps_its_record_and_a_requeued_job_continues() {
    let cluster = cluster();
    // The signal that Slurm sends one minute before the time limit.
    let job = cluster.submit(&[TWO, LONG, &["--mpi=pmi2"]].concat());
    cluster.wait_until("an epoch is over", |cluster| cluster.output(&job).contains("epoch 1/"));
    cluster.slurm("scancel", &["--signal=TERM", &job]);
    assert_eq!(cluster.wait_for_end(&job), ["FAILED"]);
    let records = cluster.records(&format!("results/job-{job}"));
    assert_eq!((records.len(), &records[0]["complete"]), (1, &false.into()));
    assert_eq!(records[0]["stopped_because"], "interrupted");
    let output = cluster.output(&job);
    assert!(output.contains("error: interrupted: the run is incomplete"), "{output}");
    assert!(!output.contains("the run failed"), "{output}");

    let shorter = ["train.computation_time=0.05", "train.epochs=50", "--mpi=pmi2"];
    let job = cluster.submit(&[TWO, &shorter].concat());
    cluster.wait_until("an epoch is over", |cluster| cluster.output(&job).contains("epoch 1/"));
    cluster.slurm("scontrol", &["requeue", &job]).warns(&[]);
    cluster.wait_until("the job is queued again", |cluster| {
        cluster.values(&job, "JobState") == ["PENDING"]
    });
    // Slurm would wait two minutes.
    cluster.slurm("scontrol", &["update", &format!("JobId={job}"), "StartTime=now"]).warns(&[]);
    assert_eq!(cluster.wait_for_end(&job), ["COMPLETED"], "{}", cluster.logs());
    let records = cluster.records(&format!("results/job-{job}"));
    let complete: Vec<_> = records.iter().map(|record| &record["complete"]).collect();
    assert_eq!(complete, [&serde_json::json!(false), &serde_json::json!(true)]);
    let output = cluster.output(&job);
    assert!(output.contains("CANCELLED"), "the output of the first start is kept: {output}");
    assert!(output.contains("is already complete"), "{output}");
}
