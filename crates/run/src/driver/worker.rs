//! A worker thread of the real driver: claims tasks, reads their samples with blocking calls, and reports them finished.

use super::client::burn;
use super::error::RunError;
use super::rest::Rest;
use super::shared::{LaneCounts, Shared, WorkerHandle};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::clock::thread_cpu_ns;
use crate::gate::Gate;
use crate::layers::RecordedStorage;
use feedrate_data::format::{FormatError, PayloadSink};
use feedrate_data::storage::Handle;
use feedrate_engine::client::ClientWork;
use feedrate_engine::durations::Durations;
use feedrate_engine::job::{ClaimedTask, ReadError, Shard};
use feedrate_engine::loader::{BatchStatus, Queue, Task, WorkerState};
use feedrate_engine::reader::{Op, SampleReader};
use feedrate_engine::sink::Sink;
use feedrate_measure::record::ranges::RangeLog;
use feedrate_spec::plan::REQUEST_BYTES_MAX;
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::workload::TimeSpec;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Upper limit of a worker's initial buffer. It grows with larger reads.
pub(super) const BUFFER_BYTES_MAX: usize = REQUEST_BYTES_MAX as usize;

/// The state of a worker thread.
pub(super) struct Worker<'s> {
    shared: &'s Shared,
    worker_index: usize,
    lanes: Vec<WorkerLane<'s>>,
    /// The lane that is tried first for the next task.
    next_lane: usize,
    reader: SampleReader,
    sink: Sink,
    buffer: AlignedBuffer,
    /// Reads begin and end at multiples of this number.
    block_bytes: usize,
    /// The range of the file that is in the buffer.
    buffered: Range<u64>,
    preprocessing: Durations,
    client: ClientWork,
    /// Processor time of the thread when it was last read.
    cpu_ns: u64,
    /// Bytes that were read, but that the client has not worked on yet.
    pending_client_bytes: u64,
    /// Buffer for a payload that will be kept in memory.
    scratch: Vec<u8>,
    rest: Rest<'s>,
}

/// A worker's reads for one accelerator. A worker has several lanes if it reads for a group.
struct WorkerLane<'s> {
    accelerator: u32,
    queue: &'s Queue,
    state: WorkerState,
    shard: Shard,
    io: RecordedStorage,
    log: RangeLog,
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared, worker_index: usize) -> Result<Self, RunError> {
        let job = &shared.job;
        let loader = &job.plan.loader;
        let accelerators = shared.placement.accelerators_of(worker_index);
        Ok(Worker {
            shared,
            worker_index,
            lanes: accelerators
                .map(|accelerator| WorkerLane::new(shared, worker_index, accelerator))
                .collect(),
            next_lane: 0,
            reader: job.reader(),
            sink: job.sink(),
            buffer: buffer(job.buffer_bytes().min(BUFFER_BYTES_MAX))?,
            block_bytes: shared.block_bytes(),
            buffered: 0..0,
            preprocessing: Durations::new(
                loader.preprocess,
                loader.worker_preprocess_seed(worker_index as u64),
            ),
            client: ClientWork::default(),
            cpu_ns: 0,
            pending_client_bytes: 0,
            scratch: Vec::new(),
            rest: Rest::new(shared, &shared.workers[worker_index]),
        })
    }

    /// Works until the run stops. Returns the open files, which the caller has to close.
    pub(super) fn run(mut self) -> Vec<Handle> {
        let mut idle_since_ns = None;
        // Waiting for the start of an epoch does not count as idle time.
        let mut between_epochs = true;
        while !self.shared.stop.load(Acquire) {
            match self.claim() {
                Some((lane, task)) => {
                    self.rest.end();
                    between_epochs = false;
                    let queue = self.lanes[lane].queue;
                    let now_ns = self.lanes[lane].io.begin_task(idle_since_ns.take());
                    let reading = ClaimedTask::new(task, queue);
                    queue
                        .count_claim(now_ns, self.shared.job.claims_of_epoch(queue, reading.epoch));
                    let before = operations(&self.lanes[lane].io);
                    let outcome = self.read_task(lane, &reading);
                    queue.add_operations(operations(&self.lanes[lane].io) - before);
                    if let Err(error) = outcome {
                        // After a stop, reads that wait for another process end with an error.
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
                    let handle = self.handle();
                    let Worker { rest, lanes, .. } = &mut self;
                    if rest.step(|| hand_over(handle, lanes)) {
                        idle_since_ns = None;
                        between_epochs = true;
                    }
                }
            }
        }
        // After a stop, counters are handed over without a request.
        hand_over(self.handle(), &mut self.lanes);
        std::iter::from_fn(|| self.reader.take_open_handle()).collect()
    }

    /// Claims the next task, from the lanes in turn. Returns the number of the lane and the task.
    fn claim(&mut self) -> Option<(usize, Task)> {
        let loader = self.shared.job.loader;
        for turn in 0..self.lanes.len() {
            let number = (self.next_lane + turn) % self.lanes.len();
            let lane = &mut self.lanes[number];
            if let Some(task) = lane.queue.claim(loader, &mut lane.state) {
                self.next_lane = number + 1;
                return Some((number, task));
            }
        }
        None
    }

    /// Reads all samples of a task and reports it finished.
    fn read_task(&mut self, lane: usize, reading: &ClaimedTask) -> Result<(), RunError> {
        let plan = &self.shared.job.plan;
        self.lanes[lane].shard.select_epoch(plan, reading.epoch);
        let accelerator = self.lanes[lane].accelerator;
        let queue = self.lanes[lane].queue;
        let client = plan.loader.client.as_ref();
        if client.is_some() {
            self.cpu_ns = thread_cpu_ns();
            self.client.begin(self.cpu_ns);
        }
        let mut rest = reading.task.samples.clone();
        while let Some(sample) = rest.next() {
            let id = self.lanes[lane].shard.sample(reading, sample);
            let slot = queue.slot_of(reading.task.batch);
            let memory = self.shared.kept_sample(accelerator, slot, sample);
            let mut kept =
                memory.map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner));
            self.sink.begin(id, kept.as_deref_mut().map(std::mem::take));
            let is_complete = self.get_sample(lane, id)?;
            let memory = kept.as_deref_mut().unwrap_or(&mut self.scratch);
            *memory = self.sink.take_memory().unwrap_or_default();
            if !is_complete {
                return Ok(());
            }
            rest.start += self.take_ready(lane, reading, id, &rest);
        }
        let samples = reading.task.samples.end - reading.task.samples.start;
        if let Some(client) = client {
            let bytes = self.lanes[lane].io.task.bytes;
            let share = samples as f64 / plan.loader.batch_size as f64;
            self.burn(lane, client.batch_s(share, bytes as f64));
            let shared_bytes = self.client.end_task();
            self.wait_for_shared_rate(lane, shared_bytes);
            let WorkerLane { accelerator, io, .. } = &mut self.lanes[lane];
            io.task.pinned_ns = self.shared.client_rates.pinned_ns(
                *accelerator,
                io.activity_end_ns(),
                io.task.bytes,
            );
        }
        let finished = queue.finish(reading.task.batch, samples, self.lanes[lane].io.task);
        if finished == BatchStatus::Awaited {
            self.shared.notify_ready(accelerator);
        }
        if finished != BatchStatus::Incomplete && self.shared.job.loader.waits_for_complete() {
            self.shared.wake_siblings(self.worker_index);
        }
        Ok(())
    }

    /// Counts those of the samples `rest` that follow `last` in its file and that the reader has ready, in one step. Returns their number.
    fn take_ready(
        &mut self,
        lane: usize,
        reading: &ClaimedTask,
        last: SampleId,
        rest: &Range<u64>,
    ) -> u64 {
        let WorkerLane { shard, io, .. } = &mut self.lanes[lane];
        let loader = &self.shared.job.plan.loader;
        let has_own_time = loader.client.is_some() || loader.preprocess != TimeSpec::None;
        let ready = if has_own_time || !io.reads_itself { 0 } else { self.reader.ready_samples() };
        let follows = |(number, sample): &(u64, u64)| {
            let next = SampleId { sample: last.sample + number, ..last };
            shard.sample(reading, *sample) == next
        };
        let samples = (1..=ready).zip(rest.clone()).take_while(follows).count() as u64;
        if samples > 0 {
            io.count_ready(&mut self.reader, samples);
        }
        samples
    }

    /// Gets one sample from memory or from the storage. Returns false if the run was stopped before it was complete.
    fn get_sample(&mut self, lane: usize, id: SampleId) -> Result<bool, RunError> {
        let Some(memory) = &self.shared.memory else { return self.read_sample(lane, id) };
        let group = self.shared.placement.group_of(self.worker_index);
        if let Some(bytes) = memory.get(group, id) {
            self.lanes[lane].io.begin_sample();
            let outcome = self.sink.payload(0, &bytes);
            outcome.map_err(|source| self.read_error(source))?;
            self.lanes[lane].io.count_memory_sample(bytes.len() as u64);
            return Ok(self.preprocess(lane));
        }
        self.sink.keep(std::mem::take(&mut self.scratch));
        let is_complete = self.read_sample(lane, id)?;
        if is_complete {
            memory.keep(group, id, self.sink.kept_payload());
            // Counts the copy as decoding; otherwise it would count as part of the next operation.
            self.lanes[lane].io.end_decoding();
        }
        Ok(is_complete)
    }

    /// Reads one sample from the storage. Returns false if the run was stopped before it was complete.
    fn read_sample(&mut self, lane: usize, id: SampleId) -> Result<bool, RunError> {
        self.lanes[lane].io.begin_sample();
        self.reader.begin(id, &self.shared.job.layout);
        self.handle().file.store(id.file, Relaxed);
        while !self.shared.stop.load(Acquire) {
            let op = self.reader.next_op();
            let op = op.map_err(|source| self.read_error(source))?;
            let io = &mut self.lanes[lane].io;
            match op {
                Op::Open => {
                    let handle = io.open(self.reader.path(), self.reader.part())?;
                    self.reader.set_handle(handle);
                }
                Op::Length => {
                    let length = io.len(self.reader.handle(), self.reader.part())?;
                    let result = self.reader.feed(&length.to_le_bytes(), &mut self.sink);
                    result.map_err(|source| self.read_error(source))?;
                }
                Op::Read { offset, len, end } => {
                    let bytes = self.read(lane, offset..offset + len as u64, end)?;
                    self.feed(lane, offset, bytes)?;
                }
                Op::Again { offset, len } => {
                    let buffered = &self.buffered;
                    let is_buffered =
                        buffered.start <= offset && offset + len as u64 <= buffered.end;
                    let end = offset + len as u64;
                    let bytes = if is_buffered { len } else { self.read(lane, offset..end, end)? };
                    self.feed(lane, offset, bytes)?;
                }
                Op::Kept => self.feed(lane, self.buffered.start, 0)?,
                Op::Close(handle) => io.close(handle, self.reader.part()),
                Op::Done => {
                    io.count_sample_read(&self.reader);
                    return Ok(self.preprocess(lane));
                }
            }
        }
        Ok(false)
    }

    /// Emulates the preprocessing of a sample and ends it. Returns false if the run was stopped meanwhile.
    fn preprocess(&mut self, lane: usize) -> bool {
        let io = &mut self.lanes[lane].io;
        let wait_ns = self.preprocessing.next_ns();
        if wait_ns > 0 {
            self.shared
                .clock
                .wait_until(io.activity_end_ns().saturating_add(wait_ns), &self.shared.stop);
            io.end_decoding();
        }
        if let Some(client) = &self.shared.job.plan.loader.client {
            let permit = self.shared.decode_gates(self.worker_index).map(Gate::enter);
            if permit.is_some() {
                io.end_wait();
            }
            self.burn(lane, client.per_sample_s);
            drop(permit);
            let batch_size = self.shared.job.plan.loader.batch_size;
            let shared_bytes = self.client.end_sample(client, batch_size);
            self.wait_for_shared_rate(lane, shared_bytes);
        }
        self.lanes[lane].io.end_sample();
        !self.shared.stop.load(Acquire)
    }

    /// Does `seconds` of the client's work, and its work for the bytes read since the last call. The time that the thread has already
    /// run counts as a part of the work.
    fn burn(&mut self, lane: usize, seconds: f64) {
        let Some(client) = &self.shared.job.plan.loader.client else { return };
        let bytes = std::mem::take(&mut self.pending_client_bytes);
        self.lanes[lane].io.task.bytes += bytes;
        self.client.add_bytes(bytes);
        let until_ns = self.client.add_work(seconds + client.per_byte_s * bytes as f64);
        let before_burn_ns = thread_cpu_ns();
        let worked_ns = before_burn_ns - self.cpu_ns;
        self.cpu_ns = burn(until_ns, || self.shared.stop.load(Relaxed));
        self.lanes[lane].io.count_client_work(worked_ns, self.cpu_ns - before_burn_ns);
    }

    /// Keeps the core busy until the rate that workers share has served `bytes`, whose work has just ended.
    fn wait_for_shared_rate(&mut self, lane: usize, bytes: f64) {
        let Shared { client_rates, clock, stop, .. } = self.shared;
        let io = &mut self.lanes[lane].io;
        let until_ns = client_rates.shared_until_ns(io.activity_end_ns(), bytes);
        if clock.now_ns() < until_ns {
            while clock.now_ns() < until_ns && !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
            let cpu_ns = thread_cpu_ns();
            let waited_cpu_ns = cpu_ns - self.cpu_ns;
            io.count_client_work(0, waited_cpu_ns);
            // Waiting is not the client's own work.
            self.client.exclude(waited_cpu_ns);
            self.cpu_ns = cpu_ns;
        }
    }

    /// Reads the whole blocks that contain a range into the buffer. The reads that are expected next continue up to `end`. Returns how many
    /// bytes of the range were read.
    fn read(&mut self, lane: usize, range: Range<u64>, end: u64) -> Result<usize, RunError> {
        let (offset, len) = (range.start, (range.end - range.start) as usize);
        let skipped = (offset % self.block_bytes as u64) as usize;
        let block_len = (skipped + len).next_multiple_of(self.block_bytes);
        if self.buffer.len() < block_len + ALIGN {
            self.buffer = buffer(block_len)?;
        }
        let start = offset - skipped as u64;
        let WorkerLane { accelerator, io, queue, log, .. } = &mut self.lanes[lane];
        let part = self.reader.part();
        let buffer = self.buffer.aligned_like(start, block_len);
        let handle = &self.shared.workers[self.worker_index];
        let cpu_start_ns = self.shared.memory_read.map(|_| {
            handle.is_reading.store(true, Relaxed);
            thread_cpu_ns()
        });
        let read_bytes = io.read_piece(self.reader.handle(), part, start, buffer, end)?;
        if let (Some(memory_read), Some(cpu_start_ns)) = (self.shared.memory_read, cpu_start_ns) {
            handle.is_reading.store(false, Relaxed);
            let excess_ns = memory_read.excess_ns(thread_cpu_ns() - cpu_start_ns, read_bytes);
            self.client.exclude(excess_ns);
            self.cpu_ns += excess_ns;
        }
        if let Some(file) = self.reader.file() {
            self.shared.touched.mark(*accelerator, file);
        }
        io.count_access(read_bytes, self.reader.record_read(start, read_bytes as u64));
        if io.reads_itself {
            queue.add_read_bytes(read_bytes as u64);
            log.add(part, start, read_bytes as u64);
        }
        self.pending_client_bytes += read_bytes as u64;
        let bytes = read_bytes.saturating_sub(skipped).min(len);
        self.buffered = offset..offset + bytes as u64;
        Ok(bytes)
    }

    /// Decodes bytes from the buffer. If concurrent decoding is limited, it waits for a permit first.
    fn feed(&mut self, lane: usize, offset: u64, len: usize) -> Result<(), RunError> {
        let start = self.buffered.start - self.buffered.start % self.block_bytes as u64;
        let from = (offset - start) as usize;
        let bytes = &self.buffer.aligned_like(start, from + len)[from..];
        let io = &mut self.lanes[lane].io;
        let permit = self.shared.decode_gates(self.worker_index).map(Gate::enter);
        if permit.is_some() {
            io.end_wait();
        }
        let result = self.reader.feed(bytes, &mut self.sink);
        io.end_decoding();
        self.burn(lane, 0.0);
        drop(permit);
        result.map_err(|source| self.read_error(source))
    }

    fn read_error(&self, source: FormatError) -> RunError {
        ReadError::new(&self.reader, source).into()
    }

    fn handle(&self) -> &'s WorkerHandle {
        &self.shared.workers[self.worker_index]
    }
}

/// Moves the counters of a worker's lanes into its handle, where the conductor collects them.
fn hand_over(handle: &WorkerHandle, lanes: &mut [WorkerLane]) {
    handle.hand_over(lanes.iter_mut().map(|lane| LaneCounts::take(&mut lane.io, &mut lane.log)));
}

/// Returns the opens and reads since the counters were last taken. They are never taken within a task.
fn operations(io: &RecordedStorage) -> u64 {
    io.counters.opens + io.counters.reads
}

/// Allocates a buffer for reads of up to `bytes` bytes.
pub(super) fn buffer(bytes: usize) -> Result<AlignedBuffer, RunError> {
    AlignedBuffer::new(bytes + ALIGN).map_err(|source| RunError::Memory { bytes, source })
}

impl<'s> WorkerLane<'s> {
    fn new(shared: &'s Shared, worker_index: usize, accelerator: u32) -> Self {
        WorkerLane {
            accelerator,
            log: shared.range_log(accelerator),
            queue: &shared.queues[accelerator as usize],
            state: WorkerState::new(shared.placement.thread_of(worker_index)),
            shard: Shard::new(&shared.job, accelerator),
            io: shared.recorded_storage(worker_index, accelerator),
        }
    }
}
