//! A thread of a worker that reads whole requests: takes the worker's next request, executes it with blocking calls, and drops the bytes.
//! A worker has one thread for each request that it keeps outstanding, and one that only delivers batches, as all others may be reading.

use super::error::RunError;
use super::rest::Rest;
use super::shared::{LaneCounts, Shared, WorkerHandle};
use super::worker::{BUFFER_BYTES_MAX, buffer};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::layers::RecordedStorage;
use feedrate_data::format::Lister;
use feedrate_data::storage::{Handle, StorageError};
use feedrate_engine::loader::Queue;
use feedrate_engine::requests::{Delivered, Request, RequestQueue};
use feedrate_measure::record::access::ReadPosition;
use feedrate_measure::record::ranges::RangeLog;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a thread that executes requests.
pub(super) struct Requester<'s> {
    shared: &'s Shared,
    thread_index: usize,
    accelerator: u32,
    queue: &'s Queue,
    requests: &'s Mutex<RequestQueue>,
    lister: Option<Box<dyn Lister>>,
    path: String,
    io: RecordedStorage,
    log: RangeLog,
    buffer: AlignedBuffer,
    /// Reads begin and end at multiples of this number.
    block_bytes: u64,
    /// End of the last read of the open file.
    last_end: Option<u64>,
    rest: Rest<'s>,
}

impl<'s> Requester<'s> {
    pub(super) fn new(shared: &'s Shared, thread_index: usize) -> Result<Self, RunError> {
        let job = &shared.job;
        let accelerator = shared.placement.accelerators_of(thread_index).start;
        let worker = thread_index / job.plan.loader.threads_per_worker() as usize;
        Ok(Requester {
            shared,
            thread_index,
            accelerator,
            queue: &shared.queues[accelerator as usize],
            requests: &shared.requests[worker],
            lister: job.lister(),
            path: String::with_capacity(256),
            io: shared.recorded_storage(thread_index, accelerator),
            log: shared.range_log(accelerator),
            buffer: buffer(job.buffer_bytes().min(BUFFER_BYTES_MAX))?,
            block_bytes: shared.block_bytes() as u64,
            last_end: None,
            rest: Rest::new(shared, &shared.workers[thread_index]),
        })
    }

    /// Works until the run stops.
    pub(super) fn run(mut self) {
        let mut idle_since_ns = None;
        // Waiting for the start of an epoch does not count as idle time.
        let mut between_epochs = true;
        while !self.shared.stop.load(Acquire) {
            let executed = match self.next_request() {
                Ok(Some(request)) => {
                    self.rest.end();
                    between_epochs = false;
                    self.io.begin_task(idle_since_ns.take());
                    self.execute(request)
                }
                Ok(None) => {
                    if !between_epochs {
                        idle_since_ns.get_or_insert(self.shared.clock.now_ns());
                    }
                    let handle = self.handle();
                    let Requester { rest, io, log, .. } = &mut self;
                    let hand_over = || handle.hand_over(std::iter::once(LaneCounts::take(io, log)));
                    if rest.step(hand_over) {
                        idle_since_ns = None;
                        between_epochs = true;
                    }
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = executed {
                // After a stop, reads that wait for another process end with an error.
                if !self.shared.stop.load(Acquire) {
                    self.shared.fail(error);
                }
                break;
            }
        }
        // After a stop, counters are handed over without a request.
        let counts = LaneCounts::take(&mut self.io, &mut self.log);
        self.handle().hand_over(std::iter::once(counts));
    }

    /// Delivers the worker's batches that are ready, and takes its next request, if it may have another one.
    fn next_request(&mut self) -> Result<Option<Request>, RunError> {
        let job = &self.shared.job;
        let now_ns = self.shared.clock.now_ns();
        let mut delivered = Delivered::default();
        let mut requests = self.lock();
        let request = if job.delivers_only(self.thread_index) {
            requests.deliver_ready(job, self.queue, &mut delivered);
            None
        } else {
            requests.advance(job, self.queue, now_ns, &mut delivered)?
        };
        let counts = requests.take_counts();
        let has_request = requests.has_request(job, self.queue);
        drop(requests);
        if delivered.is_awaited {
            self.shared.notify_ready(self.accelerator);
        }
        if has_request {
            self.shared.wake_reader(self.thread_index);
        }
        let counters = &mut self.io.counters;
        counters.samples += delivered.samples;
        counters.access.count_samples(counts.samples, counts.payload_bytes);
        Ok(request)
    }

    /// Executes a request and reports its end.
    fn execute(&mut self, request: Request) -> Result<(), RunError> {
        let job = &self.shared.job;
        let file = request.file();
        let start_ns = self.io.activity_end_ns();
        self.handle().file.store(file, Relaxed);
        job.layout.write_path(file, &mut self.path);
        let handle = self.io.open(&self.path, file)?;
        self.last_end = None;
        let result = match &request {
            Request::List { .. } => self.list(&handle, file),
            Request::Read { bytes: Some(bytes), .. } => self.read(&handle, file, bytes.clone()),
            Request::Read { bytes: None, .. } => {
                let length = self.io.len(&handle, file)?;
                self.read(&handle, file, 0..length)
            }
        };
        self.io.close(handle, file);
        result?;
        self.queue.add_operations(1 + u64::from(self.last_end.is_some()));
        match request {
            Request::List { .. } => {
                let ranges = self.lister.as_ref().map(|lister| lister.ranges());
                self.lock().set_ranges(file, ranges.unwrap_or_default());
            }
            Request::Read { number, .. } => {
                let latency_ns = self.io.activity_end_ns() - start_ns;
                self.io.counters.sample_latency.record(latency_ns);
                let times = self.io.task;
                self.lock().finish(number, times);
            }
        }
        Ok(())
    }

    /// Reads what the lister needs to list the ranges of a file.
    fn list(&mut self, handle: &Handle, file: u64) -> Result<(), RunError> {
        let length = self.io.len(handle, file)?;
        let Some(mut lister) = self.lister.take() else { return Ok(()) };
        let mut listed = lister.begin(length);
        while listed.is_ok()
            && let Some(needed) = lister.need()
        {
            let piece_bytes = (self.buffer.len() - 2 * ALIGN) as u64;
            let end = needed.end.min(needed.start + piece_bytes);
            let (start, block_end) = self.blocks(&(needed.start..end));
            let skipped = (needed.start - start) as usize;
            let buffer = self.buffer.aligned_like(start, (block_end - start) as usize);
            let bytes = self.io.read_piece(handle, file, start, buffer, needed.end)?;
            let end = bytes.min((end - start) as usize);
            listed = lister.feed(&buffer[skipped.min(end)..end]);
            self.io.end_decoding();
            self.count_read(file, start, bytes as u64);
        }
        self.lister = Some(lister);
        listed.map_err(|source| self.shared.job.file_error(file, source).into())
    }

    /// Reads a range and drops its bytes.
    fn read(&mut self, handle: &Handle, file: u64, range: Range<u64>) -> Result<(), RunError> {
        let (start, end) = self.blocks(&range);
        let buffer_bytes = (self.buffer.len() - ALIGN) / ALIGN * ALIGN;
        let buffer = self.buffer.aligned_like(start, buffer_bytes);
        let bytes = self.io.read_over(handle, file, start, end - start, buffer)?;
        self.count_read(file, start, bytes);
        if start + bytes < range.end {
            let source = StorageError::new(
                "read",
                &self.path,
                std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
            );
            return Err(source.into());
        }
        self.io.task.bytes += bytes;
        Ok(())
    }

    /// Returns the whole blocks that contain a range.
    fn blocks(&self, range: &Range<u64>) -> (u64, u64) {
        let start = range.start - range.start % self.block_bytes;
        (start, range.end.next_multiple_of(self.block_bytes))
    }

    fn count_read(&mut self, file: u64, start: u64, bytes: u64) {
        let position = ReadPosition::new(self.last_end.replace(start + bytes), start);
        self.shared.touched.mark(self.accelerator, file);
        self.io.count_access(bytes as usize, position);
        self.queue.add_read_bytes(bytes);
        self.log.add(file, start, bytes);
    }

    fn lock(&self) -> MutexGuard<'s, RequestQueue> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self) -> &'s WorkerHandle {
        &self.shared.workers[self.thread_index]
    }
}
