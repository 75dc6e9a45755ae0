//! Messages between two ranks, in a group of their own, from any thread.

use super::calls::{Calls, Group, Pending, Place};
use super::link::{Link, one_thread};
use super::wait::Manners;
use super::watch::State;
use crate::comm::{CommError, Peers};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

pub(super) struct MpiPeers {
    calls: Calls,
    group: Group,
    state: Arc<State>,
    manners: Manners,
}

impl MpiPeers {
    pub(super) fn new(link: &Link) -> Result<Self, CommError> {
        const CALL: &str = "MPI_Comm_dup";
        link.begin(CALL)?;
        if !link.threads {
            return Err(one_thread(CALL));
        }
        Ok(MpiPeers {
            calls: link.calls,
            group: link.calls.duplicate(link.calls.world())?,
            state: Arc::clone(&link.state),
            manners: link.manners.without_spins(),
        })
    }

    fn place(&self, rank: u32, tag: u32) -> Place {
        Place { group: self.group, rank, tag }
    }

    /// Wait until `pending` is done, and give `bytes` back. They are leaked if it cannot be waited for: the library may still
    /// use them.
    fn complete(
        &self,
        mut pending: Pending,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        let done = self.manners.wait(|_| {
            self.state.may_call(pending.call)?;
            if self.calls.is_done(&mut pending)? {
                return Ok(Some(()));
            }
            if self.state.is_ended.load(Acquire) {
                return Err(self.state.end().unwrap_or(CommError::Stopped));
            }
            if stop.load(Relaxed) { Err(CommError::Stopped) } else { Ok(None) }
        });
        match done {
            Ok(()) => Ok(bytes),
            Err(error) => {
                std::mem::forget(bytes);
                self.state.leave_undone();
                Err(error)
            }
        }
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
        self.state.may_call("MPI_Isend")?;
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_send(&bytes, self.place(to, tag)) }?;
        self.complete(pending, bytes, stop)
    }

    fn receive(
        &self,
        from: u32,
        tag: u32,
        mut bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        self.state.may_call("MPI_Irecv")?;
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, self.place(from, tag)) }?;
        self.complete(pending, bytes, stop)
    }
}
