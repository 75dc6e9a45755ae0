//! Kills of a study's runner, supervisors or runs. After a restart, each row must have exactly one complete result.

use super::Class;
use super::case::{Case, check_complete_epochs, json, workload};
use super::child::{RunningProgram, STOP_TIMEOUT, children, descendants, is_alive};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(super) static CLASS: Class = Class {
    name: "kill_studies",
    noun: "kills of runners, supervisors and runs",
    cases: 60,
    short_cases: 3,
    parallel_cases: 2,
    run,
};

/// A study with rows that share a dataset, rows with other datasets, and again a row with the first dataset.
const STUDY: &str = "\
model,epochs,processes,overrides,run
# first
workload.yaml,2,1,,N
workload.yaml,1,2,,N

workload.yaml,1,2,++workload.dataset.format=hdf5,N
workload.yaml,1,2,++workload.dataset.record_length_bytes=10000,N
workload.yaml,1,2,\"++workload.reader.batch_size=1 ++workload.reader.read_threads=2\",N
";

/// Experiments with the format and the bytes of a record in their results.
const ROWS: [(&str, &str, f64); 5] = [
    ("1", "npz", 20000.0),
    ("2", "npz", 20000.0),
    ("2_batch_size=1,read_threads=2", "npz", 20000.0),
    ("2_format_hdf5", "hdf5", 20000.0),
    ("2_record_length_bytes_10000", "npz", 10000.0),
];

const KILLS: u32 = 3;

fn run(case: &mut Case) -> Result<u32> {
    // Each run takes about 0.1 s.
    case.write(
        "workload.yaml",
        workload(16, 20_000, 2, "train:\n  epochs: 1\n  computation_time: 0.01\n"),
    )?;
    case.write("study.csv", STUDY)?;
    for folder in ["", "data", "results", "results/workload/2"] {
        case.create_user_files(folder)?;
    }
    let datasets = case.random.pick(&["keep", "make-room"]);
    let arguments = ["study", "run", "study.csv", "--retry", "--datasets", datasets];
    let mut kills = 0;
    for _ in 0..KILLS {
        let runner = case.start_feedrate(&arguments)?;
        case.sleep_up_to(900);
        if case.random.chance(50) {
            create_user_files_in_datasets(case, "")?;
        }
        kills += kill_processes(case, runner)?;
    }
    case.feedrate(&arguments)?.with_code(&[0]).context("the restarted study")?;
    check_results(case)?;
    if datasets == "keep" {
        for more in
            ["dataset.format=npz", "dataset.format=hdf5", "dataset.record_length_bytes=10000"]
        {
            case.feedrate(&["generate", "--verify", "workload.yaml", more])?.with_code(&[0])?;
        }
    }
    case.feedrate(&["study", "status", "study.csv"])?.with_code(&[0])?;
    // No dataset is generated in folders with files of users. `check_clean` verifies that these files stay.
    create_user_files_in_datasets(case, "train")?;
    case.write("study.csv", STUDY)?;
    let runner = case.start_feedrate(&arguments)?;
    case.sleep_up_to(900);
    kills += kill_processes(case, runner)?;
    case.feedrate(&arguments)?.with_code(&[0, 1])?;
    Ok(kills)
}

/// Creates files of users in `subfolder` of each dataset.
fn create_user_files_in_datasets(case: &mut Case, subfolder: &str) -> Result<()> {
    for path in case.files("data") {
        if path.ends_with("manifest.json") {
            let folder = path.with_file_name(subfolder);
            case.user_files.create(&folder, &mut case.random)?;
        }
    }
    Ok(())
}

/// Sends a signal to processes of a study, and waits for the end of the study. The targets are the started process, its child that does
/// the work, the supervisors or the runs. Returns 1 if any target was alive, else 0.
fn kill_processes(case: &mut Case, runner: RunningProgram) -> Result<u32> {
    let signal = case.random.pick(&[Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT]);
    let started = vec![runner.pid()];
    let children_of =
        |parents: &[Pid]| pids(parents.iter().flat_map(|pid| children(*pid)).collect());
    let workers = children_of(&started);
    let supervisors = children_of(&workers);
    let runs = pids(supervisors.iter().flat_map(|pid| descendants(*pid)).collect());
    let (targets, stops_study) = match case.random.below(5) {
        0 => (started, true),
        1 => ([started, supervisors].concat(), true),
        2 => (workers, true),
        3 => (supervisors, false),
        _ => (runs, false),
    };
    let signalled =
        targets.iter().filter(|pid| is_alive(**pid) && kill_process(**pid, signal).is_ok());
    let kills = u32::from(signalled.count() > 0);
    if stops_study && kills > 0 && signal != Signal::KILL {
        // A signal that arrives before the handler is installed determines the exit code.
        runner.wait_for(STOP_TIMEOUT)?.with_code(&[0, 1, 4, 130, 143])?;
    } else {
        runner.wait()?.with_code(&[0, 1, 4, 130, 137])?;
    }
    Ok(kills)
}

fn pids(processes: Vec<(Pid, String)>) -> Vec<Pid> {
    processes.into_iter().map(|(pid, _)| pid).collect()
}

/// Checks that each row is marked as done and has one complete result with the settings of the row.
fn check_results(case: &Case) -> Result<()> {
    let csv = fs::read_to_string(case.path("study.csv"))?;
    ensure!(csv == STUDY.replace(",N\n", ",Y\n"), "the study's CSV is incomplete:\n{csv}");
    let mut found: BTreeMap<String, (PathBuf, Value)> = BTreeMap::new();
    for path in case.files("results") {
        let text = path.to_string_lossy();
        let is_ours = !case.user_files.has(&path) && !text.contains("/incomplete/");
        if !is_ours || !text.ends_with(".json") {
            continue;
        }
        let content = json(&path)?;
        if path.ends_with("record.json") {
            let row_folder = path.ancestors().nth(2).and_then(|folder| folder.file_name());
            let experiment = row_folder.context("a record without a row")?.to_string_lossy();
            let earlier_result =
                found.insert(experiment.clone().into_owned(), (path.with_file_name(""), content));
            ensure!(earlier_result.is_none(), "doubled: row {experiment}");
        }
    }
    for (experiment, format, bytes) in ROWS {
        let (run_dir, record) =
            found.remove(experiment).with_context(|| format!("lost: row {experiment}"))?;
        let dataset = &record["plan"]["dataset"];
        let matches_row = dataset["format"] == format && dataset["record_bytes"] == bytes;
        ensure!(matches_row, "row {experiment} has read another dataset: {dataset}");
        check_complete_epochs(&run_dir, &record)?;
    }
    ensure!(found.is_empty(), "results without a row: {:?}", found.keys());
    Ok(())
}
