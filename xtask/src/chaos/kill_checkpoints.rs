//! Writes of checkpoints that are killed: what looks whole is whole, what is not is refused, and the next run goes on.

use super::Class;
use super::case::{Case, is_whole_checkpoint, json, manifest_beside, until};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

pub(super) static CLASS: Class = Class {
    name: "kill_checkpoints",
    what: "kills of checkpoint writes",
    cases: 40,
    short: 4,
    at_once: 2,
    run,
};

const KILLS: u32 = 2;

const WORKLOAD: &str = "\
model:
  name: tiny
  num_layers: 3
  layer_parameters: [200000, 70]
  optimization_groups: [100000]
  parallelism:
    zero_stage: 3
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 16
  record_length_bytes: 900
reader:
  data_loader: pytorch
  batch_size: 1
checkpoint:
  steps_between_checkpoints: 1
";

const ALONE: [&str; 2] = ["workflow.train=false", "workflow.checkpoint=true"];

fn run(case: &mut Case) -> Result<u32> {
    case.write("workload.yaml", WORKLOAD)?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    for folder in
        ["", "checkpoints", "checkpoints/global_epoch1_step2", "checkpoints/global_epoch7_step7"]
    {
        case.plant(folder)?;
    }
    let format = case.random.pick(&["pt", "safetensors", "raw"]);
    let format = format!("checkpoint.format={format}");
    let first = ["run", "workload.yaml", "-n", "2", &format];
    let trains = case.random.chance(50);
    let how: Vec<&str> = if trains {
        let more = case.random.pick(&[
            "checkpoint.keep_last=2",
            "checkpoint.asynchronous=true",
            "checkpoint.fsync=true",
        ]);
        vec!["workflow.checkpoint=true", "train.epochs=1000", more]
    } else {
        [
            &ALONE[..],
            &["checkpoint.num_checkpoints_write=1000", "checkpoint.num_checkpoints_read=0"],
        ]
        .concat()
    };
    for _ in 0..KILLS {
        let before = case.files("checkpoints").len();
        let mut writer = case.start_feedrate(&[&first[..], &how].concat())?;
        until("a checkpoint", || case.files("checkpoints").len() > before || writer.is_over())?;
        case.pass(80);
        writer.signal(case.random.pick(&[Signal::KILL, Signal::KILL, Signal::KILL, Signal::TERM]));
        writer.wait()?.with_code(&[130, 137])?;
        are_as_they_look(case)?;
    }
    if !trains {
        reads_what_is_whole(case, &first)?;
    }
    let again = if trains { "train.epochs=1" } else { "checkpoint.num_checkpoints_write=2" };
    case.feedrate(&[&first[..], &how, &[again]].concat())?
        .with_code(&[0])
        .context("a run that goes on")?;
    are_as_they_look(case)?;
    Ok(KILLS)
}

/// Every file of a checkpoint has the length and checksum of its manifest, wherever that says that it is whole.
fn are_as_they_look(case: &Case) -> Result<()> {
    for folder in fs::read_dir(case.path("checkpoints"))? {
        let folder = folder?.path();
        if is_whole_checkpoint(&folder) {
            is_whole(&folder).with_context(|| folder.display().to_string())?;
        }
    }
    Ok(())
}

fn is_whole(folder: &Path) -> Result<()> {
    let told = json(&manifest_beside(folder))?;
    for (name, file) in told["files"].as_object().context("a manifest names files")? {
        let content = fs::read(folder.join(name)).with_context(|| format!("lost: {name}"))?;
        let same = file["bytes"] == content.len() && file["crc32"] == crc32fast::hash(&content);
        ensure!(same, "torn: {name}");
    }
    Ok(())
}

/// As many as are whole are read, and the first that is not is refused.
fn reads_what_is_whole(case: &Case, first: &[&str]) -> Result<()> {
    let folders = (1..).map(|step| case.path(&format!("checkpoints/global_epoch1_step{step}")));
    let whole = folders.take_while(|folder| is_whole_checkpoint(folder)).count();
    for (reads, code) in [(whole, 0), (whole + 1, 1)] {
        if reads == 0 {
            continue;
        }
        let reads = format!("checkpoint.num_checkpoints_read={reads}");
        let read = ["checkpoint.num_checkpoints_write=0", &reads];
        case.feedrate(&[first, &ALONE, &read].concat())?.with_code(&[code])?;
    }
    Ok(())
}
