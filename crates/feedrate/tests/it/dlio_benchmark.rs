//! `dlio_benchmark` with the command lines of DLIO's users, of the notebook of perf_2025, and of MLPerf Storage's wrapper.

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A test folder with the workload `tiny` in `conf`.
pub(crate) fn with_workloads() -> Test {
    let test = Test::new();
    fs::create_dir_all(test.path("conf/workload")).unwrap();
    test.write("conf/workload/tiny.yaml", TINY);
    test
}

pub(crate) fn dlio_benchmark(test: &Test, arguments: &[&str]) -> Answer {
    let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark"), &["--config-dir", "conf"]);
    Answer::from_output(&command.args(arguments).output().unwrap())
}

const GENERATE: [&str; 3] =
    ["workload=tiny", "++workload.workflow.generate_data=True", "++workload.workflow.train=False"];

/// The only folder with results of `tiny`.
pub(crate) fn results(test: &Test) -> PathBuf {
    let mut folders = fs::read_dir(test.path("hydra_log/tiny")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    folder
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn data_is_generated_and_then_read_as_in_the_study() {
    // The study's workload enables checkpoints while it generates data. Without training, none are written.
    let test = with_workloads();
    let yaml =
        format!("{TINY}workflow:\n  checkpoint: True\ncheckpoint:\n  checkpoint_after_epoch: 5\n");
    test.write("conf/workload/tiny.yaml", yaml);
    let answer = dlio_benchmark(&test, &GENERATE);
    answer.warns(&[
        "Running DLIO [Generating data & Checkpointing] with 1 process(es)",
        "Generation done",
    ]);
    assert_eq!(answer.stdout, "");
    assert_eq!(test.data_files(".npz").len(), 8);
    assert!(test.path("data/train/img_0_of_8.npz").exists(), "in the folder itself");
    let run_dir = results(&test);
    assert!(run_dir.join(".hydra/overrides.yaml").exists() && run_dir.join("dlio.log").exists());
    assert!(!run_dir.join("summary.json").exists(), "as in DLIO");
    fs::remove_dir_all(run_dir).unwrap();

    let answer = dlio_benchmark(&test, &["workload=tiny", "++workload.reader.batch_size=2"]);
    answer.warns(&[
        "[OUTPUT]",
        "Starting epoch 2: 4 steps expected",
        "[METRIC] Number of Simulated Accelerators: 1 ",
        "Doubts\n",
        "Options named here are those of `feedrate run`",
    ]);
    let run_dir = results(&test);
    let summary = json(run_dir.join("summary.json"));
    assert_eq!(summary["num_accelerators"], 1);
    for key in ["train_au_mean_percentage", "train_io_mean_MB_per_second"] {
        assert!(summary["metric"][key].is_number(), "{summary}");
    }
    assert_eq!(json(run_dir.join("record.json"))["complete"], true);
    let log = fs::read_to_string(run_dir.join("dlio.log")).unwrap();
    assert!(answer.stderr.starts_with(&log), "stderr begins with the log");
    let overrides = fs::read_to_string(run_dir.join(".hydra/overrides.yaml")).unwrap();
    assert_eq!(overrides, "- workload=tiny\n- ++workload.reader.batch_size=2\n");
    let config = fs::read_to_string(run_dir.join(".hydra/config.yaml")).unwrap();
    assert!(config.starts_with("workload:\n  model:\n    name: tiny\n"), "{config}");
}

/// DLIO's result folders have the same files, except feedrate's record.
#[test]
fn the_postprocessor_reports_runs_of_feedrate_and_of_dlio() {
    let test = with_workloads();
    let all = ["workload=tiny", "++workload.workflow.generate_data=True"];
    assert_eq!(dlio_benchmark(&test, &all).code, 0);
    let run_dir = results(&test);
    let report = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_dlio_postprocessor");
        let mut command = test.program(program, &["-of", &run_dir.to_string_lossy()]);
        Answer::from_output(&command.args(arguments).output().unwrap())
    };
    report(&["-np", "1", "-bs", "99", "-hf", ".hydra"])
        .warns(&["`--batch-size 99`: the run had 4"]);
    report(&["-hf", "nonsense"]).refuses(1, &["there is no folder", "nonsense", "hint:"]);
    let of_record = fs::read_to_string(run_dir.join("DLIO_tiny_report.txt")).unwrap();
    assert!(of_record.contains("Epoch 2\nblock1: 2 steps"), "{of_record}");
    fs::remove_file(run_dir.join("record.json")).unwrap();
    assert_eq!(report(&["--name=theirs", "-c", "False"]).code, 0);
    let of_files = fs::read_to_string(run_dir.join("DLIO_theirs_report.txt")).unwrap();
    assert!(of_files.contains("Epoch 2\nblock1: 2 steps\n"), "{of_files}");
    fs::remove_file(run_dir.join("0_output.json")).unwrap();
    report(&[]).refuses(1, &["there are no steps in"]);
}

#[test]
fn one_command_generates_data_and_trains() {
    let test = with_workloads();
    let all = ["workload=tiny", "++workload.workflow.generate_data=True"];
    dlio_benchmark(&test, &all).warns(&[
        "[Generating data & Training]",
        "Generation done",
        "[METRIC]",
    ]);
    assert!(results(&test).join("summary.json").exists());
}

#[test]
fn mlperf_storages_wrapper_finds_what_it_reads() {
    let test = with_workloads();
    fs::create_dir_all(test.path("store/tiny/train")).unwrap();
    fs::create_dir_all(test.path("store/tiny/valid")).unwrap();
    let run = |stamp: &str, more: &[&str]| {
        let dir = format!("++hydra.run.dir=results/training/tiny/{stamp}");
        let mut arguments = vec!["workload=tiny", &dir, "++hydra.output_subdir=dlio_config"];
        arguments.push("++workload.dataset.data_folder=store/tiny");
        arguments.extend(more);
        let answer = dlio_benchmark(&test, &arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        test.path(&format!("results/training/tiny/{stamp}"))
    };
    run("datagen", &["++workload.workflow.generate_data=True", "++workload.workflow.train=False"]);
    // The wrapper creates the folder and writes a file into it.
    fs::create_dir_all(test.path("results/training/tiny/run")).unwrap();
    test.write("results/training/tiny/run/x_metadata.json", "{}");
    let run_dir = run(
        "run",
        &["++workload.reader.odirect=False", "++workload.dataset.num_subfolders_train=0"],
    );
    let summary = json(run_dir.join("summary.json"));
    for key in
        ["num_accelerators", "start", "metric", "host_memory_GB", "host_cpu_count", "num_hosts"]
    {
        assert!(!summary[key].is_null(), "{key}");
    }
    assert!(run_dir.join("dlio_config/config.yaml").exists() && !run_dir.join(".hydra").exists());
    let overrides = fs::read_to_string(run_dir.join("dlio_config/overrides.yaml")).unwrap();
    assert_eq!(overrides.lines().count(), 4, "{overrides}");
    assert!(
        overrides.lines().all(|line| line.matches('=').count() == 1 && !line.contains("hydra"))
    );
    assert!(run_dir.join("x_metadata.json").exists());
}

#[test]
fn mlperf_storages_checkpoint_benchmark_runs() {
    let test = with_workloads();
    let answer = dlio_benchmark(
        &test,
        &[
            "workload=llama3_8b",
            "++hydra.run.dir=results/checkpointing/llama3_8b/1",
            "++workload.checkpoint.num_checkpoints_write=2",
            "++workload.checkpoint.num_checkpoints_read=1",
            "++workload.checkpoint.time_between_checkpoints=0",
            "++workload.checkpoint.checkpoint_folder=check/llama3_8b",
            "++workload.model.parallelism.data=8",
            "++workload.checkpoint.mode=subset",
            "++workload.model.num_layers=1",
            "++workload.model.transformer.hidden_size=64",
            "++workload.model.transformer.ffn_hidden_size=64",
            "++workload.model.transformer.vocab_size=1000",
        ],
    );
    answer
        .warns(&["Running DLIO [Checkpointing] with 1 process(es)", "Finished saving checkpoint"]);
    let run_dir = test.path("results/checkpointing/llama3_8b/1");
    let log = fs::read_to_string(run_dir.join("dlio.log")).unwrap();
    assert!(answer.stderr.starts_with(&log), "{}\n{log}", answer.stderr);
    let summary = json(run_dir.join("summary.json"));
    for key in ["save_checkpoint_io_mean_GB_per_second", "load_checkpoint_duration_mean_seconds"] {
        assert!(summary["metric"][key].is_number(), "{summary}");
    }
}

/// The checkpoint of the first epoch may become complete in the second epoch, or at the end of the run.
#[test]
fn checkpoints_in_the_background_are_logged_once() {
    let test = with_workloads();
    let answer = dlio_benchmark(
        &test,
        &[
            "workload=tiny",
            "++workload.workflow.generate_data=True",
            "++workload.workflow.checkpoint=True",
            "++workload.reader.nonsense=1",
            "++workload.checkpoint.asynchronous=True",
            "++workload.checkpoint.checkpoint_folder=check",
            "++workload.model.model_size=4096",
            "++workload.model.optimization_groups=[1024]",
        ],
    );
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let log = fs::read_to_string(results(&test).join("dlio.log")).unwrap();
    for line in ["Finished saving checkpoint 1 ", "Saved model checkpoint ", "Saved optimizer "] {
        assert_eq!(log.matches(line).count(), 2, "{log}");
    }
    let (printed, _) = answer.stderr.split_once("outputs saved in RANKID_output.json").unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    let all_lines = format!("{printed}outputs saved in RANKID_output.json");
    assert_eq!(sorted(&all_lines), sorted(&log));
}

#[test]
fn exit_codes_are_dlios() {
    let test = with_workloads();
    let train = ["workload=tiny", "++workload.train.epochs=1"];
    dlio_benchmark(&test, &train).refuses(1, &["data"]);
    dlio_benchmark(&test, &["workload=tiny", "workload.train.nonsense=1"])
        .refuses(1, &["++workload.train.nonsense=1"]);
    dlio_benchmark(&test, &["workload=nonsense"])
        .refuses(1, &["Could not find 'workload/nonsense'"]);
    dlio_benchmark(&test, &["workload=tiny", "train.epochs=1"])
        .refuses(1, &["Could not override 'train.epochs'"]);
    dlio_benchmark(&test, &["--nonsense"]).refuses(1, &["unrecognized arguments"]);
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    let wanted = ["workload=tiny", "++workload.train.total_training_steps=1000"];
    dlio_benchmark(&test, &wanted).refuses(255, &["only 2 steps an epoch", "1000"]);
    assert_eq!(dlio_benchmark(&test, &["--help"]).code, 0);
    assert!(!test.path("results").exists());
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    let test = with_workloads();
    let all =
        ["workload=tiny", "++workload.workflow.generate_data=True", "++workload.reader.nonsense=1"];
    dlio_benchmark(&test, &all).warns(&["[WARNING]", "reader.nonsense"]);
}

#[test]
fn an_evaluation_without_files_is_empty() {
    let test = with_workloads();
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    fs::remove_file(test.path("data/manifest.json")).unwrap();
    let evaluation = [
        "workload=tiny",
        "++workload.workflow.evaluation=True",
        "++workload.dataset.num_files_eval=4",
    ];
    dlio_benchmark(&test, &evaluation).warns(&[
        "no evaluation files",
        "Starting eval - 0 steps expected",
        "Epoch 2 [Eval] Accelerator Utilization [AU] (%): 0.0000",
        "[METRIC] Eval Throughput (samples/second): 0.0000 (0.0000)",
    ]);
    let folders = fs::read_dir(test.path("hydra_log/tiny")).unwrap();
    let run_dir = folders.map(|folder| folder.unwrap().path());
    let run_dir = run_dir.max_by_key(|folder| folder.join("summary.json").exists()).unwrap();
    let metric = &json(run_dir.join("summary.json"))["metric"];
    assert_eq!(metric["eval_au_percentage"], serde_json::json!([0.0, 0.0]));
    assert_eq!(metric["eval_throughput_mean_samples_per_second"], 0.0);
    assert_eq!(metric["eval_au_meet_expectation"], "fail");
    assert_eq!(json(run_dir.join("0_output.json"))["2"]["load"]["eval"], serde_json::json!([]));
    assert_eq!(json(run_dir.join("0_per_epoch_stats.json"))["1"]["eval"]["duration"], "0.00");
}

/// DLIO reads the first files by name, and warns; `feedrate` refuses.
#[test]
fn of_too_many_files_the_first_are_read() {
    let test = with_workloads();
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    fs::remove_dir_all(results(&test)).unwrap();
    let fewer = ["workload=tiny", "++workload.dataset.num_files_train=5"];
    let more = "Number of files for training in ./data/train (8) is more than requested (5). A subset of files will be used";
    let answer = dlio_benchmark(&test, &fewer);
    answer.warns(&[more, "Starting epoch 2: 1 steps expected", "dataset_subset"]);
    assert!(!answer.stderr.contains("other settings"), "{}", answer.stderr);
    let summary = json(results(&test).join("summary.json"));
    assert_eq!(summary["num_files_train"], 5);
    fs::remove_file(test.path("data/manifest.json")).unwrap();
    let run = ["run", "conf/workload/tiny.yaml", "dataset.num_files_train=5", "--foreign"];
    let answer = test.feedrate(&[&run[..], &["--data", "data"]].concat());
    answer.refuses(2, &["the plan uses 5 of 8 files", "dataset.num_files_train=8"]);
    for last in 5..8 {
        fs::write(test.path(&format!("data/train/img_{last}_of_8.npz")), "never read").unwrap();
    }
    dlio_benchmark(&test, &fewer).warns(&[more, "[METRIC]"]);
}

#[test]
fn a_profile_has_the_format_of_iostat() {
    let test = with_workloads();
    let all = [
        "workload=tiny",
        "++workload.workflow.generate_data=True",
        "++workload.workflow.profiling=True",
        "++workload.profiling.profiler=iostat",
    ];
    assert_eq!(dlio_benchmark(&test, &all).code, 0);
    let profile = json(results(&test).join("iostat.json"));
    let host = &profile["sysstat"]["hosts"][0];
    assert_eq!(host["sysname"], "Linux");
    let rows = host["statistics"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["avg-cpu"]["iowait"].is_number() && row["disk"].is_array()));
    let tracer = ["++workload.profiling.profiler=darshan"];
    dlio_benchmark(&test, &[&all[..], &tracer].concat())
        .refuses(1, &["`darshan` is not supported"]);
}

#[test]
fn synthetic_data_needs_no_files() {
    let test = with_workloads();
    let all = [
        "workload=tiny",
        "++workload.dataset.format=synthetic",
        "++workload.workflow.generate_data=True",
        "++workload.reader.multiprocessing_context=None",
        "++workload.reader.read_threads=0",
    ];
    dlio_benchmark(&test, &all).warns(&["Generation done", "[METRIC]"]);
    assert!(!test.path("data").exists());
}

/// DLIO would read the old dataset and report the bytes of the new settings.
#[test]
fn a_dataset_with_other_settings_is_replaced_or_refused() {
    let test = with_workloads();
    let larger = "++workload.dataset.record_length_bytes=16384";
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    let size = |test: &Test| fs::metadata(test.path("data/train/img_0_of_8.npz")).unwrap().len();
    let before = size(&test);
    dlio_benchmark(&test, &["workload=tiny", "++workload.dataset.num_samples_per_file=4"])
        .refuses(1, &["generated for other settings", "samples_per_file: dataset has 1"]);
    let others =
        ["++workload.dataset.num_files_train=16", "++workload.dataset.num_samples_per_file=4"];
    let hint = "hint: to read this dataset, add `++workload.dataset.num_files_train=8 ++workload.dataset.num_samples_per_file=1`";
    dlio_benchmark(&test, &[&["workload=tiny"], &others[..]].concat()).refuses(1, &[hint]);
    assert_eq!(dlio_benchmark(&test, &[&GENERATE[..], &[larger]].concat()).code, 0);
    assert!(before < size(&test));
    test.write("data/train/img_0_of_8.npz", "user data");
    fs::remove_file(test.path("data/manifest.json")).unwrap();
    dlio_benchmark(&test, &GENERATE).refuses(1, &["no manifest says that feedrate generated it"]);
    assert_eq!(fs::read(test.path("data/train/img_0_of_8.npz")).unwrap(), b"user data");
}

/// In a study, a row may read the dataset that another row generated.
#[test]
fn a_run_on_a_dataset_with_other_settings_is_invalid() {
    let test = with_workloads();
    let larger = ["++workload.dataset.record_length_bytes=16384"];
    let more_samples = ["++workload.dataset.num_samples_per_file=4"];
    assert_eq!(dlio_benchmark(&test, &[&GENERATE[..], &larger, &more_samples].concat()).code, 0);
    fs::remove_dir_all(results(&test)).unwrap();
    dlio_benchmark(&test, &["workload=tiny", "++workload.dataset.format=hdf5"])
        .refuses(1, &["generated for other settings", "0"]);
    let evidence = "num_samples_per_file is 4, and 1 was planned; record_length_bytes is 16384, and 4096 was planned";
    dlio_benchmark(&test, &["workload=tiny"]).warns(&["`stale_data` (invalid)", evidence]);
    let run_dir = results(&test);
    let record = json(run_dir.join("record.json"));
    let sizes = [&record["plan"]["dataset"], &record["found_dataset"]]
        .map(|dataset| (dataset["record_bytes"].as_f64(), dataset["samples_per_file"].as_u64()));
    assert_eq!(sizes, [(Some(4096.0), Some(1)), (Some(16384.0), Some(4))]);
    for command in ["show", "analyze", "report"] {
        let shown = test.feedrate(&[command, &run_dir.to_string_lossy(), "--json"]).json();
        let doubts = match command {
            "analyze" => &shown["runs"][0]["doubts"],
            _ => &shown["doubts"],
        };
        let doubt = &doubts[0];
        assert_eq!((&doubt["name"], &doubt["severity"]), (&"stale_data".into(), &"invalid".into()));
        assert!(doubt.to_string().contains(evidence), "{command}: {doubt}");
        if command != "analyze" {
            assert_eq!(shown["answer"]["unknown_because"], "invalid", "{command}");
        }
    }
    fs::remove_dir_all(run_dir).unwrap();
    // Files of another program have no manifest, but their size.
    let manifest = test.path("data/manifest.json");
    let content = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let by_size = ["workload=tiny", "++workload.dataset.num_samples_per_file=4"];
    let evidence = "disagree: record_length_bytes is 16384, and 4096 was planned";
    dlio_benchmark(&test, &by_size).warns(&["`stale_data` (invalid)", evidence]);
    fs::remove_dir_all(results(&test)).unwrap();
    fs::write(manifest, content).unwrap();
    dlio_benchmark(&test, &[&["workload=tiny"][..], &larger, &more_samples].concat());
    let record = json(results(&test).join("record.json"));
    assert!(record.get("found_dataset").is_none() && record["complete"] == true, "{record}");
}

/// Errors are found before an existing dataset is removed.
#[test]
fn a_refused_run_does_not_remove_the_existing_dataset() {
    let test = with_workloads();
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    let other = "++workload.dataset.record_length_bytes=8192";
    let all = ["workload=tiny", "++workload.workflow.generate_data=True", other];
    test.write("afile", "");
    let check_refused = |more: &[&str], words: &[&str]| {
        let answer = dlio_benchmark(&test, &[&all[..], more].concat());
        assert_ne!(answer.code, 0, "{more:?}");
        words.iter().for_each(|word| assert!(answer.stderr.contains(word), "{}", answer.stderr));
        assert_eq!(test.data_files(".npz").len(), 8, "{more:?}");
        assert!(test.path("data/manifest.json").exists());
    };
    check_refused(&["++workload.train.total_training_steps=1000"], &["only 2 steps an epoch"]);
    check_refused(&["++workload.dataset.record_length_bytes=99999999999999"], &["free"]);
    check_refused(&["++hydra.run.dir=afile/x"], &["afile/x"]);
    test.write("data/train/notes.txt", "mine");
    check_refused(&[], &["notes.txt"]);
    fs::remove_file(test.path("data/train/notes.txt")).unwrap();
    assert_eq!(dlio_benchmark(&test, &all).code, 0);
}

/// A manifest may come from somebody else. It must not cause access to files outside the dataset.
#[test]
fn a_manifest_cannot_name_files_outside_its_folder() {
    let test = with_workloads();
    assert_eq!(dlio_benchmark(&test, &GENERATE).code, 0);
    fs::create_dir_all(test.path("elsewhere")).unwrap();
    test.write("elsewhere/img_0_of_8.npz", "mine");
    let manifest = fs::read_to_string(test.path("data/manifest.json")).unwrap();
    let changed = manifest.replace("\"prefix\": \"img\"", "\"prefix\": \"../../elsewhere/img\"");
    assert_ne!(manifest, changed);
    test.write("data/manifest.json", changed);
    dlio_benchmark(&test, &GENERATE).refuses(1, &["../../elsewhere/img"]);
    assert!(test.path("elsewhere/img_0_of_8.npz").exists());
    let prefix = ["workload=tiny", "++workload.dataset.file_prefix=../x"];
    dlio_benchmark(&test, &prefix).refuses(1, &["dataset.file_prefix"]);
}

#[test]
fn an_evaluation_without_real_files_runs() {
    let test = with_workloads();
    let synthetic = [
        "workload=tiny",
        "++workload.dataset.format=synthetic",
        "++workload.workflow.evaluation=True",
        "++workload.dataset.num_files_eval=8",
    ];
    dlio_benchmark(&test, &synthetic).warns(&["Starting eval - 8 steps expected"]);
}

#[test]
fn the_log_level_selects_the_printed_lines() {
    let test = with_workloads();
    let all = ["workload=tiny", "++workload.workflow.generate_data=True", "--config-dir=conf"];
    let run_at = |level: &str| {
        let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark"), &all);
        Answer::from_output(&command.env("DLIO_LOG_LEVEL", level).output().unwrap())
    };
    assert!(run_at("warning").stderr.contains("[OUTPUT]"));
    assert!(!run_at("error").stderr.contains("[OUTPUT]"));
    run_at("loud").refuses(1, &["DLIO_LOG_LEVEL"]);
}

#[test]
fn the_query_prints_a_value_of_the_workload() {
    let test = with_workloads();
    for (key, value) in [("reader.batch_size", "4\n"), ("reader.nonsense", "None\n")] {
        let query = format!("++workload.workflow.query={key}");
        let arguments = ["--config-dir", "conf", "workload=tiny", &query];
        let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark_query"), &arguments);
        assert_eq!(Answer::from_output(&command.output().unwrap()).stdout, value);
    }
    let config = dlio_benchmark(&test, &["workload=tiny", "--cfg", "job"]);
    assert!(config.stdout.starts_with("workload:\n"), "{}", config.stdout);
}

/// MLPerf's generator writes random bytes with the extension of pictures, and its client does not decode them.
#[test]
fn pictures_of_retinanet_are_random_bytes() {
    let test = with_workloads();
    let yaml = TINY.replace("name: tiny", "name: retinanet").replace("format: npz", "format: jpeg");
    test.write("conf/workload/tiny.yaml", yaml.replace("4096", "5003"));
    let all = ["workload=tiny", "++workload.workflow.generate_data=True"];
    let answer = dlio_benchmark(&test, &all);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let files = test.data_files(".jpeg");
    assert_eq!(files.len(), 8);
    assert!(files.iter().all(|file| file.metadata().unwrap().len() == 5003));
    // Files of the official generator.
    for file in &files {
        fs::write(file, [7; 5003]).unwrap();
    }
    fs::remove_file(&test.data_files("manifest.json")[0]).unwrap();
    fs::remove_dir_all(test.path("hydra_log")).unwrap();
    let answer = dlio_benchmark(&test, &["workload=tiny"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let names: Vec<PathBuf> =
        fs::read_dir(test.path("hydra_log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}
