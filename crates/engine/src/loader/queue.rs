//! One accelerator's batches, between its workers and its steps: what may be begun, what is whole, what was taken.
//!
//! Counters only grow, and are atomics, so that a claim or a delivery takes no lock. Batches are counted over the run.

use feedrate_spec::plan::shards::FileSplit;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

/// Shared by the workers of one accelerator and its steps.
#[derive(Debug, Default)]
pub struct Queue {
    workers: u32,
    batch_size: u64,
    steps_per_epoch: u64,
    total_batches: u64,
    in_flight: u64,
    held: [u64; 2],
    published: AtomicU64,
    asked: AtomicU64,
    taken: AtomicU64,
    drawn: AtomicU64,
    waiting_for: AtomicU64,
    made: AtomicU64,
    whole_until: AtomicU64,
    claims: AtomicU64,
    read_bytes: AtomicU64,
    read_bytes_before: AtomicU64,
    operations: AtomicU64,
    last_claim_ns: AtomicU64,
    last_claim_bytes: AtomicU64,
    /// Times of the batches that became whole since the last was taken, in order.
    awaited: SlotTimes,
    slots: Box<[Slot]>,
    /// Whole files of each worker, where it reads such.
    pub(super) split: Option<FileSplit>,
}

/// One batch in flight.
#[derive(Debug, Default)]
struct Slot {
    unread: AtomicU64,
    whole: AtomicU64,
    times: SlotTimes,
}

/// [`ReadTimes`] being summed up, from the last reset on.
#[derive(Debug, Default)]
struct SlotTimes {
    begun_ns: AtomicU64,
    open_ns: AtomicU64,
    read_ns: AtomicU64,
    decode_ns: AtomicU64,
    client_ns: AtomicU64,
    bytes: AtomicU64,
}

/// Whether a finished task made its batch whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Other samples are missing.
    Partly,
    /// The batch is whole; nobody waits for it.
    Whole,
    /// The batch is whole, and the accelerator waits for just this one: tell it.
    Awaited,
}

/// Times of reading: of a task, or summed over the samples of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// When the task, or the batch's first sample, was claimed.
    pub begun_ns: u64,
    /// In open, length and close calls.
    pub open_ns: u64,
    /// In read calls.
    pub read_ns: u64,
    /// Decoding and checking.
    pub decode_ns: u64,
    /// In the client's work.
    pub client_ns: u64,
    /// In which the training's process started the workers before it.
    pub start_ns: u64,
    /// In which it took the batch over.
    pub receive_ns: u64,
    /// That were read.
    pub bytes: u64,
}

impl Queue {
    /// For `workers` reading threads (at least 1), batches of `batch_size`, epochs of `steps_per_epoch`, `total_batches` over
    /// the run, `in_flight` batches open beyond those taken (0: only the one asked for), of which `held` (in the first epoch, in the
    /// others) must be whole, beside the one asked for, before that is delivered.
    pub fn new(
        workers: u32,
        batch_size: u64,
        steps_per_epoch: u64,
        total_batches: u64,
        in_flight: u32,
        held: [u32; 2],
    ) -> Self {
        debug_assert!(
            held.iter().all(|&held| held == 0 || held < in_flight),
            "{held:?} of {in_flight}"
        );
        let slots: Box<[Slot]> = (0..in_flight.max(1)).map(|_| Slot::default()).collect();
        for slot in &slots {
            slot.reset(batch_size);
        }
        let awaited = SlotTimes::default();
        awaited.reset();
        Queue {
            workers,
            batch_size,
            steps_per_epoch,
            total_batches,
            in_flight: u64::from(in_flight),
            held: held.map(u64::from),
            awaited,
            slots,
            ..Queue::default()
        }
    }

    /// As it is, but with whole files for each worker where there is a split.
    #[must_use]
    pub fn split_by(self, split: Option<FileSplit>) -> Self {
        Queue { split, ..self }
    }

    /// Reading threads.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Samples of a batch.
    pub fn batch_size(&self) -> u64 {
        self.batch_size
    }

    /// Slots for batches in flight; batch b uses slot b mod this.
    pub fn slot_of(&self, batch: u64) -> usize {
        (batch % self.slots.len() as u64) as usize
    }

    /// Nothing is read before it is asked for.
    pub fn reads_when_asked(&self) -> bool {
        self.in_flight == 0
    }

    /// The step of its epoch that `batch` is for, from 0.
    pub fn step_of(&self, batch: u64) -> u64 {
        batch % self.steps_per_epoch
    }

    /// The epoch of `batch`, from 1.
    pub fn epoch_of(&self, batch: u64) -> u32 {
        (batch / self.steps_per_epoch) as u32 + 1
    }

    /// The batch of a step, both counted from 0, of an epoch that so many others come before.
    pub(super) fn batch_of(&self, epochs: u64, step: u64) -> u64 {
        epochs.saturating_mul(self.steps_per_epoch).saturating_add(step)
    }

    /// The batch that is taken next: batches are taken in order.
    pub fn next_batch(&self) -> u64 {
        self.taken.load(SeqCst)
    }

    /// Batches below this number may be begun.
    pub fn open_until(&self) -> u64 {
        let published = self.published.load(SeqCst);
        let open = if self.in_flight == 0 {
            self.asked.load(SeqCst)
        } else {
            self.taken.load(SeqCst) + self.in_flight
        };
        open.min(published)
    }

    /// Open the batches of the next epoch: `batches` more.
    pub fn publish(&self, batches: u64) {
        self.published.fetch_add(batches, SeqCst);
    }

    /// Count from here on for the next epoch, whose batches are opened later.
    pub fn begin_epoch(&self) {
        self.claims.store(0, Relaxed);
        self.read_bytes_before.store(self.read_bytes_of_run(), Relaxed);
        self.last_claim_ns.store(0, Relaxed);
        self.last_claim_bytes.store(0, Relaxed);
    }

    /// The piece after `last` (both counted over the run) of a worker that owns every piece of an epoch with the same remainder, where
    /// a batch has `each` pieces; `None` where the run has none.
    pub(super) fn next_in_stride(&self, last: Option<u64>, worker: u32, each: u64) -> Option<u64> {
        let (stride, worker) = (u64::from(self.workers), u64::from(worker));
        let of_epoch = self.steps_per_epoch.saturating_mul(each);
        let next = match last {
            None => worker,
            Some(last) if last % of_epoch + stride < of_epoch => last + stride,
            Some(last) => (last / of_epoch + 1) * of_epoch + worker,
        };
        (worker < of_epoch && next < self.total_batches.saturating_mul(each)).then_some(next)
    }

    /// Batches that were made whole, where they are made one after another.
    pub(super) fn made(&self) -> u64 {
        self.made.load(SeqCst)
    }

    /// The next sample of any open batch below `batch_end`: (batch, sample of it).
    pub(super) fn draw_sample(&self, batch_end: u64) -> Option<(u64, u64)> {
        let open_samples = self.open_until().min(batch_end).saturating_mul(self.batch_size);
        let drawn = self
            .drawn
            .fetch_update(AcqRel, Acquire, |drawn| (drawn < open_samples).then_some(drawn + 1));
        let sample = drawn.ok()?;
        Some((sample / self.batch_size, sample % self.batch_size))
    }

    /// A worker has claimed work at `now_ns`; `claims_of_epoch` is how many claims the epoch has in all.
    pub fn claimed(&self, now_ns: u64, claims_of_epoch: u64) {
        if self.claims.fetch_add(1, AcqRel) + 1 == claims_of_epoch {
            self.last_claim_bytes.store(self.read_bytes(), Relaxed);
            self.last_claim_ns.store(now_ns, Release);
        }
    }

    /// When the epoch's last work was claimed, and the bytes read by then; `None` if it was not yet.
    pub fn last_claim(&self) -> Option<(u64, u64)> {
        let ns = self.last_claim_ns.load(Acquire);
        (ns > 0).then(|| (ns, self.last_claim_bytes.load(Relaxed)))
    }

    /// `bytes` more were read.
    pub fn add_read_bytes(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes read in this epoch.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes_of_run() - self.read_bytes_before.load(Relaxed)
    }

    /// Bytes read since the run began.
    pub fn read_bytes_of_run(&self) -> u64 {
        self.read_bytes.load(Relaxed)
    }

    /// A task took `operations` of the storage.
    pub fn add_operations(&self, operations: u64) {
        self.operations.fetch_add(operations, Relaxed);
    }

    /// Operations of the storage since the run began.
    pub fn operations_of_run(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// `samples` of `batch` are read.
    pub fn finish(&self, batch: u64, samples: u64, times: ReadTimes) -> Finished {
        let slot = &self.slots[self.slot_of(batch)];
        slot.times.add(times);
        if slot.unread.fetch_sub(samples, AcqRel) != samples {
            return Finished::Partly;
        }
        slot.whole.store(batch + 1, SeqCst);
        self.made.fetch_max(batch + 1, SeqCst);
        let awaited = self.waiting_for.load(SeqCst) == batch + 1
            && self.waiting_for.compare_exchange(batch + 1, 0, SeqCst, SeqCst).is_ok();
        if awaited { Finished::Awaited } else { Finished::Whole }
    }

    /// The accelerator wants `batch` now. True if it, and those to be held beside it, are whole; else whoever makes the first
    /// missing one whole hears [`Finished::Awaited`], and it is to ask again.
    pub fn ask(&self, batch: u64) -> bool {
        self.asked.store(batch + 1, SeqCst);
        while let Some(missing) = self.first_missing(batch) {
            self.waiting_for.store(missing + 1, SeqCst);
            // A worker that finished in between either sees the wish, and tells, or is seen here.
            if !self.is_whole(missing)
                || self.waiting_for.compare_exchange(missing + 1, 0, SeqCst, SeqCst).is_err()
            {
                return false;
            }
        }
        true
    }

    /// Among `batch` and those to be held beside it.
    fn first_missing(&self, batch: u64) -> Option<u64> {
        let held = self.held[usize::from(self.epoch_of(batch) > 1)];
        let last = (batch + held).min(self.published.load(Relaxed).max(1) - 1).max(batch);
        let mut next = self.whole_until.load(Relaxed).max(batch);
        while next <= last && self.is_whole(next) {
            self.awaited.add(self.slots[self.slot_of(next)].times.get());
            next += 1;
        }
        self.whole_until.store(next, Relaxed);
        (next <= last).then_some(next)
    }

    /// Read for `batch`, which is whole.
    pub fn bytes_of(&self, batch: u64) -> u64 {
        self.slots[self.slot_of(batch)].times.bytes.load(Relaxed)
    }

    fn is_whole(&self, batch: u64) -> bool {
        self.slots[self.slot_of(batch)].whole.load(SeqCst) == batch + 1
    }

    /// Take a whole batch. Returns what all cost that had to be whole for it and for none before, and the batch that may be begun in its
    /// place, if any.
    pub fn take(&self, batch: u64) -> (ReadTimes, Option<u64>) {
        let times = self.awaited.get();
        self.awaited.reset();
        self.slots[self.slot_of(batch)].reset(self.batch_size);
        self.taken.store(batch + 1, SeqCst);
        let opened = batch + self.in_flight;
        let opens = self.in_flight > 0 && opened < self.published.load(Relaxed);
        (times, opens.then_some(opened))
    }
}

impl Slot {
    fn reset(&self, batch_size: u64) {
        self.times.reset();
        self.unread.store(batch_size, Release);
    }
}

impl SlotTimes {
    fn add(&self, times: ReadTimes) {
        self.begun_ns.fetch_min(times.begun_ns, Relaxed);
        self.open_ns.fetch_add(times.open_ns, Relaxed);
        self.read_ns.fetch_add(times.read_ns, Relaxed);
        self.decode_ns.fetch_add(times.decode_ns, Relaxed);
        self.client_ns.fetch_add(times.client_ns, Relaxed);
        self.bytes.fetch_add(times.bytes, Relaxed);
    }

    fn get(&self) -> ReadTimes {
        ReadTimes {
            begun_ns: self.begun_ns.load(Relaxed),
            open_ns: self.open_ns.load(Relaxed),
            read_ns: self.read_ns.load(Relaxed),
            decode_ns: self.decode_ns.load(Relaxed),
            client_ns: self.client_ns.load(Relaxed),
            start_ns: 0,
            receive_ns: 0,
            bytes: self.bytes.load(Relaxed),
        }
    }

    fn reset(&self) {
        self.begun_ns.store(u64::MAX, Relaxed);
        self.open_ns.store(0, Relaxed);
        self.read_ns.store(0, Relaxed);
        self.decode_ns.store(0, Relaxed);
        self.client_ns.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }
}
