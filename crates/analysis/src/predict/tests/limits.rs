//! Disks that are throttled, by what the machine tells of their limits.

use super::*;
use feedrate_measure::record::{Mount, ReadLimits};

fn throttled(megabytes_per_second: f64) -> SimulatedStorage {
    storage(0.5, Some(megabytes_per_second), None)
}

#[test]
fn more_readers_of_a_throttled_disk_get_no_more() {
    let disk = throttled(50.0);
    for workers in [4, 8] {
        let fit = fitted(workers, disk);
        assert!(fit.iter().all(|model| model.is_shared()), "{fit:#?}");
        WhatIf::on_plan(workers, disk, threads(1)).check();
        WhatIf::on_plan(workers, disk, threads(16)).check();
        WhatIf::on_plan(workers, disk, |plan| plan.accelerators = 4).check();
        let slower = |plan: &mut Plan| plan.train.compute = constant(0.03);
        WhatIf::on_plan(workers, disk, slower).check_within(3.0);
    }
    let smaller = |plan: &mut Plan| plan.loader.piece_bytes = 250_000;
    let told = WhatIf::on_plan(4, disk, smaller).predict();
    let deciding_run = DecidingRun::OtherTransferSize;
    assert!(
        matches!(told, Err(NotPredictable::LatencyOrBandwidth { deciding_run: by, .. }) if by == deciding_run),
        "bytes or requests: {told:?}"
    );
}

/// The control group says what is limited; a fed run would not have told.
#[test]
fn limits_that_the_machine_tells_are_known() {
    let smaller = |plan: &mut Plan| plan.loader.piece_bytes = 250_000;
    let bytes = ReadLimits { bytes_per_second: Some(50_000_000), ..ReadLimits::default() };
    let requests = ReadLimits { requests_per_second: Some(50), ..ReadLimits::default() };
    for (limits, really) in [(bytes, 50.0), (requests, 12.5)] {
        for compute_s in [0.02, 0.082] {
            let base = |plan: &mut Plan| {
                threads(4)(plan);
                plan.train.compute = constant(compute_s);
                plan.storage.passes_page_cache = true;
            };
            let mut record = run(&plan(base), throttled(50.0));
            // A real disk lets the first reads of a slice pass at once.
            record.epochs[0].accelerators[0].io.read_latency.record(500_000);
            record.epochs[0].host.process_device_read_bytes = Some(240_000_000);
            let mount = Mount { read_limits: Some(limits), ..Mount::default() };
            record.system.data_mount = Some(mount);
            let changed = plan(|plan| {
                base(plan);
                smaller(plan);
                plan.train.compute = constant(0.02);
            });
            let predicted = Pipeline::new(&record).unwrap().predict(&changed, &[]).unwrap();
            let really = au(&run(&changed, throttled(really)));
            assert!((predicted.au_percent - really).abs() < 3.0, "{really} is {predicted:?}");
        }
    }
}

/// Four reads of a million bytes were one request at the device, of which others made as many: 13 of them a second are 52 reads. Whatever
/// others ask for, the run made no more than its limit allowed.
#[test]
fn requests_of_the_page_cache_are_those_of_the_device() {
    let mut record = run(&plan(threads(4)), throttled(50.0));
    let bytes = 240_000_000;
    let limits = ReadLimits { requests_per_second: Some(13), ..ReadLimits::default() };
    record.system.data_mount = Some(Mount { read_limits: Some(limits), ..Mount::default() });
    let mut of = |device_reads| {
        let host = &mut record.epochs[0].host;
        host.process_device_read_bytes = Some(bytes);
        (host.device_read_bytes, host.device_reads) = (Some(2 * bytes), Some(device_reads));
        Pipeline::new(&record).unwrap()
    };
    let best = of(2 * 60).storage[0];
    assert_eq!((best.bytes_per_second, best.request_s), (Some(52e6), 0.0));
    let pipeline = of(2 * 6000);
    let rate = pipeline.storage[0].bytes_per_second.unwrap();
    assert!((48e6..52e6).contains(&rate), "{rate}");
    let smaller = plan(|plan| (plan.loader.workers, plan.loader.piece_bytes) = (4, 250_000));
    assert_eq!(pipeline.predict(&smaller, &[]), Err(NotPredictable::OtherFiles));
}

/// A rate in bytes leaves the requests their limit.
#[test]
fn more_bytes_a_second_are_no_more_requests() {
    let limits = ReadLimits { requests_per_second: Some(50), ..ReadLimits::default() };
    let base = plan(|plan| (plan.loader.workers, plan.storage.passes_page_cache) = (4, true));
    let mut record = run(&base, throttled(50.0));
    record.epochs[0].host.process_device_read_bytes = Some(240_000_000);
    record.system.data_mount = Some(Mount { read_limits: Some(limits), ..Mount::default() });
    let pipeline = Pipeline::new(&record).unwrap();
    let with = |change| pipeline.predict(&base, &[change]).unwrap().au_percent;
    let more = with(PipelineChange::Bandwidth(Scale::Value(1e9)));
    assert!((more - pipeline.au_percent).abs() < 2.0, "{more}");
    assert!(pipeline.au_percent + 10.0 < with(PipelineChange::Bandwidth(Scale::Times(2.0))));
}
