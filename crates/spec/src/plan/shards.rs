//! Whole files for each worker: the samples it reads, and the batches they fill, as a function of an index.
//!
//! Shards: a file that must be read from its start on is read by one worker, in order. A worker fills batches with samples of its own
//! files, and workers that still have whole batches take turns. What is left of each at the end fills the last batches together,
//! so that an epoch reads each sample once, as many as fill its steps.
//!
//! Interleave: workers take turns, sample by sample, and each keeps its file until the file ends.

pub use super::interleave::{FilePiece, Interleave};

use super::order::shard;
use super::{Plan, WorkerSplit};
use std::ops::Range;

/// How the workers of an accelerator share its files, where no two read the same file.
#[derive(Clone, Debug)]
pub enum FileSplit {
    /// Batches of a worker are from its own files.
    Shards(ShardSplit),
    /// Batches have samples of all workers.
    Interleave(Interleave),
}

impl FileSplit {
    /// That of `accelerator`; `None` where workers share files.
    pub fn new(plan: &Plan, accelerator: u32) -> Option<Self> {
        match plan.loader.split {
            WorkerSplit::Shards => Some(FileSplit::Shards(ShardSplit::new(plan, accelerator))),
            WorkerSplit::Samples => Interleave::new(plan, accelerator).map(FileSplit::Interleave),
        }
    }

    /// Piece `piece` of `worker`, in the order in which it reads; `None` behind its last.
    pub fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        match self {
            FileSplit::Shards(shards) => shards.piece(worker, piece),
            FileSplit::Interleave(interleave) => interleave.piece(worker, piece),
        }
    }

    /// Pieces of the first `steps` steps.
    pub fn pieces(&self, steps: u64) -> u64 {
        match self {
            FileSplit::Shards(shards) => shards.pieces(steps),
            FileSplit::Interleave(interleave) => interleave.pieces(steps),
        }
    }

    /// Workers that have no file.
    pub fn idle_workers(&self) -> u64 {
        match self {
            FileSplit::Shards(shards) => shards.idle_workers(),
            FileSplit::Interleave(interleave) => interleave.idle_workers(),
        }
    }
}

/// The files of one accelerator, shared out among its workers.
#[derive(Clone, Debug)]
pub struct ShardSplit {
    /// Positions of an epoch that belong to the accelerator.
    own: Range<u64>,
    samples_per_file: u64,
    workers: u32,
    batch_size: u64,
    steps: u64,
    /// Batches that one worker fills alone.
    whole: u64,
}

impl ShardSplit {
    /// Those of `accelerator`.
    fn new(plan: &Plan, accelerator: u32) -> Self {
        let (dataset, loader) = (&plan.dataset, &plan.loader);
        let samples = dataset.files_train * dataset.samples_per_file;
        let mut split = ShardSplit {
            own: shard(samples, plan.accelerators, accelerator),
            samples_per_file: dataset.samples_per_file.max(1),
            workers: loader.workers.max(1),
            batch_size: loader.batch_size.max(1),
            steps: plan.train.steps_per_epoch,
            whole: 0,
        };
        split.whole = split.ends().map(|end| end.whole).sum();
        split
    }

    fn idle_workers(&self) -> u64 {
        u64::from(self.workers).saturating_sub(self.files())
    }

    fn files(&self) -> u64 {
        self.own.end.div_ceil(self.samples_per_file) - self.own.start / self.samples_per_file
    }

    /// Positions that `worker` reads, in order. An accelerator may begin and end within a file.
    fn run_of(&self, worker: u32) -> Range<u64> {
        let first = self.own.start / self.samples_per_file;
        let files = shard(self.files(), self.workers, worker);
        let [start, end] = [files.start, files.end].map(|file| {
            ((first + file) * self.samples_per_file).clamp(self.own.start, self.own.end)
        });
        start..end
    }

    /// Whole batches of each worker, and what is left.
    fn ends(&self) -> impl Iterator<Item = RunEnd> {
        let mut left_before = 0;
        (0..self.workers).map(move |worker| {
            let run = self.run_of(worker);
            let samples = run.end - run.start;
            let end = RunEnd {
                start: run.start,
                whole: samples / self.batch_size,
                left: samples % self.batch_size,
                left_before,
            };
            left_before += end.left;
            end
        })
    }

    fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        let own = self.ends().nth(worker as usize)?;
        let found = if piece < own.whole {
            let before = self.ends().enumerate().map(|(other, end)| {
                end.whole.min(piece) + u64::from(other < worker as usize && end.whole > piece)
            });
            FilePiece {
                step: before.sum(),
                samples: 0..self.batch_size,
                position: own.start + piece * self.batch_size,
            }
        } else {
            self.left_of(&own, piece - own.whole)?
        };
        (found.step < self.steps).then_some(found)
    }

    /// Samples that fill no batch lie in one or two of the batches that are filled together.
    fn left_of(&self, own: &RunEnd, piece: u64) -> Option<FilePiece> {
        let first = own.left_before % self.batch_size;
        let cut = own.left.min(self.batch_size - first);
        let (samples, passed) = match piece {
            0 => (first..first + cut, 0),
            1 => (0..own.left - cut, cut),
            _ => return None,
        };
        (!samples.is_empty()).then(|| FilePiece {
            step: self.whole + own.left_before / self.batch_size + piece,
            samples,
            position: own.start + own.whole * self.batch_size + passed,
        })
    }

    fn pieces(&self, steps: u64) -> u64 {
        let left = self.ends().map(|end| {
            let pieces = (0..2).filter_map(|piece| self.left_of(&end, piece));
            pieces.filter(|piece| piece.step < steps).count() as u64
        });
        self.whole.min(steps) + left.sum::<u64>()
    }
}

/// The files of a worker, as batches.
struct RunEnd {
    /// Its first position.
    start: u64,
    /// Batches that it fills alone.
    whole: u64,
    /// Samples behind those.
    left: u64,
    /// Such samples of the workers before it.
    left_before: u64,
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

    /// The pieces of each worker of an accelerator.
    fn pieces(split: &ShardSplit) -> Vec<Vec<FilePiece>> {
        let of = |worker| (0..).map_while(|piece| split.piece(worker, piece)).collect();
        (0..split.workers).map(of).collect()
    }

    proptest! {
        /// Over all accelerators and workers: each place of each batch once, no sample twice, none but what fills no step left
        /// out; each worker goes forward, and each file but those where accelerators meet has one worker.
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
            let (mut seen, mut places) = (HashSet::new(), HashSet::new());
            for accelerator in 0..accelerators {
                let split = ShardSplit::new(&plan, accelerator);
                let mut reader_of: HashMap<u64, usize> = HashMap::new();
                let all = pieces(&split);
                let count: usize = all.iter().map(Vec::len).sum();
                prop_assert_eq!(split.pieces(steps), count as u64);
                for (worker, own) in all.iter().enumerate() {
                    prop_assert!(own.windows(2).all(|two| two[0].step < two[1].step));
                    let mut next = 0;
                    for piece in own {
                        prop_assert!(piece.step < steps && piece.position >= next);
                        for sample in piece.samples.clone() {
                            prop_assert!(places.insert((accelerator, piece.step, sample)));
                            let position = piece.position + sample - piece.samples.start;
                            prop_assert!(split.own.contains(&position) && seen.insert(position));
                            let file = position / samples_per_file;
                            prop_assert_eq!(*reader_of.entry(file).or_insert(worker), worker);
                            next = position + 1;
                        }
                    }
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch * u64::from(accelerators));
            prop_assert_eq!(places.len(), seen.len());
        }
    }

    #[test]
    fn batches_of_workers_take_turns_and_their_ends_are_put_together() {
        // Workers have 1, 1 and 2 files of five samples: 1, 1 and 2 batches of four, and 1, 1 and 2 samples.
        let split = ShardSplit::new(&plan(4, 5, 1, 3, 4), 0);
        let whole = |step, position| FilePiece { step, samples: 0..4, position };
        let part = |samples, position| FilePiece { step: 4, samples, position };
        let runs: Vec<u64> = (0..3).map(|worker| split.run_of(worker).start).collect();
        assert_eq!(runs, [0, 5, 10]);
        assert_eq!(
            pieces(&split),
            [
                vec![whole(0, 0), part(0..1, 4)],
                vec![whole(1, 5), part(1..2, 9)],
                vec![whole(2, 10), whole(3, 14), part(2..4, 18)],
            ]
        );
        assert_eq!(ShardSplit::new(&plan(2, 9, 1, 5, 2), 0).idle_workers(), 3);
    }
}
