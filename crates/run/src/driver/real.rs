//! The real driver: one conductor thread runs all accelerators on a heap of timers, and worker threads read.
//!
//! Accelerators have no threads of their own. The conductor sleeps to absolute deadlines; shortly before a deadline it may spin if
//! there are idle cores.

use super::client::Receiver;
use super::effects::RealEffects;
use super::error::RunError;
use super::receiver;
use super::requester::Requester;
use super::shared::{PanicGuard, Shared};
use super::waiter::{CHECK_INTERVAL_NS, Waiter};
use super::worker::Worker;
use crate::clock::Clock;
use crate::comm::Comm;
use crate::layers::GroupStorages;
use crate::live::{Live, LiveLoader, LivePhase, Signals};
use crate::op_log::OpLog;
use feedrate_data::storage::Handle;
use feedrate_engine::effects::{self, Conductor};
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader::Queue;
use feedrate_engine::stepper::{StepEvent, Stepper};
use feedrate_measure::record::ranges::{FileRange, FileReads, RangeLog};
use feedrate_measure::record::{AcceleratorEpoch, StepCauses};
use feedrate_spec::plan::{Barrier, FileAccess};
use feedrate_spec::transfers::TransferCounts;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The kernel's default timer slack.
const SLACK_NS: u64 = 50_000;
/// Time that workers have to finish their operation after a stop. After this time they are abandoned.
const GRACE_NS: u64 = 3_000_000_000;
/// This time for collective reads, which cannot finish if other processes have stopped.
const GRACE_COLLECTIVE_NS: u64 = 200_000_000;
/// Interval of checks whether all workers have started.
const START_INTERVAL: Duration = Duration::from_millis(10);
/// Shortest and longest interval of checks whether a worker has ended.
const END_INTERVAL_MIN: Duration = Duration::from_micros(20);
const END_INTERVAL_MAX: Duration = Duration::from_millis(1);
/// Stack of a worker. Workers need a few kilobytes; formats keep their buffers on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Work done so far by the workers of a driver. It can be read from any thread at any time without delaying them.
#[derive(Clone)]
pub struct WorkProgress(Arc<Shared>);

impl WorkProgress {
    /// Returns the bytes that read calls returned.
    pub fn read_bytes(&self) -> u64 {
        self.0.queues.iter().map(Queue::read_bytes_of_run).sum()
    }

    /// Returns the number of open and read calls of finished tasks.
    pub fn operations(&self) -> u64 {
        self.0.queues.iter().map(Queue::operations_of_run).sum()
    }

    /// Returns the number of the first accelerator, and the state of each accelerator's loader.
    pub fn loaders(&self) -> (u32, Vec<LiveLoader>) {
        let shared = &self.0;
        let loaders = (0..shared.job.accelerators()).map(|number| shared.live_loader(number));
        (shared.job.local.start, loaders.collect())
    }
}

/// Measurements of an epoch. It has fewer steps than planned if it was interrupted or failed.
#[derive(Debug)]
pub struct Epoch {
    /// Record of each accelerator.
    pub accelerators: Vec<AcceleratorEpoch>,
    /// Causes of the waits of all accelerators.
    pub causes: StepCauses,
    /// Byte ranges of files that were read; `None` if tracking them would have taken too much memory.
    pub ranges: Option<Vec<FileRange>>,
    /// Requests of this process to an object store; `None` for other storages.
    pub transfers: Option<TransferCounts>,
    /// Operations of the workers, if the run is traced.
    pub ops: Vec<OpLog>,
    /// The error that ended the epoch early, if any.
    pub failure: Option<RunError>,
}

/// Called between two blocks of an epoch with the number of finished steps.
pub type Pause<'p> = dyn FnMut(u64) -> Result<(), RunError> + 'p;

/// Settings of a driver that are not part of the plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverOptions {
    /// Whether the conductor may spin before deadlines.
    pub spins: bool,
    /// Whether single operations are logged.
    pub traces: bool,
}

/// The conductor of one job. It runs on the thread that created it.
pub struct RealDriver {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<Handle>>>,
    receivers: Vec<JoinHandle<()>>,
    signals: Signals,
    hung_files: Vec<String>,
    /// Number of processes of the run.
    processes: u32,
    waiter: Waiter,
    stepper: Stepper,
    conductor: Conductor,
    effects: RealEffects,
    /// On rank 0, the byte ranges that all processes have read.
    pub(crate) reads: FileReads,
}

impl RealDriver {
    /// Starts the workers of `job`. Workers of groups that extend over several processes read from `groups`.
    ///
    /// # Errors
    /// A thread could not be started, or a device could not be opened.
    pub fn new(
        job: ReadJob,
        groups: GroupStorages,
        clock: Clock,
        comm: Arc<dyn Comm>,
        signals: Signals,
        options: DriverOptions,
    ) -> Result<Self, RunError> {
        set_timer_slack(1);
        let wakes_late = job.emulates_single_client();
        let conductor = Conductor::new(job.loader, job.accelerators());
        let stepper = Stepper::new(&job.plan, job.local.clone());
        let reads = FileReads::new(job.plan.accelerators);
        let stop = Arc::clone(&signals.stop);
        let shared = Arc::new(Shared::new(job, groups, clock, stop, options.traces));
        let mut driver = RealDriver {
            threads: Vec::new(),
            receivers: Vec::new(),
            signals,
            hung_files: Vec::new(),
            processes: comm.size(),
            waiter: Waiter::new(options.spins, wakes_late),
            reads,
            stepper,
            conductor,
            effects: RealEffects::new(Arc::clone(&shared), comm)?,
            shared,
        };
        driver.start_workers()?;
        driver.start_receivers()?;
        // The workers keep the small slack. The conductor stands for the training process and gets the slack of an ordinary process.
        if wakes_late {
            set_timer_slack(SLACK_NS);
        }
        Ok(driver)
    }

    fn start_workers(&mut self) -> Result<(), RunError> {
        let workers = self.shared.workers.len();
        for worker_index in 0..workers {
            let accelerator = self.shared.placement.accelerators_of(worker_index).start;
            let worker = self.shared.placement.thread_of(worker_index);
            let name = format!("a{accelerator}w{worker}");
            let thread = self.spawn(name, accelerator, worker, move |shared| {
                let open_files = if shared.requests.is_empty() {
                    Worker::new(shared, worker_index).map(Worker::run)
                } else {
                    // A request closes its file.
                    Requester::new(shared, worker_index).map(Requester::run).map(|()| Vec::new())
                };
                open_files.unwrap_or_else(|error| {
                    shared.fail(error);
                    Vec::new()
                })
            });
            let thread = thread.map_err(|source| RunError::Thread {
                worker: worker_index,
                workers,
                source,
            })?;
            let _ = self.shared.workers[worker_index].thread.set(thread.thread().clone());
            self.threads.push(thread);
        }
        // Starting thousands of threads takes longer than a step and must not be counted as waiting for data.
        while (self.shared.started.load(SeqCst) as usize) < workers && !self.is_stopped() {
            std::thread::park_timeout(START_INTERVAL);
        }
        Ok(())
    }

    fn start_receivers(&mut self) -> Result<(), RunError> {
        if self.shared.job.emulates_single_client() {
            return Ok(());
        }
        let workers = self.shared.receivers.len();
        for worker in 0..workers {
            let accelerator = worker as u32;
            let name = format!("a{accelerator}main");
            let thread = self
                .spawn(name, accelerator, 0, move |shared| receiver::run(shared, accelerator))
                .map_err(|source| RunError::Thread { worker, workers, source })?;
            let _ = self.shared.receivers[worker].thread.set(thread.thread().clone());
            self.receivers.push(thread);
        }
        Ok(())
    }

    /// Starts a thread for `accelerator`. The run fails if the thread panics.
    fn spawn<T: Send + 'static>(
        &self,
        name: String,
        accelerator: u32,
        worker: u32,
        run: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            let _guard = PanicGuard { shared: &shared, accelerator, worker };
            run(&shared)
        })
    }

    /// Runs the next epoch with `steps` steps. Calls `pause` between its blocks, while all accelerators wait.
    pub fn run_epoch(&mut self, steps: u64, pause: &mut Pause<'_>) -> Epoch {
        self.stepper.prepare(steps);
        let transfers_before = self.shared.job.storage.transfers();
        let live = &self.signals.live;
        let evaluates = self.evaluates();
        live.set_phase(if evaluates { LivePhase::Evaluates } else { LivePhase::Trains });
        if live.epoch.fetch_add(u32::from(!evaluates), Relaxed) == 0 {
            live.start_ns.store(self.now_ns(), Relaxed);
        }
        live.steps.store(steps, Relaxed);
        live.step.store(0, Relaxed);
        self.conductor.publish(steps, &self.shared.queues, &mut self.effects);
        loop {
            self.conductor.push(StepEvent::Started);
            self.run_block();
            if self.is_stopped() || self.stepper.steps_done() >= steps {
                break;
            }
            if let Err(error) = pause(self.stepper.steps_done()) {
                self.shared.fail(error);
                break;
            }
        }
        if self.is_stopped() {
            self.stop_workers();
        }
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut accelerators = self.stepper.finish();
        let (ranges, ops) = self.collect_counters(&mut accelerators);
        let transfers = self.shared.job.storage.transfers();
        let transfers = transfers.zip(transfers_before).map(|(now, before)| now.since(&before));
        let causes = self.stepper.take_causes();
        Epoch { accelerators, causes, ranges, transfers, ops, failure }
    }

    /// Whether the epochs of this driver are evaluations.
    pub(crate) fn evaluates(&self) -> bool {
        self.shared.job.plan.train.barrier == Barrier::AtEnd
    }

    /// Returns the path of a part by its number.
    pub(crate) fn path_of(&self, part: u64) -> String {
        self.shared.job.path_of(part)
    }

    fn is_stopped(&self) -> bool {
        self.signals.interrupted.load(Relaxed) || self.shared.stop.load(Acquire)
    }

    /// Handles events until the block has ended or the run is stopped.
    fn run_block(&mut self) {
        loop {
            // Handles at most one end of a step at a time, so that timers, flags and wakes are served even if steps never wait.
            let mut stepped = false;
            while !stepped && let Some((event, at_ns)) = self.conductor.pop() {
                stepped = self.stepper.ends_step(event);
                if stepped {
                    self.effects.wake_now();
                }
                let now_ns = at_ns.unwrap_or_else(|| self.now_ns());
                let block_ended = self.conductor.handle(
                    event,
                    now_ns,
                    &mut self.stepper,
                    &self.shared.queues,
                    &mut self.effects,
                );
                if stepped {
                    update_live(&self.signals.live, &self.stepper, &self.shared.queues);
                }
                if block_ended {
                    // Loaders continue to read while a checkpoint is written.
                    self.effects.wake_now();
                    return;
                }
            }
            let now_ns = self.collect_events();
            let is_idle = self.conductor.is_empty();
            if is_idle {
                self.effects.wake_now();
            }
            if (is_idle || stepped) && self.is_stopped() {
                return;
            }
            if is_idle {
                self.effects.check_other_processes();
                if self.shared.job.emulates_single_client()
                    && receiver::serve(&self.shared, 0, || self.is_stopped())
                {
                    continue;
                }
                self.waiter.wait(&self.shared, now_ns, self.effects.next_timer_ns());
                if now_ns + CHECK_INTERVAL_NS <= self.now_ns() {
                    self.effects.check_devices();
                }
            }
        }
    }

    /// Converts notifications of workers, devices and timers into events. Returns the current time.
    fn collect_events(&mut self) -> u64 {
        while let Some(accelerator) = self.shared.ready.pop() {
            self.conductor.retry(accelerator, &self.shared.queues, &mut self.effects);
        }
        while let Some(accelerator) = self.shared.computed.pop() {
            self.conductor.push(StepEvent::ComputeDone(accelerator));
        }
        let now_ns = self.now_ns();
        while let Some(accelerator) = self.effects.pop_timer(now_ns) {
            if self.effects.has_received(accelerator) {
                self.conductor.retry(accelerator, &self.shared.queues, &mut self.effects);
            } else {
                self.conductor.push(StepEvent::ComputeDone(accelerator));
            }
        }
        now_ns
    }

    /// Returns the time since the start of the run.
    pub fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    /// Requests the counters of all workers, waits for them and adds them to `epochs`. Returns the ranges read and the logged
    /// operations.
    fn collect_counters(
        &mut self,
        epochs: &mut [AcceleratorEpoch],
    ) -> (Option<Vec<FileRange>>, Vec<OpLog>) {
        let shared = &self.shared;
        let mut logs = Vec::new();
        let mut ops = Vec::new();
        if !shared.stop.load(Acquire) {
            shared.flushed.store(0, SeqCst);
            shared.flush_wanted.fetch_add(1, SeqCst);
            for worker in &shared.workers {
                worker.unpark();
            }
            while (shared.flushed.load(SeqCst) as usize) < shared.workers.len()
                && !shared.stop.load(Acquire)
            {
                std::thread::park_timeout(Duration::from_millis(10));
            }
        }
        for (worker_index, worker) in shared.workers.iter().enumerate() {
            let mut counted = worker.counters.lock().unwrap_or_else(PoisonError::into_inner);
            for (accelerator, lane) in
                shared.placement.accelerators_of(worker_index).zip(counted.drain(..))
            {
                epochs[accelerator as usize].io.add(&lane.counters);
                logs.push(lane.log);
                ops.extend(lane.ops);
            }
        }
        for (accelerator, epoch) in epochs.iter_mut().enumerate() {
            epoch.io.access.files = shared.touched.take(accelerator);
        }
        effects::close_epoch(&shared.queues, epochs);
        (RangeLog::join(logs.into_iter(), self.processes), ops)
    }

    /// Stops the workers after their current operation. Workers that hang are abandoned until the process exits.
    ///
    /// Open files of the workers are closed here, since collective closes need the same order in all processes. After an interrupt
    /// other files are left open until the process exits, because closing may hang as well.
    fn stop_workers(&mut self) {
        self.shared.stop.store(true, Release);
        for worker in &self.shared.workers {
            worker.unpark();
        }
        self.shared.receivers.iter().for_each(Receiver::unpark);
        for receiver in self.receivers.drain(..) {
            // A panic was printed to stderr already and has failed the run.
            let _ = receiver.join();
        }
        let is_collective = self.shared.job.plan.loader.file_access == FileAccess::Mpio;
        let grace_ns = if is_collective { GRACE_COLLECTIVE_NS } else { GRACE_NS };
        let deadline_ns = self.shared.clock.now_ns() + grace_ns;
        let mut pause = END_INTERVAL_MIN;
        for (worker_index, thread) in self.threads.drain(..).enumerate() {
            while !thread.is_finished()
                && self.shared.clock.now_ns() < deadline_ns
                && !self.signals.abandon.load(Relaxed)
            {
                std::thread::park_timeout(pause);
                pause = (2 * pause).min(END_INTERVAL_MAX);
            }
            if thread.is_finished() {
                // A panic was printed to stderr already and has failed the run.
                let open = thread.join().unwrap_or_default();
                let storage = self.shared.storage_of(worker_index);
                if is_collective || !self.signals.interrupted.load(Relaxed) {
                    open.into_iter().for_each(|file| storage.close(file));
                } else {
                    std::mem::forget(open);
                }
            } else if !is_collective {
                self.hung_files.extend(self.shared.file_of(worker_index));
            }
        }
    }

    /// Returns a view of the work done so far.
    pub fn progress(&self) -> WorkProgress {
        WorkProgress(Arc::clone(&self.shared))
    }

    /// Returns the files of abandoned workers. Their storage operations did not finish in time after the stop.
    pub fn hung_files(&self) -> &[String] {
        &self.hung_files
    }
}

impl Drop for RealDriver {
    fn drop(&mut self) {
        self.stop_workers();
    }
}

/// Updates the live figures of the current epoch.
fn update_live(live: &Live, stepper: &Stepper, queues: &[Queue]) {
    let totals = stepper.recorder().totals();
    live.step.store(stepper.steps_done(), Relaxed);
    live.load_ns.store(totals.load_ns, Relaxed);
    live.compute_ns.store(totals.compute_ns, Relaxed);
    live.barrier_ns.store(totals.barrier_ns, Relaxed);
    live.read_bytes.store(queues.iter().map(Queue::read_bytes).sum(), Relaxed);
}

/// Sets the time by which the kernel may delay timers of the calling thread.
fn set_timer_slack(slack_ns: u64) {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) };
}
