//! A worker thread of the real driver: claims, reads with blocking calls, finishes.

use super::client::burn;
use super::error::RunError;
use super::shared::{LaneCounts, Shared, WorkerHandle};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::clock::thread_cpu_ns;
use crate::gate::Gate;
use crate::layers::Recorded;
use crate::op_log::OpLog;
use feedrate_data::format::{FormatError, PayloadSink};
use feedrate_data::storage::{Handle, engine};
use feedrate_engine::client::ClientWork;
use feedrate_engine::durations::Durations;
use feedrate_engine::job::{ReadError, Reading, Shard};
use feedrate_engine::loader::{Finished, Queue, Task, WorkerState};
use feedrate_engine::reader::{Op, SampleReader};
use feedrate_engine::sink::Sink;
use feedrate_measure::record::ranges::RangeLog;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::order::SampleId;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::{Arc, PoisonError};

/// Looks for work so often, giving the core away in between, before it goes to sleep.
const YIELDS_BEFORE_SLEEP: u32 = 4;
/// Among more workers than these, giving the core away costs more than sleeping.
const YIELDING_WORKERS_MAX: usize = 64;
/// A worker's memory to begin with, at most; it grows with the reads.
const BUFFER_BYTES_MAX: usize = 64 << 20;

/// One thread.
pub(super) struct Worker<'s> {
    shared: &'s Shared,
    place: usize,
    lanes: Vec<WorkerLane<'s>>,
    /// The lane that is asked first.
    next: usize,
    reader: SampleReader,
    sink: Sink,
    buffer: AlignedBuffer,
    /// Reads begin and end at multiples of this.
    block_bytes: usize,
    /// The bytes of a file that were read into it last.
    held: Range<u64>,
    preprocess: Durations,
    client: ClientWork,
    /// Processor time of the thread when it was looked at last.
    ran_ns: u64,
    /// That came, and for which the client has not been paid.
    unpaid_bytes: u64,
    /// Where a sample's payload comes to be kept in the process's memory.
    scratch: Vec<u8>,
    flushed: u32,
    announced: bool,
    /// Looks for work since the last that was found.
    yields: u32,
    is_started: bool,
}

/// An accelerator that a worker reads for. More than one where one reads for a group.
struct WorkerLane<'s> {
    accelerator: u32,
    queue: &'s Queue,
    state: WorkerState,
    shard: Shard,
    io: Recorded,
    log: RangeLog,
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared, place: usize) -> Result<Self, RunError> {
        let (job, loader) = (&shared.job, &shared.job.plan.loader);
        let engine = job.plan.storage.engine.as_deref().and_then(engine::find);
        let whole_blocks = engine.is_some_and(|e| e.member().has(Ability::BypassesPageCache));
        let accelerators = shared.placement.accelerators_of(place);
        Ok(Worker {
            shared,
            place,
            lanes: accelerators.map(|own| WorkerLane::new(shared, place, own)).collect(),
            next: 0,
            reader: job.reader(),
            sink: job.sink(),
            buffer: buffer(job.buffer_bytes().min(BUFFER_BYTES_MAX))?,
            block_bytes: if whole_blocks { ALIGN } else { 1 },
            held: 0..0,
            preprocess: Durations::new(
                loader.preprocess,
                loader.worker_preprocess_seed(place as u64),
            ),
            client: ClientWork::default(),
            ran_ns: 0,
            unpaid_bytes: 0,
            scratch: Vec::new(),
            flushed: 0,
            announced: false,
            yields: 0,
            is_started: false,
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
                    queue.claimed(now_ns, self.shared.job.claims_of_epoch(queue, reading.epoch));
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
            if let Some(task) = lane.queue.claim(loader, &mut lane.state) {
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
        let client = plan.loader.client.as_ref();
        if client.is_some() {
            self.ran_ns = thread_cpu_ns();
            self.client.begin(self.ran_ns);
        }
        for sample in reading.task.samples.clone() {
            let id = self.lanes[lane].shard.sample(reading, sample);
            let slot = queue.slot_of(reading.task.batch);
            let kept = self.shared.kept_sample(accelerator, slot, sample);
            let mut kept = kept.map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner));
            self.sink.begin(id, kept.as_deref_mut().map(std::mem::take));
            let is_whole = self.sample(lane, id)?;
            let own = kept.as_deref_mut().unwrap_or(&mut self.scratch);
            *own = self.sink.take_kept().unwrap_or_default();
            if !is_whole {
                return Ok(());
            }
        }
        let samples = reading.task.samples.end - reading.task.samples.start;
        if let Some(client) = client {
            let bytes = self.lanes[lane].io.task.bytes;
            let share = samples as f64 / plan.loader.batch_size as f64;
            self.burn(lane, client.batch_s(share, bytes as f64));
        }
        let finished = queue.finish(reading.task.batch, samples, self.lanes[lane].io.task);
        if finished == Finished::Awaited {
            self.shared.tell(accelerator);
        }
        if finished != Finished::Partly && self.shared.job.loader.waits_for_whole() {
            self.shared.wake_siblings(self.place);
        }
        Ok(())
    }

    /// Get one sample. False where the run was stopped before it was whole.
    fn sample(&mut self, lane: usize, id: SampleId) -> Result<bool, RunError> {
        let Some(memory) = &self.shared.memory else { return self.read_sample(lane, id) };
        let group = self.shared.placement.group_of(self.place);
        if let Some(bytes) = memory.get(group, id) {
            self.lanes[lane].io.begin_sample();
            let given = self.sink.payload(0, &bytes);
            given.map_err(|source| self.unreadable(source))?;
            self.lanes[lane].io.from_memory(bytes.len() as u64);
            return Ok(self.preprocessed(lane));
        }
        self.sink.keep(std::mem::take(&mut self.scratch));
        let is_whole = self.read_sample(lane, id)?;
        if is_whole {
            memory.keep(group, id, self.sink.kept());
            // Else it would count as the next operation.
            self.lanes[lane].io.decoded();
        }
        Ok(is_whole)
    }

    /// Read one sample. False where the run was stopped before it was whole.
    fn read_sample(&mut self, lane: usize, id: SampleId) -> Result<bool, RunError> {
        self.lanes[lane].io.begin_sample();
        self.reader.begin(id, &self.shared.job.layout);
        self.handle().file.store(id.file, Relaxed);
        while !self.shared.stop.load(Acquire) {
            let op = self.reader.next_op();
            let op = op.map_err(|source| self.unreadable(source))?;
            let io = &mut self.lanes[lane].io;
            match op {
                Op::Open => {
                    let handle = io.open(self.reader.path(), self.reader.part())?;
                    self.reader.opened(handle);
                }
                Op::Length => {
                    let length = io.len(self.reader.handle(), self.reader.part())?;
                    let fed = self.reader.feed(&length.to_le_bytes(), &mut self.sink);
                    fed.map_err(|source| self.unreadable(source))?;
                }
                Op::Read { offset, len } => {
                    let bytes = self.read(lane, offset, len)?;
                    self.feed(lane, offset, bytes)?;
                }
                Op::Again { offset, len } => {
                    let held = self.held.start <= offset && offset + len as u64 <= self.held.end;
                    let bytes = if held { len } else { self.read(lane, offset, len)? };
                    self.feed(lane, offset, bytes)?;
                }
                Op::Kept => self.feed(lane, self.held.start, 0)?,
                Op::Close(handle) => io.close(handle, self.reader.part()),
                Op::Done => {
                    io.sample_read(self.reader.payload_bytes(), self.reader.undecoded());
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
        if let Some(client) = &self.shared.job.plan.loader.client {
            let permit = self.shared.decoders(self.place).map(Gate::enter);
            if permit.is_some() {
                io.waited();
            }
            self.burn(lane, client.per_sample_s);
            drop(permit);
        }
        self.lanes[lane].io.end_sample();
        !self.shared.stop.load(Acquire)
    }

    /// Do so much more of the client's work, beside that for the bytes that came; what the thread has run for by now is part of it.
    fn burn(&mut self, lane: usize, seconds: f64) {
        let Some(client) = &self.shared.job.plan.loader.client else { return };
        let bytes = std::mem::take(&mut self.unpaid_bytes);
        self.lanes[lane].io.task.bytes += bytes;
        let until_ns = self.client.owe(seconds + client.per_byte_s * bytes as f64);
        let own_until_ns = thread_cpu_ns();
        let own_ns = own_until_ns - std::mem::replace(&mut self.ran_ns, own_until_ns);
        self.ran_ns = burn(until_ns, || self.shared.stop.load(Relaxed));
        self.lanes[lane].io.client_worked(own_ns, self.ran_ns - own_until_ns);
    }

    /// Read whole blocks into the buffer, and say how many of the bytes that were asked for came.
    fn read(&mut self, lane: usize, offset: u64, len: usize) -> Result<usize, RunError> {
        let before = (offset % self.block_bytes as u64) as usize;
        let whole = (before + len).next_multiple_of(self.block_bytes);
        if self.buffer.len() < whole + ALIGN {
            self.buffer = buffer(whole)?;
        }
        let start = offset - before as u64;
        let WorkerLane { accelerator, io, queue, log, .. } = &mut self.lanes[lane];
        let (part, buffer) = (self.reader.part(), self.buffer.aligned_like(start, whole));
        let handle = &self.shared.workers[self.place];
        let begun_ns = self.shared.memory_read.map(|_| {
            handle.reads.store(true, Relaxed);
            thread_cpu_ns()
        });
        let come = io.read_at(self.reader.handle(), part, start, buffer)?;
        if let (Some(memory_read), Some(begun_ns)) = (self.shared.memory_read, begun_ns) {
            handle.reads.store(false, Relaxed);
            let beyond_ns = memory_read.beyond_ns(thread_cpu_ns() - begun_ns, come);
            self.client.leave_out(beyond_ns);
            self.ran_ns += beyond_ns;
        }
        if let Some(file) = self.reader.file() {
            self.shared.touched.mark(*accelerator, file);
        }
        io.followed(come, self.reader.has_read(start, come as u64));
        if io.reads_itself {
            queue.add_read_bytes(come as u64);
            log.add(part, start, come as u64);
        }
        self.unpaid_bytes += come as u64;
        let bytes = come.saturating_sub(before).min(len);
        self.held = offset..offset + bytes as u64;
        Ok(bytes)
    }

    /// Decode bytes that lie in the buffer, when it is this worker's turn where not all may decode at once.
    fn feed(&mut self, lane: usize, offset: u64, len: usize) -> Result<(), RunError> {
        let start = self.held.start - self.held.start % self.block_bytes as u64;
        let from = (offset - start) as usize;
        let bytes = &self.buffer.aligned_like(start, from + len)[from..];
        let io = &mut self.lanes[lane].io;
        let permit = self.shared.decoders(self.place).map(Gate::enter);
        if permit.is_some() {
            io.waited();
        }
        let fed = self.reader.feed(bytes, &mut self.sink);
        io.decoded();
        self.burn(lane, 0.0);
        drop(permit);
        fed.map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: FormatError) -> RunError {
        ReadError::new(&self.reader, source).into()
    }

    /// Hand what was counted to whoever collects it.
    fn hand_over(&mut self) {
        let mut counted = self.handle().counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.clear();
        counted.extend(self.lanes.iter_mut().map(|lane| {
            let counters = lane.io.counters.take();
            let ops = lane.io.ops.as_mut().map(OpLog::take);
            LaneCounts { counters, log: lane.log.take(), ops }
        }));
    }

    /// Nothing to claim: hand over the counters if asked, say so, look again, then sleep until woken. True if the
    /// epoch ended meanwhile.
    fn idle(&mut self) -> bool {
        let wanted = self.shared.flush_wanted.load(SeqCst);
        if wanted != self.flushed {
            self.flushed = wanted;
            self.hand_over();
            self.shared.worker_flushed();
            return true;
        }
        // A batch is often taken, and the next opened, within the time that sleeping and waking would take.
        if self.yields < YIELDS_BEFORE_SLEEP && self.shared.workers.len() <= YIELDING_WORKERS_MAX {
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
            if !self.is_started {
                self.is_started = true;
                self.shared.worker_started();
            }
        }
        false
    }

    fn announce(&mut self, idle: bool) {
        if self.announced != idle {
            self.handle().idle.store(idle, SeqCst);
            self.announced = idle;
        }
    }

    fn handle(&self) -> &'s WorkerHandle {
        &self.shared.workers[self.place]
    }
}

/// Operations of the storage since the counters were last taken, which is never within a task.
fn operations(io: &Recorded) -> u64 {
    io.counters.opens + io.counters.reads
}

/// Memory to read pieces of `bytes` into.
fn buffer(bytes: usize) -> Result<AlignedBuffer, RunError> {
    AlignedBuffer::new(bytes + ALIGN).map_err(|source| RunError::Memory { bytes, source })
}

impl<'s> WorkerLane<'s> {
    fn new(shared: &'s Shared, place: usize, accelerator: u32) -> Self {
        let job = &shared.job;
        let logs = u64::from(job.plan.accelerators) * u64::from(job.workers());
        let worker = shared.placement.worker_of(place);
        WorkerLane {
            accelerator,
            log: RangeLog::new(job.own.start + accelerator, logs),
            queue: &shared.queues[accelerator as usize],
            state: WorkerState::new(worker),
            shard: Shard::new(job, accelerator),
            io: Recorded::new(
                Arc::clone(shared.storage_of(place)),
                shared.clock,
                job.reads_for_itself(accelerator),
                shared.room_for_ops.map(|room| OpLog::new(accelerator, worker, room)),
            ),
        }
    }
}
