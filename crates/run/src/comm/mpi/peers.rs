//! Messages between pairs of ranks, from any thread. They use a separate communicator.

use super::calls::{Calls, MessageEnd, PendingCall, RankGroup};
use super::link::{self, Link, wrong_thread};
use super::state::RankState;
use super::wait::WaitPolicy;
use crate::comm::{CommError, Peers};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The communicator of messages between pairs of ranks.
pub(super) struct MpiPeers {
    calls: Calls,
    group: RankGroup,
    state: Arc<RankState>,
    policy: WaitPolicy,
}

impl MpiPeers {
    pub(super) fn new(link: &Link) -> Result<Self, CommError> {
        const CALL: &str = "MPI_Comm_dup";
        link.begin(CALL)?;
        if link.thread.is_some() {
            return Err(wrong_thread(CALL));
        }
        Ok(MpiPeers {
            calls: link.calls,
            group: link.calls.duplicate(link.calls.world())?,
            state: Arc::clone(&link.state),
            policy: link.policy.without_spins(),
        })
    }

    fn complete(
        &self,
        pending: PendingCall,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        link::complete(&self.calls, &self.state, self.policy, pending, bytes, |_| {
            self.state.check_end()?;
            if stop.load(Relaxed) { Err(CommError::Stopped) } else { Ok(()) }
        })
    }
}

impl Peers for MpiPeers {
    fn send(
        &self,
        to: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        self.state.check_call("MPI_Isend")?;
        let end = MessageEnd { group: self.group, rank: to, tag };
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_send(&bytes, end) }?;
        self.complete(pending, bytes, stop)
    }

    fn receive(
        &self,
        from: u32,
        tag: u32,
        mut bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        self.state.check_call("MPI_Irecv")?;
        let end = MessageEnd { group: self.group, rank: from, tag };
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, end) }?;
        self.complete(pending, bytes, stop)
    }
}
