//! The samples of each worker in the order of `tf.data.Dataset.interleave` with `block_length` 1, computed from an index.
//!
//! Each worker has one open file, and workers take turns after each sample. A worker that reaches the end of its file continues with
//! the next file that no worker has opened. Since all files have the same length, worker `w` of `n` reads the files `w`, `w + n`,
//! `w + 2n`, ….

use super::Plan;
use super::order::accelerator_positions;
use std::ops::Range;

/// Consecutive samples of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    /// Step of the epoch, from 0.
    pub step: u64,
    /// Indices of the samples in the batch.
    pub samples: Range<u64>,
    /// Position of the first sample in the epoch.
    pub position: u64,
}

/// The files of one accelerator. Its workers read samples from them in turn.
#[derive(Clone, Debug)]
pub struct Interleave {
    /// The accelerator's positions in the epoch. They may begin and end within a file.
    positions: Range<u64>,
    samples_per_file: u64,
    workers: u64,
    batch_size: u64,
    steps: u64,
}

impl Interleave {
    /// Divides the files of `accelerator`; `None` if its loader reads one file after another.
    pub(super) fn new(plan: &Plan, accelerator: u32) -> Option<Self> {
        let loader = &plan.loader;
        (loader.interleaved_files > 1).then(|| Interleave {
            positions: accelerator_positions(plan, accelerator),
            samples_per_file: plan.dataset.samples_per_file.max(1),
            workers: loader.interleaved_files.into(),
            batch_size: loader.batch_size.max(1),
            steps: plan.train.steps_per_epoch,
        })
    }

    /// Returns sample number `piece` of `worker`; `None` after the last sample. Samples that do not fill a batch are dropped, as in
    /// `batch(drop_remainder)`.
    pub(super) fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        let worker = u64::from(worker);
        if piece >= self.samples_of(worker) {
            return None;
        }
        // Before this turn, each worker had `piece` turns, or one more if its number is lower, unless its files ended earlier.
        let turns = |other| piece + u64::from(other < worker);
        let before: u64 =
            (0..self.workers).map(|other| self.samples_of(other).min(turns(other))).sum();
        let step = before / self.batch_size;
        let sample = before % self.batch_size;
        let from_start = piece + self.skipped_samples(worker);
        let file = self.first_file() + worker + from_start / self.samples_per_file * self.workers;
        let position = file * self.samples_per_file + from_start % self.samples_per_file;
        (step < self.steps).then_some(FilePiece { step, samples: sample..sample + 1, position })
    }

    /// Returns the number of samples in the first `steps` steps.
    pub(super) fn pieces(&self, steps: u64) -> u64 {
        steps * self.batch_size
    }

    /// Returns the number of workers without a file.
    pub(super) fn idle_workers(&self) -> u64 {
        self.workers.saturating_sub(self.files())
    }

    fn first_file(&self) -> u64 {
        self.positions.start / self.samples_per_file
    }

    /// Returns the number of files that the accelerator reads from.
    pub fn files(&self) -> u64 {
        self.positions.end.div_ceil(self.samples_per_file) - self.first_file()
    }

    /// Returns the number of samples in all files of `worker`.
    fn samples_of(&self, worker: u64) -> u64 {
        let files = self.files();
        if worker >= files {
            return 0;
        }
        let own_files = (files - worker).div_ceil(self.workers);
        let has_last = (files - 1) % self.workers == worker;
        let end = self.positions.end;
        let foreign_end =
            if has_last { end.next_multiple_of(self.samples_per_file) - end } else { 0 };
        own_files * self.samples_per_file - self.skipped_samples(worker) - foreign_end
    }

    /// Returns the number of samples at the start of the worker's first file that another accelerator reads.
    fn skipped_samples(&self, worker: u64) -> u64 {
        if worker == 0 { self.positions.start % self.samples_per_file } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::schedule::steps_of_training;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet, VecDeque};

    fn plan(files: u64, samples_per_file: u64, accelerators: u32, workers: u32) -> Plan {
        let mut plan = Plan { accelerators, ..Plan::default() };
        plan.dataset.files_train = files;
        plan.dataset.samples_per_file = samples_per_file;
        plan.loader.batch_size = 1;
        plan.loader.interleaved_files = workers;
        plan
    }

    /// Returns workers and positions of an accelerator in the order of `tf.data`: when a file ends, its worker opens the next file.
    fn order_of_tf_data(
        positions: Range<u64>,
        samples_per_file: u64,
        workers: u64,
    ) -> Vec<(u64, u64)> {
        let mut files: VecDeque<VecDeque<u64>> = VecDeque::new();
        for position in positions {
            if files.is_empty() || position % samples_per_file == 0 {
                files.push_back(VecDeque::new());
            }
            files.back_mut().unwrap().push_back(position);
        }
        let mut open: Vec<VecDeque<u64>> = (0..workers).map(|_| VecDeque::new()).collect();
        let mut read = Vec::new();
        while !files.is_empty() || open.iter().any(|file| !file.is_empty()) {
            for (worker, file) in (0..).zip(&mut open) {
                if file.is_empty() {
                    *file = files.pop_front().unwrap_or_default();
                }
                read.extend(file.pop_front().map(|position| (worker, position)));
            }
        }
        read
    }

    proptest! {
        /// All accelerators together read the samples of an epoch in the order of `tf.data`, each sample once.
        #[test]
        fn an_epoch_has_the_order_of_tf_data(
            files in 1u64..30,
            samples_per_file in 1u64..20,
            accelerators in 1u32..5,
            workers in 2u32..13,
            batch_size in 1u64..8,
        ) {
            let mut plan = plan(files, samples_per_file, accelerators, workers);
            plan.loader.batch_size = batch_size;
            let steps = steps_of_training(&plan.dataset, &plan.loader, accelerators);
            plan.train.steps_per_epoch = steps;
            let mut seen = HashSet::new();
            for accelerator in 0..accelerators {
                let interleave = Interleave::new(&plan, accelerator).unwrap();
                let mut by_turn = HashMap::new();
                for worker in 0..workers {
                    let mut last = 0;
                    for piece in (0..).map_while(|piece| interleave.piece(worker, piece)) {
                        prop_assert_eq!(piece.samples.end - piece.samples.start, 1);
                        prop_assert!(piece.position >= last, "a worker never goes back");
                        last = piece.position;
                        prop_assert!(seen.insert(piece.position));
                        let turn = piece.step * batch_size + piece.samples.start;
                        prop_assert_eq!(by_turn.insert(turn, (worker.into(), last)), None);
                    }
                }
                prop_assert_eq!(by_turn.len() as u64, interleave.pieces(steps));
                let expected = order_of_tf_data(interleave.positions.clone(), samples_per_file, workers.into());
                for (turn, read) in (0..interleave.pieces(steps)).zip(expected) {
                    prop_assert_eq!(by_turn[&turn], read, "turn {}", turn);
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch_size * u64::from(accelerators));
        }
    }

    #[test]
    fn workers_without_a_file_are_idle() {
        let idle = |workers| Interleave::new(&plan(8, 100, 1, workers), 0).unwrap().idle_workers();
        assert_eq!([3, 8, 12].map(idle), [0, 0, 4]);
    }
}
