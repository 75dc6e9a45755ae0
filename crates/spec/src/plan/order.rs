//! The sample that each accelerator reads at each position of an epoch: shards and orders as functions of an index.
//!
//! Laws (property tests): an order is a permutation; the shards of an epoch partition it; the same
//! seed gives the same order. As with torch's `DistributedSampler` the whole epoch is shuffled first
//! and then cut, so that accelerators see other samples in each epoch.

pub use super::permutation::{Permutation, mix};

use super::permutation::Blocks;
use super::{DatasetPlan, FileAccess, LoaderPlan, Plan, Shuffle, WorkerSplit};
use std::ops::Range;

/// A sample of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleId {
    /// File index.
    pub file: u64,
    /// Index within the file.
    pub sample: u64,
}

/// The order of one epoch.
#[derive(Clone, Debug)]
pub struct Order {
    samples: u64,
    samples_per_file: u64,
    files: Option<Permutation>,
    all: Option<Blocks>,
}

impl Order {
    /// The training order of epoch `epoch` (from 1).
    pub fn for_epoch(dataset: &DatasetPlan, loader: &LoaderPlan, epoch: u32) -> Self {
        let epoch = if loader.seed_change_epoch { epoch } else { 0 };
        let epoch_seed = mix(loader.order_seed, epoch.into());
        let samples = dataset.files_train * dataset.samples_per_file;
        let all = loader
            .shuffles_samples()
            .then(|| Blocks::new(samples, loader.shuffle_block.unwrap_or(1), mix(epoch_seed, 1)));
        // Shuffled samples are in no file order already.
        let files = (all.is_none() && loader.file_shuffle != Shuffle::Off)
            .then(|| Permutation::new(dataset.files_train, mix(epoch_seed, 2)));
        Order { samples, samples_per_file: dataset.samples_per_file, files, all }
    }

    /// Samples of the epoch.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The sample at `position` of the epoch.
    pub fn at(&self, position: u64) -> SampleId {
        let g = self.all.as_ref().map_or(position, |blocks| blocks.at(position));
        let (place, sample) = (g / self.samples_per_file, g % self.samples_per_file);
        SampleId { file: self.files.as_ref().map_or(place, |p| p.at(place)), sample }
    }
}

/// The positions of an epoch that an accelerator reads, step by step.
#[derive(Clone, Debug)]
pub struct Share {
    access: FileAccess,
    batch_size: u64,
    accelerators: u64,
    accelerator: u64,
    start: u64,
    rereads: Option<Rereads>,
    /// Samples of a shared order that an accelerator takes before the next one has its turn.
    run: u64,
    /// Samples of an accelerator in an epoch.
    own: u64,
}

impl Share {
    /// The share of `accelerator` under `plan`.
    pub fn new(plan: &Plan, accelerator: u32) -> Self {
        let (dataset, loader) = (&plan.dataset, &plan.loader);
        let rereads = loader
            .files_each(dataset.files_train, plan.accelerators)
            .map(|files| Rereads::new(dataset, files, plan.accelerators, accelerator));
        Share {
            access: loader.file_access,
            batch_size: loader.batch_size,
            accelerators: u64::from(plan.accelerators),
            accelerator: u64::from(accelerator),
            start: own_positions(plan, accelerator).start,
            rereads,
            run: loader.shuffle_block.unwrap_or(loader.batch_size),
            own: plan.train.steps_per_epoch * loader.batch_size,
        }
    }

    /// The position of sample `sample` of step `step`.
    pub fn position(&self, step: u64, sample: u64) -> u64 {
        let own = step * self.batch_size + sample;
        match self.access {
            FileAccess::Multi => self.read_position(self.start + own),
            FileAccess::Shared | FileAccess::Mpio => self.dealt(own),
            FileAccess::Same => own,
        }
    }

    /// The position of the epoch that is read at position `own` of the accelerator: another one where it reads files of others too.
    pub fn read_position(&self, own: u64) -> u64 {
        self.rereads.as_ref().map_or(own, |rereads| rereads.position(own))
    }

    /// The position of the sample `own` of those that this accelerator is dealt in turns; the last turn may be shorter for all.
    fn dealt(&self, own: u64) -> u64 {
        let turn = own / self.run;
        let len = if turn == self.own / self.run { self.own % self.run } else { self.run };
        turn * self.accelerators * self.run + self.accelerator * len + own % self.run
    }
}

/// The positions of an accelerator: those of the epoch that are its own, or from 0 where it reads files of others too
/// ([`Share::read_position`]).
pub(super) fn own_positions(plan: &Plan, accelerator: u32) -> Range<u64> {
    let (dataset, loader) = (&plan.dataset, &plan.loader);
    let samples = dataset.files_train * dataset.samples_per_file;
    match (loader.file_access, loader.files_each(dataset.files_train, plan.accelerators)) {
        (_, Some(files)) => 0..files * dataset.samples_per_file,
        (FileAccess::Multi, None) => shard(samples, plan.accelerators, accelerator),
        (FileAccess::Shared | FileAccess::Mpio | FileAccess::Same, None) => 0..samples,
    }
}

impl LoaderPlan {
    /// Files that each accelerator reads in an epoch, where some read those of others too: as many on each, the nearest number to
    /// the share that is asked for, at least its own and those of one other at most.
    pub(super) fn files_each(&self, files: u64, accelerators: u32) -> Option<u64> {
        debug_assert!((0.0..=1.0).contains(&self.reread_share), "{}", self.reread_share);
        if self.reread_share == 0.0 || accelerators < 2 || self.file_access != FileAccess::Multi {
            return None;
        }
        let each = files as f64 / f64::from(accelerators);
        let asked = (each * (1.0 + self.reread_share)).round() as u64;
        Some(asked.min((2.0 * each) as u64).max(files.div_ceil(accelerators.into())))
    }

    /// Whether samples are read in another order than they lie in. A shuffle buffer changes the order in which they are handed out,
    /// not that in which they are read; whole files are read in their order.
    pub fn shuffles_samples(&self) -> bool {
        let keeps_files = self.shuffles_in_buffer || self.split == WorkerSplit::Shards;
        self.sample_shuffle != Shuffle::Off && !keeps_files
    }
}

/// An accelerator's own files, and between them the first of the next accelerator's, as that one reads them too.
#[derive(Clone, Debug)]
struct Rereads {
    /// Files that it reads in an epoch, and how many of them are another's.
    files: u64,
    again: u64,
    /// First file of its own, and of the accelerator after it.
    own: u64,
    others: u64,
    samples_per_file: u64,
}

impl Rereads {
    fn new(dataset: &DatasetPlan, files: u64, accelerators: u32, accelerator: u32) -> Self {
        let [own, others] = [accelerator, (accelerator + 1) % accelerators]
            .map(|accelerator| shard(dataset.files_train, accelerators, accelerator));
        let again = files - (own.end - own.start);
        let samples_per_file = dataset.samples_per_file;
        Rereads { files, again, own: own.start, others: others.start, samples_per_file }
    }

    /// Where a sample lies in the epoch, of those that the accelerator reads.
    fn position(&self, sample: u64) -> u64 {
        let place = sample / self.samples_per_file;
        let [again, next] = [place, place + 1].map(|place| self.again_before(place));
        let file = if next > again { self.others + again } else { self.own + place - again };
        file * self.samples_per_file + sample % self.samples_per_file
    }

    /// Number of another's files among the first `files` that are read.
    fn again_before(&self, files: u64) -> u64 {
        (u128::from(files) * u128::from(self.again) / u128::from(self.files)) as u64
    }
}

/// Positions of an epoch of `samples` that belong to `accelerator`; sizes differ by at most one.
pub fn shard(samples: u64, accelerators: u32, accelerator: u32) -> Range<u64> {
    let [start, end] = [accelerator, accelerator + 1]
        .map(|a| (u128::from(samples) * u128::from(a) / u128::from(accelerators)) as u64);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::schedule;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_partition_the_epoch(samples in 0u64..100_000, accelerators in 1u32..300) {
            let mut next = 0;
            for a in 0..accelerators {
                let shard = shard(samples, accelerators, a);
                prop_assert_eq!(shard.start, next);
                prop_assert!(shard.end - shard.start >= samples / u64::from(accelerators));
                prop_assert!(shard.end - shard.start <= samples.div_ceil(u64::from(accelerators)));
                next = shard.end;
            }
            prop_assert_eq!(next, samples);
        }
    }

    proptest! {
        /// Over all accelerators and steps of an epoch: no sample twice, none invented, as many as fill whole steps.
        #[test]
        fn an_epoch_reads_each_sample_at_most_once(
            files in 1u64..40,
            samples_per_file in 1u64..12,
            accelerators in 1u32..9,
            batch_size in 1u64..9,
            shuffles in 0usize..4,
            block in 1u64..30,
            epoch in 1u32..4,
        ) {
            let on = |bit: usize| if shuffles & bit == 0 { Shuffle::Off } else { Shuffle::Seed };
            let order = Order {
                samples: files * samples_per_file,
                samples_per_file,
                files: (on(1) == Shuffle::Seed).then(|| Permutation::new(files, mix(7, epoch.into()))),
                all: (on(2) == Shuffle::Seed).then(|| Blocks::new(files * samples_per_file, block, mix(9, epoch.into()))),
            };
            let steps = crate::plan::schedule::steps_per_epoch(order.samples(), batch_size, accelerators);
            let mut seen = std::collections::HashSet::new();
            for accelerator in 0..accelerators {
                let share = shard(order.samples(), accelerators, accelerator);
                prop_assert!(share.start + steps * batch_size <= share.end);
                for position in share.start..share.start + steps * batch_size {
                    let id = order.at(position);
                    prop_assert!(id.file < files && id.sample < samples_per_file);
                    prop_assert!(seen.insert(id), "{id:?} twice");
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch_size * u64::from(accelerators));
            prop_assert!(order.samples() - (seen.len() as u64) < batch_size * u64::from(accelerators));
        }
    }

    proptest! {
        /// The accelerators of a shared dataset take the next batches, or blocks, of one order.
        #[test]
        fn a_shared_dataset_is_read_by_each_once(
            accelerators in 1u32..9,
            batch_size in 1u64..9,
            steps in 1u64..20,
            block in 0u64..40,
        ) {
            let run = if block == 0 { batch_size } else { block };
            let mut all: Vec<u64> = (0..accelerators)
                .flat_map(|accelerator| {
                    let share = Share {
                        access: FileAccess::Shared,
                        batch_size,
                        accelerators: accelerators.into(),
                        accelerator: accelerator.into(),
                        start: 0,
                        rereads: None,
                        run,
                        own: steps * batch_size,
                    };
                    for own in 0..steps * batch_size {
                        let is_first = own % run == 0 || own + 1 == steps * batch_size;
                        let next = |own: u64| share.position(own / batch_size, own % batch_size);
                        assert!(is_first || next(own) == next(own - 1) + 1, "in a row");
                    }
                    (0..steps).flat_map(move |step| {
                        let share = share.clone();
                        (0..batch_size).map(move |sample| share.position(step, sample))
                    })
                })
                .collect();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..u64::from(accelerators) * batch_size * steps));
        }
    }

    proptest! {
        /// Every file is read by its own accelerator, and as near to the share that is asked for as whole files allow by another one too,
        /// whole and in their order.
        #[test]
        fn a_share_of_the_files_is_read_by_two(
            accelerators in 2u32..9,
            more_files in 0u64..40,
            samples_per_file in 1u64..5,
            reread_share in 0.01f64..1.0,
        ) {
            let files = u64::from(accelerators) + more_files;
            let mut plan = Plan { accelerators, ..Plan::default() };
            (plan.dataset.files_train, plan.dataset.samples_per_file) = (files, samples_per_file);
            (plan.loader.batch_size, plan.loader.reread_share) = (1, reread_share);
            let steps = schedule::steps_of_training(&plan.dataset, &plan.loader, accelerators);
            plan.train.steps_per_epoch = steps;
            let mut readers = vec![Vec::new(); (files * samples_per_file) as usize];
            for accelerator in 0..accelerators {
                let share = Share::new(&plan, accelerator);
                let mut next = vec![0; files as usize];
                for step in 0..steps {
                    let position = share.position(step, 0);
                    let (file, sample) = (position / samples_per_file, position % samples_per_file);
                    prop_assert_eq!(sample, next[file as usize], "in the order of its file");
                    next[file as usize] += 1;
                    readers[position as usize].push(accelerator);
                }
            }
            prop_assert!(readers.iter().all(|of| of.len() == 1 || of.len() == 2 && of[0] != of[1]));
            let read = readers.iter().map(|of| of.len() as u64).sum::<u64>() / samples_per_file;
            // As many on each: to the nearest, but for what is below one's own or above those of two.
            let all = f64::from(accelerators);
            let off = (read as f64 - files as f64 * (1.0 + reread_share)).abs();
            prop_assert!(off <= all, "{read} of {files}, {reread_share} asked");
            let is_even = files.is_multiple_of(accelerators.into());
            prop_assert!(!is_even || off <= all / 2.0 + 1e-6, "{read} of {files}, {reread_share} asked");
        }
    }

    /// However early an epoch is cut short, as large a share of what was read was read by two.
    #[test]
    fn what_is_read_again_is_spread_over_the_epoch() {
        let mut plan = Plan { accelerators: 2, ..Plan::default() };
        (plan.dataset.files_train, plan.dataset.samples_per_file) = (16, 1);
        (plan.loader.batch_size, plan.loader.reread_share) = (1, 0.5);
        let read = [0, 1].map(|accelerator| {
            let share = Share::new(&plan, accelerator);
            (0..9).map(|step| share.position(step, 0)).collect::<Vec<_>>()
        });
        assert_eq!(read[0], [0, 1, 8, 2, 3, 9, 4, 5, 10]);
        assert_eq!(read[1], [8, 9, 0, 10, 11, 1, 12, 13, 2]);
    }
}
