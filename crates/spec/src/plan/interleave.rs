//! `tf.data.Dataset.interleave` with `block_length` 1: which sample each worker reads next, as a function of an index.
//!
//! Each worker has one file open. Workers take turns, sample by sample; where a file ends, its worker goes on with the next file
//! that none has begun. All files are of the same length, so that worker `w` of `n` has the files `w`, `w + n`, `w + 2n`, ….

use super::Plan;
use super::order::own_positions;
use std::ops::Range;

/// Samples that follow one another, of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    /// Step of the epoch, from 0.
    pub step: u64,
    /// Samples of the batch.
    pub samples: Range<u64>,
    /// Position in the epoch of the first of them.
    pub position: u64,
}

/// The files of one accelerator, interleaved by its workers.
#[derive(Clone, Debug)]
pub struct Interleave {
    /// Positions of the accelerator. They may begin and end within a file.
    own: Range<u64>,
    samples_per_file: u64,
    workers: u64,
    batch_size: u64,
    steps: u64,
}

impl Interleave {
    /// That of `accelerator`; `None` where its loader reads one file after another.
    pub(super) fn new(plan: &Plan, accelerator: u32) -> Option<Self> {
        let loader = &plan.loader;
        (loader.interleaved_files > 1).then(|| Interleave {
            own: own_positions(plan, accelerator),
            samples_per_file: plan.dataset.samples_per_file.max(1),
            workers: loader.interleaved_files.into(),
            batch_size: loader.batch_size.max(1),
            steps: plan.train.steps_per_epoch,
        })
    }

    /// Sample `piece` of `worker`; `None` behind its last. Samples that fill no batch are dropped, as `batch(drop_remainder)` does.
    pub(super) fn piece(&self, worker: u32, piece: u64) -> Option<FilePiece> {
        let worker = u64::from(worker);
        if piece >= self.samples_of(worker) {
            return None;
        }
        // All have had `piece` turns, those before this worker one more, unless their files ended.
        let turns = |other| piece + u64::from(other < worker);
        let before: u64 =
            (0..self.workers).map(|other| self.samples_of(other).min(turns(other))).sum();
        let (step, sample) = (before / self.batch_size, before % self.batch_size);
        let from_start = piece + self.skipped(worker);
        let file = self.first_file() + worker + from_start / self.samples_per_file * self.workers;
        let position = file * self.samples_per_file + from_start % self.samples_per_file;
        (step < self.steps).then_some(FilePiece { step, samples: sample..sample + 1, position })
    }

    /// Samples of the first `steps` steps.
    pub(super) fn pieces(&self, steps: u64) -> u64 {
        steps * self.batch_size
    }

    /// Workers that have no file.
    pub(super) fn idle_workers(&self) -> u64 {
        self.workers.saturating_sub(self.files())
    }

    fn first_file(&self) -> u64 {
        self.own.start / self.samples_per_file
    }

    fn files(&self) -> u64 {
        self.own.end.div_ceil(self.samples_per_file) - self.first_file()
    }

    /// Samples of all files of `worker`.
    fn samples_of(&self, worker: u64) -> u64 {
        let files = self.files();
        if worker >= files {
            return 0;
        }
        let own_files = (files - worker).div_ceil(self.workers);
        let has_last = (files - 1) % self.workers == worker;
        let end = self.own.end;
        let cut = if has_last { end.next_multiple_of(self.samples_per_file) - end } else { 0 };
        own_files * self.samples_per_file - self.skipped(worker) - cut
    }

    /// Samples at the start of the first file that another accelerator reads.
    fn skipped(&self, worker: u64) -> u64 {
        if worker == 0 { self.own.start % self.samples_per_file } else { 0 }
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
        (plan.dataset.files_train, plan.dataset.samples_per_file) = (files, samples_per_file);
        (plan.loader.batch_size, plan.loader.interleaved_files) = (1, workers);
        plan
    }

    /// Positions of an accelerator in the order of `tf.data`: a file that ends is replaced by the next one.
    fn of_tf_data(own: Range<u64>, samples_per_file: u64, workers: u64) -> Vec<(u64, u64)> {
        let mut files: VecDeque<VecDeque<u64>> = VecDeque::new();
        for position in own {
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
        /// Over all accelerators: the samples and the order of `tf.data`, and each file is begun once by one worker.
        #[test]
        fn an_epoch_is_that_of_tf_data(
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
                let expected = of_tf_data(interleave.own.clone(), samples_per_file, workers.into());
                for (turn, read) in (0..interleave.pieces(steps)).zip(expected) {
                    prop_assert_eq!(by_turn[&turn], read, "turn {}", turn);
                }
            }
            prop_assert_eq!(seen.len() as u64, steps * batch_size * u64::from(accelerators));
        }
    }

    #[test]
    fn workers_without_a_file_idle() {
        let idle = |workers| Interleave::new(&plan(8, 100, 1, workers), 0).unwrap().idle_workers();
        assert_eq!([3, 8, 12].map(idle), [0, 0, 4]);
    }
}
