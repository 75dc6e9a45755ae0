//! Communication between the processes of a run: one file per kind, one row in [`COMMS`].
//!
//! Accelerators within a process do not need it; the engine synchronises them. To add a kind: copy `solo.rs`, implement [`Comm`], add
//! its `mod` line and its row, and run the contract tests on it.

pub mod mpi;
mod solo;
#[cfg(test)]
pub(crate) mod tests;

pub use solo::Solo;

use feedrate_spec::catalog::Member;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Collective operations. Every rank calls the same operations in the same order, all from one thread. After an error no other
/// operation may be called.
pub trait Comm: Send + Sync {
    /// Returns the number of this process, from 0.
    fn rank(&self) -> u32;
    /// Returns the number of processes.
    fn size(&self) -> u32;
    /// Returns the machine of this process, and its position among the processes there.
    fn node(&self) -> RankNode;
    /// Returns the reason why barriers cannot use shared memory and are slower; `None` if they use it. The same on all ranks.
    fn slow_barrier_reason(&self) -> Option<&str> {
        None
    }
    /// Waits for all ranks without a time limit while they are alive, because a rank may have work to do alone.
    ///
    /// # Errors
    /// See [`CommError`].
    fn barrier(&self) -> Result<(), CommError>;
    /// Waits for all ranks, and fails if one does not arrive within the configured timeout. Used between steps.
    ///
    /// # Errors
    /// See [`CommError`].
    fn barrier_with_timeout(&self) -> Result<(), CommError> {
        self.barrier()
    }
    /// Gathers the bytes of all ranks on rank 0, in rank order. Returns an empty list on the other ranks.
    ///
    /// # Errors
    /// See [`CommError`].
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;
    /// Returns the bytes of rank 0 on all ranks. The argument of other ranks is ignored.
    ///
    /// # Errors
    /// See [`CommError`].
    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError>;
    /// Measures by how much the clock of rank 0 is ahead of this rank's clock `now_ns`. Every rank has to call it.
    ///
    /// # Errors
    /// See [`CommError`].
    fn clock_offset(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError>;
    /// Opens a channel of messages between pairs of ranks, independent of the collective operations. Every rank has to call it.
    ///
    /// # Errors
    /// This kind of communication has no messages, or allows calls from one thread only.
    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Err(CommError::Library { call: "messages between ranks", reason: NOT_MPI.to_owned() })
    }
    /// Opens access to files that all ranks read together, independent of the other operations. Every rank has to call it.
    ///
    /// # Errors
    /// This kind of communication cannot read files, or allows calls from one thread only.
    fn files(&self) -> Result<Box<dyn SharedFiles>, CommError> {
        Err(CommError::Library { call: "files read together", reason: NOT_MPI.to_owned() })
    }
    /// Returns why the common work has ended, if it has and this process knows.
    fn end_reason(&self) -> Option<CommError> {
        None
    }
    /// Notifies the other ranks that this rank ends for the reason `end`. Their waits then fail with [`CommError::Lost`]. May be called from any
    /// thread.
    fn give_up(&self, end: End);
}

const NOT_MPI: &str = "these processes are not ranks of MPI";

/// Messages between pairs of ranks, from any thread, in order for each tag. A wait fails when the common work ends, or soon after
/// `stop` is set; the message is then lost.
pub trait Peers: Send + Sync {
    /// Sends `bytes`. Returns the buffer when it may be reused, which may be before the message is received.
    ///
    /// # Errors
    /// See [`CommError`].
    fn send(
        &self,
        to: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError>;
    /// Receives a message into `bytes` and returns the buffer. The message must have the length of `bytes`.
    ///
    /// # Errors
    /// See [`CommError`].
    fn receive(
        &self,
        from: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError>;
}

/// Files that all ranks read together, with one thread each. Every rank makes the same calls in the same order; only offsets and
/// lengths differ. A call cannot be interrupted.
pub trait SharedFiles: Send + Sync {
    /// Opens a file for reading. All ranks open it and have to close it.
    ///
    /// # Errors
    /// See [`CommError`]; the call may fail on some ranks only.
    fn open(&self, path: &Path) -> Result<Box<dyn SharedFile>, CommError>;
}

/// An open file that all ranks read together.
pub trait SharedFile: Send + Sync {
    /// Reads from `offset` on into `bytes`, which must not extend beyond the end of the file. Returns the number of bytes read.
    ///
    /// # Errors
    /// See [`CommError`].
    fn read_at_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError>;
    /// Closes the file.
    ///
    /// # Errors
    /// See [`CommError`].
    fn close(self: Box<Self>) -> Result<(), CommError>;
}

/// By how much the clock of rank 0 is ahead of a rank's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Offset to add to the rank's clock.
    pub offset_ns: i64,
    /// Upper limit of the error of the offset.
    pub error_ns: u64,
}

/// The position of a process on the machines of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankNode {
    /// Number of the machine, from 0, in the order of first ranks.
    pub node: u32,
    /// Number of machines.
    pub nodes: u32,
    /// Index of the process among the processes of its machine, from 0.
    pub local_rank: u32,
    /// Number of processes on its machine.
    pub local_size: u32,
    /// Number of processes on the machine with the most.
    pub local_size_max: u32,
}

/// Returns the number of processes on the machine with the most; `machines` has the machine of each process.
pub fn most_on_one_machine(machines: &[u32]) -> u32 {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for machine in machines {
        *counts.entry(*machine).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// An error of communication.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// Another rank ended.
    #[error("rank {rank}{} {end}", host_suffix(host))]
    Lost {
        /// The rank that ended.
        rank: u32,
        /// Its machine; empty if unknown.
        host: String,
        /// How it ended.
        end: End,
    },
    /// Some ranks did not arrive in time.
    #[error("waited {} for {}", units::seconds(waited.as_secs_f64()), RankList(ranks))]
    Missing {
        /// The ranks that did not arrive.
        ranks: Vec<u32>,
        /// How long the other ranks waited.
        waited: Duration,
    },
    /// This process was interrupted.
    #[error("interrupted")]
    Stopped,
    /// A call of the library failed.
    #[error("{call}: {reason}")]
    Library {
        /// Name of the call, such as `MPI_Ibarrier`.
        call: &'static str,
        /// The library's message.
        reason: String,
    },
}

/// Reason why a rank ended before the other ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum End {
    /// It was interrupted, which is not a failure.
    #[error("was interrupted")]
    Interrupted,
    /// It failed.
    #[error("gave up: {0}")]
    Failed(String),
    /// It ended without a message.
    #[error("died without a message (killed, crashed, or out of memory)")]
    Died,
    /// It is still connected, but does not answer.
    #[error("does not answer (stopped, or its machine hangs)")]
    Silent,
}

impl CommError {
    /// Whether this or another process was interrupted. An interrupt reaches all processes, though not at the same moment.
    pub fn is_interruption(&self) -> bool {
        matches!(self, CommError::Stopped | CommError::Lost { end: End::Interrupted, .. })
    }

    /// Returns how a process ends that stops because of this error, as reported to the other ranks.
    pub fn end(&self) -> End {
        if self.is_interruption() { End::Interrupted } else { End::Failed(self.to_string()) }
    }

    /// Returns advice, if the error is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CommError::Missing { .. } => {
                Some("check what these ranks do; if steps take longer, raise `--rank-timeout`")
            }
            _ => None,
        }
    }
}

fn host_suffix(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}

/// Displays a list of ranks, at most the first eight of them.
pub struct RankList<'a>(pub &'a [u32]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<String> = self.0.iter().take(8).map(u32::to_string).collect();
        let more = self.0.len().saturating_sub(first.len());
        let noun = if self.0.len() == 1 { "rank" } else { "ranks" };
        write!(f, "{noun} {}", first.join(", "))?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// All kinds of communication, in the order in which the documentation lists them.
pub static COMMS: &[&Member] = &[&solo::MEMBER, &mpi::MEMBER];
