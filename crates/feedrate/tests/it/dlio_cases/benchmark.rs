//! Cases of generation, training, evaluation and checkpoints.

use super::{Case, CaseResult, check, expect};
use std::path::PathBuf;

const GENERATE: &str = "++workload.workflow.generate_data=True";
const TRAIN: &str = "++workload.workflow.train=True";
const NO_TRAIN: &str = "++workload.workflow.train=False";
const NO_GENERATION: &str = "++workload.workflow.generate_data=False";
const ONE_EPOCH: &str = "++workload.train.epochs=1";
const CHECKPOINT: &str = "++workload.workflow.checkpoint=True";

const FRAMEWORKS: [&str; 2] = ["tensorflow", "pytorch"];
/// All formats that DLIO's tests cover. They read tfrecord only with TensorFlow's loader.
const FORMATS: [&str; 8] =
    ["png", "npz", "jpeg", "hdf5", "csv", "indexed_binary", "mmap_indexed_binary", "tfrecord"];

fn loader_settings(framework: &str, loader: &str) -> [String; 2] {
    [format!("++workload.framework={framework}"), format!("++workload.reader.data_loader={loader}")]
}

fn case(
    name: String,
    settings: &[String],
    more: &[&str],
    check: impl Fn(&CaseResult) -> Result<(), String> + Sync + 'static,
) -> Case {
    let all: Vec<&str> = settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Case::new(name, &all, check)
}

/// The 130 cases of DLIO's file.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = generation_cases();
    cases.extend(training_cases());
    cases.extend(checkpoint_cases());
    cases.extend(other_cases());
    cases.extend(uneven_cases());
    assert_eq!(cases.len(), 130);
    cases
}

fn generation_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in FORMATS.into_iter().filter(|format| *format != "csv") {
        for root in ["", "runs/"] {
            let mut settings = loader_settings("tensorflow", "tensorflow").to_vec();
            settings.push(format!("++workload.dataset.format={format}"));
            let (more, train) = if root.is_empty() {
                let files =
                    ["++workload.dataset.num_files_train=8", "++workload.dataset.num_files_eval=8"];
                (files.to_vec(), 8)
            } else {
                let files = [
                    "++workload.storage.storage_root=runs",
                    "++workload.dataset.num_files_train=16",
                ];
                (files.to_vec(), 16)
            };
            let ending = format!(".{format}");
            let name = format!("generate {format} below `{root}`");
            cases.push(case(
                name,
                &settings,
                &[&[NO_TRAIN, GENERATE], &more[..]].concat(),
                move |result| {
                    result.check_success()?;
                    let folder = format!("{root}data/default");
                    expect(
                        "files",
                        &result.count_files(&format!("{folder}/train"), &ending),
                        &train,
                    )?;
                    expect("files", &result.count_files(&format!("{folder}/valid"), &ending), &8)
                },
            ));
        }
    }
    cases
}

fn training_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let common = [TRAIN, GENERATE, ONE_EPOCH, "++workload.reader.read_threads=1"];
    for framework in FRAMEWORKS {
        for format in FORMATS {
            for (loader, root) in [(framework, ""), ("dali", ""), (framework, "root_dir")] {
                if format == "tfrecord" && (framework == "pytorch" || loader == "dali") {
                    continue;
                }
                for files in [16, 17].into_iter().take(if root.is_empty() { 2 } else { 1 }) {
                    let mut settings = loader_settings(framework, loader).to_vec();
                    settings.push(format!("++workload.dataset.format={format}"));
                    settings.push(format!("++workload.dataset.num_files_train={files}"));
                    if !root.is_empty() {
                        settings.push(format!("++workload.storage.storage_root={root}"));
                    }
                    let name = format!("train {format} {framework} {loader} {files} `{root}`");
                    cases.push(case(name, &settings, &common, CaseResult::check_training));
                }
            }
        }
    }
    let small = ["++workload.dataset.num_files_train=8", "++workload.dataset.num_files_eval=8"];
    let more = [&[TRAIN, GENERATE, ONE_EPOCH], &small[..]].concat();
    for framework in FRAMEWORKS {
        for threads in 0..3 {
            let mut settings = loader_settings(framework, framework).to_vec();
            settings.push(format!("++workload.reader.read_threads={threads}"));
            cases.push(case(
                format!("{framework} with {threads} threads"),
                &settings,
                &more,
                CaseResult::check_training,
            ));
        }
    }
    for (threads, context) in [(0, "None"), (1, "fork"), (2, "spawn"), (2, "forkserver")] {
        let mut settings = loader_settings("pytorch", "pytorch").to_vec();
        settings.push(format!("++workload.reader.read_threads={threads}"));
        settings.push(format!("++workload.reader.multiprocessing_context={context}"));
        cases.push(case(
            format!("{threads} threads by {context}"),
            &settings,
            &more,
            CaseResult::check_training,
        ));
    }
    cases
}

fn checkpoint_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let common = [
        TRAIN,
        GENERATE,
        "++workload.train.epochs=8",
        CHECKPOINT,
        "++workload.checkpoint.epochs_between_checkpoints=2",
        "++workload.model.model_size=1024",
        "++workload.model.layer_parameters=[16]",
        "++workload.model.parallelism.tensor=RANKS",
    ];
    for framework in FRAMEWORKS {
        for (groups, layers, zero) in [("1024,128", 2, 0), ("1024,128", 2, 3), ("128", 1, 0)] {
            for random in ["True", "False"] {
                let mut settings = loader_settings(framework, framework).to_vec();
                settings.push(format!("++workload.checkpoint.randomize_tensor={random}"));
                settings.push(format!("++workload.model.optimization_groups=[{groups}]"));
                settings.push(format!("++workload.model.num_layers={layers}"));
                settings.push(format!("++workload.model.parallelism.zero_stage={zero}"));
                let name = format!("checkpoints {framework} [{groups}] {layers} {zero} {random}");
                let is_tensorflow = framework == "tensorflow";
                let check = move |result: &CaseResult| {
                    result.check_training()?;
                    // A file for the model, layers and optimizer of each rank. TensorFlow writes two files for each, and one with the latest name.
                    let each = 3 * result.ranks;
                    let wanted = 4 * if is_tensorflow { 2 * each + 1 } else { each };
                    expect("files of checkpoints", &count_checkpoint_files(result), &wanted)
                };
                cases.push(case(name, &settings, &common, check));
            }
        }
    }
    let by_step = [
        TRAIN,
        GENERATE,
        "++workload.train.epochs=8",
        CHECKPOINT,
        "++workload.checkpoint.steps_between_checkpoints=2",
    ];
    cases.push(case("checkpoints by step".into(), &[], &by_step, |result| {
        result.check_training()?;
        expect(
            "files of checkpoints",
            &count_checkpoint_files(result),
            &(64 / 4 / result.ranks / 2 * 8),
        )
    }));
    cases
}

/// Number of files of checkpoints. As in Python's `glob`, names that begin with a dot do not count.
fn count_checkpoint_files(result: &CaseResult) -> usize {
    let is_visible =
        |path: &PathBuf| !path.iter().any(|name| name.to_string_lossy().starts_with('.'));
    let root = result.test.path("checkpoints");
    let files = result.test.files_below("checkpoints", "").into_iter();
    files
        .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_path_buf()))
        .filter(is_visible)
        .count()
}

fn other_cases() -> Vec<Case> {
    let after_generation =
        |name: &str, more: &[&str], check: fn(&CaseResult) -> Result<(), String>| {
            let first = [NO_TRAIN, GENERATE].map(String::from).to_vec();
            let mut case = case(name.into(), &[], &[&[TRAIN, NO_GENERATION], more].concat(), check);
            case.commands.insert(0, first);
            case
        };
    let mut cases = vec![
        after_generation(
            "the first of more files",
            &["++workload.dataset.num_files_train=8"],
            |result| result.check_training(),
        ),
        after_generation(
            "profiling by iostat",
            &[
                "workload.train.epochs=1",
                "workload.workflow.profiling=True",
                "workload.profiling.profiler=iostat",
            ],
            |result| {
                result.check_training()?;
                expect("`iostat.json`", &result.results().join("iostat.json").is_file(), &true)
            },
        ),
        case(
            "evaluation".into(),
            &[],
            &[TRAIN, GENERATE, "++workload.train.epochs=4", "++workload.workflow.evaluation=True"],
            CaseResult::check_training,
        ),
    ];
    let checkpoints_only = [
        CHECKPOINT,
        NO_GENERATION,
        NO_TRAIN,
        "++workload.checkpoint.num_checkpoints_write=1",
        "++workload.checkpoint.num_checkpoints_read=1",
        "++workload.checkpoint.randomize_tensor=False",
    ];
    let mut ksm = case("ksm".into(), &[], &checkpoints_only, CaseResult::check_success);
    let settings = [
        vec!["++workload.checkpoint.ksm={}"],
        vec![
            "++workload.checkpoint.ksm.high_ram_trigger=25.5",
            "++workload.checkpoint.ksm.await_time=100",
        ],
    ];
    let with = settings.map(|more| {
        [&checkpoints_only[..], &more].concat().into_iter().map(String::from).collect()
    });
    ksm.commands.extend(with);
    cases.push(ksm);
    cases.extend(computation_time_cases());
    cases
}

/// Numbers of samples that no number of ranks divides. DLIO runs these tests with three ranks; a run must not hang.
fn uneven_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for framework in ["pytorch", "tensorflow"] {
        for (files, batch) in [(13, 4), (24, 4), (25, 4), (145, 16)] {
            let mut settings = loader_settings(framework, framework).to_vec();
            settings.push(format!("++workload.dataset.num_files_train={files}"));
            settings.push(format!("++workload.reader.batch_size={batch}"));
            let more = [
                TRAIN,
                GENERATE,
                "++workload.dataset.format=npz",
                "++workload.train.epochs=3",
                "++workload.reader.read_threads=1",
            ];
            let name = format!("{framework} {files} files by {batch}");
            cases.push(case(name, &settings, &more, CaseResult::check_training));
        }
    }
    cases
}

fn computation_time_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, keys) in [
        ("uniform", &["type=uniform", "min=0.001", "max=0.002"][..]),
        ("normal", &["type=normal", "mean=0.001", "stdev=0.001"]),
        ("gamma", &["type=gamma", "shape=1.0", "scale=0.001"]),
        ("exponential", &["type=exponential", "scale=0.001"]),
        ("poisson", &["type=poisson", "lam=0.001"]),
        ("mean alone", &["mean=0.001"]),
        ("mean and deviation", &["mean=0.001", "stdev=0.001"]),
        ("number", &["0.002"]),
    ] {
        let settings: Vec<String> = match keys {
            [number] if !number.contains('=') => {
                vec![format!("++workload.train.computation_time={number}")]
            }
            keys => {
                keys.iter().map(|key| format!("++workload.train.computation_time.{key}")).collect()
            }
        };
        cases.push(case(
            format!("time by {name}"),
            &settings,
            &[TRAIN, GENERATE, ONE_EPOCH],
            CaseResult::check_training,
        ));
    }
    cases
}

#[test]
fn one_rank_behaves_like_dlio() {
    check(&cases(), 1);
}

#[test]
fn two_ranks_behave_like_dlio() {
    check(&cases(), 2);
}

#[test]
fn three_ranks_divide_samples_like_dlio() {
    check(&uneven_cases(), 3);
}
