//! Workloads for stores with the keys that DLIO's and MLPerf Storage's own ones have, in `dlio_benchmark` and `feedrate`.

use crate::dlio_benchmark::dlio_benchmark;
use crate::harness::Test;
use crate::object_servers::StoreServer;
use serde_json::Value;
use std::fs;

/// As DLIO's workloads of S3: the bucket is in the folder and in the root, keys are in the file, and the path style is a boolean.
const DLIO: &str = "\
model:
  name: unet3d
  type: cnn
  model_size: 1000000
framework: pytorch
workflow:
  generate_data: True
  train: True
  checkpoint: False
dataset:
  data_folder: s3://bucket
  format: npz
  num_files_train: 14
  num_samples_per_file: 1
  record_length_bytes: 100000
  record_length_bytes_stdev: 0
  record_length_bytes_resize: 2097152
storage:
  storage_type: s3
  storage_root: bucket
  storage_options:
    access_key_id: access-key
    secret_access_key: secret-key
    endpoint_url: http://localhost:9020
    region: us-east-1
    s3_force_path_style: False
    s3_max_attempts: 5
reader:
  data_loader: pytorch
  batch_size: 7
  read_threads: 2
  file_shuffle: seed
  sample_shuffle: seed
train:
  epochs: 2
  computation_time: 0.01
checkpoint:
  checkpoint_folder: checkpoints/unet3d
  checkpoint_after_epoch: 5
  epochs_between_checkpoints: 2
metric:
  au: 0.90
";

/// As MLPerf Storage's workloads of stores: the client is named beside the options, keys are in the environment.
const MLPERF: &str = "\
model:
  name: unet3d
  type: cnn
  model_size: 1000000
framework: pytorch
workflow:
  generate_data: False
  train: True
  checkpoint: False
dataset:
  data_folder: test-run/unet3d
  format: npz
  num_files_train: 14
  num_samples_per_file: 1
  record_length_bytes: 100000
  record_length_bytes_stdev: 0
storage:
  storage_type: s3
  storage_root: bucket
  storage_library: s3dlio
  storage_options:
    endpoint_url: https://localhost:9000
    region: us-east-1
    secure: false
reader:
  data_loader: pytorch
  batch_size: 7
  read_threads: 2
  file_shuffle: seed
  sample_shuffle: seed
  multiprocessing_context: spawn
train:
  epochs: 2
  computation_time: 0.01
metric:
  au: 0.90
";

/// As the same with row groups: sections and options that DLIO ignores.
const ROW_GROUPS: &str = "\
model:
  name: dlrm
framework: pytorch
workflow:
  generate_data: false
  train: true
storage:
  storage_type: s3
  storage_root: bucket
  storage_options:
    prefetch_workers: 64
    endpoint_url: http://127.0.0.1:9200
dataset:
  format: parquet
  data_folder: data/dlrm/train
  num_files_train: 4
  num_samples_per_file: 2000
  record_length_bytes: 1024
  record_length_bytes_stdev: 0
reader:
  data_loader: pytorch
  read_threads: 2
  prefetch_size: 0
  read_type: on_demand
  batch_size: 100
train:
  computation_time: 0.001
  epochs: 1
  total_training_steps: -1
  seed_change_epoch: false
evaluation:
  eval_time: 0.0
  epochs_between_evals: 0
profiling:
  profiler: none
logging:
  verbosity: INFO
";

const GENERATE: [&str; 2] =
    ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"];
const LIBRARY: &str = "++workload.storage.storage_options.storage_library=s3dlio";

/// A store, and a test folder with a workload in `conf`.
fn start(yaml: &str) -> (StoreServer, Test) {
    let server = StoreServer::seaweed();
    let test = server.test();
    fs::create_dir_all(test.path("conf/workload")).unwrap();
    test.write("conf/workload/objects.yaml", yaml);
    (server, test)
}

/// Runs `dlio_benchmark` with the endpoint of the store, and returns the summary.
#[track_caller]
fn run(server: &StoreServer, test: &Test, overrides: &[&str]) -> Option<Value> {
    let endpoint = format!("++workload.storage.storage_options.endpoint_url={}", server.endpoint());
    let run_dir = format!("hydra.run.dir=run-{}", overrides.len());
    let arguments = [&["workload=objects", &endpoint, &run_dir], overrides].concat();
    let answer = dlio_benchmark(test, &arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let summary = test.path(&format!("run-{}/summary.json", overrides.len()));
    Some(serde_json::from_slice(&fs::read(summary).ok()?).unwrap())
}

/// Checks that a run read a number of files, each of which a client that is not feedrate finds below the prefix.
#[track_caller]
fn check(server: &StoreServer, test: &Test, summary: Option<Value>, prefix: &str, files: u64) {
    let summary = summary.expect("the run has a summary");
    assert_eq!(summary["num_files_train"], files, "{summary}");
    assert!(summary["metric"]["train_au_mean_percentage"].as_f64().unwrap() > 0.0, "{summary}");
    server.python(test, &["get", prefix, "copy"]);
    assert_eq!(test.files_below("copy", "").len() as u64, files);
}

#[test]
fn a_workload_as_those_of_dlio_generates_and_reads_objects() {
    let (server, test) = start(DLIO);
    let keys = [
        "++workload.storage.storage_options.access_key_id=key",
        "++workload.storage.storage_options.secret_access_key=secret-of-the-test",
    ];
    // Another format replaces the objects of the first one, as do DLIO's three workloads, which have one bucket.
    for format in ["npz", "npy"] {
        let format = format!("++workload.dataset.format={format}");
        let summary = run(&server, &test, &[&keys[..], &[&format]].concat());
        check(&server, &test, summary, "train/", 14);
        fs::remove_dir_all(test.path("copy")).unwrap();
    }
}

#[test]
fn a_workload_as_those_of_mlperf_storage_generates_and_reads_objects() {
    let (server, test) = start(MLPERF);
    assert_eq!(run(&server, &test, &GENERATE), None);
    let summary = run(&server, &test, &[]);
    check(&server, &test, summary, "test-run/unet3d/train/", 14);
    // The client is known, whether it is named beside the options or in them.
    let plan = |settings: &[&str]| {
        let file = "conf/workload/objects.yaml";
        let answer = test.feedrate(&[&["plan", file, "--json"], settings].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()["plan"]["loader"]["requests"].clone()
    };
    let beside = plan(&[]);
    let inside = plan(&[
        "++storage.storage_library=null",
        "++storage.storage_options.storage_library=minio",
    ]);
    let neither = plan(&["++storage.storage_library=null"]);
    assert_eq!(beside["in_flight"], 64);
    assert_eq!(beside, inside);
    assert_eq!(neither, Value::Null);
    let file = "conf/workload/objects.yaml";
    let by_type = ["storage.storage_type=s3dlio", "++storage.storage_library=null"];
    for (settings, key) in
        [(&[][..], "storage.storage_library"), (&by_type, "storage.storage_type")]
    {
        let noted = test.feedrate(&[&["plan", file], settings].concat()).stderr;
        let expected = format!("{key}: the library `s3dlio` is not used");
        assert_eq!(noted.matches(&expected).count(), 1, "{noted}");
    }
}

#[test]
fn a_workload_of_row_groups_reads_objects() {
    let (server, test) = start(ROW_GROUPS);
    assert_eq!(run(&server, &test, &GENERATE), None);
    let summary = run(&server, &test, &[LIBRARY]);
    check(&server, &test, summary, "data/dlrm/train/train/", 4);
}
