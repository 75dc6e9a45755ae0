//! Operations of all ranks, made of nonblocking ones of the library, so that a wait can end. Knows nothing of machines.

use super::abi::Handle;
use super::calls::{Calls, Group, Parts, Pending};
use super::wait::Manners;
use super::watch::{State, Voice};
use crate::comm::CommError;
use std::ffi::c_int;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

/// A launcher that saw a rank die stops the others: why is known so much later at most.
const WHY: Duration = Duration::from_millis(500);
/// Who is missing is known so long after it was asked for.
const WHO: Duration = Duration::from_secs(5);
/// All ranks together send no more than this at once: C ints count it.
const PIECE_BYTES: usize = 1 << 28;

/// This process among the others.
pub(super) struct Link {
    pub(super) calls: Calls,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) manners: Manners,
    /// Any thread may call, at any time.
    pub(super) threads: bool,
    /// The one thread that may call, where the library wants one.
    pub(super) thread: Option<ThreadId>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) timeout: Duration,
    pub(super) state: Arc<State>,
    /// Not there while ranks are still finding one another.
    pub(super) voice: OnceLock<Voice>,
}

/// What a wait has seen so far.
#[derive(Default)]
struct Seen {
    stop: Option<Duration>,
    asked: Option<Duration>,
}

impl Link {
    pub(super) fn barrier(&self) -> Result<(), CommError> {
        self.begin("MPI_Ibarrier")?;
        let pending = self.calls.start_barrier()?;
        self.complete(pending, ())
    }

    pub(super) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.begin("MPI_Ibcast")?;
        let (world, speaks) = (self.calls.world(), self.rank == 0);
        let len = self.spread(world, (bytes.len() as u64).to_le_bytes().to_vec())?;
        let len = usize::try_from(number(&len)).unwrap_or(usize::MAX);
        let mut all = if speaks { bytes.to_vec() } else { Vec::new() };
        if len <= PIECE_BYTES {
            all.resize(len, 0);
            return self.spread(world, all);
        }
        let mut told = Vec::with_capacity(len);
        while told.len() < len {
            let piece = told.len()..len.min(told.len() + PIECE_BYTES);
            let own = if speaks { all[piece.clone()].to_vec() } else { vec![0; piece.len()] };
            told.extend(self.spread(world, own)?);
        }
        Ok(told)
    }

    pub(super) fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.begin("MPI_Igather")?;
        let lens = self.gather_lens(bytes.len() as u64)?;
        let most = lens.iter().copied().max().unwrap_or(0);
        let most = self.spread(self.calls.world(), most.to_le_bytes().to_vec())?;
        let most = usize::try_from(number(&most)).unwrap_or(usize::MAX);
        let piece = (PIECE_BYTES / self.size as usize).max(1);
        let mut all: Vec<Vec<u8>> =
            lens.iter().map(|len| Vec::with_capacity(*len as usize)).collect();
        let mut done = 0;
        while done < most {
            let own = &bytes[done.min(bytes.len())..(done + piece).min(bytes.len())];
            let left = lens.iter().map(|len| (*len as usize).saturating_sub(done).min(piece));
            let parts = Parts::of(left);
            let round = self.gather_round(own.to_vec(), parts)?;
            for (rank, part) in all.iter_mut().zip(round) {
                rank.extend_from_slice(&part);
            }
            done += piece;
        }
        Ok(all)
    }

    /// Of each rank, on rank 0.
    fn gather_lens(&self, own: u64) -> Result<Vec<u64>, CommError> {
        let holds = if self.rank == 0 { 8 * self.size as usize } else { 0 };
        let mut buffers = (own.to_le_bytes().to_vec(), vec![0; holds]);
        // SAFETY: `complete` keeps the buffers until the operation is done; rank 0's holds 8 bytes a rank.
        let pending = unsafe { self.calls.start_gather(&buffers.0, &mut buffers.1) }?;
        let (_, lens) = self.complete(pending, buffers)?;
        Ok(lens.chunks_exact(8).map(number).collect())
    }

    fn gather_round(&self, own: Vec<u8>, parts: Parts) -> Result<Vec<Vec<u8>>, CommError> {
        let all = vec![0; parts.bytes()];
        let mut buffers = (own, all, parts);
        // SAFETY: `complete` keeps the buffers until the operation is done; rank 0's holds its parts.
        let pending =
            unsafe { self.calls.start_gather_parts(&buffers.0, &mut buffers.1, &buffers.2) }?;
        let (_, all, parts) = self.complete(pending, buffers)?;
        let places = parts.starts.iter().zip(&parts.counts);
        Ok(places.map(|(at, len)| all[*at as usize..(*at + *len) as usize].to_vec()).collect())
    }

    /// The first rank's bytes into those of all of `group`, which are as long.
    pub(super) fn spread(&self, group: Group, mut bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_broadcast(group, &mut bytes) }?;
        self.complete(pending, bytes)
    }

    pub(super) fn send(&self, rank: u32, bytes: Vec<u8>) -> Result<(), CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_send(&bytes, rank) }?;
        self.complete(pending, bytes).map(drop)
    }

    /// What `rank` sends, which is `len` bytes.
    pub(super) fn receive(&self, rank: u32, len: usize) -> Result<Vec<u8>, CommError> {
        let mut bytes = vec![0; len];
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, rank) }?;
        self.complete(pending, bytes)
    }

    /// Count an operation that all ranks take part in.
    pub(super) fn begin(&self, call: &'static str) -> Result<(), CommError> {
        self.state.begun.fetch_add(1, Relaxed);
        let elsewhere = |own: &ThreadId| *own != std::thread::current().id();
        if self.thread.as_ref().is_some_and(elsewhere) {
            let reason = "the library takes calls from one thread only (MPI_THREAD_FUNNELED)";
            return Err(CommError::Library { call, reason: reason.to_owned() });
        }
        Ok(())
    }

    /// Wait until `pending` is done, and give back the buffers it uses. They are leaked if it cannot be waited for: the
    /// library may still write to them.
    fn complete<B>(&self, mut pending: Pending, buffers: B) -> Result<B, CommError> {
        let mut seen = Seen::default();
        let done = self.manners.wait(|waited| {
            if self.calls.is_done(&mut pending)? {
                return Ok(Some(()));
            }
            self.look(waited, pending.call, &mut seen).map(|()| None)
        });
        match done {
            Ok(()) => Ok(buffers),
            Err(error) => {
                std::mem::forget(buffers);
                self.state.fail(&error);
                Err(error)
            }
        }
    }

    /// Whether the wait has to end.
    fn look(&self, waited: Duration, call: &'static str, seen: &mut Seen) -> Result<(), CommError> {
        if self.state.is_ended.load(Acquire) {
            return Err(self.state.end().unwrap_or(CommError::Stopped));
        }
        if self.stop.load(Relaxed) && waited >= *seen.stop.get_or_insert(waited) + WHY {
            return Err(CommError::Stopped);
        }
        if waited > self.timeout {
            if seen.asked.is_none() {
                seen.asked = Some(waited);
                if let Some(voice) = self.voice.get() {
                    voice.late(self.state.begun.load(Relaxed), waited);
                }
            }
            if self.voice.get().is_none() || seen.asked.is_some_and(|at| waited > at + WHO) {
                let reason = format!(
                    "not done after {} s; which ranks did not come is not known",
                    waited.as_secs()
                );
                return Err(CommError::Library { call, reason });
            }
        }
        Ok(())
    }
}

impl Parts {
    fn of(lens: impl Iterator<Item = usize>) -> Self {
        let mut parts = Parts::default();
        let mut at = 0;
        for len in lens {
            parts.starts.push(at as c_int);
            parts.counts.push(len as c_int);
            at += len;
        }
        parts
    }

    fn bytes(&self) -> usize {
        self.counts.iter().map(|count| *count as usize).sum()
    }
}

fn number(bytes: impl AsRef<[u8]>) -> u64 {
    bytes.as_ref().try_into().map_or(0, u64::from_le_bytes)
}

/// Handles of groups are numbers.
const _: () = assert!(size_of::<Handle>() == 8);
