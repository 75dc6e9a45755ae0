//! Division of whole files among workers: the samples that each worker reads and the batches that they fill, computed from an index.
//!
//! Shards: each file is read by one worker, in order. A worker fills complete batches from its own files, and the workers that still
//! have complete batches take turns. The remaining samples of all workers together fill the last batches, so that each sample is read
//! at most once per epoch.
//!
//! Interleave: workers take turns after each sample, and each worker reads its file to the end.

pub use super::interleave::{FilePiece, Interleave};

use super::order::{FileBounds, Order, shard};
use super::{Plan, Shuffle, WorkerSplit};
use std::ops::Range;

/// Division of an accelerator's files among its workers, each file to one worker.
#[derive(Clone, Debug)]
pub enum FileSplit {
    /// Each worker fills batches from its own files.
    Shards(ShardSplit),
    /// Each batch has samples from all workers.
    Interleave(Interleave),
}

/// Limit on the file positions that [`FileSplit::for_epochs`] computes. Later epochs use the division of the last one before
/// them, with which workers may share files.
const POSITIONS_MAX: u64 = 50_000_000;

impl FileSplit {
    /// Creates the division of the files of `accelerator` in the first epoch; `None` if workers share files.
    pub fn new(plan: &Plan, accelerator: u32) -> Option<Self> {
        match plan.loader.split {
            WorkerSplit::Shards => Some(FileSplit::for_epoch(plan, accelerator, 1)),
            WorkerSplit::Samples => Interleave::new(plan, accelerator).map(FileSplit::Interleave),
        }
    }

    /// Creates the divisions of the files of `accelerator` in each epoch, or one if all are equal. They differ if files of
    /// different numbers of samples are shuffled. Empty if workers share files.
    pub fn for_epochs(plan: &Plan, accelerator: u32) -> Vec<Self> {
        let loader = &plan.loader;
        let are_shuffled = loader.file_shuffle != Shuffle::Off && loader.seed_change_epoch;
        let files = plan.dataset.unequal_samples().map(|samples| samples.len() as u64);
        match files.filter(|_| are_shuffled && loader.split == WorkerSplit::Shards) {
            None => FileSplit::new(plan, accelerator).into_iter().collect(),
            Some(files) => {
                let epochs_max = (POSITIONS_MAX / files.max(1)).max(1);
                let epochs = u64::from(plan.train.epochs_run().max(1)).min(epochs_max) as u32;
                (1..=epochs).map(|epoch| FileSplit::for_epoch(plan, accelerator, epoch)).collect()
            }
        }
    }

    fn for_epoch(plan: &Plan, accelerator: u32, epoch: u32) -> Self {
        let order = Order::for_epoch(&plan.dataset, &plan.loader, epoch);
        FileSplit::Shards(ShardSplit::new(plan, accelerator, order.bounds()))
    }

    /// Returns piece number `piece` of `worker`, in the order of reading; `None` after the last piece.
    pub fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        match self {
            FileSplit::Shards(shards) => shards.piece(worker, piece),
            FileSplit::Interleave(interleave) => interleave.piece(worker, piece),
        }
    }

    /// Returns the number of pieces in the first `steps` steps.
    pub fn pieces(&self, steps: u64) -> u64 {
        match self {
            FileSplit::Shards(shards) => shards.pieces(steps),
            FileSplit::Interleave(interleave) => interleave.pieces(steps),
        }
    }

    /// Returns the positions of `worker` in the order of reading, if they follow each other; `None` if workers take turns.
    pub fn positions(&self, worker: u32) -> Option<Range<u64>> {
        match self {
            FileSplit::Shards(shards) => Some(shards.worker_positions(worker)),
            FileSplit::Interleave(_) => None,
        }
    }

    /// Returns the number of workers without a file.
    pub fn idle_workers(&self) -> u64 {
        match self {
            FileSplit::Shards(shards) => shards.idle_workers(),
            FileSplit::Interleave(interleave) => interleave.idle_workers(),
        }
    }
}

/// The files of one accelerator, divided among its workers.
#[derive(Clone, Debug)]
pub struct ShardSplit {
    /// Number of files in which the accelerator's positions are.
    files: u64,
    /// First position of each worker, and the end of the last one. An accelerator's positions may begin and end within a file.
    worker_starts: Box<[u64]>,
    workers: u32,
    batch_size: u64,
    steps: u64,
    /// Number of batches that are filled by one worker.
    complete_batches: u64,
}

impl ShardSplit {
    /// Divides the files of `accelerator` among its workers.
    fn new(plan: &Plan, accelerator: u32, bounds: &FileBounds) -> Self {
        let loader = &plan.loader;
        let positions = shard(plan.dataset.samples_train(), plan.accelerators, accelerator);
        let first_file = bounds.file_at(positions.start);
        let last_file = bounds.file_at(positions.end.saturating_sub(1));
        let files = if positions.is_empty() { 0 } else { last_file + 1 - first_file };
        let workers = loader.workers.max(1);
        let worker_starts = (0..=workers).map(|worker| {
            let files_before = shard(files, workers, worker).start;
            bounds.start(first_file + files_before).clamp(positions.start, positions.end)
        });
        let mut split = ShardSplit {
            worker_starts: worker_starts.collect(),
            files,
            workers,
            batch_size: loader.batch_size.max(1),
            steps: plan.train.steps_per_epoch,
            complete_batches: 0,
        };
        split.complete_batches = split.worker_batches().map(|worker| worker.complete).sum();
        split
    }

    fn idle_workers(&self) -> u64 {
        u64::from(self.workers).saturating_sub(self.files)
    }

    /// Returns the positions of `worker` in the order of reading.
    fn worker_positions(&self, worker: u32) -> Range<u64> {
        let worker = worker as usize;
        self.worker_starts[worker]..self.worker_starts[worker + 1]
    }

    /// Returns the batches of each worker, in the order of workers.
    fn worker_batches(&self) -> impl Iterator<Item = WorkerBatches> {
        let mut rest_before = 0;
        (0..self.workers).map(move |worker| {
            let positions = self.worker_positions(worker);
            let samples = positions.end - positions.start;
            let batches = WorkerBatches {
                start: positions.start,
                complete: samples / self.batch_size,
                rest: samples % self.batch_size,
                rest_before,
            };
            rest_before += batches.rest;
            batches
        })
    }

    fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        let batches = self.worker_batches().nth(worker as usize)?;
        let found = if piece < batches.complete {
            let steps_before = self.worker_batches().enumerate().map(|(other, batches)| {
                let is_earlier = other < worker as usize && batches.complete > piece;
                batches.complete.min(piece) + u64::from(is_earlier)
            });
            FilePiece {
                step: steps_before.sum(),
                samples: 0..self.batch_size,
                position: batches.start + piece * self.batch_size,
            }
        } else {
            self.rest_piece(&batches, piece - batches.complete)?
        };
        (found.step < self.steps).then_some(found)
    }

    /// Returns piece number `piece` of the samples that are left after the worker's complete batches. They belong to one or two shared
    /// batches.
    fn rest_piece(&self, batches: &WorkerBatches, piece: u64) -> Option<FilePiece> {
        let first = batches.rest_before % self.batch_size;
        let first_samples = batches.rest.min(self.batch_size - first);
        let (samples, samples_before) = match piece {
            0 => (first..first + first_samples, 0),
            1 => (0..batches.rest - first_samples, first_samples),
            _ => return None,
        };
        (!samples.is_empty()).then(|| FilePiece {
            step: self.complete_batches + batches.rest_before / self.batch_size + piece,
            samples,
            position: batches.start + batches.complete * self.batch_size + samples_before,
        })
    }

    fn pieces(&self, steps: u64) -> u64 {
        let rest_pieces = self.worker_batches().map(|batches| {
            let pieces = (0..2).filter_map(|piece| self.rest_piece(&batches, piece));
            pieces.filter(|piece| piece.step < steps).count() as u64
        });
        self.complete_batches.min(steps) + rest_pieces.sum::<u64>()
    }
}

/// The samples of a worker, divided into batches.
struct WorkerBatches {
    /// First position of the worker.
    start: u64,
    /// Number of batches that the worker fills alone.
    complete: u64,
    /// Number of samples after these batches.
    rest: u64,
    /// Sum of `rest` over the workers with lower numbers.
    rest_before: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::schedule::steps_per_epoch;
    use crate::plan::{DatasetPlan, LoaderPlan, TrainPlan};
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn plan(
        files: u64,
        samples_per_file: u64,
        accelerators: u32,
        workers: u32,
        batch: u64,
    ) -> Plan {
        let steps_per_epoch = steps_per_epoch(files * samples_per_file, batch, accelerators);
        Plan {
            accelerators,
            dataset: DatasetPlan { files_train: files, samples_per_file, ..DatasetPlan::default() },
            loader: LoaderPlan {
                workers,
                batch_size: batch,
                split: WorkerSplit::Shards,
                ..LoaderPlan::default()
            },
            train: TrainPlan { epochs: 1, steps_per_epoch, ..TrainPlan::default() },
            ..Plan::default()
        }
    }

    fn first_split(plan: &Plan, accelerator: u32) -> ShardSplit {
        let order = Order::for_epoch(&plan.dataset, &plan.loader, 1);
        ShardSplit::new(plan, accelerator, order.bounds())
    }

    /// Returns the pieces of each worker of an accelerator.
    fn pieces(split: &ShardSplit) -> Vec<Vec<FilePiece>> {
        let worker_pieces = |worker| (0..).map_while(|piece| split.piece(worker, piece)).collect();
        (0..split.workers).map(worker_pieces).collect()
    }

    proptest! {
        /// Each slot of each batch is filled once. No sample is read twice, and only samples of an incomplete step are not read. Each worker
        /// reads forward. An accelerator reads each of its files with one worker.
        #[test]
        fn an_epoch_reads_each_sample_once_and_each_file_by_one_worker(
            files in 1u64..30,
            samples_per_file in 1u64..20,
            accelerators in 1u32..5,
            workers in 1u32..9,
            batch in 1u64..12,
        ) {
            let plan = plan(files, samples_per_file, accelerators, workers, batch);
            let steps = plan.train.steps_per_epoch;
            let mut seen = HashSet::new();
            let mut slots = HashSet::new();
            for accelerator in 0..accelerators {
                let split = first_split(&plan, accelerator);
                let mut reader_of: HashMap<u64, usize> = HashMap::new();
                let own_positions = shard(files * samples_per_file, accelerators, accelerator);
                let all = pieces(&split);
                let count: usize = all.iter().map(Vec::len).sum();
                prop_assert_eq!(split.pieces(steps), count as u64);
                for (worker, worker_pieces) in all.iter().enumerate() {
                    prop_assert!(worker_pieces.windows(2).all(|two| two[0].step < two[1].step));
                    let mut next = 0;
                    for piece in worker_pieces {
                        prop_assert!(piece.step < steps && piece.position >= next);
                        for sample in piece.samples.clone() {
                            prop_assert!(slots.insert((accelerator, piece.step, sample)));
                            let position = piece.position + sample - piece.samples.start;
                            prop_assert!(own_positions.contains(&position) && seen.insert(position));
                            let file = position / samples_per_file;
                            prop_assert_eq!(*reader_of.entry(file).or_insert(worker), worker);
                            next = position + 1;
                        }
                    }
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch * u64::from(accelerators));
            prop_assert_eq!(slots.len(), seen.len());
        }
    }

    /// The split follows the order of the files in each epoch, so that no two workers read one file.
    #[test]
    fn files_of_different_lengths_have_one_worker_in_every_epoch() {
        let mut plan = plan(7, 5, 1, 3, 2);
        plan.dataset.file_samples = vec![9, 1, 4, 0, 12, 5, 3];
        plan.loader.file_shuffle = Shuffle::Seed;
        plan.loader.seed_change_epoch = true;
        plan.train.epochs = 6;
        plan.train.steps_per_epoch = steps_per_epoch(plan.dataset.samples_train(), 2, 1);
        let splits = FileSplit::for_epochs(&plan, 0);
        assert_eq!((splits.len(), plan.train.steps_per_epoch), (6, 17));
        for (epoch, split) in (1..).zip(&splits) {
            let order = Order::for_epoch(&plan.dataset, &plan.loader, epoch);
            let mut reader_of: HashMap<u64, u32> = HashMap::new();
            let mut seen = HashSet::new();
            for worker in 0..3 {
                for piece in (0..).map_while(|piece| split.piece(worker, piece)) {
                    for position in
                        piece.position..piece.position + piece.samples.end - piece.samples.start
                    {
                        let id = order.sample_at(position);
                        assert!(id.sample < plan.dataset.file_samples[id.file as usize]);
                        assert_eq!(*reader_of.entry(id.file).or_insert(worker), worker);
                        assert!(seen.insert(id));
                    }
                }
            }
            assert_eq!(seen.len(), 34);
        }
        plan.loader.file_shuffle = Shuffle::Off;
        assert_eq!(FileSplit::for_epochs(&plan, 0).len(), 1);
    }

    #[test]
    fn workers_take_turns_and_their_remaining_samples_share_batches() {
        // Workers have 1, 1 and 2 files of five samples: 1, 1 and 2 batches of four, and 1, 1 and 2 samples.
        let split = first_split(&plan(4, 5, 1, 3, 4), 0);
        let complete = |step, position| FilePiece { step, samples: 0..4, position };
        let remaining = |samples, position| FilePiece { step: 4, samples, position };
        let starts: Vec<u64> = (0..3).map(|worker| split.worker_positions(worker).start).collect();
        assert_eq!(starts, [0, 5, 10]);
        assert_eq!(
            pieces(&split),
            [
                vec![complete(0, 0), remaining(0..1, 4)],
                vec![complete(1, 5), remaining(1..2, 9)],
                vec![complete(2, 10), complete(3, 14), remaining(2..4, 18)],
            ]
        );
        assert_eq!(first_split(&plan(2, 9, 1, 5, 2), 0).idle_workers(), 3);
    }
}
