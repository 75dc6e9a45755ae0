//! The client is taken away, given, and made cheaper: what is predicted against what the simulated driver really does.

use super::*;
use feedrate_measure::derived::Derived;
use feedrate_spec::plan::ClientPlan;

/// Two workers; 20 ms of them for each sample, 3 ms of the training's process for a batch.
fn with_client(sample_s: f64) -> Plan {
    plan(|plan| {
        plan.loader.workers = 2;
        plan.loader.client = (sample_s > 0.0).then(|| ClientPlan {
            per_sample_s: sample_s / 2.0,
            per_byte_s: sample_s / 2.0 / 1e6,
            receive_per_batch_s: 3.0 * MS,
            start_per_epoch_s: 10.0 * MS,
            ..ClientPlan::default()
        });
    })
}

#[test]
fn a_run_with_another_client_is_told_from_its_record() {
    let of = |sample_s| run(&with_client(sample_s), storage(5.0, None, None));
    let (ideal, slow) = (of(0.0), of(20.0 * MS));
    assert!(au(&slow) + 20.0 < au(&ideal), "{} {}", au(&slow), au(&ideal));
    assert_eq!(Pipeline::with_ideal_client(&Derived::new(&ideal)), None);
    let taken = Pipeline::with_ideal_client(&Derived::new(&slow)).unwrap().unwrap();
    assert!((taken.au_percent - au(&ideal)).abs() < 2.0, "{taken:?} {}", au(&ideal));
    for (record, sample_s) in [(&ideal, 20.0 * MS), (&slow, 10.0 * MS)] {
        let told = Pipeline::new(record).unwrap().predict(&with_client(sample_s), &[]).unwrap();
        let really = au(&of(sample_s));
        assert!((told.au_percent - really).abs() < 2.0, "{sample_s}: {told:?} {really}");
        assert_eq!(told.bottleneck, Bound::ClientBound);
    }
}

/// Memory served the reads, and does so with any client: that much is known where nothing is of the storage.
#[test]
fn an_ideal_client_is_told_of_what_memory_served() {
    let mut record = run(&with_client(20.0 * MS), storage(0.1, None, None));
    let host = &mut record.epochs[0].host;
    (host.process_device_read_bytes, host.resident_before_bytes) = (Some(0), Some(1 << 30));
    assert_eq!(Pipeline::new(&record), Err(NotPredictable::ServedFromMemory));
    let told = Pipeline::with_ideal_client(&Derived::new(&record)).unwrap().unwrap();
    let really = au(&run(&with_client(0.0), storage(0.1, None, None)));
    assert!((told.au_percent - really).abs() < 2.0, "{told:?} {really}");
}

/// One core for both workers: what they decode takes them longer than the core, which does the client's work too.
#[test]
fn decoding_beside_a_client_takes_its_processor_time() {
    let one_core = SimulatedStorage {
        decode_bytes_per_second: Some(4e8),
        cores: Some(1),
        ..storage(0.1, None, None)
    };
    let of = |sample_s| {
        let mut record = run(&with_client(sample_s), one_core);
        record.system.cpus = 1;
        record
    };
    let told = Pipeline::with_ideal_client(&Derived::new(&of(20.0 * MS))).unwrap().unwrap();
    let really = au(&of(0.0));
    assert!((told.au_percent - really).abs() < 2.0, "{told:?} {really}");
}
