//! Approximate duration of a run, for time limits of schedulers. [`super::Estimate`] has the exact numbers of a plan.

use super::{Estimate, Plan, TrainPlan};
use serde::Serialize;

/// Approximate duration of each phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Duration {
    /// Generating the files.
    pub generation_s: f64,
    /// All epochs.
    pub training_s: f64,
    /// All evaluations.
    pub evaluation_s: f64,
    /// All checkpoints, written and read.
    pub checkpoints_s: f64,
}

impl Duration {
    /// Returns the duration of all phases.
    pub fn total_s(&self) -> f64 {
        self.generation_s + self.training_s + self.evaluation_s + self.checkpoints_s
    }
}

/// Estimates the duration of `plan` on a storage that transfers `bytes_per_second` for all accelerators together.
pub fn duration(plan: &Plan, estimate: &Estimate, bytes_per_second: f64) -> Duration {
    let throttle = plan.storage_of_steps().throttle_bytes_per_second.unwrap_or(f64::INFINITY);
    let read_rate = bytes_per_second.min(throttle);
    let mut phases = Duration::default();
    if !plan.is_checkpoint_only() {
        phases.generation_s = estimate.file_bytes as f64 / bytes_per_second;
        phases.training_s = steps_s(plan, estimate, &plan.train, read_rate);
    }
    if let Some(evaluations) = plan.evaluation_plan() {
        phases.evaluation_s = steps_s(&evaluations, estimate, &evaluations.train, read_rate);
    }
    if let Some(checkpoint) = &plan.checkpoint {
        let alone = checkpoint.alone.as_ref();
        let (reads, wait_s) = alone.map_or((0, 0.0), |alone| (alone.reads, alone.wait_s));
        let checkpoint_s = wait_s + checkpoint.total_bytes as f64 / bytes_per_second;
        phases.checkpoints_s = (checkpoint.count(&plan.train) + reads) as f64 * checkpoint_s;
    }
    phases
}

/// Estimates the duration of all steps. A step takes the maximum of compute, reading and preprocessing.
fn steps_s(plan: &Plan, estimate: &Estimate, train: &TrainPlan, read_rate: f64) -> f64 {
    let loader = &plan.loader;
    let samples = loader.batch_size as f64;
    let bytes = samples * estimate.sample_read_bytes_mean * f64::from(plan.readers());
    let preprocess_s = samples * loader.preprocess.mean_s() / f64::from(loader.workers.max(1));
    let waiting_s = emulated_step_s(plan, estimate, read_rate).unwrap_or(0.0);
    let step_s = train.compute.mean_s().max(bytes / read_rate).max(preprocess_s).max(waiting_s);
    train.steps() as f64 * step_s
}

/// Returns the minimum duration of an epoch on the emulated storage, which is otherwise infinitely fast; `None` if the plan neither limits nor delays reads.
pub fn emulated_epoch_s(plan: &Plan, estimate: &Estimate) -> Option<f64> {
    let rate = plan.storage_of_steps().throttle_bytes_per_second;
    let waiting_s = emulated_step_s(plan, estimate, rate.unwrap_or(f64::INFINITY));
    if rate.is_none() && waiting_s.is_none() {
        return None;
    }
    let bytes = estimate.accelerator_epoch_bytes * f64::from(plan.accelerators);
    let transfer_s = rate.map_or(0.0, |rate| bytes / rate);
    let waiting_s = estimate.steps_per_epoch as f64 * waiting_s.unwrap_or(0.0);
    Some(estimate.epoch_least_s.max(transfer_s).max(waiting_s))
}

/// Estimates the time that the workers need for the samples of a step, from the emulated delays of opens and reads and their own bytes at `read_rate`. `None`
/// without delays, or if samples stay in memory. The numbers of opens and reads are the least, as reads of files with several samples depend on the order.
fn emulated_step_s(plan: &Plan, estimate: &Estimate, read_rate: f64) -> Option<f64> {
    let loader = &plan.loader;
    let storage = plan.storage_of_steps();
    let read_s = storage.throttle_latency_s + storage.delay_s + storage.read_delay_s;
    let open_s = storage.delay_s + storage.open_delay_s;
    if read_s + open_s <= 0.0 || loader.in_memory {
        return None;
    }
    let samples = loader.batch_size as f64;
    let file_samples = plan.dataset.samples_per_file.max(1) as f64;
    let sample_bytes = estimate.sample_read_bytes_mean;
    let reads = if loader.requests.is_some() {
        1.0 / plan.samples_per_request() as f64
    } else {
        let file_bytes = sample_bytes * file_samples;
        let heads = loader.head.map_or(0, |head| u64::from(head.reads));
        let before = (loader.opening_reads(file_bytes) + heads) as f64;
        (before + loader.payload_reads(file_bytes)) / file_samples
    };
    let reading_s = reads * read_s;
    let sample_s = reading_s + open_s / file_samples + sample_bytes / read_rate;
    // A worker without a batch does not read.
    let workers = loader.workers.min(loader.batches_in_flight).max(1);
    let by_workers_s = samples * sample_s / f64::from(workers * loader.in_flight());
    let by_concurrency_s = storage.throttle_concurrency.map_or(0.0, |concurrency| {
        samples * f64::from(plan.readers()) * reading_s / f64::from(concurrency.max(1))
    });
    Some(by_workers_s.max(by_concurrency_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::TimeSpec;

    /// A plan of 32 steps of two samples with four reads each, and its estimate.
    fn example() -> (Plan, Estimate) {
        let mut plan = Plan { accelerators: 2, ..Plan::default() };
        plan.dataset.samples_per_file = 1;
        plan.loader.batch_size = 2;
        plan.loader.workers = 1;
        plan.loader.batches_in_flight = 2;
        plan.loader.group_accelerators = 1;
        plan.loader.piece_bytes = 250_000;
        plan.train.compute = TimeSpec::Constant { mean: 0.03 };
        plan.train.epochs = 1;
        plan.train.steps_per_epoch = 32;
        let estimate = Estimate {
            sample_read_bytes_mean: 1e6,
            accelerator_epoch_bytes: 64e6,
            steps_per_epoch: 32,
            epoch_least_s: 0.96,
            ..Estimate::default()
        };
        (plan, estimate)
    }

    #[test]
    fn emulated_delays_prolong_steps() {
        let check = |change: fn(&mut Plan), expected: Option<&str>, expected_steps: &str| {
            let (mut plan, estimate) = example();
            change(&mut plan);
            let epoch = emulated_epoch_s(&plan, &estimate).map(|seconds| format!("{seconds:.2}"));
            assert_eq!(epoch.as_deref(), expected);
            let duration = duration(&plan, &estimate, f64::INFINITY);
            assert_eq!(format!("{:.2}", duration.training_s), expected_steps);
        };
        check(|_| {}, None, "0.96");
        check(|plan| plan.storage.throttle_bytes_per_second = Some(100e6), Some("1.28"), "1.28");
        // A sample takes 4 × 10 ms, and 10 ms for its bytes.
        check(
            |plan| {
                plan.storage.throttle_bytes_per_second = Some(100e6);
                plan.storage.throttle_latency_s = 0.01;
            },
            Some("3.20"),
            "3.20",
        );
        check(
            |plan| {
                plan.storage.throttle_latency_s = 0.01;
                plan.loader.workers = 2;
            },
            Some("1.28"),
            "1.28",
        );
        // The reads of both accelerators wait for each other.
        check(
            |plan| {
                plan.storage.throttle_latency_s = 0.01;
                plan.storage.throttle_concurrency = Some(1);
            },
            Some("5.12"),
            "5.12",
        );
        check(|plan| plan.storage.open_delay_s = 0.1, Some("6.40"), "6.40");
        check(|plan| plan.storage.read_delay_s = 0.0001, Some("0.96"), "0.96");
    }
}
