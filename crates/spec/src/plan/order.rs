//! The sample that each accelerator reads at each position of an epoch: shards and orders as functions of an index.
//!
//! Laws (property tests): an order is a permutation; the shards of an epoch partition it; the same
//! seed gives the same order. As with torch's `DistributedSampler` the whole epoch is shuffled first
//! and then cut, so that accelerators see other samples in each epoch.

use super::seeds::scatter;
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
    all: Option<Permutation>,
}

impl Order {
    /// The training order of epoch `epoch` (from 1).
    pub fn of_epoch(dataset: &DatasetPlan, loader: &LoaderPlan, epoch: u32) -> Self {
        let epoch = if loader.seed_change_epoch { epoch } else { 0 };
        let epoch_seed = mix(loader.order_seed, epoch.into());
        let samples = dataset.files_train * dataset.samples_per_file;
        // A shuffle buffer changes the order in which samples are handed out, not that in which they are read; whole files
        // are read in their order.
        let keeps_files = loader.shuffles_in_buffer || loader.split == WorkerSplit::Shards;
        let all = (loader.sample_shuffle != Shuffle::Off && !keeps_files)
            .then(|| Permutation::new(samples, mix(epoch_seed, 1)));
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
        let g = self.all.as_ref().map_or(position, |p| p.at(position));
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
    interleave: Option<Interleave>,
}

impl Share {
    /// The share of `accelerator` under `plan`.
    pub fn new(plan: &Plan, accelerator: u32) -> Self {
        let (dataset, loader) = (&plan.dataset, &plan.loader);
        let samples = dataset.files_train * dataset.samples_per_file;
        let own = match loader.file_access {
            FileAccess::Multi => shard(samples, plan.accelerators, accelerator),
            FileAccess::Shared | FileAccess::Mpio | FileAccess::Same => 0..samples,
        };
        let start = own.start;
        let cycle = u64::from(loader.interleaved_files);
        let run = dataset.samples_per_file.max(1);
        // A share may begin within a file: its end is read first. What fills no batch is dropped after interleaving, as
        // `batch(drop_remainder)` does.
        let own = own.end - own.start;
        let head = (start.next_multiple_of(run) - start).min(own);
        let interleave = (cycle > 1 && loader.file_access == FileAccess::Multi)
            .then_some(Interleave { head, len: own - head, run, cycle });
        Share {
            access: loader.file_access,
            batch_size: loader.batch_size,
            accelerators: u64::from(plan.accelerators),
            accelerator: u64::from(accelerator),
            start,
            interleave,
        }
    }

    /// The position of sample `sample` of step `step`.
    pub fn position(&self, step: u64, sample: u64) -> u64 {
        let own = step * self.batch_size + sample;
        match self.access {
            FileAccess::Multi => self.start + self.interleave.map_or(own, |i| i.at(own)),
            FileAccess::Shared | FileAccess::Mpio => {
                (step * self.accelerators + self.accelerator) * self.batch_size + sample
            }
            FileAccess::Same => own,
        }
    }
}

/// `len` positions in runs of `run`, of which `cycle` are read side by side: one of each in turn
/// (`tf.data.Dataset.interleave` with `block_length` 1). The last runs may be fewer and shorter.
#[derive(Clone, Copy, Debug)]
struct Interleave {
    /// Positions before the first whole run.
    head: u64,
    /// Positions after those.
    len: u64,
    run: u64,
    cycle: u64,
}

impl Interleave {
    fn at(self, i: u64) -> u64 {
        let Some(i) = i.checked_sub(self.head) else { return i };
        self.head + self.of_run(i)
    }

    fn of_run(self, i: u64) -> u64 {
        let group = self.run.saturating_mul(self.cycle);
        let base = i / group * group;
        let (r, left) = (i - base, self.len - base);
        let runs = left.div_ceil(self.run).min(self.cycle);
        let last = left.min(group) - (runs - 1) * self.run;
        // Until the last run ends there are `runs` of them in turn, and one fewer from then on.
        let whole = last * runs;
        let (slot, index) = match r.checked_sub(whole) {
            None => (r % runs, r / runs),
            Some(rest) => (rest % (runs - 1), last + rest / (runs - 1)),
        };
        base + slot * self.run + index
    }
}

/// Positions of an epoch of `samples` that belong to `accelerator`; sizes differ by at most one.
pub fn shard(samples: u64, accelerators: u32, accelerator: u32) -> Range<u64> {
    let [start, end] = [accelerator, accelerator + 1]
        .map(|a| (u128::from(samples) * u128::from(a) / u128::from(accelerators)) as u64);
    start..end
}

/// A permutation of `0..n` without a table: a Feistel network over the next power of four, walked until
/// it lands inside (Black and Rogaway 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 6;

impl Permutation {
    /// The permutation of `0..n` that belongs to `seed`.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| mix(seed, 0x5eed + round as u64));
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Where `i` goes.
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut value = i;
        loop {
            value = self.scramble(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn scramble(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(key, right) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// A seed that belongs to a seed and a value: SplitMix64's finaliser over both.
pub fn mix(seed: u64, value: u64) -> u64 {
    scatter(seed.wrapping_add(value.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_order_is_a_permutation(n in 1u64..3000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let j = permutation.at(i) as usize;
                prop_assert!(!seen[j]);
                seen[j] = true;
            }
        }

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
            epoch in 1u32..4,
        ) {
            let on = |bit: usize| if shuffles & bit == 0 { Shuffle::Off } else { Shuffle::Seed };
            let order = Order {
                samples: files * samples_per_file,
                samples_per_file,
                files: (on(1) == Shuffle::Seed).then(|| Permutation::new(files, mix(7, epoch.into()))),
                all: (on(2) == Shuffle::Seed).then(|| Permutation::new(files * samples_per_file, mix(9, epoch.into()))),
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

    fn share(access: FileAccess, files: u64, samples_per_file: u64, cycle: u64) -> Share {
        let own = files * samples_per_file;
        let run = samples_per_file;
        Share {
            access,
            batch_size: 1,
            accelerators: 1,
            accelerator: 0,
            start: 0,
            interleave: (cycle > 1).then_some(Interleave { head: 0, len: own, run, cycle }),
        }
    }

    proptest! {
        /// An interleave reads the same samples, only in another order; each file's in its own.
        #[test]
        fn an_interleave_is_a_permutation(files in 1u64..30, samples in 1u64..9, cut in 0u64..9, cycle in 2u64..9) {
            let len = (files * samples).saturating_sub(cut).max(1);
            let interleave = Interleave { head: 0, len, run: samples, cycle };
            let mut next_of_file = vec![0; files as usize];
            for i in 0..len {
                let position = interleave.at(i);
                prop_assert!(position < len);
                let file = (position / samples) as usize;
                prop_assert_eq!(position % samples, next_of_file[file]);
                next_of_file[file] += 1;
            }
            prop_assert_eq!(next_of_file.iter().sum::<u64>(), len);
        }

        /// Step by step the accelerators of a shared dataset take the next batches of one order.
        #[test]
        fn a_shared_dataset_is_read_by_each_once(accelerators in 1u32..9, batch_size in 1u64..9, steps in 1u64..20) {
            let mut all: Vec<u64> = (0..accelerators)
                .flat_map(|accelerator| {
                    let share = Share {
                        access: FileAccess::Shared,
                        batch_size,
                        accelerators: accelerators.into(),
                        accelerator: accelerator.into(),
                        start: 0,
                        interleave: None,
                    };
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

    #[test]
    fn an_interleave_takes_one_sample_of_each_file_in_turn() {
        let share = share(FileAccess::Multi, 3, 2, 2);
        let read: Vec<u64> = (0..6).map(|step| share.position(step, 0)).collect();
        assert_eq!(read, [0, 2, 1, 3, 4, 5]);
    }

    #[test]
    fn seeds_matter_and_repeat() {
        let order = |seed| (0..100).map(|i| Permutation::new(100, seed).at(i)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }
}
