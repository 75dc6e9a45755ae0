//! Ranks as threads of one process, for tests without MPI.

use crate::comm::{ClockOffset, Comm, CommError, End, Peers, RankNode};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which a wait for a message checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// One rank of a group of threads.
#[derive(Clone, Debug)]
pub(crate) struct ThreadRank {
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
    /// Number of ranks that wait at the barrier.
    waiting: usize,
    /// Number of barriers that have opened.
    opened: u64,
    parts: Vec<Vec<u8>>,
    lost: Option<CommError>,
    /// Messages that were not received yet, by sender, receiver and tag.
    messages: HashMap<(u32, u32, u32), VecDeque<Vec<u8>>>,
}

impl ThreadRank {
    /// Creates a group of `size` ranks, one for each thread.
    pub(crate) fn group(size: u32) -> Vec<ThreadRank> {
        let parts = vec![Vec::new(); size as usize];
        let state = State { waiting: 0, opened: 0, parts, lost: None, messages: HashMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        (0..size).map(|rank| ThreadRank { rank, shared: Arc::clone(&shared) }).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of every rank on every rank.
    fn exchange(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.state().parts[self.rank as usize] = bytes.to_vec();
        self.barrier()?;
        let all = self.state().parts.clone();
        self.barrier()?;
        Ok(all)
    }
}

impl Comm for ThreadRank {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.state().parts.len() as u32
    }

    fn node(&self) -> RankNode {
        let size = self.size();
        RankNode {
            node: 0,
            nodes: 1,
            local_rank: self.rank,
            local_size: size,
            local_size_max: size,
        }
    }

    fn barrier(&self) -> Result<(), CommError> {
        let mut state = self.state();
        let number = state.opened;
        state.waiting += 1;
        if state.waiting == state.parts.len() {
            state.waiting = 0;
            state.opened += 1;
            self.shared.changed.notify_all();
        }
        let state = self
            .shared
            .changed
            .wait_while(state, |state| state.opened == number && state.lost.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        if state.opened > number { Ok(()) } else { state.lost.clone().map_or(Ok(()), Err) }
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.exchange(bytes)?;
        Ok(if self.rank == 0 { all } else { Vec::new() })
    }

    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        Ok(self.exchange(bytes)?.swap_remove(0))
    }

    fn clock_offset(&self, now_ns: &dyn Fn() -> u64) -> Result<ClockOffset, CommError> {
        let start_ns = now_ns();
        self.barrier()?;
        let local_ns = now_ns();
        let first = self.broadcast(&local_ns.to_le_bytes())?;
        let first_ns = first.try_into().map_or(local_ns, u64::from_le_bytes);
        Ok(ClockOffset {
            offset_ns: first_ns.wrapping_sub(local_ns) as i64,
            error_ns: now_ns() - start_ns,
        })
    }

    fn peers(&self) -> Result<Arc<dyn Peers>, CommError> {
        Ok(Arc::new(self.clone()))
    }

    fn end_reason(&self) -> Option<CommError> {
        self.state().lost.clone()
    }

    fn give_up(&self, end: End) {
        let lost = CommError::Lost { rank: self.rank, host: String::new(), end };
        self.state().lost.get_or_insert(lost);
        self.shared.changed.notify_all();
    }
}

impl Peers for ThreadRank {
    fn send(
        &self,
        to: u32,
        tag: u32,
        bytes: Vec<u8>,
        _: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        state.messages.entry((self.rank, to, tag)).or_default().push_back(bytes.clone());
        self.shared.changed.notify_all();
        Ok(bytes)
    }

    fn receive(
        &self,
        from: u32,
        tag: u32,
        bytes: Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CommError> {
        let key = (from, self.rank, tag);
        let mut state = self.state();
        loop {
            let message = state.messages.get_mut(&key).and_then(VecDeque::pop_front);
            match message {
                Some(message) if message.len() == bytes.len() => return Ok(message),
                Some(message) => {
                    let expected = bytes.len();
                    let reason = format!("received {} bytes, expected {expected}", message.len());
                    return Err(CommError::Library { call: "a message between ranks", reason });
                }
                None => {}
            }
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            if stop.load(Relaxed) {
                return Err(CommError::Stopped);
            }
            let waited = self.shared.changed.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
