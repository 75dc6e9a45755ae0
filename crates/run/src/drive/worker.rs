//! A worker thread of the real driver: claims, reads with blocking calls, finishes.

use super::job::{BUFFER_BYTES_MAX, Reading, RunError, Shard, buffer, format_error};
use super::shared::{Place, Shared};
use super::sink::Sink;
use crate::buffer::AlignedBuffer;
use crate::compute::{self, Compute};
use crate::loader::{Claim, Finished, Queue, Task, WorkerState};
use crate::reader::{Op, SampleReader};
use crate::wrap::Recorded;
use feedrate_data::format::PayloadSink;
use feedrate_data::storage::Handle;
use feedrate_spec::plan::order::SampleId;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::{Arc, PoisonError};

/// Looks for work so often, giving the core away in between, before it goes to sleep.
const YIELDS_BEFORE_SLEEP: u32 = 4;

/// One thread.
pub(super) struct Worker<'s> {
    shared: &'s Shared,
    place: usize,
    lanes: Vec<Lane<'s>>,
    /// The lane that is asked first.
    next: usize,
    reader: SampleReader,
    sink: Sink,
    buffer: AlignedBuffer,
    /// What of a file was read into it last.
    held: Range<u64>,
    preprocess: Box<dyn Compute>,
    /// Where a sample's payload comes to be kept in the process's memory.
    scratch: Vec<u8>,
    flushed: u32,
    announced: bool,
    yields: u32,
}

/// An accelerator that a worker reads for. More than one where one reads for a group.
struct Lane<'s> {
    accelerator: u32,
    queue: &'s Queue,
    state: WorkerState,
    shard: Shard,
    io: Recorded,
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared, place: usize) -> Result<Self, RunError> {
        let job = &shared.job;
        let lane = |accelerator: u32| Lane {
            accelerator,
            queue: &shared.queues[accelerator as usize],
            state: WorkerState::new(place as u32 % job.workers()),
            shard: Shard::new(job, accelerator),
            io: Recorded::new(Arc::clone(job.storage_of(place)), shared.clock),
        };
        Ok(Worker {
            shared,
            place,
            lanes: job.accelerators_of(place).map(lane).collect(),
            next: 0,
            reader: job.reader(),
            sink: job.sink(),
            buffer: buffer(job.piece_bytes().min(BUFFER_BYTES_MAX))?,
            held: 0..0,
            preprocess: compute::preprocess(&job.plan.loader, place as u64),
            scratch: Vec::new(),
            flushed: 0,
            announced: false,
            yields: 0,
        })
    }

    /// Work until told to stop; what is open then is the caller's to close.
    pub(super) fn run(mut self) -> Vec<Handle> {
        let mut idle_since_ns = None;
        // Waiting for an epoch to begin is not idling in it.
        let mut between_epochs = true;
        while !self.shared.stop.load(Acquire) {
            match self.claim() {
                Some((lane, task)) => {
                    self.announce(false);
                    self.yields = 0;
                    between_epochs = false;
                    let queue = self.lanes[lane].queue;
                    let now_ns = self.lanes[lane].io.begin_task(idle_since_ns.take());
                    let reading = Reading::new(task, queue);
                    queue.claimed(now_ns, self.shared.job.claims_of_epoch(reading.epoch));
                    let before = operations(&self.lanes[lane].io);
                    let done = self.task(lane, &reading);
                    queue.add_operations(operations(&self.lanes[lane].io) - before);
                    if let Err(error) = done {
                        // Whoever waits for another process is freed by an error when work is to end.
                        if !self.shared.stop.load(Acquire) {
                            self.shared.fail(error);
                        }
                        break;
                    }
                }
                None => {
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
        // A run that was stopped asks nobody for counters; these are what it has.
        self.hand_over();
        std::iter::from_fn(|| self.reader.take_open()).collect()
    }

    /// The next work of any lane, each in its turn.
    fn claim(&mut self) -> Option<(usize, Task)> {
        let loader = self.shared.job.loader;
        for turn in 0..self.lanes.len() {
            let at = (self.next + turn) % self.lanes.len();
            let lane = &mut self.lanes[at];
            if let Claim::Task(task) = loader.claim(lane.queue, &mut lane.state) {
                self.next = at + 1;
                return Some((at, task));
            }
        }
        None
    }

    fn task(&mut self, lane: usize, reading: &Reading) -> Result<(), RunError> {
        let plan = &self.shared.job.plan;
        self.lanes[lane].shard.turn_to(plan, reading.epoch);
        let (accelerator, queue) = (self.lanes[lane].accelerator, self.lanes[lane].queue);
        for sample in reading.task.samples.clone() {
            let id = self.lanes[lane].shard.sample(reading.step, sample);
            let slot = queue.slot_of(reading.task.batch);
            let kept = self.shared.kept_sample(accelerator, slot, sample);
            let whole = match kept {
                None => self.sample(lane, id, None)?.is_some(),
                Some(kept) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let bytes = self.sample(lane, id, Some(std::mem::take(&mut *kept)))?;
                    let whole = bytes.is_some();
                    *kept = bytes.flatten().unwrap_or_default();
                    whole
                }
            };
            if !whole {
                return Ok(());
            }
        }
        let samples = reading.task.samples.end - reading.task.samples.start;
        let finished = queue.finish(reading.task.batch, samples, self.lanes[lane].io.task);
        if finished == Finished::Awaited {
            self.shared.tell(accelerator);
        }
        if finished != Finished::Partly && self.shared.job.loader.waits_for_whole() {
            self.shared.wake_siblings(self.place);
        }
        Ok(())
    }

    /// Get one sample, into `kept` where that is given, and return that. `None` where the run was stopped before it was whole.
    fn sample(
        &mut self,
        lane: usize,
        id: SampleId,
        kept: Option<Vec<u8>>,
    ) -> Result<Option<Option<Vec<u8>>>, RunError> {
        let Some(memory) = &self.shared.memory else {
            self.sink.begin(id, kept);
            let whole = self.read_sample(lane, id)?;
            let kept = self.sink.take_kept();
            return Ok(whole.then_some(kept));
        };
        let group = self.shared.job.group_of(self.place);
        if let Some(bytes) = memory.get(group, id) {
            self.sink.begin(id, kept);
            self.lanes[lane].io.begin_sample();
            let given = self.sink.payload(0, &bytes);
            given.map_err(|source| format_error(&self.reader, source))?;
            self.lanes[lane].io.from_memory(bytes.len() as u64);
            let whole = self.preprocessed(lane);
            let kept = self.sink.take_kept();
            return Ok(whole.then_some(kept));
        }
        let asked = kept.is_some();
        self.sink.begin(id, Some(kept.unwrap_or_else(|| std::mem::take(&mut self.scratch))));
        let whole = self.read_sample(lane, id)?;
        let bytes = self.sink.take_kept().unwrap_or_default();
        if whole {
            memory.keep(group, id, &bytes);
            // Else it would count as the next operation.
            self.lanes[lane].io.decoded();
        }
        if asked {
            return Ok(whole.then_some(Some(bytes)));
        }
        self.scratch = bytes;
        Ok(whole.then_some(None))
    }

    /// Read one sample. False where the run was stopped before it was whole.
    fn read_sample(&mut self, lane: usize, id: SampleId) -> Result<bool, RunError> {
        self.lanes[lane].io.begin_sample();
        self.reader.begin(id, &self.shared.job.layout);
        while !self.shared.stop.load(Acquire) {
            let op = self.reader.next_op();
            let io = &mut self.lanes[lane].io;
            match op.map_err(|source| format_error(&self.reader, source))? {
                Op::Open => {
                    let handle = io.open(self.reader.path())?;
                    self.reader.opened(handle);
                }
                Op::Length(handle) => {
                    let length = io.len(handle)?;
                    let fed = self.reader.feed(&length.to_le_bytes(), &mut self.sink);
                    fed.map_err(|source| format_error(&self.reader, source))?;
                }
                Op::Read { handle, offset, len } => self.read(lane, handle, offset, len)?,
                Op::Again { handle, offset, len } => self.again(lane, handle, offset, len)?,
                Op::Kept => {
                    feed(self.shared, self.place, io, (&mut self.reader, &mut self.sink), &[])?
                }
                Op::Close(handle) => io.close(handle),
                Op::Done => {
                    io.sample_read(self.reader.payload_bytes());
                    return Ok(self.preprocessed(lane));
                }
            }
        }
        Ok(false)
    }

    /// The sample is there: work on it for as long as was asked for. False where the run was stopped meanwhile.
    fn preprocessed(&mut self, lane: usize) -> bool {
        let io = &mut self.lanes[lane].io;
        let wait_ns = self.preprocess.next_ns();
        if wait_ns > 0 {
            self.shared.clock.wait_until(io.at_ns().saturating_add(wait_ns), &self.shared.stop);
            io.decoded();
        }
        io.end_sample();
        !self.shared.stop.load(Acquire)
    }

    fn read(
        &mut self,
        lane: usize,
        handle: feedrate_data::storage::Handle,
        offset: u64,
        len: usize,
    ) -> Result<(), RunError> {
        let block = self.shared.job.block_bytes;
        let before = (offset % block as u64) as usize;
        let whole = (before + len).next_multiple_of(block);
        if self.buffer.len() < whole + crate::buffer::ALIGN {
            self.buffer = buffer(whole)?;
        }
        let start = offset - before as u64;
        let buffer = self.buffer.aligned_like(start, whole);
        let Lane { accelerator, io, queue, .. } = &mut self.lanes[lane];
        let come = io.read_at(handle, start, buffer)?;
        self.reader.file().inspect(|&file| self.shared.touched.mark(*accelerator, file));
        io.followed(come, self.reader.has_read(start, come as u64));
        let bytes = &buffer[before.min(come)..come.min(before + len)];
        self.held = offset..offset + bytes.len() as u64;
        queue.add_read_bytes(come as u64);
        feed(self.shared, self.place, io, (&mut self.reader, &mut self.sink), bytes)
    }

    /// Feed bytes that lie in the buffer since they were read.
    fn again(
        &mut self,
        lane: usize,
        handle: feedrate_data::storage::Handle,
        offset: u64,
        len: usize,
    ) -> Result<(), RunError> {
        let held = self.held.clone();
        if offset < held.start || held.end < offset + len as u64 {
            return self.read(lane, handle, offset, len);
        }
        let start = held.start - held.start % self.shared.job.block_bytes as u64;
        let from = (offset - start) as usize;
        let bytes = &self.buffer.aligned_like(start, from + len)[from..];
        let io = &mut self.lanes[lane].io;
        feed(self.shared, self.place, io, (&mut self.reader, &mut self.sink), bytes)
    }

    /// What was counted, to whoever collects it.
    fn hand_over(&mut self) {
        let place = &self.shared.places[self.place];
        let mut counters = place.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.clear();
        counters.extend(self.lanes.iter_mut().map(|lane| std::mem::take(&mut lane.io.counters)));
    }

    /// Nothing to claim: hand over the counters if asked, say so, look again, then sleep until woken. True if the
    /// epoch ended meanwhile.
    fn idle(&mut self) -> bool {
        let wanted = self.shared.flush_wanted.load(SeqCst);
        if wanted != self.flushed {
            self.flushed = wanted;
            self.hand_over();
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

/// Of the storage, since the counters were last taken: never within a task.
fn operations(io: &Recorded) -> u64 {
    io.counters.opens + io.counters.reads
}

/// Decode what was read, when it is this worker's turn where not all may decode at once.
fn feed(
    shared: &Shared,
    place: usize,
    io: &mut Recorded,
    (reader, sink): (&mut SampleReader, &mut Sink),
    bytes: &[u8],
) -> Result<(), RunError> {
    let permit = shared.decoders(place).map(|gate| {
        let permit = gate.enter();
        io.waited();
        permit
    });
    let fed = reader.feed(bytes, sink);
    io.decoded();
    drop(permit);
    fed.map_err(|source| format_error(reader, source))
}
