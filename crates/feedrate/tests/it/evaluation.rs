//! Evaluations between epochs: their files, batches and compute times, and their entries in DLIO's result files.

use crate::harness::{TINY, Test};
use serde_json::Value;

const EVALUATION: [&str; 8] = [
    "reader.requests=large",
    "workflow.evaluation=true",
    "dataset.num_files_eval=6",
    "dataset.num_subfolders_eval=2",
    "reader.batch_size_eval=1",
    "evaluation.eval_time=0.004",
    "evaluation.eval_after_epoch=2",
    "evaluation.epochs_between_evals=2",
];

fn result(test: &Test, summary: &Value, name: &str) -> Value {
    let path = test.path(summary["run_dir"].as_str().unwrap()).join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn evaluations_read_their_own_files_in_their_own_batches() {
    let test = Test::with_workload(TINY);
    let more = [&EVALUATION[..], &["-n", "2", "train.epochs=5", "--verify"]].concat();
    let summary = test.run_json(&more);
    let evaluation = &summary["evaluation"];
    assert_eq!((&evaluation["evaluations"], &evaluation["steps"]), (&2.into(), &3.into()));
    let after: Vec<&Value> = evaluation["per_evaluation"]
        .as_array()
        .unwrap()
        .iter()
        .map(|evaluation| &evaluation["epoch"])
        .collect();
    assert_eq!(after, [2, 4]);
    let read = evaluation["bytes"]["logical"].as_u64().unwrap();
    let files = test.data_files("_of_6.npz");
    assert_eq!(files.len(), 6);
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < read && read <= 2 * bytes, "{read} of twice {bytes}");
    let compute_s = evaluation["time"]["compute_s"].as_f64().unwrap();
    assert!(2.0 * 3.0 * 0.004 <= compute_s, "{compute_s}");
}

#[test]
fn dlios_result_files_contain_evaluations() {
    let test = Test::with_workload(TINY);
    let more = [&EVALUATION[..], &["-n", "2", "train.epochs=2"]].concat();
    let summary = test.run_json(&more);
    let metric = &result(&test, &summary, "summary.json")["metric"];
    assert_eq!(metric["eval_au_percentage"].as_array().unwrap().len(), 1);
    let au = metric["eval_au_mean_percentage"].as_f64().unwrap();
    assert_eq!(summary["evaluation"]["au"]["windowed_percent"].as_f64().unwrap(), au);
    assert!(metric["eval_throughput_mean_samples_per_second"].as_f64().unwrap() > 0.0);
    let output = result(&test, &summary, "1_output.json");
    for key in ["load", "proc", "compute"] {
        assert_eq!(output["2"][key]["eval"].as_array().unwrap().len(), 3, "{key}");
        assert!(output["1"][key].get("eval").is_none());
    }
    let stats = result(&test, &summary, "0_per_epoch_stats.json");
    assert!(stats["2"]["eval"]["duration"].is_string() && stats["1"].get("eval").is_none());
    let folder = test.path(summary["run_dir"].as_str().unwrap());
    let log = std::fs::read_to_string(folder.join("dlio.log")).unwrap();
    for line in ["Starting eval - 3 steps expected", "Epoch 2 [Eval] Accelerator Utilization"] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn an_evaluation_without_files_is_skipped_with_a_warning() {
    let test = Test::with_workload(TINY);
    let answer = test.feedrate(&["run", "workload.yaml", "workflow.evaluation=true"]);
    answer.warns(&["workflow.evaluation", "no evaluation files", "dataset.num_files_eval"]);
}

#[test]
fn evaluation_batches_larger_than_the_data_are_refused() {
    let test = Test::with_workload(TINY);
    let more = [&["run", "workload.yaml"], &EVALUATION[..], &["reader.batch_size_eval=7"]].concat();
    test.feedrate(&more).refuses(2, &["reader.batch_size_eval", "needs 7, and the files have 6"]);
}
