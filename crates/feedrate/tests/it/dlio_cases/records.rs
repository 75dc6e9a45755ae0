//! Cases that count epochs, steps, samples and checkpoints of a run. DLIO's tests count events in a trace of dftracer; these tests read
//! `record.json` instead.

use super::{Case, CaseResult, check, expect};
use serde_json::Value;

const EPOCHS: usize = 2;

/// Expected counts of each rank.
#[derive(Clone, Copy, Default)]
struct Counts {
    epochs: usize,
    evaluations: usize,
    /// Number of batches of training and evaluation.
    steps: usize,
    /// Minimum number of samples; `None` if no files are read.
    samples: Option<usize>,
    saves: usize,
    loads: usize,
}

/// Epochs or evaluations of a record.
fn list<'r>(record: &'r Value, key: &str) -> &'r [Value] {
    record[key].as_array().map_or(&[], Vec::as_slice)
}

fn steps_of(accelerator: &Value) -> usize {
    let blocks = list(accelerator, "blocks").iter();
    blocks.map(|block| list(block, "compute_ns").len()).sum()
}

fn check_counts(result: &CaseResult, wanted: Counts) -> Result<(), String> {
    result.check_success()?;
    let record = result.record()?;
    let (epochs, evaluations) = (list(&record, "epochs"), list(&record, "evaluations"));
    let trains = epochs.iter().filter(|epoch| steps_of(&epoch["accelerators"][0]) > 0);
    expect("epochs", &trains.count(), &wanted.epochs)?;
    expect("evaluations", &evaluations.len(), &wanted.evaluations)?;
    for rank in 0..result.ranks {
        let both = || epochs.iter().chain(evaluations).map(|part| &part["accelerators"][rank]);
        expect("steps", &both().map(steps_of).sum(), &wanted.steps)?;
        let samples: u64 =
            both().map(|accelerator| accelerator["io"]["samples"].as_u64().unwrap_or(0)).sum();
        if let Some(least) = wanted.samples {
            expect("has all samples", &(samples as usize >= least), &true)?;
        }
    }
    let checkpoints = epochs.iter().flat_map(|epoch| list(epoch, "checkpoints"));
    let kinds: Vec<&str> =
        checkpoints.map(|checkpoint| checkpoint["kind"].as_str().unwrap_or("save")).collect();
    let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
    expect("saves", &count("save"), &wanted.saves)?;
    expect("loads", &count("load"), &wanted.loads)
}

fn case(name: String, framework: &str, files: usize, more: &[String], wanted: Counts) -> Case {
    let common = [
        format!("++workload.framework={framework}"),
        format!("++workload.reader.data_loader={framework}"),
        "++workload.dataset.data_folder=data".into(),
        "++workload.dataset.num_subfolders_train=0".into(),
        "++workload.dataset.num_subfolders_eval=0".into(),
        format!("++workload.train.epochs={EPOCHS}"),
        format!("++workload.dataset.num_files_train={files}*RANKS"),
    ];
    let all: Vec<String> = common.into_iter().chain(more.iter().cloned()).collect();
    let check = move |result: &CaseResult| check_counts(result, wanted);
    let texts: Vec<&str> = all.iter().map(String::as_str).collect();
    Case::new(name, &texts, check)
}

fn workflow(train: bool, evaluation: bool, checkpoint: bool) -> Vec<String> {
    let named = [("train", train), ("evaluation", evaluation), ("checkpoint", checkpoint)];
    let python = |value: bool| if value { "True" } else { "False" };
    let mut all = vec![format!("++workload.workflow.generate_data={}", python(train))];
    all.extend(named.map(|(name, value)| format!("++workload.workflow.{name}={}", python(value))));
    if !evaluation {
        all.push("++workload.dataset.num_files_eval=0".into());
    }
    all
}

fn batch(size: usize) -> String {
    format!("++workload.reader.batch_size={size}")
}

/// The 61 cases of one of DLIO's files, and one of another.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for framework in ["pytorch", "tensorflow"] {
        cases.extend(training_cases(framework));
        cases.extend(reader_cases(framework));
        cases.extend(checkpoint_cases(framework));
    }
    cases.push(shuffled_case());
    assert_eq!(cases.len(), 62);
    cases
}

fn training_cases(framework: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for files in [9, 10] {
        for size in [2, 3] {
            let steps = EPOCHS * (files / size);
            let wanted =
                Counts { epochs: EPOCHS, steps, samples: Some(steps), ..Counts::default() };
            let more = [workflow(true, false, false), vec![batch(size)]].concat();
            cases.push(case(
                format!("{framework} {files} by {size}"),
                framework,
                files,
                &more,
                wanted,
            ));
        }
    }
    for steps in [2, 3] {
        for threads in [2, 3] {
            let more = [
                workflow(true, false, false),
                vec![
                    batch(2),
                    format!("++workload.train.total_training_steps={steps}"),
                    format!("++workload.reader.read_threads={threads}"),
                ],
            ];
            // The configured steps are per epoch.
            let steps = EPOCHS * steps;
            let wanted =
                Counts { epochs: EPOCHS, steps, samples: Some(steps), ..Counts::default() };
            let name = format!("{framework} {steps} steps with {threads}");
            cases.push(case(name, framework, 8, &more.concat(), wanted));
        }
    }
    cases
}

fn reader_cases(framework: &str) -> Vec<Case> {
    let formats = [
        "npz by default",
        "hdf5",
        "npy",
        "npz",
        "tfrecord",
        "csv",
        "jpeg",
        "png",
        "indexed_binary",
        "mmap_indexed_binary",
        "synthetic",
    ];
    let formats =
        formats.into_iter().filter(|name| *name != "tfrecord" || framework == "tensorflow");
    formats
        .map(|format| {
            let steps = 2 * EPOCHS * 8;
            let samples = Some(if format == "synthetic" { 0 } else { steps });
            let wanted =
                Counts { epochs: EPOCHS, evaluations: EPOCHS, steps, samples, ..Counts::default() };
            let format_key =
                format!("++workload.dataset.format={}", format.split(' ').next().unwrap());
            let more = [
                workflow(true, true, false),
                vec![batch(1), format_key, "++workload.dataset.num_files_eval=8*RANKS".into()],
            ];
            case(format!("{framework} reads {format}"), framework, 8, &more.concat(), wanted)
        })
        .collect()
}

fn checkpoint_cases(framework: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for epochs_between in [1, 2] {
        for steps_between in [None, Some(1), Some(2)] {
            let steps = EPOCHS * 4;
            let saves = steps_between.map_or(EPOCHS / epochs_between, |between| steps / between);
            let wanted =
                Counts { epochs: EPOCHS, steps, samples: Some(steps), saves, ..Counts::default() };
            let between = steps_between.map_or("-1".to_string(), |steps| steps.to_string());
            let more = [
                workflow(true, false, true),
                vec![
                    batch(1),
                    format!("++workload.checkpoint.epochs_between_checkpoints={epochs_between}"),
                    format!("++workload.checkpoint.steps_between_checkpoints={between}"),
                ],
            ];
            let name = format!("{framework} checkpoints by {epochs_between} and {between}");
            cases.push(case(name, framework, 4, &more.concat(), wanted));
        }
    }
    for saves in [3, 4] {
        for loads in [1, 2, 3] {
            let more = [
                workflow(false, false, true),
                vec![
                    format!("++workload.checkpoint.num_checkpoints_write={saves}"),
                    format!("++workload.checkpoint.num_checkpoints_read={loads}"),
                ],
            ];
            let wanted = Counts { saves, loads, ..Counts::default() };
            let name = format!("{framework} checkpoints alone, {saves} and {loads}");
            cases.push(case(name, framework, 8, &more.concat(), wanted));
        }
    }
    cases
}

/// Shuffling must not change the number of samples.
fn shuffled_case() -> Case {
    let more = [
        workflow(true, false, false),
        vec![
            batch(1),
            "++workload.dataset.num_samples_per_file=4".into(),
            "++workload.reader.sample_shuffle=seed".into(),
            "++workload.reader.seed=42".into(),
            "++workload.reader.read_threads=1".into(),
        ],
    ];
    let steps = EPOCHS * 8;
    let wanted = Counts { epochs: EPOCHS, steps, samples: Some(steps), ..Counts::default() };
    case("samples shuffled".into(), "tensorflow", 2, &more.concat(), wanted)
}

#[test]
fn one_rank_counts_like_dlio() {
    check(&cases(), 1);
}

#[test]
fn two_ranks_count_like_dlio() {
    check(&cases(), 2);
}
