//! Claims of workers that read whole files, with any loader: each worker claims the pieces of its files in the order of their batches.
//!
//! Since every worker keeps to this order, no later batch blocks a worker that the first missing batch needs.

use super::{Loader, Queue, Task, WakeTarget, WorkerState};
use std::ops::Range;

impl Queue {
    /// Claims the next task for `worker`: by whole files if the queue has a split, otherwise by the loader. `None` if no task may begin yet.
    pub fn claim(&self, loader: &dyn Loader, worker: &mut WorkerState) -> Option<Task> {
        let Some(split) = self.split(worker.epochs) else { return loader.claim(self, worker) };
        let piece = split.piece(worker.worker, worker.pieces).or_else(|| {
            worker.epochs += 1;
            worker.pieces = 0;
            self.split(worker.epochs)?.piece(worker.worker, 0)
        })?;
        let batch = self.batch_of(worker.epochs, piece.step);
        if batch >= self.claimable_until(worker) {
            return None;
        }
        worker.pieces += 1;
        Some(Task { batch, samples: piece.samples, position: Some(piece.position) })
    }

    /// Returns the positions that `worker` reads after `epochs` epochs, if it reads whole files one after another.
    pub fn positions(&self, epochs: u64, worker: u32) -> Option<Range<u64>> {
        self.split(epochs)?.positions(worker)
    }

    /// Returns the workers that may have work when `batch` is opened.
    pub fn workers_to_wake(&self, loader: &dyn Loader, batch: u64) -> WakeTarget {
        if self.split(0).is_some() { WakeTarget::Any } else { loader.workers_to_wake(self, batch) }
    }

    /// Returns the number of claims of all workers in the first `steps` steps of `epoch`, counted from 1.
    pub fn claims(&self, loader: &dyn Loader, epoch: u32, steps: u64) -> u64 {
        match self.split(u64::from(epoch).saturating_sub(1)) {
            Some(split) => split.pieces(steps),
            None => steps * loader.claims_per_batch(self.batch_size()),
        }
    }
}
