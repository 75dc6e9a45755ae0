//! Reasons why a run stopped, and what to do.

use crate::checkpoint::CheckpointError;
use crate::comm::{CommError, End};
use feedrate_data::stage::StageError;
use feedrate_data::storage::StorageError;
use feedrate_engine::job::ReadError;

/// The reason why a run stopped.
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
    /// The processes of the run lost each other.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A worker thread ended where it should not have.
    #[error(
        "worker thread {worker} of accelerator {accelerator} broke off; this is a fault of feedrate"
    )]
    Broken {
        /// The accelerator it reads for.
        accelerator: u32,
        /// Its number among those of the accelerator.
        worker: u32,
    },
    /// The devices that carry steps out cannot, or can no more.
    #[error("compute `{compute}`: {problem}")]
    Device {
        /// The name in the plan.
        compute: String,
        /// In words.
        problem: String,
    },
    /// There is no memory to read into.
    #[error("cannot map a reading buffer of {bytes} bytes: {source}")]
    Memory {
        /// Asked for by one worker.
        bytes: usize,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start worker thread {worker} of {workers}: {source}")]
    Thread {
        /// Its number.
        worker: usize,
        /// Workers that were to be started.
        workers: usize,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl RunError {
    /// That of the ranks' work together, if it is this that ended the run.
    pub fn of_ranks(&self) -> Option<&CommError> {
        match self {
            RunError::Comm(error) | RunError::Checkpoint(CheckpointError::Comm(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// The end that the other ranks are to be told.
    pub fn end(&self) -> End {
        self.of_ranks().map_or_else(|| End::Failed(self.to_string()), CommError::end)
    }

    /// Advice, where the reason is a common one.
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
                "see what `nvidia-smi` shows, use smaller batches or fewer accelerators, or leave `compute` out: steps are waits then",
            ),
            RunError::Broken { .. } => Some("report it, with the workload and the lines above"),
        }
    }
}

impl From<StorageError> for RunError {
    fn from(error: StorageError) -> Self {
        RunError::Read(error.into())
    }
}
