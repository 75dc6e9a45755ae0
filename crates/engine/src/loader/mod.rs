//! Loaders decide which worker reads which samples, and when. Each loader has a file and a row in [`LOADERS`].
//!
//! A loader has no clock, threads or I/O. Workers get work from [`Loader::claim`], and the shared [`Queue`] counts the batches that are
//! published, finished and taken. Both drivers call the same code.
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

pub use queue::{BatchStatus, CompleteBatch, Queue, ReadTimes};

use feedrate_spec::catalog::LoaderEntry;
use std::ops::Range;

/// The rules by which a framework's loader divides batches among its workers.
pub trait Loader: Sync {
    /// Returns name, summary, abilities, and the rule for batches in flight.
    fn entry(&self) -> LoaderEntry;

    /// Claims the next task for `worker`, which must then finish it. `None` if no task may begin yet.
    fn claim(&self, queue: &Queue, worker: &mut WorkerState) -> Option<Task>;

    /// Returns the workers that may have work when `batch` may be begun.
    fn workers_to_wake(&self, _queue: &Queue, _batch: u64) -> WakeTarget {
        WakeTarget::Any
    }

    /// Returns the number of claims for a batch.
    fn claims_per_batch(&self, batch_size: u64) -> u64 {
        batch_size
    }

    /// Whether workers may have to wait until a batch is complete before they begin the next.
    fn waits_for_complete(&self) -> bool {
        false
    }
}

/// The state of a worker between its claims.
#[derive(Clone, Copy, Debug)]
pub struct WorkerState {
    /// Number of the worker, from 0.
    pub worker: u32,
    /// Number in the run of the batch or sample claimed last, if the loader assigns batches or samples to workers.
    last: Option<u64>,
    /// Number of completely claimed epochs, if the worker reads whole files.
    epochs: u64,
    /// Number of pieces claimed in the current epoch, if the worker reads whole files.
    pieces: u64,
    horizon: Horizon,
}

/// The batches that a worker may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// The open batches.
    Open,
    /// All batches of the epoch, to read ahead.
    Epoch,
}

impl WorkerState {
    /// Creates the state of a worker before its first claim.
    pub fn new(worker: u32) -> Self {
        WorkerState { worker, last: None, epochs: 0, pieces: 0, horizon: Horizon::Open }
    }

    /// Lets the worker claim up to another horizon.
    #[must_use]
    pub fn with_horizon(self, horizon: Horizon) -> Self {
        WorkerState { horizon, ..self }
    }
}

/// Samples of one batch that one worker reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Number of the batch in the run, from 0.
    pub batch: u64,
    /// Samples of the batch.
    pub samples: Range<u64>,
    /// Position of the first sample in the epoch, if it cannot be computed from the batch.
    pub position: Option<u64>,
}

/// The workers to wake for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeTarget {
    /// The batch belongs to this worker.
    One(u32),
    /// Any worker may take it.
    Any,
}

/// All loaders, in the order in which the documentation lists them.
pub static LOADERS: &[&dyn Loader] =
    &[&pytorch::PyTorch, &tensorflow::TensorFlow, &dali::Dali, &native::Native];

/// Returns the loader called `name`.
pub fn find(name: &str) -> Option<&'static dyn Loader> {
    LOADERS.iter().copied().find(|loader| loader.entry().member.name == name)
}
