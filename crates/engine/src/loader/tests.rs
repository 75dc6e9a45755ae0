//! The contract of every loader: every sample of every batch is claimed exactly once, and never beyond the open batches, in any
//! interleaving of the workers.

use super::{BatchStatus, LOADERS, Queue, ReadTimes, WakeTarget, WorkerState};
use feedrate_measure::example;
use feedrate_spec::plan::shards::FileSplit;
use feedrate_spec::plan::{LoaderPlan, WorkerSplit};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

proptest! {
    #[test]
    fn every_sample_is_claimed_once(
        loader in 0..LOADERS.len(),
        workers in 1u32..9,
        batch_size in 1u64..5,
        steps in 1u64..20,
        last_steps in 1u64..20,
        prefetch in 0u32..5,
        held in [0u32..4, 0..4],
        picks in proptest::collection::vec(0usize..1000, 1..50),
    ) {
        let loader = LOADERS[loader];
        let total = steps + last_steps.min(steps);
        let held_max = held[0].max(held[1]);
        let in_flight = (loader.entry().batches_in_flight)(workers, prefetch, batch_size);
        let stock = if held_max > 0 { in_flight.max(1) + held_max } else { in_flight };
        let queue = Queue::new(workers, batch_size, steps, total, stock, held);
        let mut states: Vec<_> = (0..workers).map(WorkerState::new).collect();
        let mut read: HashMap<(u64, u64), u32> = HashMap::new();
        // An uneven schedule in which every worker is scheduled repeatedly.
        // The slow second term lets each worker have a turn, even if the first repeats with the picks.
        let mut turns = (0..)
            .zip(picks.iter().cycle())
            .map(|(turn, pick)| turn / 7 + turn / 1009 + pick);
        let mut taken = 0;
        let mut claims = 0;
        for epoch_steps in [steps, last_steps.min(steps)] {
            queue.publish(epoch_steps);
            let end = taken + epoch_steps;
            while taken < end {
                let worker = turns.next().unwrap() % states.len();
                if let Some(task) = loader.claim(&queue, &mut states[worker]) {
                    claims += 1;
                    prop_assert!(task.batch < taken + u64::from(stock.max(1)));
                    prop_assert!(task.batch < end);
                    for sample in task.samples.clone() {
                        *read.entry((task.batch, sample)).or_default() += 1;
                    }
                    let samples = task.samples.end - task.samples.start;
                    if queue.finish(task.batch, samples, ReadTimes::default()) == BatchStatus::Awaited {
                        prop_assert!(task.batch >= taken && task.batch <= taken + u64::from(held_max));
                        if queue.request(taken) {
                            queue.take(taken);
                            taken += 1;
                        }
                    }
                } else if queue.request(taken) {
                    queue.take(taken);
                    taken += 1;
                }
            }
        }
        prop_assert_eq!(read.len() as u64, total * batch_size);
        prop_assert!(read.values().all(|&n| n == 1));
        prop_assert_eq!(claims, total * loader.claims_per_batch(batch_size));
    }
}

proptest! {
    /// If workers read whole files, each position is claimed once per epoch, with any loader.
    #[test]
    fn every_position_of_whole_files_is_claimed_once(
        loader in 0..LOADERS.len(),
        workers in 1u32..9,
        batch_size in 1u64..6,
        files in 1u64..12,
        samples_per_file in 1u64..20,
        prefetch in 0u32..5,
        interleaves: bool,
        picks in proptest::collection::vec(0usize..1000, 1..50),
    ) {
        let loader = LOADERS[loader];
        let steps = files * samples_per_file / batch_size;
        prop_assume!(steps > 0);
        let last_steps = steps.div_ceil(2);
        let mut plan = example::plan(1, steps);
        plan.dataset.files_train = files;
        plan.dataset.samples_per_file = samples_per_file;
        plan.train.steps_per_epoch = steps;
        let interleaves = interleaves && workers > 1;
        let (split, interleaved_files) = if interleaves {
            (WorkerSplit::Samples, workers)
        } else {
            (WorkerSplit::Shards, 1)
        };
        plan.loader = LoaderPlan { workers, batch_size, split, interleaved_files, ..plan.loader };
        let in_flight = (loader.entry().batches_in_flight)(workers, prefetch, batch_size);
        let queue = Queue::new(workers, batch_size, steps, steps + last_steps, in_flight, [0, 0]);
        let queue = queue.with_splits(FileSplit::for_epochs(&plan, 0));
        let mut states: Vec<_> = (0..workers).map(WorkerState::new).collect();
        // The slow second term lets each worker have a turn, even if the first repeats with the picks.
        let mut turns = (0..)
            .zip(picks.iter().cycle())
            .map(|(turn, pick)| turn / 7 + turn / 1009 + pick);
        let mut taken = 0;
        for epoch_steps in [steps, last_steps] {
            queue.publish(epoch_steps);
            let end = taken + epoch_steps;
            let mut read = HashSet::new();
            let mut claims = 0;
            while taken < end {
                let worker = turns.next().unwrap() % states.len();
                if let Some(task) = queue.claim(loader, &mut states[worker]) {
                    claims += 1;
                    prop_assert!(task.batch < (taken + u64::from(in_flight.max(1))).min(end));
                    let samples = task.samples.end - task.samples.start;
                    let first = task.position.unwrap();
                    prop_assert!((first..first + samples).all(|position| read.insert(position)));
                    if queue.finish(task.batch, samples, ReadTimes::default()) != BatchStatus::Awaited {
                        continue;
                    }
                }
                if queue.request(taken) {
                    queue.take(taken);
                    taken += 1;
                }
            }
            prop_assert_eq!(read.len() as u64, epoch_steps * batch_size);
            prop_assert_eq!(claims, queue.claims(loader, 1, epoch_steps));
        }
    }
}

#[test]
fn without_workers_nothing_is_read_ahead() {
    let loader = super::find("pytorch").unwrap();
    assert_eq!((loader.entry().batches_in_flight)(0, 2, 1), 0);
    let queue = Queue::new(1, 1, 3, 3, 0, [0, 0]);
    let mut worker = WorkerState::new(0);
    queue.publish(3);
    assert_eq!(loader.claim(&queue, &mut worker), None);
    assert!(!queue.request(0));
    let task = loader.claim(&queue, &mut worker).unwrap();
    assert_eq!(queue.finish(task.batch, 1, ReadTimes::default()), BatchStatus::Awaited);
    assert_eq!(loader.claim(&queue, &mut worker), None);
}

#[test]
fn prefetch_factor_matches_dlio() {
    let stock = super::find("pytorch").unwrap().entry().batches_in_flight;
    let cases = [((4, 2), 4), ((1, 2), 2), ((8, 2), 8), ((4, 8), 8), ((4, 9), 12), ((2, 0), 4)];
    for ((threads, prefetch), expected) in cases {
        assert_eq!(stock(threads, prefetch, 7), expected, "{threads} threads, prefetch {prefetch}");
    }
}

#[test]
fn an_opened_batch_wakes_the_worker_that_builds_it() {
    let loader = super::find("pytorch").unwrap();
    let queue = Queue::new(4, 1, 10, 20, 4, [0, 0]);
    assert_eq!(loader.workers_to_wake(&queue, 13), WakeTarget::One(3));
}
