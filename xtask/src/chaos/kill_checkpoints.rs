//! Kills during checkpoint writes. Checkpoints that look complete must be complete, incomplete ones must be refused, and the next run must
//! work.

use super::Class;
use super::case::{Case, check_complete_checkpoints, is_complete_checkpoint, wait_until};
use anyhow::{Context, Result};
use rustix::process::Signal;

pub(super) static CLASS: Class = Class {
    name: "kill_checkpoints",
    noun: "kills of checkpoint writes",
    cases: 40,
    short_cases: 4,
    parallel_cases: 2,
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

/// Settings of a run without training.
const WITHOUT_TRAINING: [&str; 2] = ["workflow.train=false", "workflow.checkpoint=true"];

fn run(case: &mut Case) -> Result<u32> {
    case.write("workload.yaml", WORKLOAD)?;
    case.feedrate(&["generate", "workload.yaml"])?.with_code(&[0])?;
    for folder in
        ["", "checkpoints", "checkpoints/global_epoch1_step2", "checkpoints/global_epoch7_step7"]
    {
        case.create_user_files(folder)?;
    }
    let format = case.random.pick(&["pt", "tf", "safetensors", "raw"]);
    let format_setting = format!("checkpoint.format={format}");
    let first = ["run", "workload.yaml", "-n", "2", &format_setting];
    let trains = case.random.chance(50);
    let settings: Vec<&str> = if trains {
        let option = case.random.pick(&[
            "checkpoint.keep_last=2",
            "checkpoint.asynchronous=true",
            "checkpoint.fsync=true",
        ]);
        vec!["workflow.checkpoint=true", "train.epochs=1000", option]
    } else {
        [
            &WITHOUT_TRAINING[..],
            &["checkpoint.num_checkpoints_write=1000", "checkpoint.num_checkpoints_read=0"],
        ]
        .concat()
    };
    for _ in 0..KILLS {
        let before = case.files("checkpoints").len();
        let mut writer = case.start_feedrate(&[&first[..], &settings].concat())?;
        wait_until("a checkpoint", || {
            case.files("checkpoints").len() > before || writer.has_ended()
        })?;
        case.sleep_up_to(80);
        writer.signal(case.random.pick(&[Signal::KILL, Signal::KILL, Signal::KILL, Signal::TERM]));
        writer.wait()?.with_code(&[130, 137])?;
        check_complete_checkpoints(case, "checkpoints")?;
    }
    if !trains {
        check_reads(case, &first)?;
    }
    let shorter_run = if trains { "train.epochs=1" } else { "checkpoint.num_checkpoints_write=2" };
    case.feedrate(&[&first[..], &settings, &[shorter_run]].concat())?
        .with_code(&[0])
        .context("the next run")?;
    check_complete_checkpoints(case, "checkpoints")?;
    Ok(KILLS)
}

/// Checks that all complete checkpoints can be read, and that the first incomplete checkpoint is refused.
fn check_reads(case: &Case, first: &[&str]) -> Result<()> {
    let folders = (1..).map(|step| case.path(&format!("checkpoints/global_epoch1_step{step}")));
    let complete = folders.take_while(|folder| is_complete_checkpoint(folder)).count();
    for (reads, code) in [(complete, 0), (complete + 1, 1)] {
        if reads == 0 {
            continue;
        }
        let reads_setting = format!("checkpoint.num_checkpoints_read={reads}");
        let read = ["checkpoint.num_checkpoints_write=0", &reads_setting];
        case.feedrate(&[first, &WITHOUT_TRAINING, &read].concat())?.with_code(&[code])?;
    }
    Ok(())
}
