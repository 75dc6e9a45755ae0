//! Tests predictions of runs with another client: none, a new one, a cheaper one.

use super::*;
use feedrate_measure::derived::Derived;
use feedrate_spec::plan::ClientPlan;

/// A plan with two workers and a client that takes a worker `sample_s` for each sample, and the training's process 3 ms for each
/// batch.
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
fn a_run_with_another_client_is_predicted() {
    let simulate = |sample_s| run(&with_client(sample_s), storage(5.0, None, None));
    let ideal = simulate(0.0);
    let slow = simulate(20.0 * MS);
    assert!(au(&slow) + 20.0 < au(&ideal), "{} {}", au(&slow), au(&ideal));
    assert_eq!(Pipeline::with_ideal_client(&Derived::new(&ideal)), None);
    let without_client = Pipeline::with_ideal_client(&Derived::new(&slow)).unwrap().unwrap();
    assert!(
        (without_client.au_percent - au(&ideal)).abs() < 2.0,
        "{without_client:?} {}",
        au(&ideal)
    );
    for (record, sample_s) in [(&ideal, 20.0 * MS), (&slow, 10.0 * MS)] {
        let pipeline = Pipeline::new(record).unwrap();
        let predicted = pipeline.predict(&with_client(sample_s), &[]).unwrap();
        let actual = au(&simulate(sample_s));
        assert!((predicted.au_percent - actual).abs() < 2.0, "{sample_s}: {predicted:?} {actual}");
        assert_eq!(predicted.bottleneck, Bound::ClientBound);
    }
}

/// All workers together get a batch of four samples of a million bytes every 30 ms.
#[test]
fn predictions_of_more_workers_stop_at_the_rate_that_they_share() {
    let sharing = |workers| {
        plan(|plan| {
            plan.loader.kind = "pytorch".into();
            plan.loader.workers = workers;
            plan.loader.prefetch_size = 2;
            plan.loader.client = Some(ClientPlan {
                per_sample_s: 20.0 * MS,
                shared_bytes_per_second: Some(4e6 / (30.0 * MS)),
                ..ClientPlan::default()
            });
        })
    };
    let simulate = |workers| run(&sharing(workers), storage(0.5, None, None));
    let pipeline = Pipeline::new(&simulate(2)).unwrap();
    let predicted = [1, 2, 4, 8].map(|workers| {
        let predicted = pipeline.predict(&sharing(workers), &[]).unwrap().au_percent;
        let actual = au(&simulate(workers));
        assert!((predicted - actual).abs() < 3.0, "{workers} workers: {predicted} {actual}");
        predicted
    });
    // A worker makes a batch in 80 ms; with four and more, a step of 20 ms takes 30 ms.
    assert!((predicted[0] - 25.0).abs() < 3.0, "{predicted:?}");
    assert!((predicted[2] - 66.7).abs() < 3.0, "{predicted:?}");
    assert!((predicted[3] - 66.7).abs() < 3.0, "{predicted:?}");
}

/// If memory served the reads, the storage is unknown, but memory would serve the reads of an ideal client too.
#[test]
fn an_ideal_client_is_predicted_for_cached_reads() {
    let mut record = run(&with_client(20.0 * MS), storage(0.1, None, None));
    let host = &mut record.epochs[0].host;
    (host.process_device_read_bytes, host.resident_before_bytes) = (Some(0), Some(1 << 30));
    let predicted = Pipeline::with_ideal_client(&Derived::new(&record)).unwrap().unwrap();
    let actual = au(&run(&with_client(0.0), storage(0.1, None, None)));
    assert!((predicted.au_percent - actual).abs() < 2.0, "{predicted:?} {actual}");
    // So would they with a faster client, which advice proposes.
    let pipeline = Pipeline::new(&record).unwrap();
    let predicted = pipeline.predict(&with_client(10.0 * MS), &[]).unwrap();
    let actual = au(&run(&with_client(10.0 * MS), storage(0.1, None, None)));
    assert!((predicted.au_percent - actual).abs() < 2.0, "{predicted:?} {actual}");
    // Memory need not serve more or other files, and shows nothing about the storage.
    let mut larger = with_client(10.0 * MS);
    larger.dataset.files_train *= 2;
    let unknown = Err(NotPredictable::ServedFromMemory);
    assert_eq!(pipeline.predict(&larger, &[]), unknown);
    let mut other_storage = with_client(10.0 * MS);
    other_storage.storage.throttle_latency_s = MS;
    assert_eq!(pipeline.predict(&other_storage, &[]), unknown);
    let faster = PipelineChange::Latency(Scale::Times(0.5));
    assert_eq!(pipeline.predict(&record.plan, &[faster]), unknown);
}

/// Both workers share one core with the client's work, so decoding takes longer than its processor time.
#[test]
fn decoding_costs_its_processor_time_without_the_client() {
    let one_core = SimulatedStorage {
        decode_bytes_per_second: Some(4e8),
        cores: Some(1),
        ..storage(0.1, None, None)
    };
    let simulate = |sample_s| {
        let mut record = run(&with_client(sample_s), one_core);
        record.system.cpus = 1;
        record
    };
    let record = simulate(20.0 * MS);
    let predicted = Pipeline::with_ideal_client(&Derived::new(&record)).unwrap().unwrap();
    let actual = au(&simulate(0.0));
    assert!((predicted.au_percent - actual).abs() < 2.0, "{predicted:?} {actual}");
}
