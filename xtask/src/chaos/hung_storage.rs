//! A read that never comes back: who is told to stop leaves.

use super::Class;
use super::case::{Case, make_pipe, until, workload};
use super::child::LEAVES_WITHIN;
use anyhow::{Context, Result};
use rustix::process::Signal;
use std::fs::{self, File};

pub(super) static CLASS: Class = Class {
    name: "hung_storage",
    what: "reads that hang, told to stop",
    cases: 32,
    short: 4,
    at_once: 4,
    run,
};

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\n";

/// Those of `feedrate` that read data; beside them there is `dlio_benchmark`.
const COMMANDS: [&[&str]; 4] = [
    &["run", "workload.yaml"],
    &["run", "workload.yaml", "--warm"],
    &["generate", "--verify", "workload.yaml"],
    &["study", "run", "study.csv"],
];

/// One file is a pipe, which nobody has opened to write, or from which nothing comes.
fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 4096, 4, "  read_threads: 2\ntrain:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    case.write("study.csv", STUDY)?;
    for folder in ["", "data", "results"] {
        case.plant(folder)?;
    }
    let ours = COMMANDS.get(case.random.below(COMMANDS.len() + 1));
    let maker = match ours {
        Some(_) => case.start_feedrate(&["generate", "workload.yaml"])?,
        None => case.start_dlio_maker("made")?,
    };
    maker.wait()?.with_code(&[0])?;
    let data = case.files("data").into_iter().find(|path| path.ends_with("img_5_of_8.npz"));
    let pipe = data.context("there is no data")?;
    fs::remove_file(&pipe)?;
    make_pipe(&pipe)?;
    let writer = if case.random.chance(50) {
        Some(File::options().read(true).write(true).open(&pipe)?)
    } else {
        None
    };
    let mut hangs = match ours {
        Some(words) => case.start_feedrate(words)?,
        None => case.start_dlio(&[])?,
    };
    until("an open of the pipe", || hangs.is_over() || hangs.is_at(&pipe))?;
    case.pass(500);
    // One that refuses a pipe among its data has ended; where its open succeeds it may be about to.
    let codes: &[i32] = if hangs.is_over() {
        &[1, 2]
    } else if writer.is_some() {
        &[1, 2, 130]
    } else {
        &[130]
    };
    let signal = case.random.pick(&[Signal::INT, Signal::TERM]);
    hangs.signal(signal);
    if case.random.chance(50) {
        case.pass(1000);
        hangs.signal(signal);
    }
    hangs.wait_for(LEAVES_WITHIN)?.with_code(codes)?;
    drop(writer);
    Ok(1)
}
