//! The simulated driver: runs a job in virtual time with a heap of events and a model of the storage. Results are exact and repeatable.
//!
//! Bytes are actually read from the job's storage (usually `null` or `memory`), except those of whole requests; only time is modelled.

mod requests;

use self::requests::Requester;
use crate::client::{ClientRates, ClientWork};
use crate::durations::Durations;
use crate::effects::{self, Conductor, Effects};
use crate::job::{ClaimedTask, ReadError, ReadJob, Shard};
use crate::loader::{BatchStatus, Queue, ReadTimes, WakeTarget, WorkerState};
use crate::reader::{Op, SampleReader};
use crate::requests::RequestQueue;
use crate::sink::Sink;
use crate::stepper::{StepEvent, Stepper};
use crate::virtual_time::{TimedEvent, VirtualGate, VirtualTime};
use feedrate_measure::record::{AcceleratorEpoch, IoCounters, StepCauses, access};
use feedrate_spec::workload::TimeSpec;
use std::cmp::Reverse;

/// A model of storage and cores: one server with a known rate that serves reads in order, latencies that do not occupy this server, and
/// cores that decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedStorage {
    /// Rate of all readers together; `None` for infinite.
    pub bytes_per_second: Option<f64>,
    /// Latency of each read, constant or drawn.
    pub latency: TimeSpec,
    /// Limit of concurrent reads, including their latency; further reads wait in order. `None` for no limit.
    pub concurrency: Option<u32>,
    /// Duration of each open, constant or drawn.
    pub open: TimeSpec,
    /// Decoding rate of one worker; `None` if decoding takes no time.
    pub decode_bytes_per_second: Option<f64>,
    /// Cores shared by decoding and the client's work; `None` for one for each worker.
    pub cores: Option<u32>,
}

/// Seeds for drawing latencies of reads and of opens. They are fixed, so that each run of a model gives the same result.
const LATENCY_SEEDS: [u64; 2] = [1, 2];

/// Runs a job in virtual time on the caller's thread.
pub struct SimulatedDriver {
    job: ReadJob,
    model: SimulatedStorage,
    queues: Vec<Queue>,
    workers: Vec<SimulatedWorker>,
    latencies: Durations,
    opens: Durations,
    /// Limits concurrent reads.
    readers: VirtualGate,
    /// Limits concurrent decoding of each accelerator.
    decoders: Vec<VirtualGate>,
    client_rates: ClientRates,
    buffer: Vec<u8>,
    /// The requests of each worker, if workers read whole requests.
    requests: Vec<RequestQueue>,
    /// The state of each thread that executes requests.
    requesters: Vec<Requester>,
    time: VirtualTime,
    stepper: Stepper,
    conductor: Conductor,
}

struct SimulatedWorker {
    accelerator: u32,
    state: WorkerState,
    shard: Shard,
    reader: SampleReader,
    sink: Sink,
    /// The current task and its sample being read.
    claimed_task: Option<(ClaimedTask, u64)>,
    arriving_bytes: u64,
    undecoded_bytes: u64,
    sample_start_ns: u64,
    times: ReadTimes,
    counters: IoCounters,
    preprocess: Durations,
    /// Whether the current sample is read and preprocessed.
    preprocessed: bool,
    client: ClientWork,
    /// Whether all samples of the task are read, and only its share of the client's work on the batch is left.
    only_batch_work_left: bool,
    /// Processor time used so far.
    cpu_ns: u64,
    /// Processor time at which the client's work is done; 0 if no work is pending.
    work_until_ns: u64,
    /// Bytes for which the rate that workers share is reserved once the pending work is done.
    shared_bytes: f64,
}

impl SimulatedDriver {
    /// Creates a driver of `job` with `model`. Groups that share one reader, samples kept in memory and the number of files read are not
    /// modelled. Checkpoints take no time.
    pub fn new(job: ReadJob, model: SimulatedStorage) -> Self {
        let threads_per_accelerator = job.plan.loader.threads();
        let loader = &job.plan.loader;
        let workers: Vec<_> = (0..job.accelerators() * threads_per_accelerator)
            .map(|worker_index| SimulatedWorker {
                accelerator: worker_index / threads_per_accelerator,
                state: WorkerState::new(worker_index % threads_per_accelerator),
                shard: Shard::new(&job, worker_index / threads_per_accelerator),
                reader: job.reader(),
                sink: job.sink(),
                claimed_task: None,
                arriving_bytes: 0,
                undecoded_bytes: 0,
                sample_start_ns: 0,
                times: ReadTimes::default(),
                counters: IoCounters::default(),
                preprocess: Durations::new(
                    loader.preprocess,
                    loader.worker_preprocess_seed(worker_index.into()),
                ),
                preprocessed: false,
                client: ClientWork::default(),
                only_batch_work_left: false,
                cpu_ns: 0,
                work_until_ns: 0,
                shared_bytes: 0.0,
            })
            .collect();
        let time = VirtualTime::new(&job, model.cores);
        let [latency_seed, open_seed] = LATENCY_SEEDS;
        let decoders = (0..job.accelerators()).map(|_| VirtualGate::new(loader.decode_threads));
        SimulatedDriver {
            latencies: Durations::new(model.latency, latency_seed),
            opens: Durations::new(model.open, open_seed),
            readers: VirtualGate::new(model.concurrency),
            decoders: decoders.collect(),
            client_rates: ClientRates::new(&job),
            model,
            queues: job.queues(),
            buffer: vec![0; job.buffer_bytes()],
            requests: RequestQueue::for_workers(&job),
            requesters: workers.iter().map(|_| Requester::new(&job)).collect(),
            time,
            workers,
            stepper: Stepper::new(&job.plan, job.local.clone()),
            conductor: Conductor::new(job.loader, job.accelerators()),
            job,
        }
    }

    /// Runs the next epoch with `steps` steps.
    ///
    /// # Errors
    /// A sample cannot be read.
    pub fn run_epoch(&mut self, steps: u64) -> Result<Vec<AcceleratorEpoch>, ReadError> {
        self.stepper.prepare(steps);
        self.conductor.publish(steps, &self.queues, &mut self.time);
        while self.stepper.steps_done() < steps {
            self.conductor.push(StepEvent::Started);
            self.run_block()?;
        }
        let mut accelerators = self.stepper.finish();
        for worker in &mut self.workers {
            accelerators[worker.accelerator as usize].io.add(&std::mem::take(&mut worker.counters));
        }
        effects::close_epoch(&self.queues, &mut accelerators);
        Ok(accelerators)
    }

    /// Takes the causes of the waits of all accelerators in the last epoch.
    pub fn take_causes(&mut self) -> StepCauses {
        self.stepper.take_causes()
    }

    /// Advances time from event to event until the block has ended.
    fn run_block(&mut self) -> Result<(), ReadError> {
        while !self.handle_current()? {
            let Some(Reverse((at_ns, _, due))) = self.time.heap.pop() else {
                unreachable!("the epoch has not ended, but no event is scheduled")
            };
            self.time.now_ns = at_ns;
            match due {
                TimedEvent::Timer(accelerator) => {
                    self.conductor.push(StepEvent::ComputeDone(accelerator));
                }
                TimedEvent::Received(accelerator) => {
                    self.conductor.retry(accelerator, &self.queues, &mut self.time);
                }
                TimedEvent::Started(accelerator, steps) => {
                    self.queues[accelerator as usize].publish(steps);
                    self.time.wake(accelerator, WakeTarget::Any);
                }
                TimedEvent::Operation(worker_index) => self.work(worker_index)?,
            }
        }
        Ok(())
    }

    /// Handles all events of the current time. Returns true when the block has ended.
    fn handle_current(&mut self) -> Result<bool, ReadError> {
        loop {
            while let Some((event, _)) = self.conductor.pop() {
                let block_ended = self.conductor.handle(
                    event,
                    self.time.now_ns,
                    &mut self.stepper,
                    &self.queues,
                    &mut self.time,
                );
                if block_ended {
                    return Ok(true);
                }
            }
            let Some(worker_index) = self.time.woken.pop() else { return Ok(false) };
            if self.time.idle[worker_index] {
                self.work(worker_index)?;
            }
        }
    }

    /// Executes operations of a worker up to the next one that takes time.
    fn work(&mut self, worker_index: usize) -> Result<(), ReadError> {
        if !self.requests.is_empty() {
            return self.work_on_requests(worker_index);
        }
        loop {
            self.finish_read(worker_index);
            let ends_ns =
                match self.decode(worker_index).or_else(|| self.do_client_work(worker_index)) {
                    Some(ends_ns) => ends_ns,
                    None if self.workers[worker_index].claimed_task.is_none()
                        && !self.claim(worker_index) =>
                    {
                        return Ok(());
                    }
                    None => {
                        let Some(ends_ns) = self.next_operation(worker_index)? else {
                            self.finish_sample(worker_index);
                            continue;
                        };
                        ends_ns
                    }
                };
            if ends_ns > self.time.now_ns {
                self.time.schedule(ends_ns, TimedEvent::Operation(worker_index));
                return Ok(());
            }
        }
    }

    /// Executes the next operation of a worker and returns when it ends; `None` if its sample is finished.
    fn next_operation(&mut self, worker_index: usize) -> Result<Option<u64>, ReadError> {
        let now_ns = self.time.now_ns;
        let worker = &mut self.workers[worker_index];
        if worker.only_batch_work_left {
            return Ok(None);
        }
        let op =
            worker.reader.next_op().map_err(|source| ReadError::new(&worker.reader, source))?;
        Ok(Some(match op {
            Op::Open => self.open(worker_index)?,
            Op::Length => {
                let length = self.job.storage.len(worker.reader.handle())?;
                worker.feed(&length.to_le_bytes())?;
                now_ns
            }
            Op::Read { offset, len, .. } => {
                let bytes = self.read(worker_index, offset, len)?;
                let worker = &mut self.workers[worker_index];
                worker.arriving_bytes = bytes as u64;
                worker.counters.reads += 1;
                let position = worker.reader.record_read(offset, bytes as u64);
                worker.counters.access.count_read(bytes as u64, position);
                self.serve_read(worker_index, bytes)
            }
            // Read again: all workers share the buffer, and another worker may have overwritten it.
            Op::Again { offset, len } => {
                self.read(worker_index, offset, len)?;
                now_ns
            }
            Op::Kept => {
                worker.feed(&[])?;
                now_ns
            }
            Op::Close(handle) => {
                self.job.storage.close(handle);
                now_ns
            }
            Op::Done if worker.preprocessed => {
                worker.preprocessed = false;
                return Ok(None);
            }
            Op::Done => {
                worker.add_sample_work(&self.job);
                worker.reader.count_sample(&mut worker.counters, worker.reader.path());
                worker.preprocessed = true;
                let preprocess_ns = worker.preprocess.next_ns();
                worker.counters.decode_ns += preprocess_ns;
                worker.times.decode_ns += preprocess_ns;
                now_ns.saturating_add(preprocess_ns)
            }
        }))
    }

    fn read(&mut self, worker_index: usize, offset: u64, len: usize) -> Result<usize, ReadError> {
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let handle = self.workers[worker_index].reader.handle();
        let bytes = self.job.storage.read_at(handle, offset, &mut self.buffer[..len])?;
        self.workers[worker_index].feed(&self.buffer[..bytes])?;
        Ok(bytes)
    }

    fn open(&mut self, worker_index: usize) -> Result<u64, ReadError> {
        let worker = &mut self.workers[worker_index];
        let handle = self.job.storage.open(worker.reader.path())?;
        worker.reader.set_handle(handle);
        let open_ns = self.opens.next_ns();
        worker.counters.opens += 1;
        worker.counters.open_ns += open_ns;
        worker.counters.open_latency.record(open_ns);
        worker.times.open_ns += open_ns;
        Ok(self.time.now_ns + open_ns)
    }

    /// Counts the bytes of a read that has ended.
    fn finish_read(&mut self, worker_index: usize) {
        let worker = &mut self.workers[worker_index];
        let bytes = std::mem::take(&mut worker.arriving_bytes);
        worker.counters.read_bytes += bytes;
        worker.times.bytes += bytes;
        if let Some(client) = &self.job.plan.loader.client {
            worker.work_until_ns = worker.client.add_work(client.per_byte_s * bytes as f64);
            worker.client.add_bytes(bytes);
        }
        self.queues[worker.accelerator as usize].add_read_bytes(bytes);
    }

    /// Serves a read that is requested now and returns when it is done.
    fn serve_read(&mut self, worker_index: usize, bytes: usize) -> u64 {
        let now_ns = self.time.now_ns;
        let service_ns = self.model.bytes_per_second.map_or(0.0, |rate| bytes as f64 * 1e9 / rate);
        let begins_ns = self.readers.admit(now_ns);
        let storage_free_ns = self.time.storage_free_ns.max(begins_ns as f64) + service_ns;
        self.time.storage_free_ns = storage_free_ns;
        let ends_ns =
            begins_ns.max(storage_free_ns.round() as u64).saturating_add(self.latencies.next_ns());
        self.readers.release(ends_ns);
        let read_ns = ends_ns - now_ns;
        let worker = &mut self.workers[worker_index];
        worker.counters.read_ns += read_ns;
        worker.counters.read_latency.record(read_ns);
        worker.counters.size_ns[access::bin_index(bytes as u64)] += read_ns;
        worker.times.read_ns += read_ns;
        worker.undecoded_bytes = bytes as u64;
        ends_ns
    }

    /// Decodes the bytes of a read and returns when decoding ends; `None` if there are no bytes. Waiting for a core counts as decoding;
    /// waiting for a permit to decode does not.
    fn decode(&mut self, worker_index: usize) -> Option<u64> {
        let worker = &mut self.workers[worker_index];
        let rate = self.model.decode_bytes_per_second?;
        let bytes = std::mem::take(&mut worker.undecoded_bytes);
        if bytes == 0 {
            return None;
        }
        let decoders = &mut self.decoders[worker.accelerator as usize];
        let admitted_ns = decoders.admit(self.time.now_ns);
        let decode_ns = (bytes as f64 * 1e9 / rate) as u64;
        let ends_ns = self.time.work_on_core(admitted_ns, decode_ns);
        decoders.release(ends_ns);
        worker.cpu_ns += decode_ns;
        if self.job.plan.loader.client.is_some() {
            worker.counters.client_own_ns += decode_ns;
        }
        worker.counters.decode_ns += ends_ns - admitted_ns;
        worker.times.decode_ns += ends_ns - admitted_ns;
        Some(ends_ns)
    }

    /// Does the pending work of the client and returns when it ends; `None` if no work is pending. Waiting for a core counts as work.
    fn do_client_work(&mut self, worker_index: usize) -> Option<u64> {
        let worker = &mut self.workers[worker_index];
        let work_ns = std::mem::take(&mut worker.work_until_ns).saturating_sub(worker.cpu_ns);
        if work_ns == 0 {
            return self.wait_for_shared_rate(worker_index);
        }
        let decoders = &mut self.decoders[worker.accelerator as usize];
        // Work on a complete batch needs no permit to decode.
        let now_ns = self.time.now_ns;
        let admitted_ns = if worker.only_batch_work_left { now_ns } else { decoders.admit(now_ns) };
        let ends_ns = self.time.work_on_core(admitted_ns, work_ns);
        if !worker.only_batch_work_left {
            decoders.release(ends_ns);
        }
        worker.cpu_ns += work_ns;
        worker.counters.client_burnt_ns += work_ns;
        worker.counters.client_ns += ends_ns - admitted_ns;
        worker.times.client_ns += ends_ns - admitted_ns;
        Some(ends_ns)
    }

    /// Reserves the rate that workers share for work that has ended. Returns when the worker stops waiting for it; `None` if it does not wait.
    /// As in the real driver, waiting occupies a core.
    fn wait_for_shared_rate(&mut self, worker_index: usize) -> Option<u64> {
        let worker = &mut self.workers[worker_index];
        let now_ns = self.time.now_ns;
        let bytes = std::mem::take(&mut worker.shared_bytes);
        let until_ns = self.client_rates.shared_until_ns(now_ns, bytes);
        if until_ns <= now_ns {
            return None;
        }
        let ends_ns = self.time.hold_core_until(now_ns, until_ns);
        worker.counters.client_ns += ends_ns - now_ns;
        worker.times.client_ns += ends_ns - now_ns;
        Some(ends_ns)
    }

    /// Claims a task and begins it. If there is no task, marks the worker as idle and returns false.
    fn claim(&mut self, worker_index: usize) -> bool {
        let worker = &mut self.workers[worker_index];
        let queue = &self.queues[worker.accelerator as usize];
        let Some(task) = queue.claim(self.job.loader, &mut worker.state) else {
            self.time.idle[worker_index] = true;
            return false;
        };
        self.time.idle[worker_index] = false;
        let claimed_task = ClaimedTask::new(task, queue);
        queue.count_claim(self.time.now_ns, self.job.claims_of_epoch(queue, claimed_task.epoch));
        worker.times = ReadTimes { task_start_ns: self.time.now_ns, ..ReadTimes::default() };
        worker.shard.select_epoch(&self.job.plan, claimed_task.epoch);
        worker.client.begin(worker.cpu_ns);
        let first = claimed_task.task.samples.start;
        worker.begin_sample(&self.job, claimed_task, first, self.time.now_ns);
        true
    }

    /// Finishes a sample. Then begins the next sample of the task, or the task's share of the client's work on the batch, or ends the task.
    fn finish_sample(&mut self, worker_index: usize) {
        let worker = &mut self.workers[worker_index];
        let Some((claimed_task, sample)) = worker.claimed_task.take() else { return };
        if !std::mem::take(&mut worker.only_batch_work_left) {
            worker.counters.samples += 1;
            worker.counters.sample_latency.record(self.time.now_ns - worker.sample_start_ns);
            if sample + 1 < claimed_task.task.samples.end {
                return worker.begin_sample(&self.job, claimed_task, sample + 1, self.time.now_ns);
            }
            if worker.add_batch_work(&self.job, &claimed_task) {
                worker.claimed_task = Some((claimed_task, sample));
                return;
            }
        }
        worker.times.pinned_ns =
            self.client_rates.pinned_ns(worker.accelerator, self.time.now_ns, worker.times.bytes);
        let samples = claimed_task.task.samples.end - claimed_task.task.samples.start;
        let queue = &self.queues[worker.accelerator as usize];
        let accelerator = worker.accelerator;
        let batch_status = queue.finish(claimed_task.task.batch, samples, worker.times);
        if batch_status != BatchStatus::Incomplete && self.job.loader.waits_for_complete() {
            self.time.wake(accelerator, WakeTarget::Any);
        }
        if batch_status == BatchStatus::Awaited {
            self.conductor.retry(accelerator, &self.queues, &mut self.time);
        }
    }
}

impl SimulatedWorker {
    fn begin_sample(&mut self, job: &ReadJob, claimed_task: ClaimedTask, sample: u64, now_ns: u64) {
        let id = self.shard.sample(&claimed_task, sample);
        self.sink.begin(id, None);
        self.reader.begin(id, &job.layout);
        self.sample_start_ns = now_ns;
        self.claimed_task = Some((claimed_task, sample));
    }

    /// Adds the client's work on a sample.
    fn add_sample_work(&mut self, job: &ReadJob) {
        if let Some(client) = &job.plan.loader.client {
            self.work_until_ns = self.client.add_work(client.per_sample_s);
            self.shared_bytes += self.client.end_sample(client, job.plan.loader.batch_size);
        }
    }

    /// Adds the task's share of the client's work on a batch. Returns false if no client is emulated.
    fn add_batch_work(&mut self, job: &ReadJob, claimed_task: &ClaimedTask) -> bool {
        let loader = &job.plan.loader;
        let Some(client) = &loader.client else { return false };
        let samples = &claimed_task.task.samples;
        let share = (samples.end - samples.start) as f64 / loader.batch_size as f64;
        self.work_until_ns = self.client.add_work(client.batch_s(share, self.times.bytes as f64));
        self.shared_bytes += self.client.end_task();
        self.only_batch_work_left = true;
        true
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let result = self.reader.feed(bytes, &mut self.sink);
        result.map_err(|source| ReadError::new(&self.reader, source))
    }
}
