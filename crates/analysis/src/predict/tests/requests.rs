//! Predictions for workers that read whole files or row groups, several at a time.

use super::*;
use feedrate_spec::plan::{ReadAhead, RequestPlan, RequestUnit, WorkerSplit};

/// Two workers that read files of one sample, and as many row groups of 8 samples of a million bytes ahead as are in flight. Batches have
/// four samples.
fn requests(unit: RequestUnit, in_flight: u32) -> impl Fn(&mut Plan) {
    move |plan| {
        let ahead = match unit {
            RequestUnit::File => ReadAhead::Windows(2 * in_flight),
            RequestUnit::RowGroup => ReadAhead::Sliding(in_flight),
        };
        plan.loader.kind = "pytorch".into();
        plan.loader.workers = 2;
        plan.loader.requests = Some(RequestPlan { in_flight, unit, ahead });
        plan.train.steps_per_epoch = 300;
        plan.dataset.encoding.row_group_samples = 8;
    }
}

/// The plan of `requests` with the number of files that its steps need.
fn request_plan(unit: RequestUnit, in_flight: u32, change: impl Fn(&mut Plan)) -> Plan {
    let mut plan = plan(|plan| {
        requests(unit, in_flight)(plan);
        change(plan);
    });
    if unit == RequestUnit::RowGroup {
        plan.loader.split = WorkerSplit::Shards;
        plan.dataset.samples_per_file = 80;
        plan.dataset.files_train /= 80;
    }
    plan
}

#[track_caller]
fn check(
    base: &Plan,
    storage: SimulatedStorage,
    changed: &Plan,
    changed_storage: SimulatedStorage,
    changes: &[PipelineChange],
) {
    let case = ChangedRun {
        base_plan: base.clone(),
        base_storage: storage,
        changed_plan: changed.clone(),
        changed_storage,
        changes: changes.to_vec(),
    };
    case.check_within(3.0);
}

#[test]
fn requests_in_flight_are_concurrent_reads() {
    // With row groups it is unknown whether more requests would reach the rate of a device.
    for (unit, latency_ms, changes) in
        [(RequestUnit::File, 60.0, &[1, 2, 4, 8, 16][..]), (RequestUnit::RowGroup, 400.0, &[2, 4])]
    {
        let latency = storage(latency_ms, None, None);
        let base = request_plan(unit, 4, |_| {});
        let recorded = au(&run(&base, latency));
        assert!(recorded < 80.0, "{recorded}");
        for in_flight in changes {
            check(&base, latency, &request_plan(unit, *in_flight, |_| {}), latency, &[]);
        }
        let longer = request_plan(unit, 4, |plan| plan.train.compute = constant(0.08));
        check(&base, latency, &longer, latency, &[]);
    }
}

#[test]
fn workers_multiply_requests_in_flight() {
    let latency = storage(60.0, None, None);
    let base = request_plan(RequestUnit::File, 4, |_| {});
    for workers in [1, 4] {
        let changed = request_plan(RequestUnit::File, 4, |plan| plan.loader.workers = workers);
        check(&base, latency, &changed, latency, &[]);
    }
}

/// More requests do not get more of a shared bandwidth.
#[test]
fn requests_in_flight_share_a_bandwidth() {
    for unit in [RequestUnit::File, RequestUnit::RowGroup] {
        let bandwidth = storage(0.0, Some(100.0), None);
        let base = request_plan(unit, 4, |_| {});
        check(&base, bandwidth, &request_plan(unit, 16, |_| {}), bandwidth, &[]);
        let faster = storage(0.0, Some(160.0), None);
        check(&base, bandwidth, &base, faster, &[PipelineChange::Bandwidth(Scale::Value(160e6))]);
        let more = request_plan(unit, 4, |plan| plan.accelerators = 2);
        check(&base, bandwidth, &more, bandwidth, &[]);
    }
}

/// A storage that serves four reads at a time.
#[test]
fn requests_in_flight_wait_for_slots() {
    let four = storage(30.0, None, Some(4));
    let base = request_plan(RequestUnit::File, 8, |_| {});
    check(&base, four, &base, four, &[]);
    check(&base, four, &request_plan(RequestUnit::File, 16, |_| {}), four, &[]);
    let twice = PipelineChange::Concurrency(Scale::Times(2.0));
    check(&base, four, &base, storage(30.0, None, Some(8)), &[twice]);
}

/// Whether samples are decoded changes their cost, and so does the unit of requests.
#[test]
fn other_units_are_refused() {
    let latency = storage(10.0, None, None);
    let files = request_plan(RequestUnit::File, 4, |_| {});
    let single = plan(|plan| plan.loader.kind = "pytorch".into());
    let mut row_groups = files.clone();
    row_groups.loader.requests =
        row_groups.loader.requests.map(|plan| RequestPlan { unit: RequestUnit::RowGroup, ..plan });
    for (recorded, changed) in [(&files, &single), (&single, &files), (&files, &row_groups)] {
        let pipeline = Pipeline::new(&run(recorded, latency)).unwrap();
        assert_eq!(pipeline.predict(changed, &[]), Err(NotPredictable::OtherFiles));
    }
}
