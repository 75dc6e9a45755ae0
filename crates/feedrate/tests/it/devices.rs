//! Steps on GPUs, with a stub of NVIDIA's driver (`cuda_stub.c`).

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::process::Command;

const CUDA: [&str; 6] = [
    "run",
    "workload.yaml",
    "--json",
    "compute=cuda",
    "reader.batch_size=1",
    "train.computation_time=0.02",
];

/// A test folder that contains the stub.
fn with_driver() -> Test {
    let test = Test::with_workload(TINY);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cuda_stub.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-pthread", "-o"]).arg(test.path("libcuda.so.1"));
    assert!(compiler.arg(source).status().unwrap().success(), "install a C compiler");
    test
}

fn run(test: &Test, arguments: &[&str], stub: &[(&str, &str)]) -> Answer {
    let mut command = test.command(arguments);
    command.env("LD_LIBRARY_PATH", test.path(".")).env("STUB_LOG", test.path("log"));
    Answer::from_output(&command.envs(stub.iter().copied()).output().unwrap())
}

#[test]
fn accelerators_share_gpus_round_robin_and_each_step_copies_its_batch() {
    let test = with_driver();
    let answer = run(&test, &[&CUDA[..], &["-n", "3"]].concat(), &[("STUB_GPUS", "2")]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let log = std::fs::read_to_string(test.path("log")).unwrap();
    let mut gpus: Vec<Vec<u64>> = log
        .lines()
        .map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect())
        .collect();
    gpus.sort();
    // Two epochs of two steps, on one GPU of two accelerators and on the other of one. 15 copies before them are timed.
    let copies = [2 * 4 + 15, 4 + 15];
    assert_eq!(gpus, [0, 1].map(|gpu| [gpu as u64, copies[gpu], 4096 * copies[gpu], copies[gpu]]));
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&summary["steps"], &summary["epochs"]), (&2.into(), &2.into()));
    assert!(summary["time"]["compute_s"].as_f64().unwrap() > 0.0);
    let doubts = summary["doubts"].as_array().unwrap();
    let shared = doubts.iter().find(|doubt| doubt["name"] == "shared_gpu").unwrap();
    let evidence = shared["evidence"].as_str().unwrap();
    assert!(evidence.contains("3 emulated accelerators shared 2 GPUs"), "{evidence}");
}

#[test]
fn training_and_evaluation_both_use_the_gpu() {
    let test = with_driver();
    let more = [
        "workflow.evaluation=true",
        "dataset.num_files_eval=2",
        "evaluation.eval_time=0.001",
        "train.epochs=1",
    ];
    let answer = run(&test, &[&CUDA[..], &more].concat(), &[("STUB_GPUS", "1")]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(summary["evaluation"]["steps"], 2);
    let log = std::fs::read_to_string(test.path("log")).unwrap();
    let kernels = log.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(kernels.max(), Some(15 + 8 + 15 + 2), "{log}");
    assert!(!summary["doubts"].to_string().contains("shared_gpu"));
}

#[test]
fn without_a_usable_gpu_nothing_is_generated_or_run() {
    let test = with_driver();
    for (stub, words) in [
        (&[("STUB_GPUS", "0")][..], "shows no GPU"),
        (&[("STUB_INIT", "100")], "cuInit failed with 100: no CUDA-capable device is detected"),
    ] {
        run(&test, &CUDA, stub).refuses(2, &["compute:", "`cuda` cannot be used", words, "hint:"]);
    }
    test.write("libcuda.so.1", "");
    run(&test, &CUDA, &[]).refuses(2, &["libcuda.so.1", "hint:", "leave `compute` out"]);
    assert!(test.data_files("").is_empty() && !test.path("results").exists());
    // Generating data needs no GPU.
    assert_eq!(run(&test, &["generate", "workload.yaml", "compute=cuda"], &[]).code, 0);
}

#[test]
fn a_gpu_that_fails_ends_the_run_with_its_reason() {
    let test = with_driver();
    let stub = [("STUB_GPUS", "1"), ("STUB_FAILS", "1")];
    let words = ["compute `cuda`", "cuStreamQuery failed with 700", "hint:"];
    run(&test, &CUDA, &stub).refuses(1, &words);
}

#[test]
fn computes_are_chosen_by_name() {
    let test = Test::with_workload(TINY);
    let summary = test.run_json(&["compute=none", "train.computation_time=100"]);
    assert_eq!(summary["time"]["compute_s"], 0.0);
    test.run_json(&["compute=sleep", "train.computation_time=0.001"]);
    for (key, words) in
        [("compute=abacus", "no compute `abacus`"), ("compute=cuda", "take no time")]
    {
        test.feedrate(&["run", "workload.yaml", key]).refuses(2, &[words, "hint:"]);
    }
}
