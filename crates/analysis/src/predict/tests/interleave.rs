//! Tests predictions of workers that keep to their file until it ends, as threads of `tf.data`'s interleave do.

use super::*;

const FILES: u64 = 8;
/// Emulated latency of a read.
const READ_MS: f64 = 20.0;

/// A plan whose workers read records from eight TFRecord files in turn.
fn interleaved(workers: u32) -> Plan {
    let mut plan = plan(|plan| {
        plan.train.steps_per_epoch = 100;
        plan.loader.batch_size = 16;
        let dataset = &mut plan.dataset;
        (dataset.format, dataset.extension) = ("tfrecord".into(), "tfrecord".into());
        (dataset.record_bytes, dataset.record_dims) = (1e4, Vec::new());
        dataset.samples_per_file = plan.train.steps_per_epoch * 16 / FILES;
        plan.train.compute = constant(20.0 * MS);
        plan.storage.throttle_latency_s = READ_MS * MS;
        let loader = &mut plan.loader;
        loader.kind = "tensorflow".into();
        loader.piece_bytes = 1 << 15;
        (loader.workers, loader.interleaved_files) = (workers, workers);
        // Plans with a random order differ in their seeds.
        loader.order_seed = workers.into();
    });
    plan.dataset.files_train = FILES;
    plan
}

fn simulate(plan: &Plan) -> Record {
    let latency = storage(READ_MS, None, None);
    let driver = SimulatedDriver::new(ReadJob::in_memory(plan).unwrap(), latency);
    record_epoch(plan, driver)
}

/// With five threads, the last three of eight files have three readers, and threads beyond the number of files are idle.
#[test]
fn threads_without_a_file_do_not_speed_up_a_predicted_run() {
    let pipeline = Pipeline::new(&simulate(&interleaved(4))).unwrap();
    for workers in [1, 3, 4, 5, 8, 12, 15] {
        let plan = interleaved(workers);
        let actual = au(&simulate(&plan));
        let predicted = pipeline.predict(&plan, &[]).unwrap();
        let [low, high] = predicted.interval;
        assert!((predicted.au_percent - actual).abs() < 2.0, "{workers}: {actual}: {predicted:?}");
        assert!(low <= actual && actual <= high, "{workers}: {actual}: {predicted:?}");
    }
}

#[test]
fn predictions_are_equal_for_all_numbers_of_threads_above_the_number_of_files() {
    let pipeline = Pipeline::new(&simulate(&interleaved(4))).unwrap();
    let predicted = |workers| pipeline.predict(&interleaved(workers), &[]).unwrap();
    assert_eq!(predicted(15), predicted(8));
}

/// The reads of a file do not depend on the number of threads, also if batches are too large to count them in a copy with all samples.
#[test]
fn requests_do_not_depend_on_the_number_of_threads() {
    let large_batches = |workers| {
        let mut plan = interleaved(workers);
        plan.loader.batch_size = 512;
        plan
    };
    let pipeline = Pipeline::new(&simulate(&interleaved(4))).unwrap();
    let cost = |workers| pipeline.cost(&large_batches(workers)).unwrap();
    assert_eq!(cost(15), cost(1));
}
