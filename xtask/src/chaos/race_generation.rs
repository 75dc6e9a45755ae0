//! Makers of one dataset at once, one of them killed: in the end each file is what was asked for.

use super::Class;
use super::case::{Case, workload};
use super::child::Running;
use anyhow::{Context, Result};
use rustix::process::Signal;

pub(super) static CLASS: Class = Class {
    name: "race_generation",
    what: "races of makers of a dataset",
    cases: 60,
    short: 6,
    at_once: 1,
    run,
};

const STUDY: &str = "model,processes,overrides,run\nworkload.yaml,1,dataset.format=FORMAT,N\n";

/// Makers that are started in turn: two of a kind, and others that share the data with them.
fn run(case: &mut Case) -> Result<u32> {
    let format = case.random.pick(&["npz", "raw", "hdf5", "tfrecord", "npy"]);
    let chosen = format!("dataset.format={format}");
    let workload = workload(12, 2_000_000, 4, "train:\n  epochs: 1\n");
    case.write("workload.yaml", &workload)?;
    let chosen_yaml = workload.replace("format: npz", &format!("format: {format}"));
    case.write("conf/workload/tiny.yaml", chosen_yaml)?;
    for folder in ["", "data", "results"] {
        case.plant(folder)?;
    }
    let is_dlio = case.random.chance(25);
    let count = 2 + case.random.below(2);
    let kind = case.random.below(4);
    let mut makers = Vec::new();
    for number in 0..count {
        makers.push(if is_dlio {
            case.start_dlio_maker(&format!("made/{number}"))?
        } else {
            maker(case, (kind + number) % 4, number, &chosen)?
        });
        case.pass(30);
    }
    case.pass(120);
    let hit = case.random.below(count);
    let dies = case.random.chance(75) && !makers[hit].is_over();
    if dies {
        makers[hit].signal(Signal::KILL);
    }
    for (i, maker) in makers.into_iter().enumerate() {
        let code = if dies && i == hit { 137 } else { 0 };
        maker.wait()?.with_code(&[code, 0])?;
    }
    if is_dlio {
        case.start_dlio_maker("made/last")?
            .wait()?
            .with_code(&[0])
            .context("a maker afterwards")?;
        case.start_dlio(&["++hydra.run.dir=trained"])?.wait()?.with_code(&[0])?;
        let verify = ["generate", "--verify", "conf/workload/tiny.yaml", "--data", "data"];
        case.feedrate(&verify)?.with_code(&[0]).context("torn")?;
    } else {
        case.feedrate(&["generate", "workload.yaml", &chosen])?
            .with_code(&[0])
            .context("a maker afterwards")?;
        case.feedrate(&["generate", "--verify", "workload.yaml", &chosen])?
            .with_code(&[0])
            .context("torn")?;
    }
    Ok(1)
}

fn maker(case: &Case, kind: usize, number: usize, chosen: &str) -> Result<Running> {
    if kind == 2 {
        let study = format!("{number}.csv");
        case.write(&study, STUDY.replace("dataset.format=FORMAT", chosen))?;
        let results = format!("results/{number}");
        return case.start_feedrate(&["study", "run", &study, "--results", &results]);
    }
    let command = if kind == 3 { "run" } else { "generate" };
    case.start_feedrate(&[command, "workload.yaml", chosen])
}
