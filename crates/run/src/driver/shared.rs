//! The state that the conductor of the real driver and its workers share.

use super::client::Receiver;
use super::error::RunError;
use super::memory::SampleMemory;
use super::memory_read::MemoryRead;
use super::placement::Placement;
use super::touched::Touched;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::layers::{self, GroupStorages};
use crate::op_log::OpLog;
use crossbeam_queue::ArrayQueue;
use feedrate_data::storage::ReadStorage;
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader::Queue;
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::ranges::RangeLog;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

/// Operations of all workers of a process that are kept of an epoch, where they are traced: 450 MiB at most.
const OPS_MAX: usize = 1 << 23;

/// One job being read.
pub(super) struct Shared {
    pub(super) job: ReadJob,
    pub(super) placement: Placement,
    groups: GroupStorages,
    /// Storage of each group, where nothing of `groups` is in its place.
    own: Vec<Arc<dyn ReadStorage>>,
    pub(super) clock: Clock,
    /// Operations that a worker may log of an epoch; `None` where nobody traces them.
    pub(super) room_for_ops: Option<usize>,
    pub(super) queues: Vec<Queue>,
    pub(super) workers: Vec<WorkerHandle>,
    pub(super) stop: Arc<AtomicBool>,
    /// Workers that wait for their first work, or have failed.
    pub(super) started: AtomicU32,
    pub(super) flush_wanted: AtomicU32,
    pub(super) flushed: AtomicU32,
    /// Accelerators whose missing batch is whole.
    pub(super) ready: ArrayQueue<u32>,
    /// Accelerators whose step a device has carried out.
    pub(super) computed: ArrayQueue<u32>,
    pub(super) conductor: Thread,
    pub(super) failure: Mutex<Option<RunError>>,
    pub(super) kept: Vec<Mutex<Vec<u8>>>,
    /// Samples that were read once, where they stay.
    pub(super) memory: Option<SampleMemory>,
    /// Where a client's work is burnt, what of reading is a part of it.
    pub(super) memory_read: Option<MemoryRead>,
    /// Files that each accelerator read in this epoch.
    pub(super) touched: Touched,
    /// One for each reading accelerator, where not all its workers may decode at once.
    pub(super) decoders: Vec<Gate>,
    /// One for each accelerator, where its process takes batches over or starts workers.
    pub(super) receivers: Vec<Receiver>,
}

/// A worker as the conductor sees it. Each writes its own with every sample: none shares a cache line, or a pair of them, with another.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct WorkerHandle {
    pub(super) idle: AtomicBool,
    /// It is in a read call, where a client's work is burnt beside it.
    pub(super) reads: AtomicBool,
    /// Number of the file in hand.
    pub(super) file: AtomicU64,
    /// One for each accelerator it reads for.
    pub(super) counted: Mutex<Vec<LaneCounts>>,
    pub(super) thread: OnceLock<Thread>,
}

/// Reads of a worker for one accelerator.
pub(super) struct LaneCounts {
    pub(super) counters: IoCounters,
    pub(super) log: RangeLog,
    pub(super) ops: Option<OpLog>,
}

impl Shared {
    pub(super) fn new(
        job: ReadJob,
        groups: GroupStorages,
        clock: Clock,
        stop: Arc<AtomicBool>,
        traces: bool,
    ) -> Self {
        let (placement, loader) = (Placement::new(&job), &job.plan.loader);
        let accelerators = job.accelerators() as usize;
        let own = (0..placement.groups()).map(|group| {
            let takers = placement.accelerators_of(group * job.workers() as usize).len() as u32;
            if loader.is_broadcast() {
                layers::read_once(&job.storage, takers)
            } else {
                Arc::clone(&job.storage)
            }
        });
        let mut shared = Shared {
            ready: ArrayQueue::new(accelerators),
            computed: ArrayQueue::new(accelerators),
            room_for_ops: traces.then(|| OPS_MAX / (accelerators * job.workers() as usize).max(1)),
            queues: job.queues(),
            workers: (0..placement.places()).map(|_| WorkerHandle::default()).collect(),
            own: own.collect(),
            groups,
            stop,
            started: AtomicU32::new(0),
            flush_wanted: AtomicU32::new(0),
            flushed: AtomicU32::new(0),
            conductor: std::thread::current(),
            failure: Mutex::new(None),
            kept: Vec::new(),
            memory: loader.in_memory.then(|| SampleMemory::new(placement.groups())),
            memory_read: loader.client.as_ref().and_then(|_| MemoryRead::measure()),
            touched: Touched::new(job.accelerators(), job.layout.files()),
            decoders: Vec::new(),
            receivers: Vec::new(),
            placement,
            job,
            clock,
        };
        let loader = &shared.job.plan.loader;
        if loader.materialize {
            let batches = accelerators * loader.batches_in_flight.max(1) as usize;
            shared.kept.resize_with(batches * loader.batch_size as usize, Mutex::default);
        }
        if let Some(threads) = loader.decode_threads {
            shared.decoders.resize_with(accelerators, || Gate::new(threads));
        }
        if loader.receive_s(1.0, loader.workers) != [0.0; 2] || loader.start_s() > 0.0 {
            shared.receivers.resize_with(accelerators, Receiver::default);
        }
        shared
    }

    /// The storage that the worker at `place` reads.
    pub(super) fn storage_of(&self, place: usize) -> &Arc<dyn ReadStorage> {
        let GroupStorages { asked, served } = &self.groups;
        let (group, worker) = (self.placement.group_of(place), self.placement.worker_of(place));
        let others = match group {
            0 if !asked.is_empty() => asked,
            last if last + 1 == self.placement.groups() => served,
            _ => return &self.own[group],
        };
        others.get(worker as usize).unwrap_or(&self.own[group])
    }

    /// The file that the worker at `place` reads, or read last.
    pub(super) fn file_of(&self, place: usize) -> Option<String> {
        let (file, mut path) = (self.workers[place].file.load(Relaxed), String::new());
        (file < self.job.layout.files()).then(|| self.job.layout.write_path(file, &mut path))?;
        Some(path)
    }

    /// A batch that an accelerator waits for is whole.
    pub(super) fn tell(&self, accelerator: u32) {
        // One accelerator waits for one batch at a time, so there is always room.
        let _ = self.ready.push(accelerator);
        self.conductor.unpark();
    }

    /// A device has carried out a step.
    pub(super) fn computed(&self, accelerator: u32) {
        // One accelerator is in one step at a time, so there is always room.
        let _ = self.computed.push(accelerator);
        self.conductor.unpark();
    }

    /// The first error stops everything.
    pub(super) fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Release);
        self.conductor.unpark();
    }

    pub(super) fn device_error(&self, problem: String) -> RunError {
        RunError::Device {
            compute: self.job.plan.train.on_devices.clone().unwrap_or_default(),
            problem,
        }
    }

    pub(super) fn fail_device(&self, problem: String) {
        self.fail(self.device_error(problem));
    }

    /// A worker is ready for its first work.
    pub(super) fn worker_started(&self) {
        if self.started.fetch_add(1, SeqCst) + 1 == self.workers.len() as u32 {
            self.conductor.unpark();
        }
    }

    pub(super) fn worker_flushed(&self) {
        self.flushed.fetch_add(1, SeqCst);
        self.conductor.unpark();
    }

    /// Wake those who may have work because the batch that `place` worked on is whole.
    pub(super) fn wake_siblings(&self, place: usize) {
        let accelerator = self.placement.accelerators_of(place).start;
        for sibling in self.placement.places_of(accelerator) {
            let worker = &self.workers[sibling as usize];
            if sibling as usize != place && worker.idle.load(SeqCst) {
                worker.unpark();
            }
        }
    }

    /// How many of those who read for `accelerator` are at work, and do not wait for the storage.
    pub(super) fn at_work(&self, accelerator: u32) -> u32 {
        let places = self.placement.places_of(accelerator);
        let own = &self.workers[places.start as usize..places.end as usize];
        own.iter().map(|worker| u32::from(worker.is_at_work())).sum()
    }

    /// Wake those who read for `accelerator`.
    pub(super) fn wake_workers(&self, accelerator: u32) {
        for place in self.placement.places_of(accelerator) {
            self.workers[place as usize].unpark();
        }
    }

    /// Lets the worker at `place` decode; `None` where all may.
    pub(super) fn decoders(&self, place: usize) -> Option<&Gate> {
        self.decoders.get(self.placement.group_of(place))
    }

    /// Memory for one sample of a batch in flight, where batches are kept.
    pub(super) fn kept_sample(
        &self,
        accelerator: u32,
        slot: usize,
        sample: u64,
    ) -> Option<&Mutex<Vec<u8>>> {
        let loader = &self.job.plan.loader;
        let slots = loader.batches_in_flight.max(1) as usize;
        let batch = accelerator as usize * slots + slot;
        self.kept.get(batch * loader.batch_size as usize + sample as usize)
    }
}

/// Ends the run if its worker panics: nobody else would notice.
pub(super) struct Guard<'s> {
    pub(super) shared: &'s Shared,
    pub(super) accelerator: u32,
    pub(super) worker: u32,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (accelerator, worker) = (self.accelerator, self.worker);
            self.shared.fail(RunError::Broken { accelerator, worker });
        }
    }
}

impl WorkerHandle {
    fn is_at_work(&self) -> bool {
        !self.idle.load(Relaxed) && !self.reads.load(Relaxed)
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
