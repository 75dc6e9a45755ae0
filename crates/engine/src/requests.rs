//! The requests of one worker that reads whole files or row groups, several at a time and ahead of the batches that are requested.
//!
//! MLPerf Storage v3's client reads so. Requests are issued in the order of the worker's samples, may finish in any order, and batches are
//! delivered in order. Nothing that was read is kept.

use crate::job::{ClaimedTask, ReadError, ReadJob, Shard};
use crate::loader::{BatchStatus, Horizon, Queue, ReadTimes, WorkerState};
use feedrate_data::format::{FileRange, FormatError};
use feedrate_spec::plan::order::SampleId;
use feedrate_spec::plan::{ReadAhead, RequestPlan, RequestUnit};
use std::collections::VecDeque;
use std::ops::Range;

/// The requests of one worker.
pub struct RequestQueue {
    plan: RequestPlan,
    worker: u32,
    shard: Shard,
    /// Claims of the samples to request.
    requesting: WorkerState,
    /// The task being requested, and its next sample.
    requested_task: Option<(ClaimedTask, u64)>,
    /// Claims of the batches to deliver.
    delivering: WorkerState,
    /// The task that is delivered once its samples are ready.
    delivered_task: Option<ClaimedTask>,
    epoch: u32,
    listing: Listing,
    /// File and samples of the last request.
    covered: Option<(u64, Range<u64>)>,
    /// Requests of the epoch from number `first` on: the one with the last delivered sample, and all later ones.
    requests: VecDeque<IssuedRequest>,
    first: u64,
    /// End of the requests that have finished, together with all earlier ones.
    finished: u64,
    /// End of the requests with samples that can be delivered.
    ready: u64,
    /// Samples of this epoch that were delivered.
    delivered_samples: u64,
    /// Whether all samples of the epoch are requested.
    is_exhausted: bool,
    /// Times of the ready requests since the last delivery.
    times: Option<ReadTimes>,
    /// Start of the requests of the last delivery.
    last_start_ns: u64,
    counts: RequestedSamples,
}

/// A request to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read the ranges of a file, and pass them to [`RequestQueue::set_ranges`].
    List {
        /// Number of the file.
        file: u64,
    },
    /// Read bytes of a file, and report the end by [`RequestQueue::finish`].
    Read {
        /// Number of the request within its epoch.
        number: u64,
        /// Number of the file.
        file: u64,
        /// The bytes to read; `None` for the whole file.
        bytes: Option<Range<u64>>,
    },
}

impl Request {
    /// Returns the number of its file.
    pub fn file(&self) -> u64 {
        match self {
            Request::List { file } | Request::Read { file, .. } => *file,
        }
    }
}

/// Samples that were requested, and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedSamples {
    /// Number of samples.
    pub samples: u64,
    /// Payload of the samples; `None` if it is unknown.
    pub payload_bytes: Option<u64>,
}

/// Batches that were delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Number of their samples.
    pub samples: u64,
    /// Whether the accelerator waits for one of them: it has to be notified.
    pub is_awaited: bool,
}

#[derive(Default)]
struct IssuedRequest {
    /// Number of samples of the epoch up to the end of this request.
    end_samples: u64,
    is_finished: bool,
    times: ReadTimes,
}

/// The ranges of the worker's files. As in MLPerf's client, all files are listed before the first request of an epoch.
#[derive(Default)]
struct Listing {
    files: Vec<u64>,
    ranges: Vec<Vec<FileRange>>,
    /// Number of files whose listing was requested.
    requested: usize,
    /// Index of the file that is read.
    current: usize,
}

impl RequestQueue {
    /// Creates the requests of all workers of this process; none if workers read samples one by one.
    pub fn for_workers(job: &ReadJob) -> Vec<RequestQueue> {
        let Some(plan) = job.plan.loader.requests else { return Vec::new() };
        let workers = job.workers();
        let indices = 0..job.accelerators() * workers;
        indices.map(|i| RequestQueue::new(job, plan, i / workers, i % workers)).collect()
    }

    /// Creates the requests of a worker of an accelerator, which is numbered within this process.
    fn new(job: &ReadJob, plan: RequestPlan, accelerator: u32, worker: u32) -> Self {
        let horizon = if plan.ahead == ReadAhead::None { Horizon::Open } else { Horizon::Epoch };
        let ahead = match plan.ahead {
            ReadAhead::None => 0,
            ReadAhead::Windows(requests) | ReadAhead::Sliding(requests) => requests,
        };
        RequestQueue {
            plan,
            worker,
            shard: Shard::new(job, accelerator),
            requesting: WorkerState::new(worker).with_horizon(horizon),
            requested_task: None,
            delivering: WorkerState::new(worker),
            delivered_task: None,
            epoch: 0,
            listing: Listing::default(),
            covered: None,
            requests: VecDeque::with_capacity(2 * ahead as usize + plan.in_flight as usize),
            first: 0,
            finished: 0,
            ready: 0,
            delivered_samples: 0,
            is_exhausted: false,
            times: None,
            last_start_ns: 0,
            counts: RequestedSamples { samples: 0, payload_bytes: Some(0) },
        }
    }

    /// Delivers all batches that are ready, and returns the next request that may begin at `now_ns`, if any.
    ///
    /// # Errors
    /// A file does not hold a sample of the plan.
    pub fn advance(
        &mut self,
        job: &ReadJob,
        queue: &Queue,
        now_ns: u64,
        delivered: &mut Delivered,
    ) -> Result<Option<Request>, ReadError> {
        let mut request = None;
        loop {
            // What may be requested depends on what is to be delivered.
            self.claim_delivery(job, queue);
            if request.is_none() {
                request = self.next_request(job, queue, now_ns)?;
            }
            if !self.deliver(queue, delivered) {
                return Ok(request);
            }
        }
    }

    /// Delivers all batches that are ready.
    pub fn deliver_ready(&mut self, job: &ReadJob, queue: &Queue, delivered: &mut Delivered) {
        self.claim_delivery(job, queue);
        while self.deliver(queue, delivered) {
            self.claim_delivery(job, queue);
        }
    }

    /// Whether a request may begin.
    pub fn has_request(&mut self, job: &ReadJob, queue: &Queue) -> bool {
        if !self.claim_task(job, queue) {
            return false;
        }
        let listing = &self.listing;
        if listing.is_complete() { self.may_request() } else { listing.may_continue() }
    }

    /// Sets the ranges of a file that was listed.
    pub fn set_ranges(&mut self, file: u64, ranges: Vec<FileRange>) {
        let index = self.listing.ranges.len();
        debug_assert_eq!(self.listing.files.get(index), Some(&file));
        self.listing.ranges.push(ranges);
    }

    /// Reports that a request of the current epoch has finished.
    pub fn finish(&mut self, number: u64, times: ReadTimes) {
        let index = (number - self.first) as usize;
        self.requests[index].is_finished = true;
        self.requests[index].times = times;
        while self.request(self.finished).is_some_and(|request| request.is_finished) {
            self.finished += 1;
        }
        self.update_ready();
    }

    /// Takes the counts of samples that were requested since the last call.
    pub fn take_counts(&mut self) -> RequestedSamples {
        std::mem::replace(&mut self.counts, RequestedSamples { samples: 0, payload_bytes: Some(0) })
    }

    /// Returns the end of the requests that were issued.
    fn issued(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    fn request(&self, number: u64) -> Option<&IssuedRequest> {
        self.requests.get(number.checked_sub(self.first)? as usize)
    }

    fn update_ready(&mut self) {
        let ready = match self.plan.ahead {
            ReadAhead::Windows(window)
                if !(self.is_exhausted && self.finished == self.issued()) =>
            {
                self.finished - self.finished % u64::from(window)
            }
            _ => self.finished,
        };
        for number in self.ready..ready {
            let Some(times) = self.request(number).map(|request| request.times) else { continue };
            match &mut self.times {
                Some(sum) => sum.add(times),
                None => self.times = Some(times),
            }
        }
        self.ready = ready;
    }

    /// Returns the next request that may begin, if any.
    fn next_request(
        &mut self,
        job: &ReadJob,
        queue: &Queue,
        now_ns: u64,
    ) -> Result<Option<Request>, ReadError> {
        while self.claim_task(job, queue) {
            if !self.listing.is_complete() {
                return Ok(self.listing.next());
            }
            let Some((task, sample)) = &self.requested_task else { break };
            let id = self.shard.sample(task, *sample);
            let covered = self.covered.as_ref().filter(|(file, _)| *file == id.file);
            if covered.is_some_and(|(_, samples)| samples.contains(&id.sample)) {
                self.count_samples(job, queue, now_ns, id);
                continue;
            }
            if !self.may_request() {
                return Ok(None);
            }
            let range = self.range_of(job, id)?;
            self.covered = Some((id.file, range.first_sample..range.first_sample + range.samples));
            let number = self.issued();
            let last = self.requests.back();
            let end_samples = last.map_or(self.delivered_samples, |last| last.end_samples);
            self.requests.push_back(IssuedRequest { end_samples, ..IssuedRequest::default() });
            self.count_samples(job, queue, now_ns, id);
            let bytes = (!range.bytes.is_empty()).then_some(range.bytes);
            return Ok(Some(Request::Read { number, file: id.file, bytes }));
        }
        Ok(None)
    }

    /// Claims the next task if all samples of the previous one are requested. Returns false if there is none.
    fn claim_task(&mut self, job: &ReadJob, queue: &Queue) -> bool {
        let task = self.requested_task.as_ref();
        if task.is_some_and(|(task, sample)| *sample < task.task.samples.end) {
            return true;
        }
        self.requested_task = None;
        let Some(task) = queue.claim(job.loader, &mut self.requesting) else {
            self.is_exhausted = self.plan.ahead != ReadAhead::None;
            self.update_ready();
            return false;
        };
        let task = ClaimedTask::new(task, queue);
        if task.epoch != self.epoch {
            self.begin_epoch(job, queue, task.epoch);
        }
        let first = task.task.samples.start;
        self.requested_task = Some((task, first));
        true
    }

    /// Forgets the requests of the previous epoch. All of its batches were delivered.
    fn begin_epoch(&mut self, job: &ReadJob, queue: &Queue, epoch: u32) {
        self.epoch = epoch;
        self.shard.select_epoch(&job.plan, epoch);
        self.covered = None;
        self.requests.clear();
        (self.first, self.finished, self.ready) = (0, 0, 0);
        self.delivered_samples = 0;
        self.is_exhausted = false;
        self.times = None;
        self.listing = Listing::default();
        if self.plan.unit == RequestUnit::RowGroup && job.has_files() {
            let positions = queue.positions(u64::from(epoch) - 1, self.worker);
            let files = positions.map(|positions| self.shard.files_of(positions));
            self.listing.files = files.unwrap_or_default();
        }
    }

    /// Adds the samples from `id` on, up to the end of the task or of the last request, to the last request.
    fn count_samples(&mut self, job: &ReadJob, queue: &Queue, now_ns: u64, id: SampleId) {
        let Some((task, sample)) = &mut self.requested_task else { return };
        if *sample == task.task.samples.start {
            queue.count_claim(now_ns, job.claims_of_epoch(queue, task.epoch));
        }
        let end = self.covered.as_ref().map_or(id.sample, |(_, samples)| samples.end);
        let samples = (end - id.sample).min(task.task.samples.end - *sample);
        *sample += samples;
        if let Some(last) = self.requests.back_mut() {
            last.end_samples += samples;
        }
        self.counts.samples += samples;
        let payload = self.counts.payload_bytes.zip(job.sample_bytes(id.file));
        self.counts.payload_bytes = payload.map(|(sum, bytes)| sum + bytes * samples);
    }

    /// Whether the plan allows another request.
    fn may_request(&self) -> bool {
        let next = self.issued();
        let delivering = self.delivering_number();
        match self.plan.ahead {
            ReadAhead::None => true,
            ReadAhead::Sliding(requests) => next <= delivering + u64::from(requests),
            ReadAhead::Windows(window) => {
                let window_start = next - next % u64::from(window);
                let delivered_window = delivering / u64::from(window);
                next / u64::from(window) <= delivered_window + 1 && window_start <= self.finished
            }
        }
    }

    /// Returns the number of the request that the next delivery waits for.
    fn delivering_number(&self) -> u64 {
        let pending = self.delivered_task.as_ref().map_or(0, ClaimedTask::samples);
        let needed = self.delivered_samples + pending;
        let before = self.requests.iter().take_while(|request| request.end_samples < needed);
        self.first + before.count() as u64
    }

    /// Returns the range with a sample that is not covered by the last request. The range of bytes is empty for a whole file.
    fn range_of(&mut self, job: &ReadJob, id: SampleId) -> Result<FileRange, ReadError> {
        if !job.has_files() {
            return Ok(job.planned_range(id));
        }
        if self.plan.unit == RequestUnit::File {
            return Ok(FileRange { first_sample: id.sample, samples: 1, bytes: 0..0 });
        }
        let listing = &mut self.listing;
        while listing.files.get(listing.current).is_some_and(|file| *file != id.file) {
            listing.current += 1;
        }
        let ranges = listing.ranges.get(listing.current).map_or(&[][..], Vec::as_slice);
        let after = ranges.partition_point(|range| range.first_sample <= id.sample);
        let found = after.checked_sub(1).map(|index| ranges[index].clone());
        found.filter(|range| id.sample - range.first_sample < range.samples).ok_or_else(|| {
            let samples = ranges.last().map_or(0, |range| range.first_sample + range.samples);
            let message = format!("holds {samples} rows, so there is no sample {}", id.sample);
            let source = FormatError { samples: Some(samples), ..FormatError::new(0, message) };
            job.file_error(id.file, source)
        })
    }

    /// Claims the next task of an open batch for delivery.
    fn claim_delivery(&mut self, job: &ReadJob, queue: &Queue) {
        if self.delivered_task.is_none() {
            let task = queue.claim(job.loader, &mut self.delivering);
            self.delivered_task = task.map(|task| ClaimedTask::new(task, queue));
        }
    }

    /// Delivers the claimed task if all its samples are ready. Returns false if they are not.
    fn deliver(&mut self, queue: &Queue, delivered: &mut Delivered) -> bool {
        let claimed = self.delivered_task.take_if(|task| task.epoch == self.epoch);
        let Some(task) = claimed else { return false };
        let samples = task.samples();
        let last_ready = self.ready.checked_sub(1).and_then(|last| self.request(last));
        let ready_samples = last_ready.map_or(self.delivered_samples, |last| last.end_samples);
        if ready_samples < self.delivered_samples + samples {
            self.delivered_task = Some(task);
            return false;
        }
        self.delivered_samples += samples;
        // The request with the last delivered sample stays, since it is the current one until the next delivery.
        let end = self.delivered_samples;
        while self.requests.front().is_some_and(|first| first.end_samples < end) {
            self.requests.pop_front();
            self.first += 1;
        }
        // A batch may consist of samples that an earlier batch was read with.
        let no_times = ReadTimes { task_start_ns: self.last_start_ns, ..ReadTimes::default() };
        let times = self.times.take().unwrap_or(no_times);
        self.last_start_ns = times.task_start_ns;
        let status = queue.finish(task.task.batch, samples, times);
        delivered.samples += samples;
        delivered.is_awaited |= status == BatchStatus::Awaited;
        true
    }
}

impl Listing {
    fn is_complete(&self) -> bool {
        self.ranges.len() == self.files.len()
    }

    /// Whether the next file may be listed, because the previous one is.
    fn may_continue(&self) -> bool {
        self.ranges.len() == self.requested
    }

    /// Requests the next file.
    fn next(&mut self) -> Option<Request> {
        if !self.may_continue() {
            return None;
        }
        let file = self.files[self.requested];
        self.requested += 1;
        Some(Request::List { file })
    }
}
