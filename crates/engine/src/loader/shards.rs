//! Workers that read whole files, whatever the loader: each claims its own pieces, in the order of the batches they belong to.
//!
//! The first batch that is missing waits for nobody who waits for a later one, so that all go on.

use super::{Loader, Queue, Task, Wakes, WorkerState};

impl Queue {
    /// The next work of `worker`, as whole files or the loader give it; `None` where nothing may be begun yet.
    pub fn claim(&self, loader: &dyn Loader, worker: &mut WorkerState) -> Option<Task> {
        let Some(split) = &self.split else { return loader.claim(self, worker) };
        let piece = split.piece(worker.worker, worker.pieces).or_else(|| {
            (worker.epochs, worker.pieces) = (worker.epochs + 1, 0);
            split.piece(worker.worker, 0)
        })?;
        let batch = self.batch_of(worker.epochs, piece.step);
        if batch >= self.open_until() {
            return None;
        }
        worker.pieces += 1;
        Some(Task { batch, samples: piece.samples, position: Some(piece.position) })
    }

    /// The workers that may have work now that `batch` can be begun.
    pub fn wakes(&self, loader: &dyn Loader, batch: u64) -> Wakes {
        if self.split.is_some() { Wakes::Any } else { loader.wakes(self, batch) }
    }

    /// Claims of all workers in the first `steps` steps of an epoch.
    pub fn claims(&self, loader: &dyn Loader, steps: u64) -> u64 {
        match &self.split {
            Some(split) => split.pieces(steps),
            None => steps * loader.claims_per_batch(self.batch_size()),
        }
    }
}
