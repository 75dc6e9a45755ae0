//! The simulated driver: virtual time, a heap of events, a storage of modelled cost. Exact and repeatable.
//!
//! Bytes really come from the job's storage (usually `null` or `memory`); only time is modelled.

use super::conduct::{self, Events, Hands};
use super::job::{Job, Reading, RunError, Shard, buffer, format_error};
use super::sink::Sink;
use super::{Driver, Epoch, Pause};
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::compute::{self, Compute};
use crate::engine::{Event, Training};
use crate::loader::{Claim, Finished, Queue, Wakes, WorkerState};
use crate::reader::{Op, SampleReader};
use crate::times::TaskTimes;
use feedrate_measure::record::IoCounters;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One server of a known rate, first come first served; latencies that do not occupy it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedStorage {
    /// All readers together; `None` is infinitely fast.
    pub bytes_per_second: Option<f64>,
    /// Behind each read.
    pub latency_ns: u64,
    /// Of each open.
    pub open_ns: u64,
    /// Decoding of one worker; `None` takes no time.
    pub decode_bytes_per_second: Option<f64>,
}

/// Runs in virtual time, on the caller's thread.
pub struct SimulatedDriver {
    job: Job,
    model: SimulatedStorage,
    queues: Vec<Queue>,
    workers: Vec<SimulatedWorker>,
    buffer: AlignedBuffer,
    world: World,
    events: Events,
}

/// Virtual time and what will happen in it.
#[derive(Default)]
struct World {
    now_ns: u64,
    free_at_ns: f64,
    sequence: u64,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    woken: Vec<usize>,
    workers_each: u32,
    idle: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Timer(u32),
    Operation(usize),
}

struct SimulatedWorker {
    accelerator: u32,
    state: WorkerState,
    shard: Shard,
    reader: SampleReader,
    sink: Sink,
    reading: Option<(Reading, u64)>,
    arriving_bytes: u64,
    sample_began_ns: u64,
    times: TaskTimes,
    counters: IoCounters,
    preprocess: Box<dyn Compute>,
    /// The sample is read, and was worked on.
    preprocessed: bool,
}

impl SimulatedDriver {
    /// `job` under `model`. Groups of which one reads, samples that stay in memory and decoding threads are not modelled;
    /// files are not counted.
    ///
    /// # Errors
    /// There is no memory to read into.
    pub fn new(job: Job, model: SimulatedStorage) -> Result<Self, RunError> {
        let workers_each = job.workers();
        let workers: Vec<_> = (0..job.accelerators() * workers_each)
            .map(|place| SimulatedWorker {
                accelerator: place / workers_each,
                state: WorkerState::new(place % workers_each),
                shard: Shard::new(&job, place / workers_each),
                reader: job.reader(),
                sink: job.sink(),
                reading: None,
                arriving_bytes: 0,
                sample_began_ns: 0,
                times: TaskTimes::default(),
                counters: IoCounters::default(),
                preprocess: compute::preprocess(&job.plan.loader, u64::from(place)),
                preprocessed: false,
            })
            .collect();
        Ok(SimulatedDriver {
            model,
            queues: job.queues(),
            buffer: buffer(job.piece_bytes())?,
            world: World { workers_each, idle: vec![true; workers.len()], ..World::default() },
            workers,
            events: Events::new(),
            job,
        })
    }

    fn conduct(&mut self, training: &mut Training) -> Result<(), RunError> {
        while !self.settle(training)? {
            let Some(Reverse((at_ns, _, happening))) = self.world.heap.pop() else {
                unreachable!("the epoch is not over, and nothing will happen")
            };
            self.world.now_ns = at_ns;
            match happening {
                Happening::Timer(accelerator) => {
                    self.events.push_back((Event::ComputeDone(accelerator), None));
                }
                Happening::Operation(place) => self.step(place)?,
            }
        }
        Ok(())
    }

    /// The reads of a worker up to the next one that takes time.
    fn step(&mut self, place: usize) -> Result<(), RunError> {
        self.arrived(place);
        loop {
            if self.workers[place].reading.is_none() && !self.claim(place) {
                return Ok(());
            }
            let worker = &mut self.workers[place];
            let op =
                worker.reader.next_op().map_err(|source| format_error(&worker.reader, source))?;
            let ends_ns = match op {
                Op::Open => self.open(place)?,
                Op::Length(handle) => {
                    let length = self.job.storage.len(handle)?;
                    feed(worker, &length.to_le_bytes())?;
                    self.world.now_ns
                }
                Op::Read { handle, offset, len } => {
                    if self.buffer.len() < len + ALIGN {
                        self.buffer = buffer(len)?;
                    }
                    let buffer = self.buffer.aligned_like(offset, len);
                    let bytes = self.job.storage.read_at(handle, offset, buffer)?;
                    feed(worker, &buffer[..bytes])?;
                    worker.arriving_bytes = bytes as u64;
                    worker.counters.reads += 1;
                    let follows = worker.reader.has_read(offset, bytes as u64);
                    worker.counters.access.read(bytes as u64, follows);
                    self.served_at(place, bytes)
                }
                // All workers share the buffer: another may have read into it meanwhile.
                Op::Again { handle, offset, len } => {
                    let buffer = self.buffer.aligned_like(offset, len);
                    let bytes = self.job.storage.read_at(handle, offset, buffer)?;
                    feed(worker, &buffer[..bytes])?;
                    self.world.now_ns
                }
                Op::Kept => {
                    feed(worker, &[])?;
                    self.world.now_ns
                }
                Op::Close(handle) => {
                    self.job.storage.close(handle);
                    self.world.now_ns
                }
                Op::Done if worker.preprocessed => {
                    worker.preprocessed = false;
                    self.sample_done(place);
                    continue;
                }
                Op::Done => {
                    worker.counters.access.sample(worker.reader.payload_bytes());
                    worker.preprocessed = true;
                    let preprocess_ns = worker.preprocess.next_ns();
                    worker.counters.decode_ns += preprocess_ns;
                    worker.times.decode_ns += preprocess_ns;
                    self.world.now_ns + preprocess_ns
                }
            };
            if ends_ns > self.world.now_ns {
                self.world.schedule(ends_ns, Happening::Operation(place));
                return Ok(());
            }
            self.arrived(place);
        }
    }

    fn open(&mut self, place: usize) -> Result<u64, RunError> {
        let worker = &mut self.workers[place];
        let handle = self.job.storage.open(worker.reader.path())?;
        worker.reader.opened(handle);
        worker.counters.opens += 1;
        worker.counters.open_ns += self.model.open_ns;
        worker.times.open_ns += self.model.open_ns;
        Ok(self.world.now_ns + self.model.open_ns)
    }

    /// Bytes that were under way have come.
    fn arrived(&mut self, place: usize) {
        let worker = &mut self.workers[place];
        let bytes = std::mem::take(&mut worker.arriving_bytes);
        worker.counters.read_bytes += bytes;
        self.queues[worker.accelerator as usize].add_read_bytes(bytes);
    }

    /// When a read that begins now is done and decoded.
    fn served_at(&mut self, place: usize, bytes: usize) -> u64 {
        let now_ns = self.world.now_ns;
        let service_ns = self.model.bytes_per_second.map_or(0.0, |rate| bytes as f64 * 1e9 / rate);
        self.world.free_at_ns = self.world.free_at_ns.max(now_ns as f64) + service_ns;
        let read_ns = self.world.free_at_ns.round() as u64 + self.model.latency_ns - now_ns;
        let decode_ns =
            self.model.decode_bytes_per_second.map_or(0.0, |rate| bytes as f64 * 1e9 / rate) as u64;
        let worker = &mut self.workers[place];
        worker.counters.read_ns += read_ns;
        worker.counters.decode_ns += decode_ns;
        worker.counters.read_latency.record(read_ns);
        worker.times.read_ns += read_ns;
        worker.times.decode_ns += decode_ns;
        now_ns + read_ns + decode_ns
    }

    /// Take up new work; false, and idle, where there is none.
    fn claim(&mut self, place: usize) -> bool {
        let worker = &mut self.workers[place];
        let queue = &self.queues[worker.accelerator as usize];
        let Claim::Task(task) = self.job.loader.claim(queue, &mut worker.state) else {
            self.world.idle[place] = true;
            return false;
        };
        self.world.idle[place] = false;
        let reading = Reading::new(task, queue);
        queue.claimed(self.world.now_ns, self.job.claims_of_epoch(reading.epoch));
        worker.times = TaskTimes { begun_ns: self.world.now_ns, ..TaskTimes::default() };
        worker.shard.turn_to(&self.job.plan, reading.epoch);
        let first = reading.task.samples.start;
        worker.begin_sample(&self.job, reading, first, self.world.now_ns);
        true
    }

    fn sample_done(&mut self, place: usize) {
        let worker = &mut self.workers[place];
        worker.counters.samples += 1;
        worker.counters.sample_latency.record(self.world.now_ns - worker.sample_began_ns);
        let Some((reading, sample)) = worker.reading.take() else { return };
        if sample + 1 < reading.task.samples.end {
            return worker.begin_sample(&self.job, reading, sample + 1, self.world.now_ns);
        }
        let samples = reading.task.samples.end - reading.task.samples.start;
        let queue = &self.queues[worker.accelerator as usize];
        let accelerator = worker.accelerator;
        let finished = queue.finish(reading.task.batch, samples, worker.times);
        if finished != Finished::Partly && self.job.loader.waits_for_whole() {
            self.world.wake(accelerator, Wakes::Any);
        }
        if finished == Finished::Awaited {
            conduct::retry(
                accelerator,
                &self.queues,
                self.job.loader,
                &mut self.world,
                &mut self.events,
            );
        }
    }

    /// Handle what is due now, without moving time. True when the epoch is over.
    fn settle(&mut self, training: &mut Training) -> Result<bool, RunError> {
        loop {
            while let Some((event, _)) = self.events.pop_front() {
                let (now_ns, queues) = (self.world.now_ns, &self.queues);
                let mut done = false;
                training.on(
                    event,
                    now_ns,
                    |accelerator| queues[accelerator as usize].read_bytes(),
                    |action| {
                        let loader = self.job.loader;
                        done |= conduct::perform(
                            action,
                            now_ns,
                            queues,
                            loader,
                            &mut self.world,
                            &mut self.events,
                        );
                    },
                );
                if done {
                    return Ok(true);
                }
            }
            let Some(place) = self.world.woken.pop() else { return Ok(false) };
            if self.world.idle[place] {
                self.step(place)?;
            }
        }
    }
}

impl Driver for SimulatedDriver {
    fn epoch(&mut self, training: &mut Training, steps: u64, pause: &mut Pause<'_>) -> Epoch {
        training.prepare(steps);
        conduct::publish(steps, &self.queues, &mut self.world);
        let mut event = Event::EpochStarted;
        let failure = loop {
            self.events.push_back((event, None));
            let conducted = self.conduct(training);
            if conducted.is_err() || training.steps_done() >= steps {
                break conducted.err();
            }
            if let Err(error) = pause(training.steps_done()) {
                break Some(error);
            }
            event = Event::BlockStarted;
        };
        let mut accelerators = training.finish();
        for worker in &mut self.workers {
            accelerators[worker.accelerator as usize].io.add(&std::mem::take(&mut worker.counters));
        }
        conduct::close_epoch(&self.queues, &mut accelerators);
        Epoch { accelerators, failure }
    }

    fn now_ns(&self) -> u64 {
        self.world.now_ns
    }
}

impl World {
    fn schedule(&mut self, at_ns: u64, happening: Happening) {
        self.sequence += 1;
        self.heap.push(Reverse((at_ns, self.sequence, happening)));
    }
}

impl Hands for World {
    fn wake(&mut self, accelerator: u32, wakes: Wakes) {
        let first = (accelerator * self.workers_each) as usize;
        match wakes {
            Wakes::One(worker) => self.woken.push(first + worker as usize),
            // The last pushed is stepped first: worker 0 leads.
            Wakes::Any => self.woken.extend((first..first + self.workers_each as usize).rev()),
        }
    }

    fn compute(&mut self, accelerator: u32, _: u64, at_ns: u64) {
        self.schedule(at_ns, Happening::Timer(accelerator));
    }

    fn barrier(&mut self) -> bool {
        true
    }
}

impl SimulatedWorker {
    fn begin_sample(&mut self, job: &Job, reading: Reading, sample: u64, now_ns: u64) {
        let id = self.shard.sample(reading.step, sample);
        self.sink.begin(id, None);
        self.reader.begin(id, &job.layout);
        self.sample_began_ns = now_ns;
        self.reading = Some((reading, sample));
    }
}

fn feed(worker: &mut SimulatedWorker, bytes: &[u8]) -> Result<(), RunError> {
    let fed = worker.reader.feed(bytes, &mut worker.sink);
    fed.map_err(|source| format_error(&worker.reader, source))
}
