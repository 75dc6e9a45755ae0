//! Utilisations with a store behind a proxy of known rate and latency, beside those with files whose reads are emulated to take as long. The
//! throttle serves one read after another, so the proxy does, too.

use crate::fault_proxy::{Behaviour, FaultProxy};
use crate::harness::Test;
use crate::object_servers::StoreServer;
use std::fs;
use std::time::Duration;

/// Samples of 1 MB in one read each. Steps need 120 MB/s.
const WORKLOAD: &str = "\
model: {name: speed}
framework: pytorch
dataset: {format: npy, num_files_train: 240, record_length_bytes: 1000000}
reader: {data_loader: pytorch, batch_size: 8, read_threads: 8, transfer_size: 2097152}
train: {epochs: 4, computation_time: 0.0667}
";

/// Largest difference of two utilisations, in percentage points.
const DIFFERENCE_MAX: f64 = 2.0;

/// Runs the workload, and returns the utilisation in percent and the number of reads.
fn run(test: &Test, settings: &[&str]) -> (f64, u64) {
    let json = test.run_json(settings);
    (json["au"]["all_steps_percent"].as_f64().unwrap(), json["access"]["reads"].as_u64().unwrap())
}

#[test]
#[ignore = "minutes, and no other load; `cargo xtask long` runs it"]
fn a_store_and_files_of_the_same_rate_and_latency_have_the_same_utilisation() {
    let store = StoreServer::seaweed();
    let proxy = FaultProxy::start(store.endpoint());
    let test = store.test_at(&proxy.endpoint());
    test.write("workload.yaml", WORKLOAD);
    fs::create_dir(test.path("data")).unwrap();
    let url = format!("{}/speed", store.url);
    for data in ["data", &url] {
        let answer = test.feedrate(&["generate", "workload.yaml", "--data", data]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let mut differing = Vec::new();
    for megabytes_per_second in [50_u32, 100, 200] {
        for latency_ms in [5, 50] {
            let behave = |sends_in_order| {
                proxy.set_behaviour(Behaviour {
                    latency: Duration::from_millis(latency_ms),
                    bytes_per_second: Some(f64::from(megabytes_per_second) * 1e6),
                    sends_in_order,
                    ..Behaviour::default()
                });
            };
            let rate = format!("storage.throttle.bytes_per_second={megabytes_per_second}MB/s");
            let latency = format!("storage.throttle.latency_seconds={}", latency_ms as f64 / 1e3);
            behave(true);
            let (objects, object_reads) = run(&test, &["--data", &url]);
            let (files, file_reads) = run(&test, &["--data", "data", &rate, &latency]);
            assert_eq!(object_reads, file_reads);
            behave(false);
            let (sharing, _) = run(&test, &["--data", &url]);
            let place = format!("{megabytes_per_second} MB/s, {latency_ms} ms");
            println!(
                "{place}: {objects:.1} % with objects, {files:.1} % with files; {sharing:.1} % with objects if connections share the rate"
            );
            if (objects - files).abs() > DIFFERENCE_MAX {
                differing.push(place);
            }
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
}
