//! DLIO's files: their keys, order, types and units as in DLIO's code, and their values.

use super::*;
use crate::example::{block, checkpoint_only_record, epoch, plan, record};
use crate::record::RankCheckpoint;
use feedrate_spec::plan::{EvaluationPlan, PlanDoubt};
use std::fs;

fn write_into(folder: &Path, record: &Record, invocation: &Invocation) {
    let mut files = NewFiles::new(folder);
    write(&mut files, record, invocation).unwrap();
    files.publish().unwrap();
}

/// A record of two accelerators and two epochs. The first epoch has two blocks, one second apart.
fn example() -> Record {
    let first = [(4000, 500, 0, 1_000_000), (500, 500, 0, 1_000_000), (0, 500, 500, 1_000_000)];
    let second = [(250, 500, 0, 1_000_000), (250, 500, 0, 1_000_000)];
    let two_blocks = || vec![block(1000, &first), block(8500, &second)];
    let one_block = || vec![block(20_000, &[&first[..], &second[..]].concat())];
    let epochs =
        vec![epoch(1, vec![two_blocks(), two_blocks()]), epoch(2, vec![one_block(), one_block()])];
    let mut record = record(plan(2, 5), epochs);
    record.epochs[0].host.meminfo = vec![("MemFree".into(), "1 kB".into())];
    record.plan.dataset.files_train = 10;
    record
}

fn hydra() -> Invocation {
    let hydra = HydraText {
        config: "workload: {}\n".into(),
        overrides: "- workload=example\n".into(),
        hydra: "hydra: {}\n".into(),
    };
    Invocation { subfolder: ".hydra".into(), hydra, ..Invocation::default() }
}

fn write_to_new_folder(record: &Record) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_into(folder.path(), record, &hydra());
    folder
}

#[test]
fn files_of_ranks_can_be_omitted() {
    let folder = tempfile::tempdir().unwrap();
    let invocation = Invocation { omits_rank_files: true, ..hydra() };
    write_into(folder.path(), &example(), &invocation);
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".hydra", "dlio.log", "summary.json"]);
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

/// Key and type of each entry, in order.
fn keys_and_types(value: &Value) -> Vec<String> {
    let type_name = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(list) if list.iter().all(Value::is_f64) => "[float]",
        Value::Array(list) if list.iter().all(Value::is_u64) => "[int]",
        Value::Array(_) => "[?]",
        Value::Object(_) => "{}",
    };
    value
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key} {}", type_name(value)))
        .collect()
}

#[test]
fn summary_json_has_dlios_keys_and_types() {
    let record = example();
    let summary = json(write_to_new_folder(&record).path(), "summary.json");
    assert_eq!(
        keys_and_types(&summary),
        [
            "start str",
            "num_accelerators int",
            "num_hosts int",
            "hostname str",
            "metric {}",
            "num_files_train int",
            "num_files_eval int",
            "num_samples_per_file int",
            "host_cpu_count [int]",
            "host_processor_name str",
            "potential_caching [int]",
            "host_cpuinfo {}",
            "host_meminfo {}",
            "host_memory_GB [float]",
            "data_size_per_host_GB float",
            "epochs int",
            "end str",
            "hosts [?]",
        ]
    );
    assert_eq!(keys_and_types(&summary["hosts"][0]), ["hostname str", "cpus_usable int"]);
    assert_eq!(
        keys_and_types(&summary["metric"]),
        [
            "train_au_percentage [float]",
            "train_au_mean_percentage float",
            "train_au_meet_expectation str",
            "train_au_stdev_percentage float",
            "train_throughput_samples_per_second [float]",
            "train_throughput_mean_samples_per_second float",
            "train_throughput_stdev_samples_per_second float",
            "train_io_mean_MB_per_second float",
            "train_io_stdev_MB_per_second float",
            "train_au_all_steps_percentage float",
            "train_io_delivered_mean_MB_per_second float",
        ]
    );
    assert_eq!(keys_and_types(&summary["host_cpuinfo"]), ["model name str"]);
    assert_eq!(summary["host_memory_GB"][0], 16.0);
    // Ten files of 1 MB.
    assert_eq!(summary["data_size_per_host_GB"], 1e7 / 1_073_741_824.0);
    assert_eq!(summary["potential_caching"][0], 1);
}

/// Utilisation by hand. Epoch 1: (0.5 + 0.5) / (6.5 − 4.5) in the block of three steps, 0.5 / (1.5 − 0.75) in the block of two. Epoch 2:
/// 4 · 0.5 / (8 − 4.5).
#[test]
fn summary_json_has_the_values_computed_by_hand() {
    let record = example();
    let metric = json(write_to_new_folder(&record).path(), "summary.json")["metric"].clone();
    let check = |key: &str, expected: f64| {
        let found = metric[key].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-12, "{key}: {found}, not {expected}");
    };
    let first_au = (50.0 * 3.0 + 0.5 / 0.75 * 100.0 * 2.0) / 5.0;
    let second_au = 2.0 / 3.5 * 100.0;
    check("train_au_mean_percentage", f64::midpoint(first_au, second_au));
    check("train_au_stdev_percentage", (second_au - first_au).abs() / 2.0);
    assert_eq!(metric["train_au_meet_expectation"], "fail");
    let first_rate = (2.0 / 2.0 * 3.0 + 1.0 / 0.75 * 2.0) / 5.0 * 2.0;
    let second_rate = 4.0 / 3.5 * 2.0;
    let mean_rate = f64::midpoint(first_rate, second_rate);
    check("train_throughput_mean_samples_per_second", mean_rate);
    check("train_io_mean_MB_per_second", mean_rate * 1e6 / 1_048_576.0);
    check("train_au_all_steps_percentage", f64::midpoint(2.5 / 8.0, 2.5 / 8.0) * 100.0);
    // Each accelerator reads 3 MB in 2 s and 0.75 s, then 4 MB in 3.5 s.
    check(
        "train_io_delivered_mean_MB_per_second",
        f64::midpoint(2.0 * 3.0 / 2.75, 2.0 * 4.0 / 3.5) * 1e6 / 1_048_576.0,
    );
}

#[test]
fn output_json_has_dlios_keys_types_and_values() {
    let folder = write_to_new_folder(&example());
    for rank in ["0", "1"] {
        let output = json(folder.path(), &format!("{rank}_output.json"));
        assert_eq!(
            keys_and_types(&output),
            [
                "host_memory_GB float",
                "host_cpu_count int",
                "host_processor_name str",
                "potential_caching int",
                "host_cpuinfo {}",
                "host_meminfo {}",
                "1 {}",
                "2 {}",
                "hostname str",
            ]
        );
        assert_eq!(
            keys_and_types(&output["1"]),
            [
                "load {}",
                "proc {}",
                "throughput {}",
                "au {}",
                "compute {}",
                "host_meminfo {}",
                "end str"
            ]
        );
        for list in ["load", "proc", "compute"] {
            assert_eq!(keys_and_types(&output["1"][list]), ["block1 [float]", "block2 [float]"]);
        }
        for number in ["throughput", "au"] {
            assert_eq!(keys_and_types(&output["1"][number]), ["block1 float", "block2 float"]);
        }
        assert_eq!(output["1"]["load"]["block1"], serde_json::json!([4.0, 0.5, 0.0]));
        assert_eq!(output["1"]["proc"]["block1"], serde_json::json!([4.5, 1.0, 0.5]));
        assert_eq!(output["1"]["compute"]["block2"], serde_json::json!([0.5, 0.5]));
        assert_eq!(output["1"]["au"]["block1"], 50.0);
        assert_eq!(output["1"]["throughput"]["block1"], 1.0);
        assert_eq!(output["2"].get("host_meminfo"), None);
    }
    assert!(!folder.path().join("2_output.json").exists());
}

#[test]
fn per_epoch_stats_json_has_dlios_keys_types_and_values() {
    let stats = json(write_to_new_folder(&example()).path(), "1_per_epoch_stats.json");
    assert_eq!(keys_and_types(&stats), ["1 {}", "2 {}"]);
    assert_eq!(
        keys_and_types(&stats["1"]),
        ["start str", "block1 {}", "block2 {}", "end str", "duration str"]
    );
    assert_eq!(keys_and_types(&stats["1"]["block2"]), ["start str", "end str", "duration str"]);
    // The epoch started 1 s after the run, at 23:59:59.5 local time.
    assert_eq!(stats["1"]["block1"]["start"], "2026-11-21T23:59:59.500000");
    assert_eq!(stats["1"]["block1"]["end"], "2026-11-22T00:00:06.000000");
    assert_eq!(stats["1"]["block2"]["start"], "2026-11-22T00:00:07.000000");
    assert_eq!(stats["1"]["block2"]["duration"], "1.50");
    assert_eq!(stats["1"]["duration"], "9.00");
}

#[test]
fn dlio_log_has_dlios_lines() {
    let folder = write_to_new_folder(&example());
    let log = fs::read_to_string(folder.path().join("dlio.log")).unwrap();
    let log = log.replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(log, @r"
    [OUTPUT] 2026-11-21T23:59:59.000000 Running DLIO [Training] with 2 process(es)
    [WARNING] The amount of dataset is smaller than the host memory; data might be cached after the first epoch. Increase the size of dataset to eliminate the caching effect!!!
    [OUTPUT] 2026-11-21T23:59:59.000000 Max steps per epoch: 5 = 1 * 10 / 1 / 2 (samples per file * num files / batch size / comm size)
    [OUTPUT] 2026-11-21T23:59:59.500000 Starting epoch 1: 5 steps expected
    [OUTPUT] 2026-11-21T23:59:59.500000 Starting block 1
    [OUTPUT] 2026-11-22T00:00:06.000000 Ending block 1 - 3 steps completed in 6.50 s
    [OUTPUT] 2026-11-22T00:00:06.000000 Epoch 1 - Block 1 [Training] Accelerator Utilization [AU] (%): 50.0000
    [OUTPUT] 2026-11-22T00:00:06.000000 Epoch 1 - Block 1 [Training] Throughput (samples/second): 2.0000
    [OUTPUT] 2026-11-22T00:00:06.000000 Epoch 1 - Block 1 [Training] Computation time per step (second): 0.5000+/-0.0000 (set value: {'mean': 0.5})
    [OUTPUT] 2026-11-22T00:00:07.000000 Starting block 2
    [OUTPUT] 2026-11-22T00:00:08.500000 Ending block 2 - 2 steps completed in 1.50 s
    [OUTPUT] 2026-11-22T00:00:08.500000 Epoch 1 - Block 2 [Training] Accelerator Utilization [AU] (%): 66.6667
    [OUTPUT] 2026-11-22T00:00:08.500000 Epoch 1 - Block 2 [Training] Throughput (samples/second): 2.6667
    [OUTPUT] 2026-11-22T00:00:08.500000 Epoch 1 - Block 2 [Training] Computation time per step (second): 0.5000+/-0.0000 (set value: {'mean': 0.5})
    [OUTPUT] 2026-11-22T00:00:09.500000 Ending epoch 1 - 5 steps completed in 9.00 s
    [OUTPUT] 2026-11-21T23:59:59.500000 Starting epoch 2: 5 steps expected
    [OUTPUT] 2026-11-21T23:59:59.500000 Starting block 1
    [OUTPUT] 2026-11-22T00:00:07.500000 Ending block 1 - 5 steps completed in 8.00 s
    [OUTPUT] 2026-11-22T00:00:07.500000 Epoch 2 - Block 1 [Training] Accelerator Utilization [AU] (%): 57.1429
    [OUTPUT] 2026-11-22T00:00:07.500000 Epoch 2 - Block 1 [Training] Throughput (samples/second): 2.2857
    [OUTPUT] 2026-11-22T00:00:07.500000 Epoch 2 - Block 1 [Training] Computation time per step (second): 0.5000+/-0.0000 (set value: {'mean': 0.5})
    [OUTPUT] 2026-11-22T00:00:09.500000 Ending epoch 2 - 5 steps completed in 8.00 s
    [OUTPUT] 2026-11-22T00:00:10.000000 Saved outputs in DIR
    [OUTPUT] Averaged metric over all steps/epochs
    [METRIC] ==========================================================
    [METRIC] Number of Simulated Accelerators: 2 
    [METRIC] Training Accelerator Utilization [AU] (%): 56.9048 (0.2381)
    [METRIC] Training Throughput (samples/second): 2.2762 (0.0095)
    [METRIC] Training I/O Throughput (MB/second): 2.1707 (0.0091)
    [METRIC] train_au_meet_expectation: fail
    [METRIC] ==========================================================

    [OUTPUT] 2026-11-22T00:00:10.000000 outputs saved in RANKID_output.json
    ");
}

#[test]
fn hydra_files_have_the_given_contents() {
    let folder = write_to_new_folder(&example());
    let read = |name: &str| fs::read_to_string(folder.path().join(".hydra").join(name)).unwrap();
    assert_eq!(
        HydraText {
            config: read("config.yaml"),
            overrides: read("overrides.yaml"),
            hydra: read("hydra.yaml")
        },
        hydra().hydra
    );
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{names:?}");
}

#[test]
fn unknown_values_have_no_key() {
    let mut record = record(plan(1, 1), vec![epoch(1, vec![vec![block(0, &[(10, 10, 0, 1)])]])]);
    record.system = crate::record::System::default();
    (record.started, record.ended, record.epochs[0].started) = Default::default();
    record.doubts =
        vec![PlanDoubt { name: "scaled".into(), evidence: String::new(), advice: String::new() }];
    let folder = write_to_new_folder(&record);
    let summary = json(folder.path(), "summary.json");
    assert_eq!(
        keys_and_types(&summary),
        [
            "num_accelerators int",
            "num_hosts int",
            "metric {}",
            "num_files_train int",
            "num_files_eval int",
            "num_samples_per_file int",
            "data_size_per_host_GB float",
            "epochs int",
        ]
    );
    assert_eq!(keys_and_types(&summary["metric"]), ["train_au_all_steps_percentage float"]);
    assert_eq!(
        keys_and_types(&json(folder.path(), "0_output.json")["1"]["au"]),
        Vec::<String>::new()
    );
    assert_eq!(
        keys_and_types(&json(folder.path(), "0_per_epoch_stats.json")["1"]["block1"]),
        ["duration str"]
    );
    let log = fs::read_to_string(folder.path().join("dlio.log")).unwrap();
    assert!(
        log.starts_with("[OUTPUT] Running DLIO [Training] with 1 process(es)\n")
            && !log.contains("Utilization")
    );
}

#[test]
fn an_empty_record_can_be_written() {
    let folder = write_to_new_folder(&record(plan(1, 1), vec![]));
    assert_eq!(json(folder.path(), "summary.json")["metric"], serde_json::json!({}));
    assert_eq!(json(folder.path(), "0_per_epoch_stats.json"), serde_json::json!({}));
}

/// The number of files exceeds the number that is kept open.
#[test]
fn every_accelerator_has_its_files() {
    let blocks = vec![vec![block(0, &[(10, 10, 0, 1)])]; 150];
    let folder = write_to_new_folder(&record(plan(150, 1), vec![epoch(1, blocks)]));
    for rank in 0..150 {
        assert!(folder.path().join(format!("{rank}_output.json")).exists());
        assert!(folder.path().join(format!("{rank}_per_epoch_stats.json")).exists());
    }
}

#[test]
fn checkpoints_are_logged_as_they_end() {
    let log_after = |checkpoints| log(&checkpoint_only_record(checkpoints), &hydra(), None);
    assert!(log_after(1).contains("Finished saving checkpoint 1"));
    assert!(log_after(2).contains("Starting saving checkpoint 2"));
    assert!(!log_after(2).contains("loading") && log_after(3).contains("Finished loading"));
}

#[test]
fn the_log_after_generation_starts_with_the_log_before_it() {
    let generation = Some(("T1".to_string(), String::new()));
    let mut invocation = Invocation { warnings: vec!["w".into()], generation, ..hydra() };
    let at_start = generation_log(1, &invocation);
    invocation.generation = Some(("T1".to_string(), "T2".to_string()));
    let at_end = generation_log(1, &invocation);
    assert!(at_end.starts_with(&at_start) && at_end.ends_with("T2 Generation done\n"), "{at_end}");
    assert!(at_start.contains("[WARNING] w"));
}

#[test]
fn the_log_has_sizes_and_durations_of_checkpoints() {
    let record = Record { complete: true, ..checkpoint_only_record(3) };
    let text = log(&record, &hydra(), Some(Path::new("DIR")));
    let metrics_start = text.find("[METRIC]").unwrap();
    let (before, metrics) = text.split_at(metrics_start);
    for line in [
        " Model size: 0.500000 GB \n",
        " Optimizer state size: 0.375000 GB \n",
        " Total checkpoint size: 0.875000 GB \n",
    ] {
        assert!(before.contains(line), "{line}{before}");
    }
    // 1 GiB was saved in 2 s and in 1 s, and loaded in half a second.
    for line in [
        "[METRIC] Checkpoint save duration (seconds): 1.5000 (0.5000)\n",
        "[METRIC] Checkpoint save I/O Throughput (GB/second): 0.7500 (0.2500)\n",
        "[METRIC] Checkpoint load duration (seconds): 0.5000 (0.0000)\n",
        "[METRIC] Checkpoint load I/O Throughput (GB/second): 2.0000 (0.0000)\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

/// Rank 0 wrote its files in 400 ms, 150 ms of them for the optimizer.
#[test]
fn the_log_separates_model_and_optimizer_of_rank_0() {
    let mut record = checkpoint_only_record(3);
    for checkpoint in &mut record.epochs[0].checkpoints {
        let start_ns = checkpoint.start_ns;
        let end_ns = start_ns + 400_000_000;
        checkpoint.ranks = vec![RankCheckpoint { rank: 0, start_ns, end_ns, bytes: 1, sync_ns: 0 }];
        checkpoint.optimizer_ns = Some(150_000_000);
    }
    let count = |record: &Record, line: &str| {
        let text = log(record, &hydra(), None);
        text.matches(&format!(" {line} seconds\n")).count()
    };
    for (line, lines) in [
        ("Saved model checkpoint in 0.2500", 2),
        ("Saved optimizer checkpoint in 0.1500", 2),
        ("Loaded model checkpoint in 0.2500", 1),
        ("Loaded optimizer checkpoint in 0.1500", 1),
    ] {
        assert_eq!(count(&record, line), lines, "{line}");
        // Older records do not have the optimizer's time.
        assert_eq!(count(&checkpoint_only_record(3), line), 0);
    }
}

#[test]
fn blocks_and_checkpoints_are_logged_in_their_order() {
    let mut record = example();
    let mut checkpoint = checkpoint_only_record(1).epochs[0].checkpoints[0].clone();
    (checkpoint.start_ns, checkpoint.end_ns) = (7_600_000_000, 8_400_000_000);
    record.epochs[0].checkpoints = vec![checkpoint];
    let log = log(&record, &hydra(), None);
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("no `{text}` in {log}"));
    let saved = place("Finished saving checkpoint 1");
    assert!(place("Ending block 1") < saved && saved < place("Starting block 2"), "{log}");
}

#[test]
fn an_epoch_ends_after_its_evaluation() {
    let mut record = example();
    let mut evaluation = record.epochs[0].clone();
    evaluation.ended = "2026-11-22T00:00:12.000000".into();
    record.evaluations = vec![evaluation];
    let (loader, train) = (record.plan.loader.clone(), record.plan.train.clone());
    let plan = EvaluationPlan { after_epoch: 1, epochs_between: 2, loader, train };
    record.plan.evaluation = Some(plan);
    let folder = write_to_new_folder(&record);
    for (file, has_evaluation) in [("0_per_epoch_stats.json", true), ("0_output.json", false)] {
        let written = json(folder.path(), file);
        assert_eq!(written["1"]["end"], "2026-11-22T00:00:12.000000", "{file}");
        assert_eq!(written["1"].get("eval").is_some(), has_evaluation, "{file}");
        assert_eq!(written["2"]["end"], "2026-11-22T00:00:09.500000", "{file}");
    }
}
