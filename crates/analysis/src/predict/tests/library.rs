//! Tests predictions between the requests of a library and large requests.

use super::*;
use feedrate_measure::derived::Derived;
use feedrate_spec::plan::{Library, PIECE_BYTES};

/// Emulated latency of a read.
const READ_MS: f64 = 4.0;

/// A plan that reads files of `samples_per_file` samples in the requests of `library`, or in large ones.
fn library_plan(
    format: &str,
    samples_per_file: u64,
    sample_bytes: f64,
    library: Option<Library>,
) -> Plan {
    let mut plan = plan(|plan| {
        plan.loader.workers = 2;
        plan.train.compute = constant(10.0 * MS);
        plan.storage.throttle_latency_s = READ_MS * MS;
        let dataset = &mut plan.dataset;
        (dataset.format, dataset.extension) = (format.into(), format.into());
        (dataset.record_bytes, dataset.record_dims) = (sample_bytes, Vec::new());
        dataset.samples_per_file = samples_per_file;
        let period_bytes = library.and_then(|library| library.requests().sizes.period_bytes);
        plan.loader.piece_bytes = period_bytes.unwrap_or(PIECE_BYTES);
        plan.loader.library = library;
    });
    plan.dataset.files_train = plan.dataset.files_train.div_ceil(samples_per_file);
    plan
}

fn simulate(plan: &Plan) -> Record {
    let latency = storage(READ_MS, None, None);
    record_epoch(plan, SimulatedDriver::new(ReadJob::in_memory(plan).unwrap(), latency))
}

#[test]
fn large_requests_are_predicted_from_those_of_a_library_and_vice_versa() {
    for (format, library) in [("npz", Library::NumpyNpz), ("npy", Library::NumpyNpy)] {
        for (samples_per_file, sample_bytes) in [(1, 8192.0), (1, 600_000.0), (8, 8192.0)] {
            let [with_library, large] = [Some(library), None]
                .map(|library| library_plan(format, samples_per_file, sample_bytes, library));
            let [library_record, large_record] = [&with_library, &large].map(simulate);
            for (record, changed, actual) in [
                (&library_record, &large, &large_record),
                (&large_record, &with_library, &library_record),
            ] {
                let pipeline = Pipeline::new(record).unwrap();
                let context = format!("{format}, {samples_per_file} samples of {sample_bytes}");
                let io = |record: &Record| {
                    let io = Derived::new(record).io;
                    io.reads as f64 / io.samples as f64
                };
                let cost = pipeline.cost(changed).unwrap();
                let reads = io(actual);
                assert!((cost.reads - reads).abs() < 0.02 * reads, "{context}: {reads} {cost:?}");
                let predicted = pipeline.predict(changed, &[]).unwrap().au_percent;
                let actual = au(actual);
                assert!((predicted - actual).abs() < 2.0, "{context}: {predicted} {actual}");
            }
        }
    }
}
