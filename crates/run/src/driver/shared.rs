//! State shared by the conductor and the workers of the real driver.

use super::client::Receiver;
use super::error::RunError;
use super::memory::SampleMemory;
use super::memory_read::MemoryRead;
use super::placement::Placement;
use super::touched::TouchedFiles;
use crate::buffer::ALIGN;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::layers::{self, GroupStorages, RecordedStorage};
use crate::live::LiveLoader;
use crate::op_log::OpLog;
use crossbeam_queue::ArrayQueue;
use feedrate_data::storage::{ReadStorage, engine};
use feedrate_engine::client::ClientRates;
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader::{Queue, WakeTarget};
use feedrate_engine::requests::RequestQueue;
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::ranges::RangeLog;
use feedrate_spec::catalog::Ability;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

/// Capacity of the operation logs of all workers of a process: at most 450 MiB.
const OPS_MAX: usize = 1 << 23;

/// State of one job.
pub(super) struct Shared {
    pub(super) job: ReadJob,
    pub(super) placement: Placement,
    groups: GroupStorages,
    /// Storage of each group that is in this process alone.
    storages: Vec<Arc<dyn ReadStorage>>,
    pub(super) clock: Clock,
    /// Capacity of each operation log; `None` if the run is not traced.
    pub(super) op_log_capacity: Option<usize>,
    pub(super) queues: Vec<Queue>,
    /// The requests of each worker, if workers read whole requests.
    pub(super) requests: Vec<Mutex<RequestQueue>>,
    pub(super) workers: Vec<WorkerHandle>,
    pub(super) stop: Arc<AtomicBool>,
    /// Number of workers that have finished starting.
    pub(super) started: AtomicU32,
    /// Number of the latest request for counters.
    pub(super) flush_wanted: AtomicU32,
    /// Number of workers that have answered the latest request.
    pub(super) flushed: AtomicU32,
    /// Accelerators that wait for a batch that is now complete.
    pub(super) ready: ArrayQueue<u32>,
    /// Accelerators with compute that a device has finished.
    pub(super) computed: ArrayQueue<u32>,
    pub(super) conductor: Thread,
    pub(super) failure: Mutex<Option<RunError>>,
    /// Memory of the samples of batches in flight, if batches are kept.
    pub(super) kept: Vec<Mutex<Vec<u8>>>,
    /// Samples kept in memory, if the loader keeps them.
    pub(super) memory: Option<SampleMemory>,
    /// Cost of reads from memory, if a client's work is emulated.
    pub(super) memory_read: Option<MemoryRead>,
    pub(super) client_rates: ClientRates,
    /// Files that each accelerator read in this epoch.
    pub(super) touched: TouchedFiles,
    /// One gate for each group, if the number of decoding threads is limited.
    pub(super) decode_gates: Vec<Gate>,
    /// One for each accelerator, if receiving batches or starting workers takes time.
    pub(super) receivers: Vec<Receiver>,
}

/// The conductor's view of a worker. Workers write to their handles at every sample, so each handle has a pair of cache lines to
/// itself.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct WorkerHandle {
    pub(super) idle: AtomicBool,
    /// Whether the worker is in a read call. Set only if a client's work is emulated.
    pub(super) is_reading: AtomicBool,
    /// Number of the current file.
    pub(super) file: AtomicU64,
    /// Counters that the worker has handed over, for each accelerator that it reads for.
    pub(super) counters: Mutex<Vec<LaneCounts>>,
    pub(super) thread: OnceLock<Thread>,
}

/// Counters of a worker's reads for one accelerator.
pub(super) struct LaneCounts {
    pub(super) counters: IoCounters,
    pub(super) log: RangeLog,
    pub(super) ops: Option<OpLog>,
}

impl LaneCounts {
    /// Takes the counters of a thread's reads for one accelerator.
    pub(super) fn take(io: &mut RecordedStorage, log: &mut RangeLog) -> Self {
        let ops = io.ops.as_mut().map(OpLog::take);
        LaneCounts { counters: io.counters.take(), log: log.take(), ops }
    }
}

impl Shared {
    pub(super) fn new(
        job: ReadJob,
        groups: GroupStorages,
        clock: Clock,
        stop: Arc<AtomicBool>,
        traces: bool,
    ) -> Self {
        let placement = Placement::new(&job);
        let loader = &job.plan.loader;
        let accelerators = job.accelerators() as usize;
        let storages = (0..placement.groups()).map(|group| {
            let group_size =
                placement.accelerators_of(group * job.plan.loader.threads() as usize).len() as u32;
            if loader.is_broadcast() {
                layers::read_once(&job.storage, group_size)
            } else {
                Arc::clone(&job.storage)
            }
        });
        let mut shared = Shared {
            ready: ArrayQueue::new(accelerators),
            computed: ArrayQueue::new(accelerators),
            op_log_capacity: traces
                .then(|| OPS_MAX / (accelerators * job.plan.loader.threads() as usize).max(1)),
            queues: job.queues(),
            requests: RequestQueue::for_workers(&job).into_iter().map(Mutex::new).collect(),
            workers: (0..placement.worker_threads()).map(|_| WorkerHandle::default()).collect(),
            storages: storages.collect(),
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
            client_rates: ClientRates::new(&job),
            touched: TouchedFiles::new(job.accelerators(), job.layout.files()),
            decode_gates: Vec::new(),
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
            shared.decode_gates.resize_with(accelerators, || Gate::new(threads));
        }
        if loader.receive_s(1.0, loader.workers) != [0.0; 2] || loader.start_s() > 0.0 {
            shared.receivers.resize_with(accelerators, Receiver::default);
        }
        shared
    }

    /// Returns the storage that a worker reads from.
    pub(super) fn storage_of(&self, worker_index: usize) -> &Arc<dyn ReadStorage> {
        let GroupStorages { remote, serving } = &self.groups;
        let group = self.placement.group_of(worker_index);
        let storages = match group {
            0 if !remote.is_empty() => remote,
            last if last + 1 == self.placement.groups() => serving,
            _ => return &self.storages[group],
        };
        storages
            .get(self.placement.thread_of(worker_index) as usize)
            .unwrap_or(&self.storages[group])
    }

    /// Returns the number of bytes at whose multiples reads begin and end.
    pub(super) fn block_bytes(&self) -> usize {
        let engine = self.job.plan.storage.engine.as_deref().and_then(engine::find);
        let reads_blocks =
            engine.is_some_and(|engine| engine.member().has(Ability::BypassesPageCache));
        if reads_blocks { ALIGN } else { 1 }
    }

    /// Creates the recorded storage of a thread's reads for `accelerator`.
    pub(super) fn recorded_storage(
        &self,
        thread_index: usize,
        accelerator: u32,
    ) -> RecordedStorage {
        let thread = self.placement.thread_of(thread_index);
        RecordedStorage::new(
            Arc::clone(self.storage_of(thread_index)),
            self.clock,
            self.job.reads_for_itself(accelerator),
            self.op_log_capacity.map(|capacity| OpLog::new(accelerator, thread, capacity)),
        )
    }

    /// Creates a thread's log of the ranges that it reads for `accelerator`.
    pub(super) fn range_log(&self, accelerator: u32) -> RangeLog {
        let logs =
            u64::from(self.job.plan.accelerators) * u64::from(self.job.plan.loader.threads());
        RangeLog::new(self.job.local.start + accelerator, logs)
    }

    /// Returns the path of the file that a worker reads or read last.
    pub(super) fn file_of(&self, worker_index: usize) -> Option<String> {
        let file = self.workers[worker_index].file.load(Relaxed);
        if file >= self.job.layout.files() {
            return None;
        }
        let mut path = String::new();
        self.job.layout.write_path(file, &mut path);
        Some(path)
    }

    /// Notifies the conductor that the batch an accelerator waits for is complete.
    pub(super) fn notify_ready(&self, accelerator: u32) {
        // An accelerator waits for one batch at a time, so there is always room.
        let _ = self.ready.push(accelerator);
        self.conductor.unpark();
    }

    /// Notifies the conductor that a device has finished the compute of an accelerator.
    pub(super) fn notify_computed(&self, accelerator: u32) {
        // An accelerator is in one step at a time, so there is always room.
        let _ = self.computed.push(accelerator);
        self.conductor.unpark();
    }

    /// Stops the run. The first error is the one that is reported.
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

    /// Counts a worker that has finished starting; the last one wakes the conductor.
    pub(super) fn count_started_worker(&self) {
        if self.started.fetch_add(1, SeqCst) + 1 == self.workers.len() as u32 {
            self.conductor.unpark();
        }
    }

    /// Counts a worker that has handed over its counters.
    pub(super) fn count_flushed_worker(&self) {
        self.flushed.fetch_add(1, SeqCst);
        self.conductor.unpark();
    }

    /// Wakes an idle thread of the same worker for a request.
    pub(super) fn wake_reader(&self, thread_index: usize) {
        let threads = self.job.plan.loader.threads_per_worker() as usize;
        let first = thread_index - thread_index % threads;
        let others = (1..threads).map(|other| first + (thread_index + other) % threads);
        let mut idle = others.filter(|&thread| {
            !self.job.delivers_only(thread) && self.workers[thread].idle.load(SeqCst)
        });
        if let Some(thread) = idle.next() {
            self.workers[thread].unpark();
        }
    }

    /// Wakes the other workers of the group, which may have work now that the batch of this worker is complete.
    pub(super) fn wake_siblings(&self, worker_index: usize) {
        let accelerator = self.placement.accelerators_of(worker_index).start;
        for sibling in self.placement.workers_of(accelerator) {
            let worker = &self.workers[sibling as usize];
            if sibling as usize != worker_index && worker.idle.load(SeqCst) {
                worker.unpark();
            }
        }
    }

    /// Returns how many workers of `accelerator` use a core, that is, are neither idle nor waiting for the storage.
    pub(super) fn active_workers(&self, accelerator: u32) -> u32 {
        let indices = self.placement.workers_of(accelerator);
        let workers = &self.workers[indices.start as usize..indices.end as usize];
        workers.iter().map(|worker| u32::from(worker.is_active())).sum()
    }

    /// Returns the state of the loader of `accelerator`.
    pub(super) fn live_loader(&self, accelerator: u32) -> LiveLoader {
        let queue = &self.queues[accelerator as usize];
        let [ready_batches, batches_in_flight] = queue.ready_batches();
        let threads = self.placement.workers_of(accelerator);
        let is_busy = |&thread: &u32| !self.workers[thread as usize].idle.load(Relaxed);
        LiveLoader {
            read_bytes: queue.read_bytes_of_run(),
            ready_batches,
            batches_in_flight,
            busy_threads: threads.clone().filter(is_busy).count() as u32,
            threads: threads.len() as u32,
        }
    }

    /// Returns the idle threads of `accelerator` to wake: of each worker the first, which wakes the others.
    pub(super) fn idle_threads(
        &self,
        accelerator: u32,
        target: WakeTarget,
    ) -> impl Iterator<Item = u32> {
        let threads = self.placement.workers_of(accelerator);
        let per_worker = self.job.plan.loader.threads_per_worker();
        let workers = match target {
            WakeTarget::One(worker) => worker..worker + 1,
            WakeTarget::Any => 0..threads.len() as u32 / per_worker,
        };
        let firsts = workers.map(move |worker| threads.start + worker * per_worker);
        firsts.filter(|thread| self.workers[*thread as usize].idle.load(SeqCst))
    }

    /// Wakes all workers of `accelerator`.
    pub(super) fn wake_workers(&self, accelerator: u32) {
        for worker_index in self.placement.workers_of(accelerator) {
            self.workers[worker_index as usize].unpark();
        }
    }

    /// Returns the gate that limits decoding of a worker, if decoding is limited.
    pub(super) fn decode_gates(&self, worker_index: usize) -> Option<&Gate> {
        self.decode_gates.get(self.placement.group_of(worker_index))
    }

    /// Returns the memory for one sample of a batch in flight, if batches are kept.
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

/// Fails the run if it is dropped because its thread panics.
pub(super) struct PanicGuard<'s> {
    pub(super) shared: &'s Shared,
    pub(super) accelerator: u32,
    pub(super) worker: u32,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared
                .fail(RunError::Panicked { accelerator: self.accelerator, worker: self.worker });
        }
    }
}

impl WorkerHandle {
    /// Stores the counters of a thread, which the conductor collects.
    pub(super) fn hand_over(&self, counts: impl Iterator<Item = LaneCounts>) {
        let mut counted = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counted.clear();
        counted.extend(counts);
    }

    fn is_active(&self) -> bool {
        !self.idle.load(Relaxed) && !self.is_reading.load(Relaxed)
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
