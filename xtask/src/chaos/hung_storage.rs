//! A read that never comes back: who is told to stop leaves.

use super::Class;
use super::case::{Case, until, workload};
use super::child::LEAVES_WITHIN;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs::{self, File};
use std::process::Command;

pub(super) static CLASS: Class = Class {
    name: "hung_storage",
    what: "reads that hang, told to stop",
    cases: 32,
    short: 4,
    at_once: 4,
    run,
};

const STUDY: &str = "model,processes,run\nworkload.yaml,1,N\n";

/// One file is a pipe, which nobody has opened to write, or from which nothing comes.
fn run(case: &mut Case) -> Result<u32> {
    let workload = workload(8, 4096, 4, "  read_threads: 2\ntrain:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    case.write("conf/workload/tiny.yaml", workload)?;
    case.write("study.csv", STUDY)?;
    for folder in ["", "data", "results"] {
        case.plant(folder)?;
    }
    let dlio = case.program("dlio_benchmark").display().to_string();
    let ours = case.program("feedrate").display().to_string();
    let kind = case.random.below(5);
    let hydra = [dlio.as_str(), "--config-dir", "conf", "workload=tiny"];
    let words: Vec<&str> = match kind {
        0 => vec![&ours, "run", "workload.yaml"],
        1 => vec![&ours, "run", "workload.yaml", "--warm"],
        2 => vec![&ours, "verify", "workload.yaml"],
        3 => vec![&ours, "study", "run", "study.csv", "--quiet-wait", "0"],
        _ => hydra.to_vec(),
    };
    if kind == 4 {
        let make = [
            "++workload.workflow.generate_data=True",
            "++workload.workflow.train=False",
            "++hydra.run.dir=made",
        ];
        case.start(&dlio, &[&hydra[1..], &make].concat())?.wait()?.with_code(&[0])?;
    } else {
        case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    }
    let data = case.files("data").into_iter().find(|path| path.ends_with("img_5_of_8.npz"));
    let pipe = data.context("there is no data")?;
    fs::remove_file(&pipe)?;
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe");
    let writer = if case.random.chance(50) {
        Some(File::options().read(true).write(true).open(&pipe)?)
    } else {
        None
    };
    let mut hangs = case.start(words[0], &words[1..])?;
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
