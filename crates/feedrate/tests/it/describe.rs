//! `plan`, `list` and `system`: commands that run nothing. Long because it tests four commands.

use crate::harness::{TINY, Test};
use serde_json::Value;

fn json(test: &Test, arguments: &[&str]) -> Value {
    let answer = test.feedrate(arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap()
}

/// The estimate in the plan of `workload.yaml` with the arguments `more`.
fn estimate(test: &Test, more: &[&str]) -> Value {
    let plan = ["plan", "workload.yaml", "--json"];
    json(test, &[&plan, more].concat())["estimate"].clone()
}

#[test]
fn a_plan_has_files_bytes_and_steps() {
    let test = Test::with_workload(TINY);
    let answer = json(&test, &["plan", "workload.yaml", "--json", "train.computation_time=0.5"]);
    let estimate = &answer["estimate"];
    assert_eq!(estimate["files"], 8);
    assert_eq!(estimate["steps_per_epoch"], 2);
    assert_eq!(estimate["train_payload_bytes"], 8 * 4096);
    assert_eq!(estimate["epoch_least_s"], 1.0);
    assert_eq!(estimate["needed_bytes_per_second"], 4.0 * 4096.0 / 0.5);
    assert!(!test.path("data").exists(), "a plan writes nothing");
    // Two steps of four samples. One worker needs 2 s per batch, or the training process needs 0.5 s to receive a batch.
    let worker = "calibrated: a worker needs 2 s per batch, the training process 0 s; 0 s to";
    let training = "calibrated: a worker needs 0 s per batch, the training process 500 ms; 0 s";
    for (client, least_s, says) in
        [("client.per_sample=0.5", 4.0, worker), ("client.receive_per_batch=0.5", 2.0, training)]
    {
        let with = ["plan", "workload.yaml", "train.computation_time=0.5", client];
        let answer = json(&test, &[&with[..], &["--json"]].concat());
        assert_eq!(answer["estimate"]["epoch_least_s"], least_s);
        let text = test.feedrate(&with).stdout;
        assert!(text.contains(says) && text.contains("ever waits for storage\n"), "{text}");
    }
    // Batches of at least 16 KiB at 1 kB/s.
    for client in ["client.shared_bytes_per_second=1000", "client.pin_bytes_per_second=1000"] {
        let with = ["plan", "workload.yaml", "train.computation_time=0.5", client];
        let answer = json(&test, &[&with[..], &["--json"]].concat());
        let least_s = answer["estimate"]["epoch_least_s"].as_f64().unwrap();
        assert!(least_s >= 2.0 * 4.0 * 4.096, "{client}: {least_s}");
        let text = test.feedrate(&with).stdout;
        assert!(text.contains("to start an epoch; at most one batch every "), "{text}");
    }
}

/// Batch size × record size ÷ compute time of the official configurations of v3.0.
#[test]
fn workloads_of_mlperf_need_the_official_rates() {
    let test = Test::with_workload(TINY);
    for (workload, batch_bytes, compute_s, status) in [
        ("unet3d_b200", 7.0 * 146_600_628.0, 0.162, "official: figures of MLPerf Storage v3.0"),
        ("retinanet_b200", 24.0 * 322_957.0, 0.04755, "official: figures of MLPerf Storage v3.0"),
        ("retinanet_mi355", 36.0 * 322_957.0, 0.071325, "official: figures of MLPerf Storage v3.0"),
        ("flux_b200", 48.0 * 2_164_832.0, 1.35, "whatif: MLPerf Storage v3.0 accepts no"),
        ("flux_mi355", 72.0 * 2_164_832.0, 2.025, "whatif: MLPerf Storage v3.0 accepts no"),
        ("dlrm_b200", 16_384.0 * 761.0, 0.000375, "whatif: MLPerf Storage v3.0 accepts no sub"),
        ("dlrm_mi355", 16_384.0 * 761.0, 0.0005625, "whatif: MLPerf Storage v3.0 accepts no"),
        (
            "unet3d_mi355",
            7.0 * 146_600_628.0,
            0.162,
            "chosen, not official: 0.162 s a batch; can be",
        ),
    ] {
        let estimate = json(&test, &["plan", workload, "--json"])["estimate"].clone();
        let rate = estimate["needed_bytes_per_second"].as_f64().unwrap();
        let expected = batch_bytes / compute_s;
        assert!((rate / expected - 1.0).abs() < 0.01, "{workload}: {rate} instead of {expected}");
        let page = test.feedrate(&["plan", workload]).stdout;
        assert!(page.contains(&format!("MLPerf status     {status}")), "{page}");
    }
    let small = ["dataset.record_length_bytes=4096", "dataset.record_length_bytes_stdev=0"];
    let scale = ["scale", "unet3d_mi355", "--dry-run", "--max", "2"];
    let page = test.feedrate(&[&scale[..], &small].concat()).stdout;
    assert!(page.contains("MLPerf status      chosen, not official: 0.162 s a batch"), "{page}");
    let changed = test.feedrate(&["plan", "retinanet_b200", "reader.batch_size=8"]).stdout;
    assert!(!changed.contains("MLPerf status"), "{changed}");
    let class = "no official class: `reader.batch_size` differs from retinanet-b200-A";
    assert!(changed.contains(class), "{changed}");
    let official = test.feedrate(&["plan", "retinanet_b200", "reader.read_threads=9"]).stdout;
    assert!(official.contains("  retinanet-b200-A, comparable with v3.0\n"), "{official}");
    for (options, class) in [
        (
            ["retinanet_b200", "--scale", "0.01"],
            "no official class: `--scale` differs from retinanet-b200-A",
        ),
        (
            ["retinanet_b200", "--shrink-records", "0.5"],
            "no official class: `--shrink-records` differs",
        ),
        (["llama3_8b", "--scale", "0.01"], "no official class: `--scale` differs from llama3-8b-A"),
    ] {
        let page = test.feedrate(&[&["plan"], &options[..]].concat()).stdout;
        assert!(page.contains(class), "{page}");
    }
}

/// Both workloads have the same model. Neither the number of files nor that of threads changes a class.
#[test]
fn records_keep_the_class_and_the_name_of_the_workload() {
    let test = Test::new();
    for (workload, files) in [("retinanet_b200", 24), ("retinanet_mi355", 36)] {
        let files = format!("dataset.num_files_train={files}");
        let run = ["run", workload, &files, "reader.read_threads=2", "--results", "r", "--quiet"];
        assert_eq!(test.feedrate(&run).code, 0);
    }
    let answer = json(&test, &["analyze", "r", "--json"]);
    let runs = answer["runs"].as_array().unwrap();
    let mut classes = Vec::from_iter(runs.iter().map(|run| {
        (run["workload"].as_str().unwrap(), run["mlperf_class"]["class"].as_str().unwrap())
    }));
    classes.sort();
    let expected =
        [("retinanet_b200", "retinanet-b200-A"), ("retinanet_mi355", "retinanet-mi355-A")];
    assert_eq!(classes, expected);
    let page = test.feedrate(&["analyze", "r"]).stdout;
    let line = "retinanet-b200-A, comparable with v3.0 (1 run); retinanet-mi355-A, comparable with v3.0 (1 run)";
    assert!(page.contains(line), "{page}");
}

/// 500 steps of 25 batches of 7 need 87,500 files. The workload's own 168 files are too few for one step.
#[test]
fn a_plan_has_the_required_number_of_files_if_the_workload_has_too_few() {
    let test = Test::with_workload(TINY);
    let plan = ["plan", "unet3d_h100", "-n", "25", "--memory", "189GiB"];
    let answer = json(&test, &[&plan[..], &["--json"]].concat());
    assert_eq!(answer["mlperf"]["files_min"], 87_500);
    assert_eq!(answer["mlperf"]["dataset_is_large_enough"], false);
    assert_eq!(answer["plan"]["dataset"]["files_train"], 87_500);
    assert_eq!(answer["estimate"]["steps_per_epoch"], 500);
    let page = test.feedrate(&plan).stdout;
    let words = "the workload has 168, too few for one step, so this plan uses more";
    assert!(page.contains(words), "{page}");
    // A number of files given by the user, and a run, are refused with the sufficient number.
    let hint = "`dataset.num_files_train=175` or more";
    test.feedrate(&[&plan[..], &["dataset.num_files_train=168"]].concat()).refuses(2, &[hint]);
    test.feedrate(&["run", "unet3d_h100", "-n", "25", "--dry-run"]).refuses(2, &[hint]);
    for number in ["256", "1e9"] {
        let without_unit = ["plan", "unet3d_b200", "--memory", number];
        test.feedrate(&without_unit).refuses(2, &["a size with its unit, as in `256GiB`"]);
    }
}

/// The rate of the required dataset does not depend on the sizes that few files happen to have: 8 × 7 samples of 146.6 MB in 323 ms, of which
/// 90 %.
#[test]
fn the_rate_for_mlperf_is_that_of_the_required_dataset() {
    let test = Test::new();
    let with = ["plan", "unet3d_h100", "-n", "8", "--memory", "16GiB"];
    for files in ["168", "28000"] {
        let files = format!("dataset.num_files_train={files}");
        let page = test.feedrate(&[&with[..], &[&files]].concat()).stdout;
        assert!(page.contains("(4.1 TB) and 90 % AU (22.9 GB/s)"), "{page}");
    }
}

#[test]
fn a_plan_names_the_latency_that_its_readers_can_bear() {
    let test = Test::with_workload(TINY);
    let plan = |more: &[&str]| {
        let with = [
            "plan",
            "workload.yaml",
            "-n",
            "2",
            "dataset.format=raw",
            "dataset.num_files_train=64",
            "dataset.num_samples_per_file=1",
            "dataset.record_length_bytes=65536",
            "reader.data_loader=pytorch",
            "reader.batch_size=1",
            "train.computation_time=0.02",
        ];
        test.feedrate(&[&with[..], more].concat()).stdout
    };
    let line = "required latency  reads of 65.5 kB take at most 40 ms on average: 4 readers, 100 reads/s (without decoding)";
    let page = plan(&["reader.read_threads=2"]);
    assert!(page.contains(line), "{page}");
    // A training thread that reads does not compute meanwhile.
    let page = plan(&["reader.read_threads=0"]);
    assert!(page.contains("required rate") && !page.contains("required latency"), "{page}");
    // A read may serve several samples of a file.
    let page = plan(&["reader.read_threads=2", "dataset.num_samples_per_file=4"]);
    let line = "required latency  unknown: a read may serve several samples; request the rate only";
    assert!(page.contains(line), "{page}");
    // Bytes per second that were meant as megabytes.
    let limit = "storage.throttle.bytes_per_second";
    let warned = test.feedrate(&["plan", "quickstart", &format!("{limit}=200")]).stderr;
    assert!(warned.contains("delivers 200 bytes per second"), "{warned}");
    assert!(warned.contains("did you mean `200MB/s`?"), "{warned}");
    let usual = test.feedrate(&["plan", "quickstart", &format!("{limit}=200kB/s")]).stderr;
    assert!(!usual.contains("did you mean"), "{usual}");
    // The mean of few drawn sizes differs from that of the distribution.
    let drawn = |files: &str| test.feedrate(&["plan", "unet3d_h100", "-n", "8", files]).stdout;
    let page = drawn("dataset.num_files_train=168");
    assert!(page.contains("required rate     26.1 GB/s from the storage"), "{page}");
    assert!(
        page.contains("173 files/s; 25.4 GB/s with many files, whose mean size differs"),
        "{page}"
    );
    assert!(!drawn("dataset.num_files_train=28000").contains("with many files"));
    let requests = test.feedrate(&["plan", "unet3d_b200", "-n", "8", "--hosts", "2"]).stdout;
    let rehearsal = "To rehearse a submission on one host with this machine's memory:\n";
    assert!(requests.contains(rehearsal), "{requests}");
    assert!(requests.contains("take at most 92.6 ms on average: 32 in flight"), "{requests}");
}

/// The command of the plan itself comes before that of MLPerf's rules.
#[test]
fn a_plan_ends_with_its_own_command_and_that_of_the_rules() {
    let test = Test::new();
    let plan = ["run", "unet3d_h100", "--data", ".", "-n", "1", "--scale", "0.5", "--dry-run"];
    let page = test.feedrate(&plan).stdout;
    let own = "To generate and run it:\n  feedrate run unet3d_h100 --data . --scale 0.5 -n 1\n";
    let rules = "For MLPerf's rules:\n  feedrate run unet3d_h100 dataset.num_files_train=";
    let [own, rules] = [own, rules].map(|words| page.find(words).expect(&page));
    assert!(own < rules, "{page}");
}

/// A scale that is too small gets the smallest sufficient dataset with its bytes, and the other ways out.
#[test]
fn a_scale_with_too_few_samples_gets_sufficient_sizes() {
    let test = Test::new();
    let plan = |accelerators: &str, scale: &str| {
        let plan = ["run", "unet3d_h100", "--data", ".", "-n", accelerators, "--scale", scale];
        test.feedrate(&[&plan[..], &["--dry-run"]].concat())
    };
    let other = "fewer accelerators (`-n`) or a smaller `reader.batch_size`";
    let one_step = "give `--scale 0.34` or more (8.6 GB) for one step, or for a certain answer more files: `dataset.num_files_train=336` or more (49.9 GB";
    plan("8", "0.05").refuses(2, &["`--scale 0.05` leaves 8 samples", one_step, other]);
    plan("1", "0.01").refuses(2, &["give `--scale 0.25` or more (6.", other]);
    let sufficient = plan("1", "0.25");
    assert_eq!(sufficient.code, 0, "{}", sufficient.stderr);
    assert!(!sufficient.stdout.contains("window_shorter_than_stock"), "{}", sufficient.stdout);
    plan("1", "5%").refuses(2, &["'5%'", "write `0.05`"]);
}

#[test]
fn a_plan_judges_what_it_decides() {
    let test = Test::with_workload(TINY);
    let many = ["plan", "unet3d_b200", "-n", "204", "--memory", "189GiB", "--hosts", "51"];
    let page = test.feedrate(&many).stdout;
    for words in [
        "requires at least 714,000 files (104.7 TB)",
        "rules of v3.0:\n",
        "unknown 3.3.2 windowed AU (at least 90 %)\n",
        ": 4 batches of 1 GB for each of 204 accelerators",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let small = ["plan", "unet3d_b200", "--memory", "189GiB", "dataset.num_files_train=100"];
    let page = test.feedrate(&small).stdout;
    let breaks = "broken  3.1.2 dataset ÷ memory 0.07 (at least 5)\n";
    assert!(page.contains(breaks), "{page}");
    let scaled = test.feedrate(&["plan", "unet3d_mi355", "--scale", "0.01"]).stdout;
    assert!(scaled.contains("broken  3.6.2 changed settings `--scale`"), "{scaled}");
    let uneven = ["plan", "unet3d_b200", "-n", "8", "--memory", "256GiB", "--hosts", "3"];
    let page = test.feedrate(&uneven).stdout;
    let breaks = "broken  3.3.6 accelerators per host 2.67 (equal on all hosts)\n";
    assert!(page.contains(breaks), "{page}");
    let retinanet =
        |memory| ["plan", "retinanet_b200", "-n", "8", "--memory", memory, "--hosts", "2"];
    let page = test.feedrate(&retinanet("256GB")).stdout;
    for words in [
        "requires at least 7,926,752 files",
        "as GiB, like mlpstorage's `--client-host-memory-in-gb 256`: 8,511,285 files\n",
        "163 MB/s for each accelerator; 4,038 files/s\n",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let page = test.feedrate(&retinanet("256GiB")).stdout;
    assert!(page.contains("requires at least 8,511,285 files"), "{page}");
    assert!(!page.contains("as GiB"), "{page}");
    let disputed = ["plan", "llama3_8b", "--memory", "256GiB", "--hosts", "2"];
    let page = test.feedrate(&disputed).stdout;
    for words in [
        "unknown 4.6.2 processes per host 4 (more than 4; exactly 4 is disputed: ",
        "10 times written (1.1 TB) and 10 times read",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let few = ["plan", "llama3_405b", "--memory", "256GiB", "--hosts", "8"];
    let page = test.feedrate(&few).stdout;
    assert!(page.contains("more than its 256 GiB; 32 hosts of this memory suffice\n"), "{page}");
    let small = ["plan", "llama3_8b", "--memory", "64GiB"];
    let page = test.feedrate(&small).stdout;
    let few =
        "more than its 64 GiB; no number of hosts with more than 4 ranks each has enough memory\n";
    assert!(page.contains(few), "{page}");
    let llama = ["plan", "llama3_70b", "--memory", "256GiB", "--hosts", "8"];
    let page = test.feedrate(&llama).stdout;
    for words in [
        "a checkpoint needs 122.3 GB of memory on each of 8 hosts (8 ranks of at most 15.3 GB), of 256 GiB\n",
        "feedrate run llama3_70b --rehearse checkpoint.checkpoint_folder=DIR",
        "kept    4.3.1 written ÷ memory 4.45 (at least 3, or caches dropped before the reads)\n",
        "kept    4.6.1 processes 64 (64 = tensor 8 × pipeline 1 × data 8)\n",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let answer = json(&test, &[&llama[..], &["--json"]].concat());
    assert_eq!(answer["mlperf_checkpoint"]["host_bytes"], 8 * 15_287_602_688_u64);
    assert_eq!(answer["mlperf_checkpoint"]["rules"]["keeps"], true);
}

#[test]
fn a_plan_for_many_hosts_may_exceed_the_threads_of_one_process() {
    let test = Test::with_workload(TINY);
    let many = ["flux_b200", "-n", "2048"];
    let answer = json(&test, &[&["plan"], &many[..], &["--memory", "189GiB", "--json"]].concat());
    assert_eq!(answer["mlperf"]["files_for_steps"], 170_667);
    let threads = "2,048 reading accelerators with 520 threads each need `1064960` threads";
    let refused = test.feedrate(&[&["run"], &many[..], &["--dry-run"]].concat());
    refused.refuses(2, &[threads, "or a smaller `reader.in_flight`"]);
}

/// A decoded image is larger than its file; a decoded number is smaller than its text.
#[test]
fn the_required_rate_counts_stored_bytes() {
    for (format, is_smaller) in [("jpeg", true), ("csv", false)] {
        let test = Test::with_workload(TINY);
        let format = format!("dataset.format={format}");
        let plan = ["plan", "workload.yaml", &format, "train.computation_time=0.5"];
        let answer = json(&test, &[&plan[..], &["--json"]].concat());
        let number = |key: &str| answer["estimate"][key].as_f64().unwrap();
        let stored = number("file_bytes") / 8.0;
        assert_eq!(number("sample_bytes_mean") > stored, is_smaller);
        assert_eq!(number("needed_bytes_per_second"), 4.0 * stored / 0.5);
        assert_eq!(number("accelerator_epoch_bytes"), 8.0 * stored);
        let text = test.feedrate(&plan).stdout;
        assert!(text.contains("4.1 kB decoded, about "), "{text}");
        assert!(text.contains("required rate     about "), "{text}");
        let [doubt] = ["dataset has "].map(|words| text.split_once(words).unwrap().1);
        let bytes_text = text.split_once("about ").unwrap().1.split_once(" on storage").unwrap().0;
        assert!(doubt.starts_with(bytes_text), "{text}");
    }
}

#[test]
fn reads_of_file_heads_count_in_the_plan() {
    let test = Test::with_workload(TINY);
    let estimate =
        |more: &[&str]| estimate(&test, &[&["train.computation_time=0.5"], more].concat());
    let with =
        |bytes: &str| estimate(&["reader.head.reads=2", &format!("reader.head.bytes={bytes}")]);
    assert_eq!(with("1024")["needed_bytes_per_second"], 4.0 * (4096.0 + 2048.0) / 0.5);
    assert_eq!(with("1024")["accelerator_epoch_bytes"], 8.0 * (4096.0 + 2048.0));
    let large = with("4MiB");
    let file_bytes = large["file_bytes"].as_f64().unwrap() / 8.0;
    assert_eq!(large["needed_bytes_per_second"], 4.0 * (4096.0 + file_bytes) / 0.5);
    let as_long = estimate(&["reader.transfer_size=4MiB"]);
    assert_eq!(large["loader_memory_bytes"], as_long["loader_memory_bytes"]);
    assert_ne!(large["loader_memory_bytes"], estimate(&[])["loader_memory_bytes"]);
}

#[test]
fn dropped_samples_count_only_samples_that_would_be_read() {
    let test = Test::with_workload(TINY);
    let estimate = |more: &[&str]| estimate(&test, &[&["reader.batch_size=1"], more].concat());
    let settings = ["reader.reread_share=0.9", "-n=8", "dataset.num_files_train=15"];
    let uneven = estimate(&[&settings[..], &["dataset.num_samples_per_file=4"]].concat());
    assert_eq!((&uneven["steps_per_epoch"], &uneven["dropped_samples"]), (&12.into(), &0.into()));
    let batches = estimate(&[&settings[..], &["reader.batch_size=2"]].concat());
    assert_eq!((&batches["steps_per_epoch"], &batches["dropped_samples"]), (&1.into(), &8.into()));
}

#[test]
fn planned_bytes_equal_the_generated_bytes() {
    for format in ["npz", "npy", "indexed_binary"] {
        let test = Test::with_workload(TINY);
        let overrides = [
            format!("dataset.format={format}"),
            "dataset.record_length_bytes_stdev=1000".into(),
            "dataset.num_samples_per_file=2".into(),
        ];
        let mut arguments = vec!["plan", "workload.yaml", "--json"];
        arguments.extend(overrides.iter().map(String::as_str));
        let planned = json(&test, &arguments)["estimate"]["file_bytes"].as_u64().unwrap();
        arguments[0] = "generate";
        json(&test, &arguments);
        let generated: u64 = test
            .data_files("")
            .iter()
            .filter(|f| !["manifest.json", ".feedrate.lock"].iter().any(|other| f.ends_with(other)))
            .map(|f| f.metadata().unwrap().len())
            .sum();
        assert_eq!(planned, generated, "{format}");
    }
}

#[test]
fn fifty_million_files_can_be_planned() {
    let test = Test::with_workload(TINY);
    let answer =
        json(&test, &["plan", "workload.yaml", "--json", "dataset.num_files_train=50000000"]);
    assert_eq!(answer["estimate"]["steps_per_epoch"], 12_500_000);
}

#[test]
fn a_checkpoint_that_is_not_reached_is_accepted_with_a_doubt() {
    let test = Test::new();
    let answer = json(&test, &["plan", "unet3d_h100_custom", "train.epochs=2", "--json"]);
    let doubts = answer["plan"]["doubts"].to_string();
    assert!(doubts.contains("checkpoint_not_reached"), "{doubts}");
}

#[test]
fn every_family_is_listed_and_described() {
    let test = Test::new();
    for family in [
        "workloads",
        "formats",
        "storages",
        "engines",
        "loaders",
        "clients",
        "checkpoints",
        "computes",
        "comms",
        "launches",
        "designs",
        "choosers",
        "keys",
        "metrics",
        "doubts",
        "verdicts",
        "advice",
        "plots",
    ] {
        let items = json(&test, &["list", family, "--json"]);
        let items = items["members"].as_array().unwrap();
        assert!(!items.is_empty(), "{family}");
        let name = items[0]["name"].as_str().unwrap();
        let answer = test.feedrate(&["list", family, name]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(!answer.stdout.trim().is_empty());
    }
}

#[test]
fn names_are_explained_without_their_family_and_ambiguous_names_are_listed() {
    let test = Test::new();
    let list = |words: &[&str]| {
        let answer = test.feedrate(&[&["list"], words].concat());
        assert_eq!(answer.code, 0, "{words:?}: {}", answer.stderr);
        answer.stdout
    };
    let key = list(&["reader.read_threads"]);
    assert!(key.contains("Number of reading workers per accelerator"), "{key}");
    assert_eq!(list(&["read_threads"]), key);
    assert_eq!(
        list(&["record_length"]),
        list(&["dataset.record_length_bytes"]),
        "an alias of the key"
    );
    for (words, says) in [
        (&["storage-bound"][..], "Reading from the storage held the accelerators up."),
        (&["page_cache"], "page cache"),
        (&["header_once"], "`reader.sample_shuffle=off`, shuffle files instead"),
        (&["advice", "read_threads"], "threads wait for the latency of one request"),
        (&["au_sustained"], "percent"),
        (&["verdict", "cache-fed"], "nothing is known about the storage"),
    ] {
        let output = list(words).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains(says), "{words:?}: {output}");
    }
    let several = list(&["raw"]);
    let names: Vec<&str> = several.lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(names, ["formats raw", "checkpoints raw"]);
    assert!(
        list(&["checkpoint", "raw"]).contains("the bytes of the state"),
        "{}",
        list(&["checkpoint", "raw"])
    );
    let sections = list(&["chunk_dims"]);
    assert!(sections.contains("keys dataset.hdf5.chunk_dims"), "{sections}");
    let au = list(&["au_all_steps"]);
    assert_eq!(list(&["au_all_steps_percent"]), au, "the name in columns of CSV files");
    let both = list(&["au_all_steps_percent", "raw", "storage-bound"]);
    let bound = list(&["storage-bound"]);
    let parts = [&*au, &*several, &*bound].map(str::trim_end);
    assert_eq!(both.trim_end(), parts.join("\n\n"));
    let checkpoints = list(&["checkpoint", "raw", "safetensors"]);
    assert!(checkpoints.contains(list(&["checkpoint", "raw"]).trim_end()), "{checkpoints}");
    let members = json(&test, &["list", "raw", "au_windowed", "--json"])["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 3);
    let members = json(&test, &["list", "raw", "--json"])["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 2);
    test.feedrate(&["list", "threads"]).refuses(
        2,
        &["nothing is named `threads`", "`reader.read_threads`", "`reader.computation_threads`"],
    );
    test.feedrate(&["list", "colour"]).refuses(2, &["hint: `feedrate list --help`"]);
}

#[test]
fn a_client_is_described_with_its_costs_and_machine() {
    let answer = Test::new().feedrate(&["list", "client", "pytorch-npz"]);
    let output = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["74 µs per sample", "1.4 GB/s", "measured on AMD EPYC, 2 cores; PyTorch"] {
        assert!(output.contains(words), "{output}");
    }
}

#[test]
fn the_system_is_described_by_its_components() {
    let test = Test::new();
    let answer = test.feedrate(&["system"]);
    assert_eq!(answer.code, 0);
    for word in ["CPU ", " socket", "\nMemory ", "\nGPU ", "\nStorage ", " free of "] {
        assert!(answer.stdout.contains(word), "{}", answer.stdout);
    }
}
