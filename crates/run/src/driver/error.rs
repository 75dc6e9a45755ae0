//! Errors that stop a run, with hints.

use crate::checkpoint::CheckpointError;
use crate::comm::{CommError, End};
use feedrate_data::stage::StageError;
use feedrate_data::storage::StorageError;
use feedrate_engine::job::ReadError;

/// An error that stopped a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Samples could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A checkpoint could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The dataset could not be copied.
    #[error("cannot copy the dataset: {0}")]
    Stage(#[from] StageError),
    /// Communication between the processes of the run failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A worker thread panicked.
    #[error(
        "worker thread {worker} of accelerator {accelerator} panicked; this is a bug in feedrate"
    )]
    Panicked {
        /// The accelerator that the worker reads for.
        accelerator: u32,
        /// Number of the worker among the accelerator's workers.
        worker: u32,
    },
    /// The devices that compute steps failed.
    #[error("compute `{compute}`: {problem}")]
    Device {
        /// Name of the compute kind in the plan.
        compute: String,
        /// Description of the failure.
        problem: String,
    },
    /// A reading buffer could not be mapped.
    #[error("cannot map a reading buffer of {bytes} bytes: {source}")]
    Memory {
        /// Requested size.
        bytes: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start worker thread {worker} of {workers}: {source}")]
    Thread {
        /// Number of the worker.
        worker: usize,
        /// Number of workers to start.
        workers: usize,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl RunError {
    /// Returns the communication error that ended the run, if it was one.
    pub fn comm_error(&self) -> Option<&CommError> {
        match self {
            RunError::Comm(error) | RunError::Checkpoint(CheckpointError::Comm(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Returns how this process ended, as reported to the other ranks.
    pub fn end(&self) -> End {
        self.comm_error().map_or_else(|| End::Failed(self.to_string()), CommError::end)
    }

    /// Returns advice, if the error is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RunError::Read(error) => error.hint(),
            RunError::Checkpoint(error) => error.hint(),
            RunError::Stage(error) => error.hint(),
            RunError::Memory { .. } => {
                Some("use fewer accelerators or `reader.read_threads`, or raise `vm.max_map_count`")
            }
            RunError::Thread { .. } => {
                Some("use fewer accelerators or `reader.read_threads`, or raise `ulimit -u`")
            }
            RunError::Comm(error) => error.hint(),
            RunError::Device { .. } => Some(
                "see what `nvidia-smi` shows, use smaller batches or fewer accelerators, or leave `compute` out, so that steps are waits",
            ),
            RunError::Panicked { .. } => {
                Some("report the bug, with the workload and the messages above")
            }
        }
    }
}

impl From<StorageError> for RunError {
    fn from(error: StorageError) -> Self {
        RunError::Read(error.into())
    }
}
