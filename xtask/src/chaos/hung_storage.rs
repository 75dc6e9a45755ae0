//! Reads that never return: programs must end after a signal to stop.

use super::Class;
use super::case::{Case, make_pipe, wait_until, workload};
use super::child::STOP_TIMEOUT;
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::fs::{self, File};

pub(super) static CLASS: Class = Class {
    name: "hung_storage",
    noun: "signals during hanging reads",
    cases: 32,
    short_cases: 4,
    parallel_cases: 4,
    run,
};

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\n";

/// Commands of `feedrate` that read data. Cases also test `dlio_benchmark`.
const COMMANDS: [&[&str]; 4] = [
    &["run", "workload.yaml"],
    &["run", "workload.yaml", "--warm"],
    &["generate", "--verify", "workload.yaml"],
    &["study", "run", "study.csv"],
];

/// Replaces one data file by a pipe. Either no process opens the pipe for writing, or the writer sends nothing.
fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 4096, 4, "  read_threads: 2\ntrain:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    case.write("study.csv", STUDY)?;
    for folder in ["", "data", "results"] {
        case.create_user_files(folder)?;
    }
    let command = COMMANDS.get(case.random.below(COMMANDS.len() + 1));
    let generation = match command {
        Some(_) => case.start_feedrate(&["generate", "workload.yaml"])?,
        None => case.start_dlio_generation("generated")?,
    };
    generation.wait()?.with_code(&[0])?;
    let data = case.files("data").into_iter().find(|path| path.ends_with("img_5_of_8.npz"));
    let pipe = data.context("there is no data")?;
    fs::remove_file(&pipe)?;
    make_pipe(&pipe)?;
    let writer = if case.random.chance(50) {
        Some(File::options().read(true).write(true).open(&pipe)?)
    } else {
        None
    };
    let mut program = match command {
        Some(words) => case.start_feedrate(words)?,
        None => case.start_dlio(&[])?,
    };
    wait_until("an open of the pipe", || program.has_ended() || program.has_reached_pipe(&pipe))?;
    case.sleep_up_to(500);
    // The program may refuse the pipe and end by itself: before the signal, or after it if the open succeeded.
    let codes: &[i32] = if program.has_ended() {
        &[1, 2]
    } else if writer.is_some() {
        &[1, 2, 130]
    } else {
        &[130]
    };
    let signal = case.random.pick(&[Signal::INT, Signal::TERM]);
    program.signal(signal);
    if case.random.chance(50) {
        case.sleep_up_to(1000);
        program.signal(signal);
    }
    program.wait_for(STOP_TIMEOUT)?.with_code(codes)?;
    drop(writer);
    Ok(1)
}
