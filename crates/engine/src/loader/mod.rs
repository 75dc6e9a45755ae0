//! Loaders: which worker reads which samples, and when. One file per loader, one row in [`LOADERS`].
//!
//! A loader has no clock, thread or I/O: workers ask [`Loader::claim`] for work, and the shared [`Queue`]
//! counts what is published, taken and finished. Both drivers call the same code.
//!
//! To add a loader: copy `pytorch.rs`, implement [`Loader`], add its `mod` line and its row.

mod queue;
mod shards;
mod pytorch;
mod tensorflow;
mod dali;
mod native;
#[cfg(test)]
mod tests;

pub use queue::{Finished, Queue, ReadTimes};

use feedrate_spec::catalog::LoaderEntry;
use std::ops::Range;

/// How a framework's loader shares batches among its workers.
pub trait Loader: Sync {
    /// Name, summary, abilities, and the rule for batches in flight.
    fn entry(&self) -> LoaderEntry;

    /// The next work of `worker`, which must then be finished; `None` where nothing may be begun yet.
    fn claim(&self, queue: &Queue, worker: &mut WorkerState) -> Option<Task>;

    /// The workers that may have work now that `batch` can be begun.
    fn wakes(&self, _queue: &Queue, _batch: u64) -> Wakes {
        Wakes::Any
    }

    /// Pieces of work a batch is claimed in.
    fn claims_per_batch(&self, batch_size: u64) -> u64 {
        batch_size
    }

    /// Whether workers may have work because a batch has become whole.
    fn waits_for_whole(&self) -> bool {
        false
    }
}

/// A worker between its claims.
#[derive(Clone, Copy, Debug)]
pub struct WorkerState {
    /// Its number, from 0.
    pub worker: u32,
    /// The batch or sample it claimed last, counted over the run, where they belong to workers.
    last: Option<u64>,
    /// Epochs of which it has claimed all, and pieces of the one after, where it reads whole files.
    epochs: u64,
    pieces: u64,
}

impl WorkerState {
    /// Worker `worker` before its first claim.
    pub fn new(worker: u32) -> Self {
        WorkerState { worker, last: None, epochs: 0, pieces: 0 }
    }
}

/// Samples of one batch, to be read by one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Batch, counted over the run from 0.
    pub batch: u64,
    /// Samples of the batch.
    pub samples: Range<u64>,
    /// Position in the epoch of the first of them, where that does not follow from the batch.
    pub position: Option<u64>,
}

/// Whom to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// The batch belongs to this worker.
    One(u32),
    /// Any worker may take it.
    Any,
}

/// Every loader, in the order docs show them.
pub static LOADERS: &[&dyn Loader] =
    &[&pytorch::PyTorch, &tensorflow::TensorFlow, &dali::Dali, &native::Native];

/// The loader of that name.
pub fn find(name: &str) -> Option<&'static dyn Loader> {
    LOADERS.iter().copied().find(|loader| loader.entry().member.name == name)
}
