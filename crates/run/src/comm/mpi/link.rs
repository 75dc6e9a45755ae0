//! Collective operations of all ranks, built from the library's nonblocking operations so that waits can be interrupted.

use super::abi::Handle;
use super::calls::{Calls, MessageEnd, PendingCall, RankGroup};
use super::control::{ControlChannel, OnTimeout};
use super::shared_barrier::{BarrierStage, SharedBarrier};
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

/// Time for which an interrupted wait continues, in case a message about a lost rank arrives. A launcher that sees a rank die interrupts
/// the other ranks, and the message with the reason arrives a little later.
const REASON_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of an inquiry about missing ranks. The hub answers sooner unless it is starved of processor time.
const INQUIRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Upper limit of one transfer. MPI counts bytes in a C `int`, which cannot hold more than 2³¹ − 1.
const PIECE_BYTES: usize = 1 << 28;
/// Size of the length that precedes each message.
const LENGTH_BYTES: usize = size_of::<u64>();

/// The connection of this process to the other ranks.
pub(super) struct Link {
    pub(super) calls: Calls,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) policy: WaitPolicy,
    /// The only thread that may call the library, unless any thread may.
    pub(super) thread: Option<ThreadId>,
    pub(super) timeout: Duration,
    pub(super) state: Arc<RankState>,
    /// `None` while the ranks connect, and if they cannot share memory.
    pub(super) barriers: Option<Barriers>,
    /// `None` while the ranks connect, and if rank 0 cannot be reached.
    pub(super) control: Option<ControlChannel>,
}

/// The two levels of the barrier: within each machine, and between machines.
pub(super) struct Barriers {
    /// Barrier of this machine.
    pub(super) barrier: SharedBarrier,
    /// Whether this rank is the first of its machine.
    pub(super) is_leader: bool,
    /// The first ranks of all machines, if there are several machines and this rank is one of them.
    pub(super) leaders: Option<RankGroup>,
}

/// The state of a wait for other ranks. Durations count from the start of the wait.
struct Wait {
    on_timeout: OnTimeout,
    /// Time at which the interrupt was seen.
    interrupted_after: Option<Duration>,
    /// Time at which the other ranks were last known to be alive.
    alive_after: Duration,
    inquiry: Option<PendingInquiry>,
}

/// An inquiry of the hub about missing ranks.
#[derive(Clone, Copy)]
struct PendingInquiry {
    started_after: Duration,
    /// Value of [`RankState::alive_reports`] at the start.
    alive_reports: u64,
}

impl Wait {
    fn new(on_timeout: OnTimeout) -> Self {
        Wait { on_timeout, interrupted_after: None, alive_after: Duration::ZERO, inquiry: None }
    }
}

impl Link {
    /// Waits for all ranks.
    pub(super) fn barrier(&self, on_timeout: OnTimeout) -> Result<(), CommError> {
        self.begin("MPI_Ibarrier")?;
        let Some(Barriers { barrier, is_leader, leaders }) = &self.barriers else {
            return self.group_barrier(self.calls.world(), on_timeout);
        };
        // The first rank of each machine waits until all ranks of its machine have arrived, then waits for the first ranks of the other
        // machines, and then releases the ranks of its machine.
        let number = barrier.arrive();
        if !is_leader {
            return self.await_barrier(barrier, BarrierStage::Open, number, on_timeout);
        }
        self.await_barrier(barrier, BarrierStage::Full, number, on_timeout)?;
        if let Some(leaders) = *leaders {
            self.group_barrier(leaders, on_timeout)?;
        }
        barrier.release();
        Ok(())
    }

    fn group_barrier(&self, group: RankGroup, on_timeout: OnTimeout) -> Result<(), CommError> {
        let pending = self.calls.start_barrier(group)?;
        self.complete_in(Wait::new(on_timeout), pending, ())
    }

    fn await_barrier(
        &self,
        barrier: &SharedBarrier,
        stage: BarrierStage,
        number: u32,
        on_timeout: OnTimeout,
    ) -> Result<(), CommError> {
        let mut wait = Wait::new(on_timeout);
        let opened = self.policy.wait_with(
            |waited| {
                if barrier.has_reached(stage, number) {
                    return Ok(Some(()));
                }
                self.check_wait(waited, "the barrier", &mut wait).map(|()| None)
            },
            |waited| {
                if self.policy.yields_before_sleep(waited) {
                    std::thread::yield_now();
                } else {
                    barrier.sleep(stage, number);
                }
            },
        );
        opened.inspect_err(|error| self.state.fail(error))
    }

    /// Returns the bytes of rank 0 on all ranks.
    pub(super) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>, CommError> {
        self.begin("MPI_Ibcast")?;
        let world = self.calls.world();
        let len = decode_length(&self.group_broadcast(world, encode_length(bytes))?);
        let mut received = Vec::new();
        while received.len() < len {
            let range = received.len()..len.min(received.len() + PIECE_BYTES);
            let piece = if self.rank == 0 { bytes[range].to_vec() } else { vec![0; range.len()] };
            received.extend(self.group_broadcast(world, piece)?);
        }
        Ok(received)
    }

    /// Returns the bytes of each rank on rank 0, and an empty list on the other ranks.
    pub(super) fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.begin("MPI_Isend")?;
        if self.rank > 0 {
            self.send(0, encode_length(bytes))?;
            for piece in bytes.chunks(PIECE_BYTES) {
                self.send(0, piece.to_vec())?;
            }
            return Ok(Vec::new());
        }
        let mut all = vec![bytes.to_vec()];
        for rank in 1..self.size {
            let len = decode_length(&self.receive(rank, LENGTH_BYTES)?);
            let mut part = Vec::new();
            while part.len() < len {
                part.extend(self.receive(rank, (len - part.len()).min(PIECE_BYTES))?);
            }
            all.push(part);
        }
        Ok(all)
    }

    /// Returns the values of all ranks on all ranks, in rank order.
    pub(super) fn share<T>(&self, value: T) -> Result<Vec<T>, CommError>
    where
        T: Serialize + DeserializeOwned,
    {
        let all = self.gather(&serde_json::to_vec(&value).map_err(message_error)?)?;
        let joined =
            if self.rank > 0 { Vec::new() } else { [b"[", &*all.join(&b','), b"]"].concat() };
        serde_json::from_slice(&self.broadcast(&joined)?).map_err(message_error)
    }

    /// Returns the bytes of the first rank of `group` on all its ranks. `bytes` must have the same length on all.
    pub(super) fn group_broadcast(
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
        let pending = unsafe { self.calls.start_send(&bytes, self.message_end(rank)) }?;
        self.complete(pending, bytes).map(drop)
    }

    /// Receives `len` bytes from `rank`.
    pub(super) fn receive(&self, rank: u32, len: usize) -> Result<Vec<u8>, CommError> {
        let mut bytes = vec![0; len];
        // SAFETY: `complete` keeps `bytes` until the operation is done.
        let pending = unsafe { self.calls.start_receive(&mut bytes, self.message_end(rank)) }?;
        self.complete(pending, bytes)
    }

    fn message_end(&self, rank: u32) -> MessageEnd {
        MessageEnd { group: self.calls.world(), rank, tag: 0 }
    }

    /// Counts the start of a collective operation.
    pub(super) fn begin(&self, call: &'static str) -> Result<(), CommError> {
        if self.state.gave_up.is_set() {
            return Err(self.state.end().unwrap_or(CommError::Stopped));
        }
        self.state.started_operations.fetch_add(1, Relaxed);
        if self.thread.is_some_and(|thread| thread != std::thread::current().id()) {
            return Err(wrong_thread(call));
        }
        Ok(())
    }

    /// Waits until `pending` is done and returns its buffers.
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
        let outcome = complete(&self.calls, &self.state, self.policy, pending, buffers, |waited| {
            self.check_wait(waited, call, &mut wait)
        });
        outcome.inspect_err(|error| self.state.fail(error))
    }

    /// Fails if an interrupt, a lost rank or the timeout must end the wait.
    fn check_wait(
        &self,
        waited: Duration,
        call: &'static str,
        wait: &mut Wait,
    ) -> Result<(), CommError> {
        self.state.check_end()?;
        if self.state.stop.load(Relaxed)
            && waited >= *wait.interrupted_after.get_or_insert(waited) + REASON_TIMEOUT
        {
            return Err(CommError::Stopped);
        }
        if waited > wait.alive_after + self.timeout {
            self.check_late_wait(waited, call, wait)
        } else {
            Ok(())
        }
    }

    /// Handles a wait that has exceeded the timeout: inquires which ranks are missing, and continues or fails depending on the answer.
    fn check_late_wait(
        &self,
        waited: Duration,
        call: &'static str,
        wait: &mut Wait,
    ) -> Result<(), CommError> {
        let alive_reports = self.state.alive_reports.load(Relaxed);
        let inquiry = *wait.inquiry.get_or_insert_with(|| {
            if let Some(control) = &self.control {
                let late_after = wait.alive_after + self.timeout;
                control.report_late_wait(
                    self.state.started_operations.load(Relaxed),
                    late_after,
                    wait.on_timeout,
                );
            }
            PendingInquiry { started_after: waited, alive_reports }
        });
        let is_unanswered =
            self.control.is_none() || waited > inquiry.started_after + INQUIRY_TIMEOUT;
        // A hub that does not answer may be starved of processor time. If it is lost, the control channel ends the wait.
        let is_connected = || self.control.as_ref().is_some_and(ControlChannel::is_connected);
        let is_reported = alive_reports != inquiry.alive_reports;
        if wait.on_timeout == OnTimeout::Waits && (is_reported || is_unanswered && is_connected()) {
            wait.alive_after = waited;
            wait.inquiry = None;
        } else if is_unanswered {
            let duration = units::seconds(waited.as_secs_f64());
            let reason = format!("not complete after {duration}; the missing ranks are unknown");
            return Err(CommError::Library { call, reason });
        }
        Ok(())
    }
}

/// Waits until `pending` is done and returns its buffers. The wait fails if `check` does; the buffers are then leaked, since the library
/// may still write to them.
pub(super) fn complete<B>(
    calls: &Calls,
    state: &RankState,
    policy: WaitPolicy,
    mut pending: PendingCall,
    buffers: B,
    mut check: impl FnMut(Duration) -> Result<(), CommError>,
) -> Result<B, CommError> {
    // A panic leaks the buffers as well.
    let leaked = ManuallyDrop::new(buffers);
    let outcome = policy.wait(|waited| {
        state.check_call(pending.call)?;
        if calls.is_done(&mut pending)? {
            return Ok(Some(()));
        }
        check(waited).map(|()| None)
    });
    if let Err(error) = outcome {
        state.unfinished.set();
        return Err(error);
    }
    Ok(ManuallyDrop::into_inner(leaked))
}

fn message_error(error: serde_json::Error) -> CommError {
    let reason = format!("a message between ranks cannot be read: {error}");
    CommError::Library { call: "MPI_Isend", reason }
}

/// Reports that the library was initialized with too low a thread level for a call from another thread.
pub(super) fn wrong_thread(call: &'static str) -> CommError {
    let reason = "the library does not support calls from several threads (MPI_THREAD_MULTIPLE)";
    CommError::Library { call, reason: reason.to_owned() }
}

fn encode_length(bytes: &[u8]) -> Vec<u8> {
    (bytes.len() as u64).to_le_bytes().to_vec()
}

fn decode_length(bytes: &[u8]) -> usize {
    bytes.try_into().map_or(0, u64::from_le_bytes) as usize
}

/// Handles must be able to hold the pointers of Open MPI.
const _: () = assert!(size_of::<Handle>() == 8);
