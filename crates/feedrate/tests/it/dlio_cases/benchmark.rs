//! Generation, training, evaluation, checkpoints.

use super::{Case, Ran, check, expect};
use std::path::PathBuf;

const GENERATE: &str = "++workload.workflow.generate_data=True";
const TRAIN: &str = "++workload.workflow.train=True";
const NO_TRAIN: &str = "++workload.workflow.train=False";
const KEPT: &str = "++workload.workflow.generate_data=False";
const ONE_EPOCH: &str = "++workload.train.epochs=1";
const CHECKPOINT: &str = "++workload.workflow.checkpoint=True";

const FRAMEWORKS: [&str; 2] = ["tensorflow", "pytorch"];
/// All that DLIO tests; tfrecord under tensorflow's loader alone.
const FORMATS: [&str; 8] =
    ["png", "npz", "jpeg", "hdf5", "csv", "indexed_binary", "mmap_indexed_binary", "tfrecord"];

fn by(framework: &str, loader: &str) -> [String; 2] {
    [format!("++workload.framework={framework}"), format!("++workload.reader.data_loader={loader}")]
}

fn case(
    name: String,
    own: &[String],
    more: &[&str],
    check: impl Fn(&Ran) -> Result<(), String> + Sync + 'static,
) -> Case {
    let all: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Case::new(name, &all, check)
}

/// 122, as there.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = generations();
    cases.extend(trainings());
    cases.extend(checkpoints());
    cases.extend(others());
    assert_eq!(cases.len(), 122);
    cases
}

fn generations() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in FORMATS.into_iter().filter(|format| *format != "csv") {
        for root in ["", "runs/"] {
            let mut own = by("tensorflow", "tensorflow").to_vec();
            own.push(format!("++workload.dataset.format={format}"));
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
                &own,
                &[&[NO_TRAIN, GENERATE], &more[..]].concat(),
                move |ran| {
                    ran.went_well()?;
                    let folder = format!("{root}data/default");
                    expect("files", &ran.files(&format!("{folder}/train"), &ending), &train)?;
                    expect("files", &ran.files(&format!("{folder}/valid"), &ending), &8)
                },
            ));
        }
    }
    cases
}

fn trainings() -> Vec<Case> {
    let mut cases = Vec::new();
    let common = [TRAIN, GENERATE, ONE_EPOCH, "++workload.reader.read_threads=1"];
    for framework in FRAMEWORKS {
        for format in FORMATS {
            for (loader, root) in [(framework, ""), ("dali", ""), (framework, "root_dir")] {
                if format == "tfrecord" && (framework == "pytorch" || loader == "dali") {
                    continue;
                }
                for files in [16, 17].into_iter().take(if root.is_empty() { 2 } else { 1 }) {
                    let mut own = by(framework, loader).to_vec();
                    own.push(format!("++workload.dataset.format={format}"));
                    own.push(format!("++workload.dataset.num_files_train={files}"));
                    if !root.is_empty() {
                        own.push(format!("++workload.storage.storage_root={root}"));
                    }
                    let name = format!("train {format} {framework} {loader} {files} `{root}`");
                    cases.push(case(name, &own, &common, Ran::trained));
                }
            }
        }
    }
    let small = ["++workload.dataset.num_files_train=8", "++workload.dataset.num_files_eval=8"];
    let more = [&[TRAIN, GENERATE, ONE_EPOCH], &small[..]].concat();
    for framework in FRAMEWORKS {
        for threads in 0..3 {
            let mut own = by(framework, framework).to_vec();
            own.push(format!("++workload.reader.read_threads={threads}"));
            cases.push(case(
                format!("{framework} with {threads} threads"),
                &own,
                &more,
                Ran::trained,
            ));
        }
    }
    for (threads, context) in [(0, "None"), (1, "fork"), (2, "spawn"), (2, "forkserver")] {
        let mut own = by("pytorch", "pytorch").to_vec();
        own.push(format!("++workload.reader.read_threads={threads}"));
        own.push(format!("++workload.reader.multiprocessing_context={context}"));
        cases.push(case(format!("{threads} threads by {context}"), &own, &more, Ran::trained));
    }
    cases
}

fn checkpoints() -> Vec<Case> {
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
                let mut own = by(framework, framework).to_vec();
                own.push(format!("++workload.checkpoint.randomize_tensor={random}"));
                own.push(format!("++workload.model.optimization_groups=[{groups}]"));
                own.push(format!("++workload.model.num_layers={layers}"));
                own.push(format!("++workload.model.parallelism.zero_stage={zero}"));
                let name = format!("checkpoints {framework} [{groups}] {layers} {zero} {random}");
                let is_tensorflow = framework == "tensorflow";
                let check = move |ran: &Ran| {
                    ran.trained()?;
                    // Model, layers and optimizer of each rank. TensorFlow has two files for each, and one that names the last.
                    let each = 3 * ran.ranks;
                    let wanted = 4 * if is_tensorflow { 2 * each + 1 } else { each };
                    expect("files of checkpoints", &files_of_checkpoints(ran), &wanted)
                };
                let differs = is_tensorflow.then_some("files of checkpoints: ");
                cases.push(Case { differs, ..case(name, &own, &common, check) });
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
    cases.push(case("checkpoints by step".into(), &[], &by_step, |ran| {
        ran.trained()?;
        expect("files of checkpoints", &files_of_checkpoints(ran), &(64 / 4 / ran.ranks / 2 * 8))
    }));
    cases
}

/// As Python's `glob` finds them in each folder: names that begin with a dot do not count.
fn files_of_checkpoints(ran: &Ran) -> usize {
    let is_seen = |path: &PathBuf| !path.iter().any(|name| name.to_string_lossy().starts_with('.'));
    let root = ran.test.path("checkpoints");
    let files = ran.test.files_below("checkpoints", "").into_iter();
    files
        .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_path_buf()))
        .filter(is_seen)
        .count()
}

fn others() -> Vec<Case> {
    let after_generation = |name: &str, more: &[&str], check: fn(&Ran) -> Result<(), String>| {
        let first = [NO_TRAIN, GENERATE].map(String::from).to_vec();
        let mut case = case(name.into(), &[], &[&[TRAIN, KEPT], more].concat(), check);
        case.commands.insert(0, first);
        case
    };
    let mut cases = vec![
        after_generation(
            "the first files of more",
            &["++workload.dataset.num_files_train=8"],
            |ran| ran.trained(),
        ),
        after_generation(
            "profiling by iostat",
            &[
                "workload.train.epochs=1",
                "workload.workflow.profiling=True",
                "workload.profiling.profiler=iostat",
            ],
            |ran| {
                ran.trained()?;
                expect("`iostat.json`", &ran.results().join("iostat.json").is_file(), &true)
            },
        ),
        case(
            "evaluation".into(),
            &[],
            &[TRAIN, GENERATE, "++workload.train.epochs=4", "++workload.workflow.evaluation=True"],
            Ran::trained,
        ),
    ];
    let alone = [
        CHECKPOINT,
        KEPT,
        NO_TRAIN,
        "++workload.checkpoint.num_checkpoints_write=1",
        "++workload.checkpoint.num_checkpoints_read=1",
        "++workload.checkpoint.randomize_tensor=False",
    ];
    let mut ksm = case("ksm".into(), &[], &alone, Ran::went_well);
    let told = [
        vec!["++workload.checkpoint.ksm={}"],
        vec![
            "++workload.checkpoint.ksm.high_ram_trigger=25.5",
            "++workload.checkpoint.ksm.await_time=100",
        ],
    ];
    let with =
        told.map(|more| [&alone[..], &more].concat().into_iter().map(String::from).collect());
    ksm.commands.extend(with);
    cases.push(ksm);
    cases.extend(computation_times());
    cases
}

fn computation_times() -> Vec<Case> {
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
        let own: Vec<String> = match keys {
            [number] if !number.contains('=') => {
                vec![format!("++workload.train.computation_time={number}")]
            }
            keys => {
                keys.iter().map(|key| format!("++workload.train.computation_time.{key}")).collect()
            }
        };
        cases.push(case(
            format!("time by {name}"),
            &own,
            &[TRAIN, GENERATE, ONE_EPOCH],
            Ran::trained,
        ));
    }
    cases
}

#[test]
fn one_rank_is_as_in_dlio() {
    check(&cases(), 1);
}

#[test]
fn two_ranks_are_as_in_dlio() {
    check(&cases(), 2);
}
