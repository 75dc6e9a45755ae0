//! The queue of one accelerator's batches between its workers and its steps. It tracks which batches are open, complete and taken. The
//! workers may read the samples of open batches.
//!
//! All counters are atomics that only grow, so that claims and deliveries take no lock. Batches are numbered over the run.

use super::{Horizon, WorkerState};
use feedrate_spec::plan::shards::FileSplit;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

/// A queue shared by the workers of one accelerator and its steps.
#[derive(Debug, Default)]
pub struct Queue {
    workers: u32,
    batch_size: u64,
    steps_per_epoch: u64,
    total_batches: u64,
    in_flight: u64,
    /// Number of further batches that must be complete before a delivery: in the first epoch, and in later epochs.
    held_batches: [u64; 2],
    /// End of the published batches.
    published: AtomicU64,
    /// One more than the batch requested last.
    requested: AtomicU64,
    /// Number of taken batches.
    taken_batches: AtomicU64,
    /// Number of samples claimed by [`Queue::claim_sample`].
    claimed_samples: AtomicU64,
    /// One more than the missing batch that the accelerator waits for; 0 if it does not wait.
    waiting_for: AtomicU64,
    /// One more than the last completed batch.
    completed: AtomicU64,
    /// End of the batches known to be complete in order.
    complete_until: AtomicU64,
    /// Claims in the current epoch.
    claims: AtomicU64,
    read_bytes: AtomicU64,
    /// Bytes read before the current epoch.
    read_bytes_before: AtomicU64,
    operations: AtomicU64,
    last_claim_ns: AtomicU64,
    last_claim_bytes: AtomicU64,
    /// Sum of the times of the batches found complete since the last batch was taken.
    completed_times: SlotTimes,
    slots: Box<[Slot]>,
    /// Division of whole files among the workers in each epoch; the last one is used for all further epochs. Empty if the
    /// workers share files.
    splits: Vec<FileSplit>,
}

/// A batch in flight.
#[derive(Debug, Default)]
struct Slot {
    /// Samples that are not read yet.
    unread: AtomicU64,
    /// One more than the complete batch in this slot.
    complete: AtomicU64,
    times: SlotTimes,
}

/// The sum of [`ReadTimes`] since the last reset.
#[derive(Debug, Default)]
struct SlotTimes {
    task_start_ns: AtomicU64,
    open_ns: AtomicU64,
    read_ns: AtomicU64,
    decode_ns: AtomicU64,
    client_ns: AtomicU64,
    pinned_ns: AtomicU64,
    bytes: AtomicU64,
}

/// The status of a batch after a task of it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStatus {
    /// Other samples of the batch are missing.
    Incomplete,
    /// The batch is complete, but the accelerator does not wait for it yet.
    Complete,
    /// The batch is complete, and the accelerator waits for it: it has to be notified.
    Awaited,
}

/// A batch that the training process can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteBatch {
    /// Number of the batch.
    pub number: u64,
    /// Bytes read for the batch.
    pub bytes: u64,
    /// When the thread that pins batches has passed it on; 0 without such a thread.
    pub pinned_ns: u64,
}

/// Times of reading a task, or their sums over the tasks of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// When the task, or the first sample of the batch, was claimed.
    pub task_start_ns: u64,
    /// Time in open, length and close calls.
    pub open_ns: u64,
    /// Time in read calls.
    pub read_ns: u64,
    /// Time of decoding and checking.
    pub decode_ns: u64,
    /// Time of the client's work.
    pub client_ns: u64,
    /// When the thread that pins batches has passed on all parts of the batch; 0 without such a thread.
    pub pinned_ns: u64,
    /// Time that the training process spent starting the workers before this batch.
    pub start_ns: u64,
    /// Time that the training process spent receiving the batch.
    pub receive_ns: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl Queue {
    /// Creates a queue for `workers` reading threads, at least 1. Up to `in_flight` batches that are not taken are open; with 0, only the
    /// requested batch is open. Before a batch is delivered, `held_batches` further batches must be complete: the first number applies to
    /// the first epoch, the second to later epochs.
    pub fn new(
        workers: u32,
        batch_size: u64,
        steps_per_epoch: u64,
        total_batches: u64,
        in_flight: u32,
        held_batches: [u32; 2],
    ) -> Self {
        debug_assert!(
            held_batches.iter().all(|&held| held == 0 || held < in_flight),
            "{held_batches:?} of {in_flight}"
        );
        let slots: Box<[Slot]> = (0..in_flight.max(1)).map(|_| Slot::default()).collect();
        for slot in &slots {
            slot.reset(batch_size);
        }
        let completed_times = SlotTimes::default();
        completed_times.reset();
        Queue {
            workers,
            batch_size,
            steps_per_epoch,
            total_batches,
            in_flight: u64::from(in_flight),
            held_batches: held_batches.map(u64::from),
            completed_times,
            slots,
            ..Queue::default()
        }
    }

    /// Lets workers read whole files, divided by `splits` in each epoch if there are any.
    #[must_use]
    pub fn with_splits(self, splits: Vec<FileSplit>) -> Self {
        Queue { splits, ..self }
    }

    /// Returns the division of whole files among the workers after `epochs` epochs; `None` if the workers share files.
    pub(super) fn split(&self, epochs: u64) -> Option<&FileSplit> {
        let last = self.splits.len().checked_sub(1)?;
        self.splits.get(usize::try_from(epochs).unwrap_or(last).min(last))
    }

    /// Returns the number of reading threads.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Returns the samples of a batch.
    pub fn batch_size(&self) -> u64 {
        self.batch_size
    }

    /// Returns the slot of a batch: its number modulo the number of slots.
    pub fn slot_of(&self, batch: u64) -> usize {
        (batch % self.slots.len() as u64) as usize
    }

    /// Whether a batch is read only when it is requested.
    pub fn reads_on_request(&self) -> bool {
        self.in_flight == 0
    }

    /// Returns the step of `batch` within its epoch, from 0.
    pub fn step_of(&self, batch: u64) -> u64 {
        batch % self.steps_per_epoch
    }

    /// Returns the epoch of `batch`, from 1.
    pub fn epoch_of(&self, batch: u64) -> u32 {
        (batch / self.steps_per_epoch) as u32 + 1
    }

    /// Returns the batch of `step`, from 0, in the epoch after the first `epochs` epochs.
    pub(super) fn batch_of(&self, epochs: u64, step: u64) -> u64 {
        epochs.saturating_mul(self.steps_per_epoch).saturating_add(step)
    }

    /// Returns the batch that is taken next. Batches are taken in order.
    pub fn next_batch(&self) -> u64 {
        self.taken_batches.load(SeqCst)
    }

    /// Returns the end of the open batches.
    pub fn open_until(&self) -> u64 {
        let published = self.published.load(SeqCst);
        let open = if self.in_flight == 0 {
            self.requested.load(SeqCst)
        } else {
            self.taken_batches.load(SeqCst) + self.in_flight
        };
        open.min(published)
    }

    /// Returns the end of the batches that `worker` may claim.
    pub(super) fn claimable_until(&self, worker: &WorkerState) -> u64 {
        match worker.horizon {
            Horizon::Open => self.open_until(),
            Horizon::Epoch => self.published.load(SeqCst),
        }
    }

    /// Publishes `batches` batches of the next epoch.
    pub fn publish(&self, batches: u64) {
        self.published.fetch_add(batches, SeqCst);
    }

    /// Resets the counters of the epoch. Its batches are published later.
    pub fn begin_epoch(&self) {
        self.claims.store(0, Relaxed);
        self.read_bytes_before.store(self.read_bytes_of_run(), Relaxed);
        self.last_claim_ns.store(0, Relaxed);
        self.last_claim_bytes.store(0, Relaxed);
    }

    /// Returns the next piece of a worker after `last`; `None` at the end of the run. Pieces are numbered over the run, and a batch has
    /// `pieces_per_batch` of them. In each epoch, worker `w` of `n` owns the pieces `w`, `w + n`, `w + 2n`, ….
    pub(super) fn next_in_stride(
        &self,
        last: Option<u64>,
        worker: u32,
        pieces_per_batch: u64,
    ) -> Option<u64> {
        let stride = u64::from(self.workers);
        let worker = u64::from(worker);
        let epoch_pieces = self.steps_per_epoch.saturating_mul(pieces_per_batch);
        let run_pieces = self.total_batches.saturating_mul(pieces_per_batch);
        let next = match last {
            None => worker,
            Some(last) if last % epoch_pieces + stride < epoch_pieces => last + stride,
            Some(last) => (last / epoch_pieces + 1) * epoch_pieces + worker,
        };
        (worker < epoch_pieces && next < run_pieces).then_some(next)
    }

    /// Returns the number of complete batches. Valid only if batches are completed one after another.
    pub(super) fn completed(&self) -> u64 {
        self.completed.load(SeqCst)
    }

    /// Claims the next sample of the open batches before `batch_end`. Returns its batch and its number in the batch.
    pub(super) fn claim_sample(&self, batch_end: u64) -> Option<(u64, u64)> {
        let open_samples = self.open_until().min(batch_end).saturating_mul(self.batch_size);
        let claimed_samples =
            self.claimed_samples.fetch_update(AcqRel, Acquire, |claimed_samples| {
                (claimed_samples < open_samples).then_some(claimed_samples + 1)
            });
        let sample = claimed_samples.ok()?;
        Some((sample / self.batch_size, sample % self.batch_size))
    }

    /// Counts a claim at `now_ns`; `claims_of_epoch` is the number of claims in the epoch.
    pub fn count_claim(&self, now_ns: u64, claims_of_epoch: u64) {
        if self.claims.fetch_add(1, AcqRel) + 1 == claims_of_epoch {
            self.last_claim_bytes.store(self.read_bytes(), Relaxed);
            self.last_claim_ns.store(now_ns, Release);
        }
    }

    /// Returns when the last task of the epoch was claimed, and the bytes read by then; `None` if it is not claimed yet.
    pub fn last_claim(&self) -> Option<(u64, u64)> {
        let ns = self.last_claim_ns.load(Acquire);
        (ns > 0).then(|| (ns, self.last_claim_bytes.load(Relaxed)))
    }

    /// Adds bytes that were read.
    pub fn add_read_bytes(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Relaxed);
    }

    /// Returns the bytes read in this epoch.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes_of_run() - self.read_bytes_before.load(Relaxed)
    }

    /// Returns the bytes read since the start of the run.
    pub fn read_bytes_of_run(&self) -> u64 {
        self.read_bytes.load(Relaxed)
    }

    /// Adds the storage operations of a task.
    pub fn add_operations(&self, operations: u64) {
        self.operations.fetch_add(operations, Relaxed);
    }

    /// Returns the storage operations since the start of the run.
    pub fn operations_of_run(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// Counts `samples` of `batch` as read.
    pub fn finish(&self, batch: u64, samples: u64, times: ReadTimes) -> BatchStatus {
        let slot = &self.slots[self.slot_of(batch)];
        slot.times.add(times);
        if slot.unread.fetch_sub(samples, AcqRel) != samples {
            return BatchStatus::Incomplete;
        }
        slot.complete.store(batch + 1, SeqCst);
        self.completed.fetch_max(batch + 1, SeqCst);
        let awaited = self.waiting_for.load(SeqCst) == batch + 1
            && self.waiting_for.compare_exchange(batch + 1, 0, SeqCst, SeqCst).is_ok();
        if awaited { BatchStatus::Awaited } else { BatchStatus::Complete }
    }

    /// Requests `batch` for the accelerator. Returns true if the batch and its further held batches are complete. Otherwise the worker that
    /// completes the first missing batch gets [`BatchStatus::Awaited`], and the request has to be repeated.
    pub fn request(&self, batch: u64) -> bool {
        self.requested.store(batch + 1, SeqCst);
        while let Some(missing) = self.first_missing(batch) {
            self.waiting_for.store(missing + 1, SeqCst);
            // A worker that finishes meanwhile either sees `waiting_for`, or its batch is seen as complete here.
            if !self.is_complete(missing)
                || self.waiting_for.compare_exchange(missing + 1, 0, SeqCst, SeqCst).is_err()
            {
                return false;
            }
        }
        true
    }

    /// Returns the first incomplete batch among `batch` and its further held batches.
    fn first_missing(&self, batch: u64) -> Option<u64> {
        let held_batches = self.held_batches[usize::from(self.epoch_of(batch) > 1)];
        let last = (batch + held_batches).min(self.published.load(Relaxed).max(1) - 1).max(batch);
        let mut next = self.complete_until.load(Relaxed).max(batch);
        while next <= last && self.is_complete(next) {
            self.completed_times.add(self.slots[self.slot_of(next)].times.get());
            next += 1;
        }
        self.complete_until.store(next, Relaxed);
        (next <= last).then_some(next)
    }

    /// Returns what the training process receives with `number`, which must be complete.
    pub fn complete_batch(&self, number: u64) -> CompleteBatch {
        let times = &self.slots[self.slot_of(number)].times;
        let [bytes, pinned_ns] = [&times.bytes, &times.pinned_ns].map(|value| value.load(Relaxed));
        CompleteBatch { number, bytes, pinned_ns }
    }

    /// Returns the number of complete batches that are not taken, and the number of batches that may be in flight. Only reads counters, so
    /// another thread may call it at any time; the first number is then a little out of date.
    pub fn ready_batches(&self) -> [u64; 2] {
        let slots = self.slots.len() as u64;
        let first = self.next_batch();
        let ready = (first..first + slots).filter(|&batch| self.is_complete(batch)).count();
        [ready as u64, slots]
    }

    fn is_complete(&self, batch: u64) -> bool {
        self.slots[self.slot_of(batch)].complete.load(SeqCst) == batch + 1
    }

    /// Takes a complete batch. Returns the times of all batches that had to be completed since the previous delivery, and the batch that
    /// this opens, if any.
    pub fn take(&self, batch: u64) -> (ReadTimes, Option<u64>) {
        let times = self.completed_times.get();
        self.completed_times.reset();
        self.slots[self.slot_of(batch)].reset(self.batch_size);
        self.taken_batches.store(batch + 1, SeqCst);
        let opened = batch + self.in_flight;
        let is_opened = self.in_flight > 0 && opened < self.published.load(Relaxed);
        (times, is_opened.then_some(opened))
    }
}

impl Slot {
    fn reset(&self, batch_size: u64) {
        self.times.reset();
        self.unread.store(batch_size, Release);
    }
}

impl ReadTimes {
    /// Adds the times of another part of the same task, which may have begun earlier.
    pub fn add(&mut self, other: ReadTimes) {
        self.task_start_ns = self.task_start_ns.min(other.task_start_ns);
        self.open_ns += other.open_ns;
        self.read_ns += other.read_ns;
        self.decode_ns += other.decode_ns;
        self.client_ns += other.client_ns;
        self.pinned_ns = self.pinned_ns.max(other.pinned_ns);
        self.bytes += other.bytes;
    }
}

impl SlotTimes {
    fn add(&self, times: ReadTimes) {
        self.task_start_ns.fetch_min(times.task_start_ns, Relaxed);
        self.open_ns.fetch_add(times.open_ns, Relaxed);
        self.read_ns.fetch_add(times.read_ns, Relaxed);
        self.decode_ns.fetch_add(times.decode_ns, Relaxed);
        self.client_ns.fetch_add(times.client_ns, Relaxed);
        self.pinned_ns.fetch_max(times.pinned_ns, Relaxed);
        self.bytes.fetch_add(times.bytes, Relaxed);
    }

    fn get(&self) -> ReadTimes {
        ReadTimes {
            task_start_ns: self.task_start_ns.load(Relaxed),
            open_ns: self.open_ns.load(Relaxed),
            read_ns: self.read_ns.load(Relaxed),
            decode_ns: self.decode_ns.load(Relaxed),
            client_ns: self.client_ns.load(Relaxed),
            pinned_ns: self.pinned_ns.load(Relaxed),
            start_ns: 0,
            receive_ns: 0,
            bytes: self.bytes.load(Relaxed),
        }
    }

    fn reset(&self) {
        self.task_start_ns.store(u64::MAX, Relaxed);
        self.open_ns.store(0, Relaxed);
        self.read_ns.store(0, Relaxed);
        self.decode_ns.store(0, Relaxed);
        self.client_ns.store(0, Relaxed);
        self.pinned_ns.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }
}
