//! A channel beside MPI that detects ranks that die, give up, are stopped or do not arrive. It works with any MPI library and
//! launcher: a closed connection means a death, and missed beats (one per second) mean a stopped process. A process of the same machine
//! that does not answer may just get no processor time: it is lost if `/proc` shows that it has ended or stays stopped, and otherwise
//! only after the rank timeout.
//!
//! Rank 0 starts the hub, a thread that listens on TCP and forwards events to all ranks. Each rank, including rank 0, has one
//! connection to the hub and one thread that receives messages. All of them sleep between beats.

mod addresses;
mod process;
mod message;
mod hub;
mod channel;

pub(super) use channel::ControlChannel;
pub(super) use hub::Hub;
pub(super) use message::OnTimeout;

use std::time::Duration;

/// Returns the number of whole beats in `timeout`.
fn count_beats(timeout: Duration, beat: Duration) -> u32 {
    u32::try_from(timeout.as_nanos() / beat.as_nanos()).unwrap_or(u32::MAX)
}
