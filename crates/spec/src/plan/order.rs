//! Order of samples in an epoch and its division among accelerators, computed from an index.
//!
//! Property tests check that an order is a permutation, that the shards of an epoch partition it, and that the same seed gives the same
//! order. As in torch's `DistributedSampler`, the whole epoch is shuffled before it is divided, so that accelerators get different
//! samples in each epoch.

pub use super::permutation::{Permutation, mix};

use super::permutation::Blocks;
use super::{DatasetPlan, FileAccess, LoaderPlan, Plan, Shuffle, WorkerSplit};
use std::ops::Range;
use std::sync::Arc;

/// A sample of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleId {
    /// File index.
    pub file: u64,
    /// Index within the file.
    pub sample: u64,
}

/// The order of samples in one epoch.
#[derive(Clone, Debug)]
pub struct Order {
    samples: u64,
    bounds: FileBounds,
    /// Order of files, if they are shuffled.
    shuffled_files: Option<Permutation>,
    /// Order of samples over all files, if they are shuffled.
    shuffled_samples: Option<Blocks>,
}

impl Order {
    /// Creates the order of training epoch `epoch`, counted from 1.
    pub fn for_epoch(dataset: &DatasetPlan, loader: &LoaderPlan, epoch: u32) -> Self {
        let seeded_epoch = if loader.seed_change_epoch { epoch } else { 0 };
        let epoch_seed = mix(loader.order_seed, seeded_epoch.into());
        let samples = dataset.samples_train();
        let shuffled_samples = loader
            .shuffles_samples()
            .then(|| Blocks::new(samples, loader.shuffle_block.unwrap_or(1), mix(epoch_seed, 1)));
        // Shuffling samples over all files makes the order of files irrelevant.
        let shuffled_files = (shuffled_samples.is_none() && loader.file_shuffle != Shuffle::Off)
            .then(|| Permutation::new(dataset.files_train, mix(epoch_seed, 2)));
        let bounds = FileBounds::new(dataset, shuffled_files.as_ref());
        Order { samples, bounds, shuffled_files, shuffled_samples }
    }

    /// Returns the first positions of the files in the epoch.
    pub(super) fn bounds(&self) -> &FileBounds {
        &self.bounds
    }

    /// Returns the number of samples in the epoch.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the first position after the file at `position`, if samples are read in the order of their files.
    pub fn file_end(&self, position: u64) -> u64 {
        self.bounds.start(self.bounds.file_at(position) + 1)
    }

    /// Returns the sample at `position` of the epoch.
    pub fn sample_at(&self, position: u64) -> SampleId {
        let index =
            self.shuffled_samples.as_ref().map_or(position, |blocks| blocks.sample_at(position));
        let file_position = self.bounds.file_at(index);
        let file = match &self.shuffled_files {
            Some(permutation) => permutation.number_at(file_position),
            None => file_position,
        };
        SampleId { file, sample: index - self.bounds.start(file_position) }
    }
}

/// First positions of the files of an epoch, in the order of reading.
#[derive(Clone, Debug)]
pub(super) enum FileBounds {
    /// All files have this number of samples.
    Equal(u64),
    /// The first position of each file, and the number of all samples.
    Unequal(Arc<[u64]>),
}

impl FileBounds {
    /// Creates the bounds of the training files, in the order of `shuffled_files`.
    fn new(dataset: &DatasetPlan, shuffled_files: Option<&Permutation>) -> Self {
        let Some(samples) = dataset.unequal_samples() else {
            return FileBounds::Equal(dataset.samples_per_file.max(1));
        };
        let number_at = |position: u64| {
            shuffled_files.map_or(position, |permutation| permutation.number_at(position))
        };
        let counts = (0..dataset.files_train)
            .map(|position| samples.get(number_at(position) as usize).copied().unwrap_or_default());
        let ends = counts.scan(0_u64, |end, samples| {
            *end = end.saturating_add(samples);
            Some(*end)
        });
        FileBounds::Unequal([0].into_iter().chain(ends).collect())
    }

    /// Returns the number of files before the one with `position`.
    pub(super) fn file_at(&self, position: u64) -> u64 {
        match self {
            FileBounds::Equal(samples_per_file) => position / samples_per_file,
            FileBounds::Unequal(starts) => {
                starts.partition_point(|start| *start <= position).saturating_sub(1) as u64
            }
        }
    }

    /// Returns the first position of the file after `files` others.
    pub(super) fn start(&self, files: u64) -> u64 {
        match self {
            FileBounds::Equal(samples_per_file) => files * samples_per_file,
            FileBounds::Unequal(starts) => {
                let last = starts.len().saturating_sub(1);
                starts.get((files as usize).min(last)).copied().unwrap_or_default()
            }
        }
    }
}

/// The positions of an epoch that an accelerator reads in each step.
#[derive(Clone, Debug)]
pub struct Share {
    access: FileAccess,
    batch_size: u64,
    accelerators: u64,
    accelerator: u64,
    start: u64,
    rereads: Option<Rereads>,
    /// Number of consecutive samples that each accelerator takes in turn from a shared order.
    turn_samples: u64,
    /// Number of samples of the accelerator in an epoch.
    epoch_samples: u64,
}

impl Share {
    /// Creates the share of `accelerator` under `plan`.
    pub fn new(plan: &Plan, accelerator: u32) -> Self {
        let dataset = &plan.dataset;
        let loader = &plan.loader;
        let rereads = loader
            .files_per_accelerator(dataset.files_train, plan.accelerators)
            .map(|files| Rereads::new(dataset, files, plan.accelerators, accelerator));
        Share {
            access: loader.file_access,
            batch_size: loader.batch_size,
            accelerators: u64::from(plan.accelerators),
            accelerator: u64::from(accelerator),
            start: accelerator_positions(plan, accelerator).start,
            rereads,
            turn_samples: loader.shuffle_block.unwrap_or(loader.batch_size),
            epoch_samples: plan.train.steps_per_epoch * loader.batch_size,
        }
    }

    /// Returns the position in the epoch of sample `sample` of step `step`.
    pub fn position(&self, step: u64, sample: u64) -> u64 {
        let index = step * self.batch_size + sample;
        match self.access {
            FileAccess::Multi => self.read_position(self.start + index),
            FileAccess::Shared | FileAccess::Mpio => self.position_in_turns(index),
            FileAccess::Same => index,
        }
    }

    /// Maps a position of the accelerator (`accelerator_positions`) to a position in the epoch. The two differ if the accelerator also reads
    /// files of another accelerator.
    pub fn read_position(&self, position: u64) -> u64 {
        self.rereads.as_ref().map_or(position, |rereads| rereads.epoch_position(position))
    }

    /// Returns the position in the epoch of this accelerator's sample number `index`, if accelerators take turns. The last turn may be
    /// shorter.
    fn position_in_turns(&self, index: u64) -> u64 {
        let turn = index / self.turn_samples;
        let is_last = turn == self.epoch_samples / self.turn_samples;
        let len = if is_last { self.epoch_samples % self.turn_samples } else { self.turn_samples };
        turn * self.accelerators * self.turn_samples
            + self.accelerator * len
            + index % self.turn_samples
    }
}

/// Returns the positions of an accelerator: its shard of the epoch, or a range from 0 if it also reads files of another accelerator
/// ([`Share::read_position`]).
pub(super) fn accelerator_positions(plan: &Plan, accelerator: u32) -> Range<u64> {
    let dataset = &plan.dataset;
    let loader = &plan.loader;
    let samples = dataset.samples_train();
    match (loader.file_access, loader.files_per_accelerator(dataset.files_train, plan.accelerators))
    {
        (_, Some(files)) => 0..files * dataset.samples_per_file,
        (FileAccess::Multi, None) => shard(samples, plan.accelerators, accelerator),
        (FileAccess::Shared | FileAccess::Mpio | FileAccess::Same, None) => 0..samples,
    }
}

impl LoaderPlan {
    /// Returns the number of files that each accelerator reads in an epoch if a second accelerator also reads some files. All accelerators
    /// have the same number: the nearest to the configured share, at least an accelerator's own files, and at most the files of two
    /// accelerators.
    pub(super) fn files_per_accelerator(&self, files: u64, accelerators: u32) -> Option<u64> {
        debug_assert!((0.0..=1.0).contains(&self.reread_share), "{}", self.reread_share);
        if self.reread_share == 0.0 || accelerators < 2 || self.file_access != FileAccess::Multi {
            return None;
        }
        let each = files as f64 / f64::from(accelerators);
        let configured = (each * (1.0 + self.reread_share)).round() as u64;
        Some(configured.min((2.0 * each) as u64).max(files.div_ceil(accelerators.into())))
    }

    /// Whether samples are read in another order than the order within files. A shuffle buffer changes only the order of delivery, and
    /// workers that read whole files keep the order within each file.
    pub fn shuffles_samples(&self) -> bool {
        let keeps_file_order = self.shuffles_in_buffer || self.split == WorkerSplit::Shards;
        self.sample_shuffle != Shuffle::Off && !keeps_file_order
    }
}

/// The files of an accelerator that also reads the first files of the next accelerator. It reads these foreign files spread evenly between
/// its own files.
#[derive(Clone, Debug)]
struct Rereads {
    /// Number of files that the accelerator reads in an epoch.
    files: u64,
    /// Number of these files that belong to the next accelerator.
    foreign_files: u64,
    /// First file of this accelerator.
    first_own: u64,
    /// First file of the next accelerator.
    first_foreign: u64,
    samples_per_file: u64,
}

impl Rereads {
    fn new(dataset: &DatasetPlan, files: u64, accelerators: u32, accelerator: u32) -> Self {
        let own_files = shard(dataset.files_train, accelerators, accelerator);
        let next = (accelerator + 1) % accelerators;
        Rereads {
            files,
            foreign_files: files - (own_files.end - own_files.start),
            first_own: own_files.start,
            first_foreign: shard(dataset.files_train, accelerators, next).start,
            samples_per_file: dataset.samples_per_file,
        }
    }

    /// Returns the position in the epoch of the accelerator's position `position`.
    fn epoch_position(&self, position: u64) -> u64 {
        let file_position = position / self.samples_per_file;
        let foreign_before = self.foreign_files_before(file_position);
        let is_foreign = self.foreign_files_before(file_position + 1) > foreign_before;
        let file = if is_foreign {
            self.first_foreign + foreign_before
        } else {
            self.first_own + file_position - foreign_before
        };
        file * self.samples_per_file + position % self.samples_per_file
    }

    /// Returns the number of the next accelerator's files among the first `files` that are read.
    fn foreign_files_before(&self, files: u64) -> u64 {
        (u128::from(files) * u128::from(self.foreign_files) / u128::from(self.files)) as u64
    }
}

/// Returns the range of `0..samples` that belongs to `accelerator`. The lengths of the ranges differ by at most one.
pub fn shard(samples: u64, accelerators: u32, accelerator: u32) -> Range<u64> {
    let start_of = |accelerator: u32| {
        (u128::from(samples) * u128::from(accelerator) / u128::from(accelerators)) as u64
    };
    start_of(accelerator)..start_of(accelerator + 1)
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
            for accelerator in 0..accelerators {
                let shard = shard(samples, accelerators, accelerator);
                prop_assert_eq!(shard.start, next);
                prop_assert!(shard.end - shard.start >= samples / u64::from(accelerators));
                prop_assert!(shard.end - shard.start <= samples.div_ceil(u64::from(accelerators)));
                next = shard.end;
            }
            prop_assert_eq!(next, samples);
        }
    }

    proptest! {
        /// All accelerators together read no sample twice in an epoch, and they read all samples except an incomplete step.
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
            let shuffle = |bit: usize| if shuffles & bit == 0 { Shuffle::Off } else { Shuffle::Seed };
            let order = Order {
                samples: files * samples_per_file,
                bounds: FileBounds::Equal(samples_per_file),
                shuffled_files: (shuffle(1) == Shuffle::Seed).then(|| Permutation::new(files, mix(7, epoch.into()))),
                shuffled_samples: (shuffle(2) == Shuffle::Seed).then(|| Blocks::new(files * samples_per_file, block, mix(9, epoch.into()))),
            };
            let steps = crate::plan::schedule::steps_per_epoch(order.samples(), batch_size, accelerators);
            let mut seen = std::collections::HashSet::new();
            for accelerator in 0..accelerators {
                let share = shard(order.samples(), accelerators, accelerator);
                prop_assert!(share.start + steps * batch_size <= share.end);
                for position in share.start..share.start + steps * batch_size {
                    let id = order.sample_at(position);
                    prop_assert!(id.file < files && id.sample < samples_per_file);
                    prop_assert!(seen.insert(id), "{id:?} twice");
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch_size * u64::from(accelerators));
            prop_assert!(order.samples() - (seen.len() as u64) < batch_size * u64::from(accelerators));
        }
    }

    proptest! {
        /// With shared files, accelerators take turns in reading batches or blocks of one order.
        #[test]
        fn accelerators_read_each_sample_of_a_shared_dataset_once(
            accelerators in 1u32..9,
            batch_size in 1u64..9,
            steps in 1u64..20,
            block in 0u64..40,
        ) {
            let turn_samples = if block == 0 { batch_size } else { block };
            let mut all: Vec<u64> = (0..accelerators)
                .flat_map(|accelerator| {
                    let share = Share {
                        access: FileAccess::Shared,
                        batch_size,
                        accelerators: accelerators.into(),
                        accelerator: accelerator.into(),
                        start: 0,
                        rereads: None,
                        turn_samples,
                        epoch_samples: steps * batch_size,
                    };
                    for index in 0..steps * batch_size {
                        let is_first = index % turn_samples == 0 || index + 1 == steps * batch_size;
                        let position =
                            |index: u64| share.position(index / batch_size, index % batch_size);
                        assert!(is_first || position(index) == position(index - 1) + 1, "consecutive");
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
        /// Every file is read by its own accelerator, and the configured share of files (rounded to whole files) also by another accelerator.
        /// Each accelerator reads the samples of a file in order.
        #[test]
        fn two_accelerators_read_the_configured_share_of_files(
            accelerators in 2u32..9,
            more_files in 0u64..40,
            samples_per_file in 1u64..5,
            reread_share in 0.01f64..1.0,
        ) {
            let files = u64::from(accelerators) + more_files;
            let mut plan = Plan { accelerators, ..Plan::default() };
            plan.dataset.files_train = files;
            plan.dataset.samples_per_file = samples_per_file;
            plan.loader.batch_size = 1;
            plan.loader.reread_share = reread_share;
            let steps = schedule::steps_of_training(&plan.dataset, &plan.loader, accelerators);
            plan.train.steps_per_epoch = steps;
            let mut readers = vec![Vec::new(); (files * samples_per_file) as usize];
            for accelerator in 0..accelerators {
                let share = Share::new(&plan, accelerator);
                let mut next = vec![0; files as usize];
                for step in 0..steps {
                    let position = share.position(step, 0);
                    let file = position / samples_per_file;
                    let sample = position % samples_per_file;
                    prop_assert_eq!(sample, next[file as usize], "in the order of its file");
                    next[file as usize] += 1;
                    readers[position as usize].push(accelerator);
                }
            }
            let is_valid = |readers: &Vec<u32>| match readers[..] {
                [_] => true,
                [first, second] => first != second,
                _ => false,
            };
            prop_assert!(readers.iter().all(is_valid));
            let read_files = readers.iter().map(|readers| readers.len() as u64).sum::<u64>() / samples_per_file;
            // Each accelerator rounds to whole files, and has at least its own files and at most the files of two accelerators.
            let accelerators_f64 = f64::from(accelerators);
            let deviation = (read_files as f64 - files as f64 * (1.0 + reread_share)).abs();
            prop_assert!(deviation <= accelerators_f64, "{read_files} of {files}, {reread_share} configured");
            let is_even = files.is_multiple_of(accelerators.into());
            prop_assert!(!is_even || deviation <= accelerators_f64 / 2.0 + 1e-6, "{read_files} of {files}, {reread_share} configured");
        }
    }

    /// Each sample of files with different numbers of samples is read once, and each file in its order.
    #[test]
    fn files_of_different_lengths_are_read_whole() {
        let file_samples = vec![3, 0, 5, 1, 1, 7];
        let dataset = DatasetPlan {
            files_train: 6,
            samples_per_file: 3,
            file_samples: file_samples.clone(),
            ..DatasetPlan::default()
        };
        for (file_shuffle, sample_shuffle) in [
            (Shuffle::Off, Shuffle::Off),
            (Shuffle::Seed, Shuffle::Off),
            (Shuffle::Off, Shuffle::Seed),
        ] {
            let loader = LoaderPlan {
                file_shuffle,
                sample_shuffle,
                seed_change_epoch: true,
                ..LoaderPlan::default()
            };
            for epoch in 1..9 {
                let order = Order::for_epoch(&dataset, &loader, epoch);
                assert_eq!(order.samples(), 17);
                let mut read = vec![Vec::new(); 6];
                for position in 0..order.samples() {
                    let id = order.sample_at(position);
                    read[id.file as usize].push(id.sample);
                }
                for (samples, mut read) in file_samples.iter().zip(read) {
                    if sample_shuffle == Shuffle::Seed {
                        read.sort_unstable();
                    }
                    assert!(read.into_iter().eq(0..*samples));
                }
            }
        }
    }

    /// The share of files that two accelerators read is about the same in a truncated epoch.
    #[test]
    fn rereads_are_spread_over_the_epoch() {
        let mut plan = Plan { accelerators: 2, ..Plan::default() };
        plan.dataset.files_train = 16;
        plan.dataset.samples_per_file = 1;
        plan.loader.batch_size = 1;
        plan.loader.reread_share = 0.5;
        let read = [0, 1].map(|accelerator| {
            let share = Share::new(&plan, accelerator);
            (0..9).map(|step| share.position(step, 0)).collect::<Vec<_>>()
        });
        assert_eq!(read[0], [0, 1, 8, 2, 3, 9, 4, 5, 10]);
        assert_eq!(read[1], [8, 9, 0, 10, 11, 1, 12, 13, 2]);
    }
}
