//! Runs on a store whose reads fail: bytes are right or the error names the object, and the record has each repetition.

use crate::fault_proxy::{Behaviour, Fault, FaultProxy};
use crate::harness::{Answer, Test, wait_until};
use crate::object_servers::StoreServer;
use serde_json::Value;
use std::process::Stdio;

/// 120 reads of an epoch: each sample is a file.
const WORKLOAD: &str = "\
model: {name: faults}
framework: pytorch
dataset: {format: npy, num_files_train: 120, record_length_bytes: 100000}
reader: {data_loader: pytorch, batch_size: 4, read_threads: 4}
train: {epochs: 1, computation_time: 0.05}
";

/// A store with the generated dataset behind a proxy, and the folder of commands that use the proxy.
fn start() -> (StoreServer, FaultProxy, Test) {
    let store = StoreServer::seaweed();
    let proxy = FaultProxy::start(store.endpoint());
    let test = StoreServer::test_at(&proxy.endpoint());
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
fn check_repeated(test: &Test, proxy: &FaultProxy) -> Value {
    let answer = feedrate(test, &["run", "workload.yaml", "--verify", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json = answer.json();
    let transfers = &json["transfers"];
    let injected = |kinds: &[Fault]| kinds.iter().map(|fault| proxy.injected(*fault)).sum::<u64>();
    let expected = [
        ("status_503", injected(&[Fault::SlowDown])),
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

#[test]
fn each_fault_that_may_pass_is_repeated_and_recorded() {
    let (_store, proxy, test) = start();
    for fault in
        [Fault::SlowDown, Fault::InternalError, Fault::Reset, Fault::CutBody, Fault::ShortBody]
    {
        proxy.set_behaviour(faults(&[fault], 10));
        let json = check_repeated(&test, &proxy);
        assert!(proxy.injected(fault) >= 12, "{fault:?}");
        let doubt = if fault == Fault::SlowDown { "throttled" } else { "retried" };
        assert!(doubt_names(&json).contains(&doubt), "{fault:?}: {:?}", json["doubts"]);
        assert!(json["transfers"]["retry_lost_s"].as_f64().unwrap() > 0.0);
        // An attempt that failed within its body had already a first byte.
        let is_cut = [Fault::CutBody, Fault::ShortBody].contains(&fault);
        let first_bytes = json["transfers"]["first_byte"]["count"].as_u64().unwrap();
        let cut = if is_cut { proxy.injected(fault) } else { 0 };
        assert_eq!(first_bytes, json["transfers"]["requests"].as_u64().unwrap() + cut);
    }
}

#[test]
fn mixed_faults_and_an_outage_are_recorded_by_cause() {
    let (_store, proxy, test) = start();
    let mixed =
        [Fault::SlowDown, Fault::Reset, Fault::CutBody, Fault::InternalError, Fault::ShortBody];
    proxy.set_behaviour(faults(&mixed, 20));
    let json = check_repeated(&test, &proxy);
    assert!(doubt_names(&json).contains(&"throttled") && doubt_names(&json).contains(&"retried"));
    // All reads fail for a while.
    let outage = Behaviour { faults_max: Some(12), ..faults(&[Fault::Reset], 1) };
    proxy.set_behaviour(outage);
    check_repeated(&test, &proxy);
    assert_eq!(proxy.injected(Fault::Reset), 12);
}

#[test]
fn a_run_continues_when_a_killed_store_is_back() {
    let (mut store, proxy, test) = start();
    proxy.set_behaviour(faults(&[], 0));
    let slow = "train.computation_time=0.2";
    let run = ["run", "workload.yaml", slow, "--verify", "--json", "--data", "s3://bucket/faults"];
    let child = test.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The loader is stopped by its buffer until steps take batches, so most reads are left.
    wait_until("the run reads", || proxy.reads() >= 20);
    store.kill();
    store.restart();
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json = answer.json();
    assert_eq!(json["complete"], true);
    assert!(json["transfers"]["retried"]["reset"].as_u64().unwrap() > 0, "{}", json["transfers"]);
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
    let json = feedrate(&test, &["run", "workload.yaml", "--json"]).json();
    let transfers = &json["transfers"];
    assert_eq!(transfers["requests"], transfers["attempts"]);
    assert!(json["answer"].get("retries").is_none());
    assert!(!doubt_names(&json).iter().any(|name| ["throttled", "retried"].contains(name)));
}

#[test]
fn another_range_or_version_is_an_error_that_names_the_object() {
    let (_store, proxy, test) = start();
    // The version of an object is known from its first read.
    let several_reads = "reader.transfer_size=65536";
    for (fault, cause) in [(Fault::WrongRange, "Requested"), (Fault::ChangedEtag, "replaced")] {
        proxy.set_behaviour(faults(&[fault], 1));
        let answer = feedrate(&test, &["run", "workload.yaml", "--verify", several_reads]);
        answer.refuses(1, &["s3://bucket/faults/", "/train/", cause]);
        assert!(proxy.injected(fault) > 0);
    }
}
