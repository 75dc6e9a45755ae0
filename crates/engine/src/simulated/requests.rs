//! Whole requests in virtual time. A request takes an open, then one read of all its bytes; the bytes themselves are not read.

use super::SimulatedDriver;
use crate::job::{ReadError, ReadJob};
use crate::loader::ReadTimes;
use crate::requests::{Delivered, Request};
use crate::virtual_time::TimedEvent;
use feedrate_data::format::Lister;
use feedrate_data::storage::Handle;
use feedrate_measure::record::access::ReadPosition;
use std::ops::Range;

/// A thread that executes one request after another.
pub(super) struct Requester {
    lister: Option<Box<dyn Lister>>,
    path: String,
    /// The request in progress and its open file.
    open: Option<(Request, Handle)>,
    start_ns: u64,
    times: ReadTimes,
    /// Whether all bytes of the request were read.
    is_read: bool,
    last_end: Option<u64>,
}

impl Requester {
    pub(super) fn new(job: &ReadJob) -> Self {
        Requester {
            lister: job.lister().filter(|_| job.plan.loader.requests.is_some()),
            path: String::new(),
            open: None,
            start_ns: 0,
            times: ReadTimes::default(),
            is_read: false,
            last_end: None,
        }
    }
}

impl SimulatedDriver {
    /// Executes operations of a thread up to the next one that takes time.
    pub(super) fn work_on_requests(&mut self, thread: usize) -> Result<(), ReadError> {
        loop {
            self.finish_read(thread);
            let ends_ns = match self.requesters[thread].open.take() {
                Some((request, handle)) => match self.next_range(thread, &request, &handle)? {
                    Some(range) => {
                        let ends_ns = self.read_range(thread, &request, &handle, range)?;
                        self.requesters[thread].open = Some((request, handle));
                        ends_ns
                    }
                    None => {
                        self.job.storage.close(handle);
                        self.end_request(thread, request);
                        continue;
                    }
                },
                None => match self.begin_request(thread)? {
                    Some(ends_ns) => ends_ns,
                    None => return Ok(()),
                },
            };
            if ends_ns > self.time.now_ns {
                self.time.schedule(ends_ns, TimedEvent::Operation(thread));
                return Ok(());
            }
        }
    }

    /// Begins the next request and returns when its file is open; `None` if there is no request.
    fn begin_request(&mut self, thread: usize) -> Result<Option<u64>, ReadError> {
        let now_ns = self.time.now_ns;
        let accelerator = self.workers[thread].accelerator;
        let worker = thread / self.threads_per_worker();
        let requests = &mut self.requests[worker];
        let queue = &self.queues[accelerator as usize];
        let mut delivered = Delivered::default();
        let request = if self.job.delivers_only(thread) {
            requests.deliver_ready(&self.job, queue, &mut delivered);
            None
        } else {
            requests.advance(&self.job, queue, now_ns, &mut delivered)?
        };
        let has_request = requests.has_request(&self.job, queue);
        let counts = requests.take_counts();
        let counters = &mut self.workers[thread].counters;
        counters.samples += delivered.samples;
        counters.access.count_samples(counts.samples, counts.payload_bytes);
        self.time.idle[thread] = request.is_none();
        if delivered.is_awaited {
            self.conductor.retry(accelerator, &self.queues, &mut self.time);
        }
        if has_request {
            self.wake_reader(thread);
        }
        let Some(request) = request else { return Ok(None) };
        let requester = &mut self.requesters[thread];
        self.job.layout.write_path(request.file(), &mut requester.path);
        let handle = self.job.storage.open(&requester.path)?;
        requester.is_read = false;
        requester.last_end = None;
        requester.start_ns = now_ns;
        requester.times = ReadTimes { task_start_ns: now_ns, ..ReadTimes::default() };
        if let (Request::List { .. }, Some(lister)) = (&request, &mut requester.lister) {
            let started = lister.begin(self.job.storage.len(&handle)?);
            started.map_err(|source| self.job.file_error(request.file(), source))?;
        }
        requester.open = Some((request, handle));
        let open_ns = self.opens.next_ns();
        self.requesters[thread].times.open_ns = open_ns;
        let counters = &mut self.workers[thread].counters;
        counters.opens += 1;
        counters.open_ns += open_ns;
        counters.open_latency.record(open_ns);
        Ok(Some(now_ns + open_ns))
    }

    /// Returns the bytes that the request reads next; `None` if it has read all.
    fn next_range(
        &mut self,
        thread: usize,
        request: &Request,
        handle: &Handle,
    ) -> Result<Option<Range<u64>>, ReadError> {
        let requester = &mut self.requesters[thread];
        Ok(match request {
            Request::List { .. } => requester.lister.as_ref().and_then(|lister| lister.need()),
            Request::Read { .. } if std::mem::replace(&mut requester.is_read, true) => None,
            Request::Read { bytes: Some(bytes), .. } => Some(bytes.clone()),
            Request::Read { bytes: None, .. } => Some(0..self.job.storage.len(handle)?),
        })
    }

    /// Reads a range and returns when the read ends.
    fn read_range(
        &mut self,
        thread: usize,
        request: &Request,
        handle: &Handle,
        range: Range<u64>,
    ) -> Result<u64, ReadError> {
        let bytes = range.end - range.start;
        let requester = &mut self.requesters[thread];
        if let (Request::List { file }, Some(lister)) = (request, &mut requester.lister) {
            let mut read = vec![0; bytes as usize];
            let read_bytes = self.job.storage.read_at(handle, range.start, &mut read)?;
            let fed = lister.feed(&read[..read_bytes]);
            fed.map_err(|source| self.job.file_error(*file, source))?;
        }
        let position = ReadPosition::new(requester.last_end.replace(range.end), range.start);
        let worker = &mut self.workers[thread];
        worker.counters.reads += 1;
        worker.counters.access.count_read(bytes, position);
        worker.arriving_bytes = bytes;
        let ends_ns = self.serve_read(thread, bytes as usize);
        // Requests are not decoded.
        self.workers[thread].undecoded_bytes = 0;
        let times = &mut self.requesters[thread].times;
        times.read_ns += ends_ns - self.time.now_ns;
        times.bytes += bytes;
        Ok(ends_ns)
    }

    fn end_request(&mut self, thread: usize, request: Request) {
        let worker = thread / self.threads_per_worker();
        let requester = &self.requesters[thread];
        let requests = &mut self.requests[worker];
        match request {
            Request::List { file } => {
                let ranges = requester.lister.as_ref().map(|lister| lister.ranges());
                requests.set_ranges(file, ranges.unwrap_or_default());
            }
            Request::Read { number, .. } => {
                requests.finish(number, requester.times);
                let latency_ns = self.time.now_ns - requester.start_ns;
                self.workers[thread].counters.sample_latency.record(latency_ns);
            }
        }
    }

    /// Wakes an idle thread of the same worker for a request.
    fn wake_reader(&mut self, thread: usize) {
        let first = thread - thread % self.threads_per_worker();
        let mut readers = first..first + self.threads_per_worker();
        let is_idle = |reader: &usize| self.time.idle[*reader] && !self.job.delivers_only(*reader);
        if let Some(reader) = readers.find(is_idle) {
            self.time.woken.push(reader);
        }
    }

    fn threads_per_worker(&self) -> usize {
        self.job.plan.loader.threads_per_worker() as usize
    }
}
