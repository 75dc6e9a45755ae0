//! Ranks as threads of one process: what MPI does, without MPI.

use super::{ClockOffset, Comm, CommError, GAVE_UP, Node};
use feedrate_spec::catalog::Member;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(super) static MEMBER: Member = Member {
    name: "threads",
    summary: "ranks are threads of one process; stands in for MPI",
    abilities: &[],
};

/// One rank of a group of threads.
#[derive(Debug)]
pub struct Threads {
    rank: u32,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Ranks that have come to the barrier.
    waiting: usize,
    /// Barriers that have opened.
    opened: u64,
    parts: Vec<Vec<u8>>,
    lost: Option<CommError>,
}

impl Threads {
    /// A group of `size` ranks, one for each thread.
    pub fn group(size: u32) -> Vec<Threads> {
        let parts = vec![Vec::new(); size as usize];
        let state = State { waiting: 0, opened: 0, parts, lost: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        (0..size).map(|rank| Threads { rank, shared: Arc::clone(&shared) }).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every rank's bytes, on every rank.
    fn exchange(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.state().parts[self.rank as usize] = bytes.to_vec();
        self.barrier()?;
        let all = self.state().parts.clone();
        self.barrier()?;
        Ok(all)
    }
}

impl Comm for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.state().parts.len() as u32
    }

    fn node(&self) -> Node {
        Node { node: 0, nodes: 1, local_rank: self.rank, local_size: self.size() }
    }

    fn barrier(&self) -> Result<(), CommError> {
        let mut state = self.state();
        let own = state.opened;
        state.waiting += 1;
        if state.waiting == state.parts.len() {
            (state.waiting, state.opened) = (0, own + 1);
            self.shared.changed.notify_all();
        }
        let closed = |state: &mut State| state.opened == own && state.lost.is_none();
        let state = self.shared.changed.wait_while(state, closed);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.opened > own { Ok(()) } else { state.lost.clone().map_or(Ok(()), Err) }
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.exchange(bytes)?;
        Ok(if self.rank == 0 { all } else { Vec::new() })
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        Ok(self.exchange(bytes)?.swap_remove(0))
    }

    fn clock(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        let start_ns = now_ns();
        self.barrier()?;
        let own_ns = now_ns();
        let first = self.broadcast(&own_ns.to_le_bytes())?;
        let first_ns = first.try_into().map_or(own_ns, u64::from_le_bytes);
        Ok(ClockOffset {
            offset_ns: first_ns.wrapping_sub(own_ns) as i64,
            error_ns: now_ns() - start_ns,
        })
    }

    fn give_up(&self, reason: &str) {
        let lost = CommError::Lost {
            rank: self.rank,
            host: String::new(),
            reason: format!("{GAVE_UP}{reason}"),
        };
        self.state().lost.get_or_insert(lost);
        self.shared.changed.notify_all();
    }
}
