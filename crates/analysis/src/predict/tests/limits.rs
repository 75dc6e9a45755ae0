//! Tests predictions for throttled disks, with and without limits that the machine reports.

use super::*;
use feedrate_measure::record::{Mount, ReadLimits};

fn throttled(megabytes_per_second: f64) -> SimulatedStorage {
    storage(0.5, Some(megabytes_per_second), None)
}

#[test]
fn more_readers_of_a_throttled_disk_get_no_more_bandwidth() {
    let disk = throttled(50.0);
    for workers in [4, 8] {
        let models = fitted_models(workers, disk);
        assert!(models.iter().all(|model| model.is_shared()), "{models:#?}");
        ChangedRun::on_plan(workers, disk, threads(1)).check();
        ChangedRun::on_plan(workers, disk, threads(16)).check();
        ChangedRun::on_plan(workers, disk, |plan| plan.accelerators = 4).check();
        let slower = |plan: &mut Plan| plan.train.compute = constant(0.03);
        ChangedRun::on_plan(workers, disk, slower).check_within(3.0);
    }
    let smaller = |plan: &mut Plan| plan.loader.piece_bytes = 250_000;
    let ambiguous = ChangedRun::on_plan(4, disk, smaller).predict();
    let Err(NotPredictable::LatencyOrBandwidth { deciding_run, .. }) = ambiguous else {
        panic!("bytes or requests: {ambiguous:?}")
    };
    assert_eq!(deciding_run, DecidingRun::OtherTransferSize);
}

/// The control group reports which limit applies, even if the run does not reach it.
#[test]
fn reported_limits_are_used() {
    let smaller = |plan: &mut Plan| plan.loader.piece_bytes = 250_000;
    let bytes = ReadLimits { bytes_per_second: Some(50_000_000), ..ReadLimits::default() };
    let requests = ReadLimits { requests_per_second: Some(50), ..ReadLimits::default() };
    for (limits, changed_rate) in [(bytes, 50.0), (requests, 12.5)] {
        for compute_s in [0.02, 0.082] {
            let base = |plan: &mut Plan| {
                threads(4)(plan);
                plan.train.compute = constant(compute_s);
                plan.storage.passes_page_cache = true;
            };
            let mut record = run(&plan(base), throttled(50.0));
            // A real disk serves the first reads of a time slice immediately.
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
            let actual = au(&run(&changed, throttled(changed_rate)));
            assert!((predicted.au_percent - actual).abs() < 3.0, "{actual}: {predicted:?}");
        }
    }
}

/// Four reads of a million bytes are one request at the device, so 13 requests per second are 52 reads. Other processes make as many requests.
/// The run is never attributed more requests than its limit, regardless of the number of other requests.
#[test]
fn requests_of_the_page_cache_are_counted_at_the_device() {
    let mut record = run(&plan(threads(4)), throttled(50.0));
    let bytes = 240_000_000;
    let limits = ReadLimits { requests_per_second: Some(13), ..ReadLimits::default() };
    record.system.data_mount = Some(Mount { read_limits: Some(limits), ..Mount::default() });
    let mut fit_with = |device_reads| {
        let host = &mut record.epochs[0].host;
        host.process_device_read_bytes = Some(bytes);
        host.device_read_bytes = Some(2 * bytes);
        host.device_reads = Some(device_reads);
        Pipeline::new(&record).unwrap()
    };
    let best = fit_with(2 * 60).storage[0];
    assert_eq!((best.bytes_per_second, best.request_s), (Some(52e6), 0.0));
    let pipeline = fit_with(2 * 6000);
    let rate = pipeline.storage[0].bytes_per_second.unwrap();
    assert!((48e6..52e6).contains(&rate), "{rate}");
    let smaller = plan(|plan| (plan.loader.workers, plan.loader.piece_bytes) = (4, 250_000));
    assert_eq!(pipeline.predict(&smaller, &[]), Err(NotPredictable::OtherFiles));
}

#[test]
fn a_higher_bandwidth_does_not_raise_a_limit_of_requests() {
    let limits = ReadLimits { requests_per_second: Some(50), ..ReadLimits::default() };
    let base = plan(|plan| (plan.loader.workers, plan.storage.passes_page_cache) = (4, true));
    let mut record = run(&base, throttled(50.0));
    record.epochs[0].host.process_device_read_bytes = Some(240_000_000);
    record.system.data_mount = Some(Mount { read_limits: Some(limits), ..Mount::default() });
    let pipeline = Pipeline::new(&record).unwrap();
    let predicted = |change| pipeline.predict(&base, &[change]).unwrap().au_percent;
    let with_more_bytes = predicted(PipelineChange::Bandwidth(Scale::Value(1e9)));
    let recorded = miniature::au_percent(&pipeline.epochs);
    assert!((with_more_bytes - recorded).abs() < 2.0, "{with_more_bytes}");
    let doubled = predicted(PipelineChange::Bandwidth(Scale::Times(2.0)));
    assert!(recorded + 10.0 < doubled);
}
