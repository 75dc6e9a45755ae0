//! Between the processes of a run: one file per way, one row in [`COMMS`].
//!
//! Accelerators within a process need none of this: the engine counts them in. To add a way: copy
//! `solo.rs`, implement [`Comm`], add its `mod` line and its row; the contract suite runs on it.

pub mod mpi;
mod solo;
#[cfg(test)]
pub(crate) mod tests;

pub use solo::Solo;

use feedrate_spec::catalog::Member;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Collective operations. Every rank calls the same ones in the same order, all from one thread. After an error no more can
/// be called.
pub trait Comm: Send + Sync {
    /// This process, from 0.
    fn rank(&self) -> u32;
    /// Processes.
    fn size(&self) -> u32;
    /// The machine that this process is on, and its place among the processes there.
    fn node(&self) -> RankNode;
    /// The reason why a barrier is slower than those of ranks that share memory, where it is; known to all.
    fn apart(&self) -> Option<&str> {
        None
    }
    /// Wait for all.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn barrier(&self) -> Result<(), CommError>;
    /// Wait for all, as ranks do between steps: whoever takes longer than the time that was set for it is missing. All other waits
    /// go on while the others live, who may have work to do alone.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn barrier_in_time(&self) -> Result<(), CommError> {
        self.barrier()
    }
    /// Each rank's bytes in rank order, on rank 0; nothing elsewhere.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;
    /// The bytes of rank 0, on all; what others give is not looked at.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError>;
    /// How far the clock of rank 0 is ahead of this one's, `now_ns`. Collective.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn clock(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError>;
    /// Messages between two ranks, apart from all else. Collective.
    ///
    /// # Errors
    /// There are no others, or no thread but this one may talk to them.
    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Err(CommError::Library { call: "messages between ranks", reason: NOBODY.to_owned() })
    }
    /// Files that all ranks read together, apart from all else. Collective.
    ///
    /// # Errors
    /// This way of communicating reads no files, or no thread but this one may.
    fn files(&self) -> Result<Box<dyn SharedFiles>, CommError> {
        Err(CommError::Library { call: "files read together", reason: NOBODY.to_owned() })
    }
    /// The reason why the ranks' work together is over, if it is and that is known here.
    fn ended(&self) -> Option<CommError> {
        None
    }
    /// Tell the others that this rank goes no further, and why: what they wait for then ends with [`CommError::Lost`]. May be
    /// called from any thread.
    fn give_up(&self, end: End);
}

const NOBODY: &str = "these processes are not ranks of MPI";

/// Messages between two ranks, in order for each tag, from any thread. What waits ends when the ranks' work does, or soon after
/// `stop` is set; the message is then lost.
pub trait Peers: Send + Sync {
    /// Returns `bytes` when they may be used again, which may be before they were received.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn send(
        &self,
        to: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError>;
    /// Returns `bytes` with what was sent, which has to be as long as they are.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn receive(
        &self,
        from: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError>;
}

/// Files that all ranks read together, one thread of each. Every rank calls the same in the same order; only offsets and lengths
/// differ. A call cannot be interrupted.
pub trait SharedFiles: Send + Sync {
    /// Open for reading a file that all ranks open and have to close.
    ///
    /// # Errors
    /// As of [`CommError`], on all ranks or on some.
    fn open(&self, path: &Path) -> Result<Box<dyn SharedFile>, CommError>;
}

/// One of them.
pub trait SharedFile: Send + Sync {
    /// Read from `offset` on, not beyond the file's end, and say how many bytes that were.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn read_at_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError>;
    /// Close.
    ///
    /// # Errors
    /// As of [`CommError`].
    fn close(self: Box<Self>) -> Result<(), CommError>;
}

/// How far a clock is behind that of rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// To be added to it.
    pub offset_ns: i64,
    /// By which that may be wrong.
    pub error_ns: u64,
}

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankNode {
    /// The machine, from 0, in the order of its first rank.
    pub node: u32,
    /// Machines.
    pub nodes: u32,
    /// The process among those of its machine, from 0.
    pub local_rank: u32,
    /// Processes on its machine.
    pub local_size: u32,
}

/// The reason why an operation did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// Another rank ended.
    #[error("rank {rank}{} {end}", of_host(host))]
    Lost {
        /// The lost one.
        rank: u32,
        /// Where it ran; empty if that is not known.
        host: String,
        /// How it ended.
        end: End,
    },
    /// Not all came in time.
    #[error("waited {} for {}", units::seconds(waited.as_secs_f64()), RankList(ranks))]
    Missing {
        /// Those that did not come.
        ranks: Vec<u32>,
        /// How long the others waited.
        waited: Duration,
    },
    /// This process was interrupted.
    #[error("interrupted")]
    Stopped,
    /// The library refused.
    #[error("{call}: {reason}")]
    Library {
        /// `MPI_Ibarrier`.
        call: &'static str,
        /// Its message.
        reason: String,
    },
}

/// How a rank ended before the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum End {
    /// It was told to stop, which is no failure.
    #[error("was interrupted")]
    Interrupted,
    /// It could not go on.
    #[error("gave up: {0}")]
    Failed(String),
    /// It did not say why.
    #[error("died without a word (killed, crashed, or out of memory)")]
    Died,
    /// It is there, and says nothing.
    #[error("does not answer (stopped, or its machine hangs)")]
    Silent,
}

impl CommError {
    /// Whether a process was told to stop, this one or another: who tells one tells all, though not at the same moment.
    pub fn is_interruption(&self) -> bool {
        matches!(self, CommError::Stopped | CommError::Lost { end: End::Interrupted, .. })
    }

    /// The end that the others are to be told by whom it stops.
    pub fn end(&self) -> End {
        if self.is_interruption() { End::Interrupted } else { End::Failed(self.to_string()) }
    }

    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CommError::Missing { .. } => {
                Some("see what they do; where steps last longer, raise `--rank-timeout`")
            }
            _ => None,
        }
    }
}

fn of_host(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}

/// Ranks in words, the first of them if they are many.
pub struct RankList<'a>(pub &'a [u32]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<String> = self.0.iter().take(8).map(u32::to_string).collect();
        let more = self.0.len().saturating_sub(first.len());
        let of = if self.0.len() == 1 { "rank" } else { "ranks" };
        write!(f, "{of} {}", first.join(", "))?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// Every way, in the order docs show them.
pub static COMMS: &[&Member] = &[&solo::MEMBER, &mpi::MEMBER];
