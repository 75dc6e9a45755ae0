//! The content of checkpoint files, and the files that a killed run leaves.

use crate::harness::{TINY, Test, venv_python, wait_until};
use feedrate_run::checkpoint;
use feedrate_run::clock::Clock;
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::CheckpointPlan;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

const LAYERS: [&str; 6] = [
    "workflow.checkpoint=true",
    "model.num_layers=3",
    "model.layer_parameters=[40000,70]",
    "model.optimization_groups=[10000]",
    "model.parallelism.zero_stage=3",
    "reader.batch_size=1",
];

/// The folders of checkpoints, with their epochs and steps.
fn folders(test: &Test) -> Vec<(PathBuf, u32, u64)> {
    let Ok(folders) = std::fs::read_dir(test.path("checkpoints")) else { return Vec::new() };
    let numbered = folders.filter_map(|folder| {
        let path = folder.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let numbers = name.strip_prefix("global_epoch")?.split_once("_step").unwrap();
        Some((path, numbers.0.parse().unwrap(), numbers.1.parse().unwrap()))
    });
    numbered.collect()
}

fn plan_of(test: &Test, arguments: &[&str]) -> CheckpointPlan {
    let answer = test.feedrate(&[&["plan", "workload.yaml", "--json"][..], arguments].concat());
    let plan: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let plan: CheckpointPlan = serde_json::from_value(plan["checkpoint"].clone()).unwrap();
    CheckpointPlan { folder: test.path("checkpoints").to_string_lossy().into_owned(), ..plan }
}

#[test]
fn safetensors_loads_the_written_checkpoints() {
    for (name, dtype) in
        [("fp16", "F16"), ("bf16", "BF16"), ("fp32", "F32"), ("fp64", "F64"), ("uint8", "U8")]
    {
        let test = Test::with_workload(TINY);
        let datatype = format!("model.model_datatype={name}");
        test.run_json(&[
            "workflow.checkpoint=true",
            "checkpoint.format=safetensors",
            "model.type=transformer",
            "model.num_layers=2",
            "model.transformer.hidden_size=64",
            "model.transformer.ffn_hidden_size=128",
            "model.transformer.vocab_size=1000",
            "model.transformer.num_attention_heads=8",
            "model.transformer.num_kv_heads=2",
            "train.epochs=1",
            &datatype,
        ]);
        let tensors = test.python(&venv_python(), "load_safetensors.py", ["checkpoints"]);
        let tensors: serde_json::Value = serde_json::from_slice(&tensors).unwrap();
        let layers = &tensors["zero_pp_rank_0_mp_rank_0_model_states.safetensors"];
        assert_eq!(layers["0/0"], serde_json::json!([dtype, [64_000]]));
        assert_eq!(layers["2/5"], serde_json::json!([dtype, [64 * 128]]));
        assert_eq!(layers["4/0"], serde_json::json!([dtype, [64]]));
        let optimizer = &tensors["zero_pp_rank_0_mp_rank_0_optim_states.safetensors"];
        assert_eq!(optimizer["1"], serde_json::json!(["F32", [320]]));
    }
}

/// The sizes of L2HMC.
#[test]
fn checkpoint_files_have_the_configured_sizes() {
    let test = Test::with_workload(TINY);
    let sizes = "checkpoint.file_sizes=[1024,7340032,33554432,5120,4096]";
    test.run_json(&["workflow.checkpoint=true", "train.epochs=1", sizes]);
    let (folder, ..) = folders(&test).remove(0);
    for (i, size) in [1024, 7_340_032, 33_554_432, 5120, 4096].into_iter().enumerate() {
        let file = folder.join(format!("file_{i}-0.raw"));
        assert_eq!(file.metadata().unwrap().len(), size);
    }
    for size in ["0", "67108865"] {
        let sizes = format!("checkpoint.file_sizes=[{size}]");
        let answer = test.feedrate(&["plan", "workload.yaml", "workflow.checkpoint=true", &sizes]);
        answer.refuses(2, &["checkpoint.file_sizes", size, "hint:"]);
    }
}

#[test]
fn training_goes_on_while_a_checkpoint_is_written() {
    let test = Test::with_workload(TINY);
    let steps = ["checkpoint.steps_between_checkpoints=3", "checkpoint.asynchronous=true"];
    let arguments = [&LAYERS[..], &steps].concat();
    let json = test.run_json(&arguments);
    let record = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
    let record = std::fs::read(record).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let plan = plan_of(&test, &arguments);
    let mut last_end_ns = 0;
    for (epoch, number) in record["epochs"].as_array().unwrap().iter().zip(1..) {
        let checkpoints = epoch["checkpoints"].as_array().unwrap();
        assert_eq!(checkpoints.len(), 2);
        for (checkpoint, step) in checkpoints.iter().zip([3, 6]) {
            let ns = |key: &str| checkpoint[key].as_u64().unwrap();
            assert_eq!(ns("after_step"), step);
            assert!(
                last_end_ns <= ns("start_ns"),
                "a checkpoint starts after the end of the previous one"
            );
            assert!(ns("stall_ns") > 0);
            last_end_ns = ns("end_ns");
            checkpoint::load(
                &plan,
                Clock::new(),
                number,
                step,
                &Ranks::single_process(1),
                &Signals::default(),
            )
            .unwrap();
        }
    }
    assert_eq!(folders(&test).len(), 4);
}

#[test]
fn the_last_checkpoints_of_a_run_are_kept_and_files_of_others_are_not_touched() {
    for mode in ["checkpoint.asynchronous=true", "checkpoint.asynchronous=false"] {
        let test = Test::with_workload(TINY);
        for (folder, file) in [("epoch1_step1", "theirs"), ("epoch9_step9", "model_states-0.pt")] {
            let folder = format!("checkpoints/global_{folder}");
            std::fs::create_dir_all(test.path(&folder)).unwrap();
            test.write(&format!("{folder}/{file}"), "not ours");
        }
        let steps = ["checkpoint.steps_between_checkpoints=1", "checkpoint.keep_last=2", mode];
        let arguments = [&LAYERS[..], &steps].concat();
        test.run_json(&arguments);
        let mut remaining: Vec<_> =
            folders(&test).into_iter().map(|(_, epoch, step)| (epoch, step)).collect();
        remaining.sort_unstable();
        assert_eq!(remaining, [(1, 1), (2, 7), (2, 8), (9, 9)]);
        let files = std::fs::read_dir(test.path("checkpoints/global_epoch1_step1")).unwrap();
        assert_eq!(files.count(), 1, "only the user's file");
        assert!(test.path("checkpoints/global_epoch9_step9/model_states-0.pt").exists());
        let plan = plan_of(&test, &arguments);
        for step in [7, 8] {
            checkpoint::load(
                &plan,
                Clock::new(),
                2,
                step,
                &Ranks::single_process(1),
                &Signals::default(),
            )
            .unwrap();
        }
    }
}

/// Fifty runs are killed, each in the folder that the previous run left, at varying times after the first new checkpoint folder.
#[test]
fn a_killed_run_leaves_no_checkpoint_that_only_looks_complete() {
    let test = Test::with_workload(TINY);
    let steps = ["-n", "2", "checkpoint.steps_between_checkpoints=1", "train.epochs=1000"];
    let arguments = [&LAYERS[..], &steps].concat();
    test.feedrate(&["generate", "workload.yaml"]);
    let plan = plan_of(&test, &arguments);
    let (mut complete, mut torn) = (0, 0);
    for round in 0..50 {
        for (folder, ..) in folders(&test).into_iter().step_by(2) {
            std::fs::remove_dir_all(folder).unwrap();
        }
        let before = folders(&test).len();
        let mut run = test
            .command(&[&["run", "workload.yaml"][..], &arguments].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("a checkpoint", || {
            folders(&test).len() != before || run.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_micros(round * 7919 % 40_000));
        run.kill().unwrap();
        run.wait().unwrap();
        for (folder, epoch, step) in folders(&test) {
            let name = folder.file_name().unwrap().to_string_lossy();
            let manifest = folder.with_file_name(format!(".{name}.manifest.json"));
            // Until all files are written, the manifest has lengths that are `null`.
            let looks_complete =
                std::fs::read_to_string(manifest).is_ok_and(|text| !text.contains("null"));
            let loaded = checkpoint::load(
                &plan,
                Clock::new(),
                epoch,
                step,
                &Ranks::single_process(1),
                &Signals::default(),
            );
            match loaded {
                Ok(loaded) => {
                    assert!(looks_complete);
                    assert!(
                        loaded.ranks.iter().map(|rank| rank.bytes).sum::<u64>() >= plan.total_bytes
                    );
                    complete += 1;
                }
                Err(error) => {
                    assert!(!looks_complete, "round {round}: {error}");
                    torn += 1;
                }
            }
        }
    }
    assert!(complete > 0 && torn > 0, "{complete} complete, {torn} torn");
}
