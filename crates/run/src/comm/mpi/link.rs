//! Operations of all ranks, made of nonblocking ones of the library, so that a wait can end. Knows nothing of machines.

use super::abi::Handle;
use super::calls::{Calls, Group, Pending, Place};
use super::gate::{Gate, Stage};
use super::wait::Manners;
use super::watch::{State, Voice};
use crate::comm::CommError;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

/// A launcher that saw a rank die stops the others: why is known so much later at most.
const WHY: Duration = Duration::from_millis(500);
/// Who is missing is known so long after it was asked for.
const WHO: Duration = Duration::from_secs(5);
/// No more than this is sent at once: C ints count it.
const PIECE_BYTES: usize = 1 << 28;
/// What an operation brings with the length of what it brings.
const HEAD_BYTES: usize = 4096;

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
    /// Not there while ranks are still finding one another, or where they share no memory.
    pub(super) gates: Option<Gates>,
    /// Not there while ranks are still finding one another.
    pub(super) voice: OnceLock<Voice>,
}

/// The barrier's two floors.
pub(super) struct Gates {
    /// Of this machine.
    pub(super) gate: Gate,
    /// This rank is the machine's first.
    pub(super) leads: bool,
    /// The first ranks of all machines, where there are several and this is one.
    pub(super) leaders: Option<Group>,
}

/// What becomes of a wait that lasts longer than the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Late {
    /// It goes on while those who did not come live: they may be at work alone.
    Waits,
    /// It ends.
    Ends,
}

/// What a wait has seen so far.
struct Seen {
    late: Late,
    stop: Option<Duration>,
    /// When it was last heard that the others live.
    alive: Duration,
    asked: Option<Asked>,
}

/// Who has not come?
#[derive(Clone, Copy)]
struct Asked {
    at: Duration,
    /// What was heard before.
    alive: u64,
}

impl Seen {
    fn new(late: Late) -> Self {
        Seen { late, stop: None, alive: Duration::ZERO, asked: None }
    }
}

impl Link {
    pub(super) fn barrier(&self, late: Late) -> Result<(), CommError> {
        self.begin("MPI_Ibarrier")?;
        match &self.gates {
            None => self.barrier_of(self.calls.world(), late),
            Some(gates) => self.barrier_by(gates, late),
        }
    }

    fn barrier_of(&self, group: Group, late: Late) -> Result<(), CommError> {
        let pending = self.calls.start_barrier(group)?;
        self.complete_in(Seen::new(late), pending, ())
    }

    /// Once all of a machine have come, its first rank waits for the other machines', and lets them go on.
    fn barrier_by(&self, gates: &Gates, late: Late) -> Result<(), CommError> {
        let number = gates.gate.arrive();
        if gates.leads {
            self.await_gate(&gates.gate, Stage::Full, number, late)?;
            if let Some(leaders) = gates.leaders {
                self.barrier_of(leaders, late)?;
            }
            gates.gate.open_up();
            return Ok(());
        }
        self.await_gate(&gates.gate, Stage::Open, number, late)
    }

    fn await_gate(
        &self,
        gate: &Gate,
        stage: Stage,
        number: u32,
        late: Late,
    ) -> Result<(), CommError> {
        let mut seen = Seen::new(late);
        let look = |waited| {
            if gate.is(stage, number) {
                return Ok(Some(()));
            }
            self.look(waited, "the barrier", &mut seen).map(|()| None)
        };
        let rest = |waited| match waited < self.manners.patience() {
            true => std::thread::yield_now(),
            false => gate.sleep(stage, number),
        };
        let opened = self.manners.wait_by(look, rest);
        opened.inspect_err(|error| self.state.fail(error))
    }

    /// What fits into a head is told at once; more comes after it.
    pub(super) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.begin("MPI_Ibcast")?;
        let (world, speaks) = (self.calls.world(), self.rank == 0);
        let head = self.spread(world, head(bytes))?;
        let (len, first) = of_head(&head);
        if len <= HEAD_BYTES {
            return Ok(first.to_vec());
        }
        let mut told = first.to_vec();
        while told.len() < len {
            let piece = told.len()..len.min(told.len() + PIECE_BYTES);
            let own = if speaks { bytes[piece].to_vec() } else { vec![0; piece.len()] };
            told.extend(self.spread(world, own)?);
        }
        Ok(told)
    }

    /// What fits into a head comes at once; more from each rank that has more.
    pub(super) fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.begin("MPI_Igather")?;
        let own = head(bytes);
        let block = own.len();
        let holds = if self.rank == 0 { block * self.size as usize } else { 0 };
        let mut buffers = (own, vec![0; holds]);
        // SAFETY: `complete` keeps the buffers until the operation is done; rank 0's holds a head of each rank.
        let pending = unsafe { self.calls.start_gather(&buffers.0, &mut buffers.1) }?;
        let (_, heads) = self.complete(pending, buffers)?;
        if self.rank > 0 {
            for piece in bytes[HEAD_BYTES.min(bytes.len())..].chunks(PIECE_BYTES) {
                self.send(0, piece.to_vec())?;
            }
            return Ok(Vec::new());
        }
        let of_rank = |(rank, head): (usize, &[u8])| {
            let (len, first) = of_head(head);
            if rank == 0 {
                return Ok(bytes.to_vec());
            }
            let mut part = first.to_vec();
            while part.len() < len {
                part.extend(self.receive(rank as u32, (len - part.len()).min(PIECE_BYTES))?);
            }
            Ok(part)
        };
        heads.chunks_exact(block).enumerate().map(of_rank).collect()
    }

    /// The first rank's bytes into those of all of `group`, which are as long.
    pub(super) fn spread(&self, group: Group, mut bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_broadcast(group, &mut bytes) }?;
        self.complete(pending, bytes)
    }

    pub(super) fn send(&self, rank: u32, bytes: Vec<u8>) -> Result<(), CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_send(&bytes, self.place(rank)) }?;
        self.complete(pending, bytes).map(drop)
    }

    /// What `rank` sends, which is `len` bytes.
    pub(super) fn receive(&self, rank: u32, len: usize) -> Result<Vec<u8>, CommError> {
        let mut bytes = vec![0; len];
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, self.place(rank)) }?;
        self.complete(pending, bytes)
    }

    fn place(&self, rank: u32) -> Place {
        Place { group: self.calls.world(), rank, tag: 0 }
    }

    /// Count an operation that all ranks take part in.
    pub(super) fn begin(&self, call: &'static str) -> Result<(), CommError> {
        if self.state.gave_up.load(Acquire) {
            return Err(self.state.end().unwrap_or(CommError::Stopped));
        }
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
    fn complete<B>(&self, pending: Pending, buffers: B) -> Result<B, CommError> {
        self.complete_in(Seen::new(Late::Waits), pending, buffers)
    }

    fn complete_in<B>(
        &self,
        mut seen: Seen,
        mut pending: Pending,
        buffers: B,
    ) -> Result<B, CommError> {
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
                self.state.leave_undone();
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
        if waited > seen.alive + self.timeout { self.look_late(waited, call, seen) } else { Ok(()) }
    }

    /// The timeout has passed.
    fn look_late(
        &self,
        waited: Duration,
        call: &'static str,
        seen: &mut Seen,
    ) -> Result<(), CommError> {
        let alive = self.state.alive();
        let Asked { at, alive: heard } = *seen.asked.get_or_insert_with(|| {
            if let Some(voice) = self.voice.get() {
                let so_long = seen.alive + self.timeout;
                voice.late(self.state.begun.load(Relaxed), so_long, seen.late);
            }
            Asked { at: waited, alive }
        });
        if seen.late == Late::Waits && alive != heard {
            (seen.alive, seen.asked) = (waited, None);
        } else if self.voice.get().is_none() || waited > at + WHO {
            let waited = units::seconds(waited.as_secs_f64());
            let reason = format!("not done after {waited}; which ranks did not come is not known");
            return Err(CommError::Library { call, reason });
        }
        Ok(())
    }
}

/// Length, and as many bytes as come at once.
fn head(bytes: &[u8]) -> Vec<u8> {
    let mut head = (bytes.len() as u64).to_le_bytes().to_vec();
    head.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES)]);
    head.resize(8 + HEAD_BYTES, 0);
    head
}

/// The length, and those bytes that came at once.
fn of_head(head: &[u8]) -> (usize, &[u8]) {
    let (len, first) = head.split_at(8);
    let len = usize::try_from(number(len)).unwrap_or(usize::MAX);
    (len, &first[..len.min(HEAD_BYTES)])
}

/// The library was initialized for fewer threads than this needs.
pub(super) fn one_thread(call: &'static str) -> CommError {
    let reason = "the library does not take calls from several threads (MPI_THREAD_MULTIPLE)";
    CommError::Library { call, reason: reason.to_owned() }
}

fn number(bytes: impl AsRef<[u8]>) -> u64 {
    bytes.as_ref().try_into().map_or(0, u64::from_le_bytes)
}

/// Handles of groups are numbers.
const _: () = assert!(size_of::<Handle>() == 8);
