//! Concurrent generation of one dataset by several processes, one of which is killed. In the end all files must be correct.

use super::Class;
use super::case::{Case, workload};
use super::child::RunningProgram;
use anyhow::{Context, Result};
use rustix::process::Signal;

pub(super) static CLASS: Class = Class {
    name: "race_generation",
    noun: "races of generating processes",
    cases: 60,
    short_cases: 6,
    parallel_cases: 1,
    run,
};

const STUDY: &str = "model,processes,overrides,run\nworkload.yaml,1,dataset.format=FORMAT,N\n";

/// Starts several processes that generate the same dataset, kills one process, and verifies the files.
fn run(case: &mut Case) -> Result<u32> {
    let format = case.random.pick(&["npz", "raw", "hdf5", "tfrecord", "npy"]);
    let format_setting = format!("dataset.format={format}");
    let workload = workload(12, 2_000_000, 4, "train:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    let dlio_workload = workload.replace("format: npz", &format!("format: {format}"));
    case.write("conf/workload/tiny.yaml", dlio_workload)?;
    for folder in ["", "data", "results"] {
        case.create_user_files(folder)?;
    }
    let is_dlio = case.random.chance(25);
    let count = 2 + case.random.below(2);
    let command_number = case.random.below(4);
    let mut processes = Vec::new();
    for number in 0..count {
        processes.push(if is_dlio {
            case.start_dlio_generation(&format!("generated/{number}"))?
        } else {
            start_process(case, (command_number + number) % 4, number, &format_setting)?
        });
        case.sleep_up_to(30);
    }
    case.sleep_up_to(120);
    let target = case.random.below(count);
    let is_killed = case.random.chance(75) && !processes[target].has_ended();
    if is_killed {
        processes[target].signal(Signal::KILL);
    }
    for (i, process) in processes.into_iter().enumerate() {
        let code = if is_killed && i == target { 137 } else { 0 };
        process.wait()?.with_code(&[code, 0])?;
    }
    if is_dlio {
        case.start_dlio_generation("generated/last")?
            .wait()?
            .with_code(&[0])
            .context("a later generation")?;
        case.start_dlio(&["++hydra.run.dir=trained"])?.wait()?.with_code(&[0])?;
        let verify = ["generate", "--verify", "conf/workload/tiny.yaml", "--data", "data"];
        case.feedrate(&verify)?.with_code(&[0]).context("torn")?;
    } else {
        case.feedrate(&["generate", "workload.yaml", &format_setting])?
            .with_code(&[0])
            .context("a later generation")?;
        case.feedrate(&["generate", "--verify", "workload.yaml", &format_setting])?
            .with_code(&[0])
            .context("torn")?;
    }
    Ok(1)
}

/// Starts a process that generates the dataset: `feedrate study run` for `command_number` 2, `feedrate run` for 3, else `feedrate generate`.
fn start_process(
    case: &Case,
    command_number: usize,
    number: usize,
    format_setting: &str,
) -> Result<RunningProgram> {
    if command_number == 2 {
        let study = format!("{number}.csv");
        case.write(&study, STUDY.replace("dataset.format=FORMAT", format_setting))?;
        let results = format!("results/{number}");
        return case.start_feedrate(&["study", "run", &study, "--results", &results]);
    }
    let command = if command_number == 3 { "run" } else { "generate" };
    case.start_feedrate(&[command, "workload.yaml", format_setting])
}
