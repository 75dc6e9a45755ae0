//! A worker thread of the real driver: claims, reads with blocking calls, finishes.

use super::job::{Reading, RunError, Shard, buffer, format_error};
use super::real::{Place, Shared};
use super::sink::Sink;
use crate::buffer::AlignedBuffer;
use crate::loader::{Claim, Finished, Queue, WorkerState};
use crate::reader::{Op, SampleReader};
use crate::wrap::Recorded;
use feedrate_spec::plan::order::SampleId;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

/// Looks for work so often, giving the core away in between, before it goes to sleep.
const YIELDS_BEFORE_SLEEP: u32 = 4;

/// One thread.
pub(super) struct Worker<'s> {
    shared: &'s Shared,
    queue: &'s Queue,
    accelerator: u32,
    place: usize,
    state: WorkerState,
    shard: Shard,
    reader: SampleReader,
    sink: Sink,
    buffer: AlignedBuffer,
    io: Recorded,
    flushed: u32,
    announced: bool,
    yields: u32,
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared, accelerator: u32, worker: u32) -> Result<Self, RunError> {
        let job = &shared.job;
        Ok(Worker {
            shared,
            queue: &shared.queues[accelerator as usize],
            accelerator,
            place: (accelerator * job.workers() + worker) as usize,
            state: WorkerState::new(worker),
            shard: Shard::new(&job.plan, accelerator),
            reader: job.reader(),
            sink: job.sink(),
            buffer: buffer(job.piece_bytes())?,
            io: Recorded::new(job.storage.clone(), shared.clock),
            flushed: 0,
            announced: false,
            yields: 0,
        })
    }

    /// Work until told to stop.
    pub(super) fn run(mut self) {
        let mut idle_since_ns = None;
        // Waiting for an epoch to begin is not idling in it.
        let mut between_epochs = true;
        while !self.shared.stop.load(Acquire) {
            let claim = self.shared.job.loader.claim(self.queue, &mut self.state);
            match claim {
                Claim::Task(task) => {
                    self.announce(false);
                    self.yields = 0;
                    between_epochs = false;
                    let now_ns = self.io.begin_task(idle_since_ns.take());
                    let reading = Reading::new(task, self.queue);
                    self.queue.claimed(now_ns, self.shared.job.claims_of_epoch(reading.epoch));
                    if let Err(error) = self.task(&reading) {
                        self.shared.fail(error);
                        break;
                    }
                }
                Claim::Wait => {
                    if !between_epochs {
                        let now_ns = self.shared.clock.now_ns();
                        idle_since_ns.get_or_insert(now_ns);
                    }
                    if self.idle() {
                        idle_since_ns = None;
                        between_epochs = true;
                    }
                }
            }
        }
        while let Some(handle) = self.reader.take_open() {
            self.io.close(handle);
        }
        // A run that was stopped asks nobody for counters; these are what it has.
        *self.place().counters.lock().unwrap_or_else(PoisonError::into_inner) =
            std::mem::take(&mut self.io.counters);
    }

    fn task(&mut self, reading: &Reading) -> Result<(), RunError> {
        let plan = &self.shared.job.plan;
        self.shard.turn_to(plan, reading.epoch);
        for sample in reading.task.samples.clone() {
            let id = self.shard.sample(plan, reading.step, sample);
            let memory = self.shared.kept_sample(
                self.accelerator,
                self.queue.slot_of(reading.task.batch),
                sample,
            );
            let whole = match memory {
                None => self.sample(id, None)?,
                Some(memory) => {
                    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                    let bytes = std::mem::take(&mut *memory);
                    let whole = self.sample(id, Some(bytes))?;
                    *memory = self.sink.take_kept().unwrap_or_default();
                    whole
                }
            };
            if !whole {
                return Ok(());
            }
        }
        let samples = reading.task.samples.end - reading.task.samples.start;
        if self.queue.finish(reading.task.batch, samples, self.io.task) == Finished::Awaited {
            self.shared.tell(self.accelerator);
        }
        Ok(())
    }

    /// Read one sample. False where the run was stopped before it was whole.
    fn sample(&mut self, id: SampleId, memory: Option<Vec<u8>>) -> Result<bool, RunError> {
        self.io.begin_sample();
        self.sink.begin(id, memory);
        self.reader.begin(id, &self.shared.job.layout);
        while !self.shared.stop.load(Acquire) {
            let op = self.reader.next_op();
            match op.map_err(|source| format_error(&self.reader, source))? {
                Op::Open => {
                    let handle = self.io.open(self.reader.path())?;
                    self.reader.opened(handle);
                }
                Op::Length(handle) => {
                    let length = self.io.len(handle)?;
                    let fed = self.reader.feed(&length.to_le_bytes(), &mut self.sink);
                    fed.map_err(|source| format_error(&self.reader, source))?;
                }
                Op::Read { handle, offset, len } => self.read(handle, offset, len)?,
                Op::Close(handle) => self.io.close(handle),
                Op::Done => {
                    self.io.end_sample();
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn read(
        &mut self,
        handle: feedrate_data::storage::Handle,
        offset: u64,
        len: usize,
    ) -> Result<(), RunError> {
        if self.buffer.len() < len + crate::buffer::ALIGN {
            self.buffer = buffer(len)?;
        }
        let buffer = self.buffer.aligned_like(offset, len);
        let bytes = self.io.read_at(handle, offset, buffer)?;
        self.queue.add_read_bytes(bytes as u64);
        let fed = self.reader.feed(&buffer[..bytes], &mut self.sink);
        self.io.decoded();
        fed.map_err(|source| format_error(&self.reader, source))
    }

    /// Nothing to claim: hand over the counters if asked, say so, look again, then sleep until woken. True if the
    /// epoch ended meanwhile.
    fn idle(&mut self) -> bool {
        let wanted = self.shared.flush_wanted.load(SeqCst);
        if wanted != self.flushed {
            self.flushed = wanted;
            let mut counters = self.place().counters.lock().unwrap_or_else(PoisonError::into_inner);
            *counters = std::mem::take(&mut self.io.counters);
            drop(counters);
            self.shared.flushed_one();
            return true;
        }
        // A batch is often taken, and the next opened, within the time that sleeping and waking would take.
        if self.yields < YIELDS_BEFORE_SLEEP {
            self.yields += 1;
            std::thread::yield_now();
            return false;
        }
        // Whoever opens a batch after this sees the flag; what was opened before is seen by claiming again.
        if self.announced {
            std::thread::park();
            self.announce(false);
        } else {
            self.announce(true);
        }
        false
    }

    fn announce(&mut self, idle: bool) {
        if self.announced != idle {
            self.place().idle.store(idle, SeqCst);
            self.announced = idle;
        }
    }

    fn place(&self) -> &'s Place {
        &self.shared.places[self.place]
    }
}
