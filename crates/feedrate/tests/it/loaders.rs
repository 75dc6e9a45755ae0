//! Effects of the loader's settings on runs with real files.

use crate::harness::{TINY, Test};
use feedrate_engine::loader::LOADERS;
use serde_json::Value;

fn record(test: &Test, overrides: &[&str]) -> Value {
    let json = test.run_json(overrides);
    let path = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A counter of each accelerator in each epoch.
fn counts(record: &Value, counter: &str) -> Vec<Vec<u64>> {
    let epochs = record["epochs"].as_array().unwrap();
    let epoch_counts = |epoch: &Value| {
        let accelerators = epoch["accelerators"].as_array().unwrap();
        accelerators.iter().map(|a| a["io"][counter].as_u64().unwrap()).collect()
    };
    epochs.iter().map(epoch_counts).collect()
}

#[test]
fn samples_kept_in_memory_are_read_once() {
    for loader in LOADERS.iter().map(|loader| loader.entry().member.name) {
        let loader = format!("reader.data_loader={loader}");
        let test = Test::with_workload(TINY);
        let record = record(&test, &["reader.read_type=memory", "--verify", &loader]);
        assert!(counts(&record, "read_bytes")[0][0] > 8 * 4096);
        assert_eq!(counts(&record, "read_bytes")[1], [0], "{loader}");
        assert_eq!(counts(&record, "memory_bytes"), [[0], [8 * 4096]], "{loader}");
    }
}

#[test]
fn the_whole_epoch_is_read_before_its_first_step() {
    let test = Test::with_workload(TINY);
    let more = [
        "reader.read_at_start=true",
        "reader.read_type=memory",
        "reader.batch_size=1",
        "train.computation_time=0.002",
    ];
    let record = record(&test, &more);
    let accelerator = &record["epochs"][0]["accelerators"][0];
    let last_read_ns = accelerator["last_read_start_ns"].as_u64().unwrap();
    let block = &accelerator["blocks"][0];
    let first_step_ns = block["start_ns"].as_u64().unwrap() + block["load_ns"][0].as_u64().unwrap();
    assert!(last_read_ns < first_step_ns);
}

#[test]
fn a_weakly_scaled_dataset_grows_with_the_accelerators() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&["dataset.scaling=weak", "-n", "3", "reader.batch_size=2"]);
    assert_eq!(json["steps"], 4);
    assert_eq!(test.data_files(".npz").len(), 24);
}

#[test]
fn every_accelerator_can_read_the_same_samples() {
    let test = Test::with_workload(TINY);
    let record =
        record(&test, &["reader.file_access=same", "-n", "2", "train.epochs=1", "--verify"]);
    let samples = counts(&record, "samples");
    assert_eq!(samples, [[8, 8]], "both read all eight");
}

#[test]
fn one_accelerator_of_a_group_opens_the_files() {
    let test = Test::with_workload(TINY);
    let more = [
        "reader.file_access=collective",
        "reader.collective_size=2",
        "-n",
        "4",
        "reader.batch_size=1",
        "train.epochs=1",
        "--verify",
    ];
    let record = record(&test, &more);
    assert_eq!(counts(&record, "samples"), [[2, 2, 2, 2]]);
    test.feedrate(&["run", "workload.yaml", "reader.collective_size=2"])
        .warns(&["reader.collective_size"]);
}

#[test]
fn preprocessing_counts_as_decoding() {
    let test = Test::with_workload(TINY);
    let json =
        test.run_json(&["reader.preprocess_time=0.01", "reader.read_threads=1", "train.epochs=1"]);
    assert!(json["stall"]["decode_s"].as_f64().unwrap() >= 0.04 * 0.99, "{json}");
}

/// A sample costs 5 ms of processor time, much more than the compute time.
#[test]
fn the_clients_processor_time_is_spent_and_the_answer_has_both_utilisations() {
    let test = Test::with_workload(TINY);
    let compute = "train.computation_time=0.001";
    for threads in [0, 2] {
        let threads = format!("reader.read_threads={threads}");
        let json = test.run_json(&["client.per_sample=0.005", compute, &threads, "train.epochs=8"]);
        // While other tests keep the cores busy, no verdict names this cause.
        let verdict = json["verdict"]["name"].as_str().unwrap();
        assert!(["client-bound", "cpu-saturated"].contains(&verdict), "{json}");
        let stall = &json["stall"];
        for other in ["open_s", "read_s", "decode_s"] {
            assert!(stall[other].as_f64() < stall["client_s"].as_f64(), "{other}: {stall}");
        }
        let client = &json["answer"]["client"];
        assert_eq!((&client["kind"], &client["untold"]), (&"calibrated".into(), &Value::Null));
        assert_eq!(client["au_percent"], json["answer"]["au_percent"]);
        let ideal = &client["with_ideal_client"];
        assert_eq!(ideal["estimated"], true);
        assert_eq!(ideal["au_kind"], json["answer"]["au_kind"]);
        assert!(client["au_percent"].as_f64() < ideal["au_percent"].as_f64());
        let path = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
        let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let burnt = counts(&record, "client_burnt_ns");
        for (burnt, original) in burnt.iter().zip(counts(&record, "client_own_ns")) {
            assert!(8 * 5_000_000 <= burnt[0] + original[0] + 8, "{burnt:?} {original:?}");
        }
    }
    let rate = test.run_json(&["client.per_sample=0.001", "train.computation_time=0"]);
    let client = &rate["answer"]["client"];
    let values = (&client["au_percent"], &client["with_ideal_client"]);
    assert_eq!(values, (&Value::Null, &Value::Null), "nothing was computed");
    let ideal = test.run_json(&[compute]);
    assert_eq!(ideal["answer"]["client"]["kind"], "ideal");
    assert_eq!(ideal["stall"]["client_s"], Value::Null);
    test.feedrate(&["run", "workload.yaml", "client=pytorch-nothing"])
        .refuses(2, &["client.name", "`pytorch-nothing`", "pytorch-npz"]);
}

#[test]
fn shared_reading_is_refused_with_an_emulated_client() {
    let test = Test::with_workload(TINY);
    let plan = ["plan", "workload.yaml", "-n", "2", "client.per_sample=0.001"];
    for access in ["broadcast", "collective"] {
        let access = format!("reader.file_access={access}");
        test.feedrate(&[&plan[..], &[&access]].concat())
            .refuses(2, &["reader.file_access", "client's work", "hint:"]);
    }
    assert_eq!(test.feedrate(&[&plan[..], &["reader.file_access=same"]].concat()).code, 0);
}

/// Costs with which a batch or the run would practically not end.
#[test]
fn huge_client_costs_are_refused() {
    let test = Test::with_workload(TINY);
    for cost in ["per_byte=86400", "receive_per_byte=86400", "per_sample=1e300", "per_batch=86401"]
    {
        let key = cost.split('=').next().unwrap();
        let client = format!("client.{cost}");
        test.feedrate(&["plan", "workload.yaml", &client]).refuses(2, &[key, "hint:"]);
    }
    let steps = ["dataset.num_files_train=1000000", "client.per_batch=80000"];
    test.feedrate(&[&["plan", "workload.yaml"], &steps[..]].concat()).refuses(2, &["per_batch"]);
    assert_eq!(test.feedrate(&["plan", "workload.yaml", "client.per_batch=80000"]).code, 0);
}

#[test]
fn fewer_threads_can_decode_than_read() {
    let test = Test::with_workload(TINY);
    let more = [
        "reader.data_loader=tensorflow",
        "reader.read_threads=4",
        "reader.computation_threads=1",
        "--verify",
    ];
    assert_eq!(test.run_json(&more)["complete"], true);
    test.feedrate(&[
        "run",
        "workload.yaml",
        "reader.data_loader=tensorflow",
        "reader.computation_threads=0",
    ])
    .refuses(2, &["reader.computation_threads", "hint:"]);
}

#[test]
fn a_shuffle_buffer_may_be_longer_than_the_epoch() {
    let test = Test::with_workload(TINY);
    let more = [
        "reader.data_loader=tensorflow",
        "reader.sample_shuffle=seed",
        "reader.shuffle_size=1000000",
        "--verify",
    ];
    assert_eq!(test.run_json(&more)["complete"], true);
}

/// Blocks that an engine reads in addition to a sample count in both.
#[test]
fn steps_and_counters_agree_on_what_was_read() {
    for engine in ["psync", "mmap", "direct"] {
        let engine = format!("storage.engine={engine}");
        let test = Test::with_workload(TINY);
        let record = record(
            &test,
            &[
                "dataset.format=raw",
                "dataset.record_length_bytes=1000",
                "reader.batch_size=1",
                &engine,
            ],
        );
        for epoch in record["epochs"].as_array().unwrap() {
            let accelerator = &epoch["accelerators"][0];
            let by_step = accelerator["blocks"][0]["read_bytes"].as_array().unwrap();
            assert_eq!(by_step.last(), Some(&accelerator["io"]["read_bytes"]), "{engine}");
        }
    }
}

#[test]
fn reading_at_start_works_without_workers() {
    let test = Test::with_workload(TINY);
    for loader in LOADERS.iter().map(|loader| loader.entry().member.name) {
        let loader = format!("reader.data_loader={loader}");
        let json = test.run_json(&[
            "reader.read_threads=0",
            "reader.read_at_start=true",
            "reader.batch_size=1",
            &loader,
        ]);
        assert_eq!(json["complete"], true, "{loader}");
    }
}

/// Each accelerator reads the samples itself, even if others have read them.
#[test]
fn accelerators_do_not_share_samples_in_memory() {
    let test = Test::with_workload(TINY);
    let record = record(&test, &["reader.file_access=same", "reader.read_type=memory", "-n", "3"]);
    let opens = counts(&record, "opens");
    assert_eq!(opens, [[8, 8, 8], [0, 0, 0]]);
}

#[test]
fn settings_without_effect_are_named() {
    let test = Test::with_workload(TINY);
    for setting in
        ["reader.shuffle_size=10", "reader.computation_threads=9", "reader.file_access=posix"]
    {
        test.feedrate(&["run", "workload.yaml", setting]).warns(&["warning:", setting]);
    }
    let plan = |settings: &[&str]| test.feedrate(&[&["plan", "workload.yaml"], settings].concat());
    plan(&["reader.shuffle_block=4"]).warns(&["reader.shuffle_block", "reader.sample_shuffle"]);
    plan(&["reader.reread_share=0.5", "-n=1"]).warns(&["reader.reread_share", "several"]);
    plan(&["reader.transfer_size=200", "storage.engine=direct"])
        .warns(&["reader.transfer_size", "become 4096"]);
    plan(&["reader.head.bytes=4096"]).refuses(2, &["`0` reads of `4096` bytes", "hint:"]);
    plan(&["reader.reread_share=0.5", "-n=9"]).refuses(2, &["`9` accelerators share 8 files"]);
    let whole = "`0.5` becomes 1.00, since each accelerator reads 2 of 8 files";
    plan(&["reader.reread_share=0.5", "reader.batch_size=1", "-n=8"]).warns(&[whole]);
    plan(&["reader.reread_share=0.4", "-n=8"])
        .refuses(2, &["no file would be read twice", "hint:"]);
    let block = ["reader.sample_shuffle=seed", "reader.shuffle_block=8"];
    plan(&block).warns(&["reader.shuffle_block", "a block holds all 8 samples"]);
    let hdf5 = ["dataset.format=hdf5", "reader.transfer_size=1MiB"];
    let answer = test.feedrate(&[&["plan", "workload.yaml"], &hdf5[..]].concat());
    answer.warns(&["reader.transfer_size", "samples of this format are read one by one"]);
    for setting in
        ["reader.transfer_size=128MiB", "reader.odirect=true", "reader.computation_threads=0"]
    {
        let answer = test.feedrate(&["generate", "workload.yaml", "storage.engine=psync", setting]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
}

#[test]
fn huge_times_are_refused() {
    let test = Test::with_workload(TINY);
    for setting in ["reader.preprocess_time=1e30", "train.computation_time=1e30"] {
        test.feedrate(&["run", "workload.yaml", setting])
            .refuses(2, &["seconds on average", "hint:"]);
    }
}
