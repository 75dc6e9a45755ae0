//! Studies whose runner, supervisor or run is killed: gone on with, each row is run once and whole.

use super::Class;
use super::case::{Case, epochs_of_whole, json, workload};
use super::child::{LEAVES_WITHIN, Running, children, descendants, is_alive};
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(super) static CLASS: Class = Class {
    name: "kill_studies",
    what: "kills of runners, supervisors and runs",
    cases: 60,
    short: 3,
    at_once: 2,
    run,
};

/// Rows that share a dataset, change it, and come back to it.
const STUDY: &str = "\
model,epochs,processes,overrides,run
# first
workload.yaml,2,1,,N
workload.yaml,1,2,,N

workload.yaml,1,2,++workload.dataset.format=hdf5,N
workload.yaml,1,2,++workload.dataset.record_length_bytes=10000,N
workload.yaml,1,2,\"++workload.reader.batch_size=1 ++workload.reader.read_threads=2\",N
";

/// Experiments and the formats and bytes that their records must tell of.
const ROWS: [(&str, &str, f64); 5] = [
    ("1", "npz", 20000.0),
    ("2", "npz", 20000.0),
    ("2_batch_size=1,read_threads=2", "npz", 20000.0),
    ("2_format_hdf5", "hdf5", 20000.0),
    ("2_record_length_bytes_10000", "npz", 10000.0),
];

const KILLS: u32 = 3;

fn run(case: &mut Case) -> Result<u32> {
    // Some 0.1 s a run.
    case.write(
        "workload.yaml",
        workload(16, 20_000, 2, "train:\n  epochs: 1\n  computation_time: 0.01\n"),
    )?;
    case.write("study.csv", STUDY)?;
    for folder in ["", "data", "results", "results/workload/2"] {
        case.plant(folder)?;
    }
    let datasets = case.random.pick(&["keep", "make-room"]);
    let arguments = ["study", "run", "study.csv", "--retry", "--datasets", datasets];
    let mut kills = 0;
    for _ in 0..KILLS {
        let runner = case.start_feedrate(&arguments)?;
        case.pass(900);
        if case.random.chance(50) {
            plant_in_datasets(case, "")?;
        }
        kills += hit(case, runner)?;
    }
    case.feedrate(&arguments)?.with_code(&[0]).context("a study that goes on")?;
    is_right(case)?;
    if datasets == "keep" {
        for more in
            ["dataset.format=npz", "dataset.format=hdf5", "dataset.record_length_bytes=10000"]
        {
            case.feedrate(&["generate", "--verify", "workload.yaml", more])?.with_code(&[0])?;
        }
    }
    case.feedrate(&["study", "status", "study.csv"])?.with_code(&[0])?;
    // Among files of others nothing new is made; that they stay is seen at the end.
    plant_in_datasets(case, "train")?;
    case.write("study.csv", STUDY)?;
    let runner = case.start_feedrate(&arguments)?;
    case.pass(900);
    kills += hit(case, runner)?;
    case.feedrate(&arguments)?.with_code(&[0, 1])?;
    Ok(kills)
}

/// Strangers in the folders of datasets, or below.
fn plant_in_datasets(case: &mut Case, below: &str) -> Result<()> {
    for path in case.files("data") {
        if path.ends_with("manifest.json") {
            let folder = path.with_file_name(below);
            case.strangers.plant(&folder, &mut case.random)?;
        }
    }
    Ok(())
}

/// Hit one of them, or two, and wait for the end: the process that was started, the one behind it that does its work, the
/// supervisors, their runs. Says how many blows of one moment hit any that lived: one or none.
fn hit(case: &mut Case, runner: Running) -> Result<u32> {
    let signal = case.random.pick(&[Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT]);
    let first = vec![runner.pid()];
    let below = |of: &[Pid]| pids(of.iter().flat_map(|pid| children(*pid)).collect());
    let behind = below(&first);
    let supervisors = below(&behind);
    let runs = pids(supervisors.iter().flat_map(|pid| descendants(*pid)).collect());
    let (whom, is_told) = match case.random.below(5) {
        0 => (first, true),
        1 => ([first, supervisors].concat(), true),
        2 => (behind, true),
        3 => (supervisors, false),
        _ => (runs, false),
    };
    let lived = whom.iter().filter(|pid| is_alive(**pid) && kill_process(**pid, signal).is_ok());
    let kills = u32::from(lived.count() > 0);
    if is_told && kills > 0 && signal != Signal::KILL {
        // By the signal itself, where it came before anybody listens.
        runner.wait_for(LEAVES_WITHIN)?.with_code(&[0, 1, 4, 130, 143])?;
    } else {
        runner.wait()?.with_code(&[0, 1, 4, 130, 137])?;
    }
    Ok(kills)
}

fn pids(processes: Vec<(Pid, String)>) -> Vec<Pid> {
    processes.into_iter().map(|(pid, _)| pid).collect()
}

/// Each row is marked, and has one result, whole and its own.
fn is_right(case: &Case) -> Result<()> {
    let csv = fs::read_to_string(case.path("study.csv"))?;
    ensure!(csv == STUDY.replace(",N\n", ",Y\n"), "the study's CSV is not whole:\n{csv}");
    let mut found: BTreeMap<String, (PathBuf, Value)> = BTreeMap::new();
    for path in case.files("results") {
        let text = path.to_string_lossy();
        let is_ours = !case.strangers.has(&path) && !text.contains("/incomplete/");
        if !is_ours || !text.ends_with(".json") {
            continue;
        }
        let content = json(&path)?;
        if path.ends_with("record.json") {
            let experiment = path.ancestors().nth(2).and_then(|folder| folder.file_name());
            let experiment = experiment.context("a record without a row")?.to_string_lossy();
            let before =
                found.insert(experiment.clone().into_owned(), (path.with_file_name(""), content));
            ensure!(before.is_none(), "doubled: row {experiment}");
        }
    }
    for (experiment, format, bytes) in ROWS {
        let (run_dir, record) =
            found.remove(experiment).with_context(|| format!("lost: row {experiment}"))?;
        let dataset = &record["plan"]["dataset"];
        let own = dataset["format"] == format && dataset["record_bytes"] == bytes;
        ensure!(own, "row {experiment} has read another dataset: {dataset}");
        epochs_of_whole(&run_dir, &record)?;
    }
    ensure!(found.is_empty(), "of no row: {:?}", found.keys());
    Ok(())
}
