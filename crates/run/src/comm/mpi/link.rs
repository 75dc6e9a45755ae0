//! Operations of all ranks, made of nonblocking ones of the library, so that a wait can end. Knows nothing of machines.

use super::abi::Handle;
use super::calls::{Calls, MessageEnd, PendingCall, RankGroup};
use super::control::{ControlChannel, OnTimeout};
use super::gate::{Gate, GateStage};
use super::state::RankState;
use super::wait::WaitPolicy;
use crate::comm::CommError;
use feedrate_spec::units;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::ThreadId;
use std::time::Duration;

/// A launcher that saw a rank die stops the others: why is known so much later at most.
const WHY: Duration = Duration::from_millis(500);
/// Time after the question by which the hub has said who is missing, unless it gets no processor.
const WHO: Duration = Duration::from_secs(5);
/// No more than this is sent at once: C ints count it.
const PIECE_BYTES: usize = 1 << 28;
/// The length of a message goes before it.
const LENGTH_BYTES: usize = size_of::<u64>();

/// This process among the others.
pub(super) struct Link {
    pub(super) calls: Calls,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) policy: WaitPolicy,
    /// The one thread that may call, where not any may at any time.
    pub(super) thread: Option<ThreadId>,
    pub(super) timeout: Duration,
    pub(super) state: Arc<RankState>,
    /// Not there while ranks are still finding one another, or where they share no memory.
    pub(super) gates: Option<Gates>,
    /// Not there while ranks are still finding one another, or where rank 0 cannot be reached.
    pub(super) control: Option<ControlChannel>,
}

/// The barrier's two floors.
pub(super) struct Gates {
    /// The one of this machine.
    pub(super) gate: Gate,
    /// This rank is the machine's first.
    pub(super) leads: bool,
    /// The first ranks of all machines, where there are several and this is one.
    pub(super) leaders: Option<RankGroup>,
}

/// A wait for the others.
struct Wait {
    on_timeout: OnTimeout,
    stopped: Option<Duration>,
    /// When it was last heard that the others live.
    alive: Duration,
    inquiry: Option<AskedAt>,
}

/// It was asked who has not come.
#[derive(Clone, Copy)]
struct AskedAt {
    at: Duration,
    /// How often it had been heard that the others live.
    alive: u64,
}

impl Wait {
    fn new(on_timeout: OnTimeout) -> Self {
        Wait { on_timeout, stopped: None, alive: Duration::ZERO, inquiry: None }
    }
}

impl Link {
    pub(super) fn barrier(&self, on_timeout: OnTimeout) -> Result<(), CommError> {
        self.begin("MPI_Ibarrier")?;
        let Some(Gates { gate, leads, leaders }) = &self.gates else {
            return self.barrier_of(self.calls.world(), on_timeout);
        };
        // Once all of a machine have come, its first rank waits for the other machines', and lets them go on.
        let number = gate.arrive();
        if !leads {
            return self.await_gate(gate, GateStage::Open, number, on_timeout);
        }
        self.await_gate(gate, GateStage::Full, number, on_timeout)?;
        if let Some(leaders) = *leaders {
            self.barrier_of(leaders, on_timeout)?;
        }
        gate.open_up();
        Ok(())
    }

    fn barrier_of(&self, group: RankGroup, on_timeout: OnTimeout) -> Result<(), CommError> {
        let pending = self.calls.start_barrier(group)?;
        self.complete_in(Wait::new(on_timeout), pending, ())
    }

    fn await_gate(
        &self,
        gate: &Gate,
        stage: GateStage,
        number: u32,
        on_timeout: OnTimeout,
    ) -> Result<(), CommError> {
        let mut wait = Wait::new(on_timeout);
        let opened = self.policy.wait_by(
            |waited| {
                if gate.is(stage, number) {
                    return Ok(Some(()));
                }
                self.look(waited, "the barrier", &mut wait).map(|()| None)
            },
            |waited| {
                if self.policy.has_patience(waited) {
                    std::thread::yield_now();
                } else {
                    gate.sleep(stage, number);
                }
            },
        );
        opened.inspect_err(|error| self.state.fail(error))
    }

    /// The bytes of rank 0, on all.
    pub(super) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.begin("MPI_Ibcast")?;
        let len = self.spread(self.calls.world(), length(bytes))?;
        let (len, mut told) = (number(&len), Vec::new());
        while told.len() < len {
            let piece = told.len()..len.min(told.len() + PIECE_BYTES);
            let own = if self.rank == 0 { bytes[piece].to_vec() } else { vec![0; piece.len()] };
            told.extend(self.spread(self.calls.world(), own)?);
        }
        Ok(told)
    }

    /// The bytes of each rank, on rank 0; nothing elsewhere.
    pub(super) fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.begin("MPI_Isend")?;
        if self.rank > 0 {
            self.send(0, length(bytes))?;
            for piece in bytes.chunks(PIECE_BYTES) {
                self.send(0, piece.to_vec())?;
            }
            return Ok(Vec::new());
        }
        let mut all = vec![bytes.to_vec()];
        for rank in 1..self.size {
            let (len, mut part) = (number(&self.receive(rank, LENGTH_BYTES)?), Vec::new());
            while part.len() < len {
                part.extend(self.receive(rank, (len - part.len()).min(PIECE_BYTES))?);
            }
            all.push(part);
        }
        Ok(all)
    }

    /// Everyone's `own` in rank order, on all.
    pub(super) fn share<T>(&self, own: T) -> Result<Vec<T>, CommError>
    where
        T: Serialize + DeserializeOwned,
    {
        let all = self.gather(&serde_json::to_vec(&own).map_err(unreadable)?)?;
        let joined =
            if self.rank > 0 { Vec::new() } else { [b"[", &*all.join(&b','), b"]"].concat() };
        serde_json::from_slice(&self.broadcast(&joined)?).map_err(unreadable)
    }

    /// The first rank's bytes into those of all of `group`, which are as long.
    pub(super) fn spread(
        &self,
        group: RankGroup,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_broadcast(group, &mut bytes) }?;
        self.complete(pending, bytes)
    }

    pub(super) fn send(&self, rank: u32, bytes: Vec<u8>) -> Result<(), CommError> {
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_send(&bytes, self.end_of(rank)) }?;
        self.complete(pending, bytes).map(drop)
    }

    /// The `len` bytes that `rank` sends.
    pub(super) fn receive(&self, rank: u32, len: usize) -> Result<Vec<u8>, CommError> {
        let mut bytes = vec![0; len];
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, self.end_of(rank)) }?;
        self.complete(pending, bytes)
    }

    fn end_of(&self, rank: u32) -> MessageEnd {
        MessageEnd { group: self.calls.world(), rank, tag: 0 }
    }

    /// Count an operation that all ranks take part in.
    pub(super) fn begin(&self, call: &'static str) -> Result<(), CommError> {
        if self.state.gave_up.is_set() {
            return Err(self.state.end().unwrap_or(CommError::Stopped));
        }
        self.state.begun.fetch_add(1, Relaxed);
        if self.thread.is_some_and(|own| own != std::thread::current().id()) {
            return Err(one_thread(call));
        }
        Ok(())
    }

    /// Wait until `pending` is done, and give back the buffers it uses.
    fn complete<B>(&self, pending: PendingCall, buffers: B) -> Result<B, CommError> {
        self.complete_in(Wait::new(OnTimeout::Waits), pending, buffers)
    }

    fn complete_in<B>(
        &self,
        mut wait: Wait,
        pending: PendingCall,
        buffers: B,
    ) -> Result<B, CommError> {
        let call = pending.call;
        let done = complete(&self.calls, &self.state, self.policy, pending, buffers, |waited| {
            self.look(waited, call, &mut wait)
        });
        done.inspect_err(|error| self.state.fail(error))
    }

    /// Whether the wait has to end.
    fn look(&self, waited: Duration, call: &'static str, wait: &mut Wait) -> Result<(), CommError> {
        self.state.check_end()?;
        if self.state.stop.load(Relaxed) && waited >= *wait.stopped.get_or_insert(waited) + WHY {
            return Err(CommError::Stopped);
        }
        if waited > wait.alive + self.timeout { self.look_late(waited, call, wait) } else { Ok(()) }
    }

    /// The timeout has passed.
    fn look_late(
        &self,
        waited: Duration,
        call: &'static str,
        wait: &mut Wait,
    ) -> Result<(), CommError> {
        let alive = self.state.alive.load(Relaxed);
        let inquiry = *wait.inquiry.get_or_insert_with(|| {
            if let Some(control) = &self.control {
                let so_long = wait.alive + self.timeout;
                control.late(self.state.begun.load(Relaxed), so_long, wait.on_timeout);
            }
            AskedAt { at: waited, alive }
        });
        let is_unanswered = self.control.is_none() || waited > inquiry.at + WHO;
        let hub_is_running = || self.control.as_ref().is_some_and(ControlChannel::hub_is_running);
        if wait.on_timeout == OnTimeout::Waits
            && (alive != inquiry.alive || is_unanswered && hub_is_running())
        {
            (wait.alive, wait.inquiry) = (waited, None);
        } else if is_unanswered {
            let waited = units::seconds(waited.as_secs_f64());
            let reason = format!("not done after {waited}; which ranks did not come is not known");
            return Err(CommError::Library { call, reason });
        }
        Ok(())
    }
}

/// Wait until `pending` is done or `look` finds that the wait has to end, and give back the buffers it uses. They are leaked if it
/// cannot be waited for: the library may still write to them.
pub(super) fn complete<B>(
    calls: &Calls,
    state: &RankState,
    policy: WaitPolicy,
    mut pending: PendingCall,
    buffers: B,
    mut look: impl FnMut(Duration) -> Result<(), CommError>,
) -> Result<B, CommError> {
    // Not dropped by a panic either.
    let buffers = ManuallyDrop::new(buffers);
    let done = policy.wait(|waited| {
        state.may_call(pending.call)?;
        if calls.is_done(&mut pending)? {
            return Ok(Some(()));
        }
        look(waited).map(|()| None)
    });
    if let Err(error) = done {
        state.undone.set();
        return Err(error);
    }
    Ok(ManuallyDrop::into_inner(buffers))
}

fn unreadable(error: serde_json::Error) -> CommError {
    let reason = format!("what ranks tell each other cannot be read: {error}");
    CommError::Library { call: "MPI_Isend", reason }
}

/// The library was initialized for fewer threads than this needs.
pub(super) fn one_thread(call: &'static str) -> CommError {
    let reason = "the library does not take calls from several threads (MPI_THREAD_MULTIPLE)";
    CommError::Library { call, reason: reason.to_owned() }
}

fn length(bytes: &[u8]) -> Vec<u8> {
    (bytes.len() as u64).to_le_bytes().to_vec()
}

fn number(bytes: &[u8]) -> usize {
    bytes.try_into().map_or(0, u64::from_le_bytes) as usize
}

/// Handles of groups are numbers.
const _: () = assert!(size_of::<Handle>() == 8);
