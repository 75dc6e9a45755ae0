//! Runs on a store whose reads fail: bytes are right or the error names the object, and the record has each repetition.

use crate::fault_proxy::{Behaviour, Fault, FaultProxy};
use crate::harness::{Answer, Test, wait_until};
use crate::object_servers::StoreServer;
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// 120 reads of an epoch: each sample is a file.
const WORKLOAD: &str = "\
model: {name: faults}
framework: pytorch
dataset: {format: npy, num_files_train: 120, record_length_bytes: 100000}
reader: {data_loader: pytorch, batch_size: 4, read_threads: 4}
train: {epochs: 1, computation_time: 0.05}
";

/// Bytes of the samples of an epoch.
const EPOCH_BYTES: f64 = 120.0 * 100_000.0;

/// Longer than a healthy store takes on a busy machine.
const READ_TIMEOUT: &str = "++storage.storage_options.read_timeout=3";

/// A store with the generated dataset behind a proxy, and the folder of commands that use the proxy.
fn start() -> (StoreServer, FaultProxy, Test) {
    let store = StoreServer::seaweed();
    let proxy = FaultProxy::start(store.endpoint());
    let test = store.test_at(&proxy.endpoint());
    test.write("workload.yaml", WORKLOAD);
    let answer = feedrate(&test, &["generate", "workload.yaml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    (store, proxy, test)
}

fn feedrate(test: &Test, arguments: &[&str]) -> Answer {
    test.feedrate(&[arguments, &["--data", "s3://bucket/faults"]].concat())
}

fn faults(faults: &[Fault], every: u64) -> Behaviour {
    Behaviour { faults: faults.to_vec(), every, keys: "/train/".into(), ..Behaviour::default() }
}

/// Runs with a verification of all bytes, which must succeed. Checks that the causes of repetitions are those that were injected.
#[track_caller]
fn check_repeated(test: &Test, proxy: &FaultProxy, settings: &[&str]) -> Value {
    let answer =
        feedrate(test, &[&["run", "workload.yaml", "--verify", "--json"], settings].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json = answer.json();
    let transfers = &json["transfers"];
    let injected = |kinds: &[Fault]| kinds.iter().map(|fault| proxy.injected(*fault)).sum::<u64>();
    let expected = [
        ("status_503", injected(&[Fault::SlowDown, Fault::TooManyRequests])),
        ("other_status", injected(&[Fault::InternalError])),
        ("reset", injected(&[Fault::Reset])),
        ("timeout", injected(&[Fault::Stall])),
        ("short_body", injected(&[Fault::CutBody, Fault::ShortBody])),
    ];
    let mut repeated = 0;
    for (cause, injected) in expected {
        assert_eq!(transfers["retried"][cause], injected, "{cause}: {transfers}");
        repeated += injected;
    }
    assert!(repeated > 0);
    let requests = transfers["requests"].as_u64().unwrap();
    assert_eq!(transfers["attempts"], requests + repeated);
    assert_eq!(json["complete"], true);
    json
}

fn doubt_names(json: &Value) -> Vec<&str> {
    json["doubts"].as_array().unwrap().iter().map(|doubt| doubt["name"].as_str().unwrap()).collect()
}

/// Faults after which a read is repeated.
const PASSING: [Fault; 7] = [
    Fault::SlowDown,
    Fault::TooManyRequests,
    Fault::InternalError,
    Fault::Reset,
    Fault::CutBody,
    Fault::ShortBody,
    Fault::Stall,
];

#[test]
fn each_fault_that_may_pass_is_repeated_and_recorded() {
    let (_store, proxy, test) = start();
    for fault in PASSING {
        // A stalled read takes its whole timeout.
        let every = if fault == Fault::Stall { 40 } else { 10 };
        proxy.set_behaviour(faults(&[fault], every));
        let json = check_repeated(&test, &proxy, &[READ_TIMEOUT]);
        assert!(proxy.injected(fault) >= 120 / every, "{fault:?}");
        let throttles = [Fault::SlowDown, Fault::TooManyRequests].contains(&fault);
        let doubt = if throttles { "throttled" } else { "retried" };
        assert!(doubt_names(&json).contains(&doubt), "{fault:?}: {:?}", json["doubts"]);
        assert!(json["transfers"]["retry_lost_s"].as_f64().unwrap() > 0.0);
        // An attempt that failed within its body had already a first byte.
        let is_cut = [Fault::CutBody, Fault::ShortBody].contains(&fault);
        let first_bytes = json["transfers"]["first_byte"]["count"].as_u64().unwrap();
        let cut = if is_cut { proxy.injected(fault) } else { 0 };
        assert_eq!(first_bytes, json["transfers"]["requests"].as_u64().unwrap() + cut);
    }
}

/// Runs with every 20th read failing in each way that may pass, in turn.
fn check_mixed_faults(settings: &[&str]) {
    let (_store, proxy, test) = start();
    proxy.set_behaviour(faults(&PASSING, 20));
    let json = check_repeated(&test, &proxy, &[&[READ_TIMEOUT], settings].concat());
    assert!(doubt_names(&json).contains(&"throttled") && doubt_names(&json).contains(&"retried"));
    let reads = json["transfers"]["attempts"].as_u64().unwrap();
    assert_eq!(proxy.reads(), reads);
    assert_eq!(PASSING.iter().map(|fault| proxy.injected(*fault)).sum::<u64>(), reads / 20);
}

#[test]
fn mixed_faults_are_recorded_by_cause() {
    check_mixed_faults(&["train.epochs=2"]);
}

#[test]
#[ignore = "two minutes; `cargo xtask long` runs it"]
fn mixed_faults_of_two_minutes_are_recorded_by_cause() {
    check_mixed_faults(&["train.epochs=50"]);
}

#[test]
fn an_outage_of_all_reads_is_recorded() {
    let (_store, proxy, test) = start();
    proxy.set_behaviour(Behaviour { faults_max: Some(12), ..faults(&[Fault::Reset], 1) });
    check_repeated(&test, &proxy, &[]);
    assert_eq!(proxy.injected(Fault::Reset), 12);
}

/// Kills the store in the middle of a run, and restarts it after a pause.
fn check_restart(pause: Duration) {
    let (mut store, proxy, test) = start();
    proxy.set_behaviour(faults(&[], 0));
    let slow = "train.computation_time=0.2";
    let run = ["run", "workload.yaml", slow, "--verify", "--json", "--data", "s3://bucket/faults"];
    let child = test.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The loader is stopped by its buffer until steps take batches, so most reads are left.
    wait_until("the run reads", || proxy.reads() >= 20);
    store.kill();
    std::thread::sleep(pause);
    store.restart();
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json = answer.json();
    assert_eq!(json["complete"], true);
    assert!(json["transfers"]["retried"]["reset"].as_u64().unwrap() > 0, "{}", json["transfers"]);
}

#[test]
fn a_run_continues_when_a_killed_store_is_back() {
    check_restart(Duration::ZERO);
}

#[test]
#[ignore = "half a minute; `cargo xtask long` runs it"]
fn a_run_continues_when_a_killed_store_is_back_after_15_s() {
    check_restart(Duration::from_secs(15));
}

/// The time of the record's only epoch.
fn epoch_s(json: &Value) -> f64 {
    json["per_epoch"][0]["duration_s"].as_f64().unwrap()
}

#[test]
fn a_late_store_is_no_fault() {
    let (_store, proxy, test) = start();
    let latency = Duration::from_millis(50);
    proxy.set_behaviour(Behaviour { latency, ..Behaviour::default() });
    let json = check_without_faults(&test);
    let median_s = json["transfers"]["first_byte"]["p50_s"].as_f64().unwrap();
    // The class of the histogram may begin a little below.
    assert!(median_s >= 0.9 * latency.as_secs_f64(), "{median_s}");
    // Four workers read at the same time.
    assert!(epoch_s(&json) >= 120.0 / 4.0 * latency.as_secs_f64(), "{}", epoch_s(&json));
}

#[test]
fn a_narrow_store_is_no_fault() {
    let (_store, proxy, test) = start();
    let rate = 10e6;
    proxy.set_behaviour(Behaviour { bytes_per_second: Some(rate), ..Behaviour::default() });
    let json = check_without_faults(&test);
    assert!(epoch_s(&json) >= EPOCH_BYTES / rate, "{}", epoch_s(&json));
}

/// Runs with a verification of all bytes, and checks that no request was repeated.
#[track_caller]
fn check_without_faults(test: &Test) -> Value {
    let answer = feedrate(test, &["run", "workload.yaml", "--verify", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json = answer.json();
    let transfers = &json["transfers"];
    assert_eq!(transfers["requests"], transfers["attempts"]);
    assert!(json["answer"].get("retries").is_none());
    assert!(!doubt_names(&json).iter().any(|name| ["throttled", "retried"].contains(name)));
    json
}

#[test]
fn the_cost_of_repetitions_is_shown() {
    let (_store, proxy, test) = start();
    proxy.set_behaviour(faults(&[Fault::SlowDown], 10));
    let answer = feedrate(&test, &["run", "workload.yaml", "--details"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for words in ["retries cost", "repeated (", "status 503", "first byte", "`throttled`"] {
        assert!(answer.stdout.contains(words), "no `{words}` in: {}", answer.stdout);
    }
}

#[test]
fn a_run_without_faults_has_no_repetitions() {
    let (_store, proxy, test) = start();
    proxy.set_behaviour(Behaviour::default());
    check_without_faults(&test);
}

#[test]
fn a_lasting_fault_is_an_error_with_the_object_the_cause_and_the_attempts() {
    let (_store, proxy, test) = start();
    for (fault, cause) in [
        (Fault::SlowDown, "status 503"),
        (Fault::TooManyRequests, "status 429"),
        (Fault::InternalError, "status 500"),
        (Fault::Reset, "closed before a response"),
        (Fault::CutBody, "closed within the body"),
        (Fault::ShortBody, "shorter than its range"),
        (Fault::Stall, "no bytes arrived in time"),
    ] {
        proxy.set_behaviour(faults(&[fault], 1));
        let attempts = "++storage.storage_options.s3_max_attempts=3";
        let timeout = "++storage.storage_options.read_timeout=0.5";
        let answer = feedrate(&test, &["run", "workload.yaml", attempts, timeout]);
        answer.refuses(1, &["s3://bucket/faults/", "/train/", cause, "after 3 attempts"]);
        assert!(proxy.injected(fault) >= 3, "{fault:?}");
    }
}

#[test]
fn another_range_or_version_is_an_error_at_once_that_names_the_object() {
    let (_store, proxy, test) = start();
    // Another version is noticed by the second request of an opening, which follows a body that ends early.
    for (kinds, cause) in [
        (&[Fault::WrongRange][..], "Requested"),
        (&[Fault::CutBody, Fault::ChangedEtag][..], "replaced"),
    ] {
        proxy.set_behaviour(faults(kinds, 1));
        let run = ["run", "workload.yaml", "--verify", "reader.read_threads=1"];
        let answer = feedrate(&test, &run);
        answer.refuses(1, &["s3://bucket/faults/", "/train/", cause]);
        assert!(!answer.stderr.contains("attempts"), "{}", answer.stderr);
        assert!(kinds.iter().all(|fault| proxy.injected(*fault) > 0));
    }
}
