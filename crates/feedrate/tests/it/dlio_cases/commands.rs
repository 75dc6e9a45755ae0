//! The commands of DLIO's workflow `ci.yml`, with smaller samples.

use super::{Case, CaseResult, check};

/// Number of commands in the workflow. The others name `resnet50_tf` and `llama_8b_zero3`, which feedrate does not bundle.
pub(super) const ALL: usize = 17;

const GENERATE: &str = "++workload.workflow.generate_data=True";
const NO_GENERATION: &str = "++workload.workflow.generate_data=False";
const TRAIN: &str = "++workload.workflow.train=True";
const NO_TRAIN: &str = "++workload.workflow.train=False";
const ONE_EPOCH: &str = "++workload.train.epochs=1";
const TIMES: [&str; 2] =
    ["++workload.train.computation_time=0.05", "++workload.evaluation.eval_time=0.01"];
/// Keys of DLIO 2.0.0.
const SMALL: [&str; 2] =
    ["++workload.dataset.record_length=4096", "++workload.dataset.record_length_stdev=0"];

/// Commands that share a folder, one after another.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![torch_npz(), tensorflow_npz()];
    for (name, settings) in [
        ("unet3d", &["++workload.dataset.num_files_train=42"][..]),
        ("resnet50", &["++workload.dataset.num_files_train=8", "++workload.reader.read_threads=1"]),
        ("cosmoflow", &["++workload.dataset.num_files_train=16"]),
    ] {
        let command = |gpu: &str, more: &[&str]| {
            let workload = format!("workload={name}_{gpu}");
            words(&[&[&*workload, GENERATE], settings, more, &SMALL].concat())
        };
        let synthetic = command("h100", &["++workload.dataset.format=synthetic"]);
        cases.push(case(name, vec![command("a100", &[]), command("h100", &[]), synthetic]));
    }
    cases
}

fn torch_npz() -> Case {
    let files = ["++workload.dataset.num_files_train=8", "++workload.dataset.num_files_eval=8"];
    let command = |more: &[&str]| {
        words(&[&["workload=unet3d_a100"], &TIMES[..], &files, &SMALL, more].concat())
    };
    let in_process = "++workload.reader.read_threads=0";
    let train = [ONE_EPOCH, TRAIN, NO_GENERATION, in_process, "++workload.reader.odirect=True"];
    let generation = command(&[NO_TRAIN, GENERATE, "++workload.reader.read_threads=2"]);
    case("npz by torch", vec![generation, command(&train[..4]), command(&train)])
}

fn tensorflow_npz() -> Case {
    let settings = [
        "workload=unet3d_a100",
        "++workload.framework=tensorflow",
        "++workload.data_reader.data_loader=tensorflow",
        "++workload.train.epochs=2",
        "++workload.dataset.num_files_train=16",
        "++workload.dataset.num_files_eval=16",
        "++workload.reader.read_threads=2",
    ];
    let command = |more: &[&str]| words(&[&settings[..], &TIMES, &SMALL, more].concat());
    let generation = command(&[NO_TRAIN, GENERATE]);
    case("npz by tensorflow", vec![generation, command(&[TRAIN, NO_GENERATION])])
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn case(name: &str, commands: Vec<Vec<String>>) -> Case {
    Case { commands, ..Case::new(name, &[], CaseResult::check_training) }
}

#[test]
fn two_ranks_run_the_commands_of_dlios_workflow() {
    check(&cases(), 2);
}
