//! The real driver: one conductor thread runs all accelerators on a heap of timers, worker threads read.
//!
//! Accelerators cost no thread of their own. The conductor sleeps to absolute deadlines; over the last stretch
//! it may spin, where cores are to spare.

use super::client::Receiver;
use super::effects::RealEffects;
use super::error::RunError;
use super::receiver;
use super::shared::{Guard, Shared};
use super::worker::Worker;
use crate::clock::Clock;
use crate::comm::Comm;
use crate::layers::GroupStorages;
use crate::live::{Live, LivePhase, Signals};
use crate::op_log::OpLog;
use feedrate_data::storage::Handle;
use feedrate_engine::effects::{self, Conductor};
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader::Queue;
use feedrate_engine::stepper::{StepEvent, Stepper};
use feedrate_measure::record::ranges::{FileRange, FileReads, RangeLog};
use feedrate_measure::record::{AcceleratorEpoch, StepCauses};
use feedrate_spec::plan::{Barrier, FileAccess};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Over this stretch before a deadline the conductor may spin: what the kernel's wake-up may overshoot.
const SPIN_NS: u64 = 120_000;
/// It never asks to be woken earlier than this before a deadline.
const LATE_NS_MAX: u64 = 150_000;
/// The slack of threads that ask for none.
const SLACK_NS: u64 = 50_000;
/// The conductor looks at the interrupt flag at least so often.
const LOOK_NS: u64 = 100_000_000;
/// An operation may take so long after the run was told to stop; then nobody waits for it any more.
const GRACE_NS: u64 = 3_000_000_000;
/// The same of a read that other processes have to take part in, which they may not do any more.
const GRACE_TOGETHER_NS: u64 = 200_000_000;
/// Between two looks at whether all workers have started.
const START_LOOK: Duration = Duration::from_millis(10);
/// Shortest and longest time between two looks at whether a worker has ended.
const END_LOOK_MIN: Duration = Duration::from_micros(20);
const END_LOOK_MAX: Duration = Duration::from_millis(1);
/// A worker needs a few kilobytes; formats keep their buffers on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Work that the workers of a driver have done since it was made. It may be looked at from any thread, and holds nobody up.
#[derive(Clone)]
pub struct WorkProgress(Arc<Shared>);

impl WorkProgress {
    /// Bytes that read calls returned.
    pub fn read_bytes(&self) -> u64 {
        self.0.queues.iter().map(Queue::read_bytes_of_run).sum()
    }

    /// Open and read calls of finished tasks.
    pub fn operations(&self) -> u64 {
        self.0.queues.iter().map(Queue::operations_of_run).sum()
    }
}

/// An epoch as it was: fewer steps than asked for where it was interrupted or failed.
#[derive(Debug)]
pub struct Epoch {
    /// Each accelerator's.
    pub accelerators: Vec<AcceleratorEpoch>,
    /// The waits of all accelerators.
    pub causes: StepCauses,
    /// The bytes of files that they read; `None` where that would take too much memory to know.
    pub ranges: Option<Vec<FileRange>>,
    /// The operations of its workers, where they are traced.
    pub ops: Vec<OpLog>,
    /// The reason why it ended early, if something broke.
    pub failure: Option<RunError>,
}

/// Done between two blocks of an epoch.
pub type Pause<'p> = dyn FnMut(u64) -> Result<(), RunError> + 'p;

/// Settings of a driver beside its plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverOptions {
    /// The conductor may spin before deadlines.
    pub spins: bool,
    /// Operations are kept, each, until their epoch is over.
    pub traces: bool,
}

/// Runs on the thread that made it.
pub struct RealDriver {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<Handle>>>,
    receivers: Vec<JoinHandle<()>>,
    signals: Signals,
    left_behind: Vec<String>,
    /// Processes of the run.
    processes: u32,
    waiter: Waiter,
    stepper: Stepper,
    conductor: Conductor,
    effects: RealEffects,
    /// Where it is rank 0, what all processes have read.
    pub(crate) reads: FileReads,
}

impl RealDriver {
    /// Start the workers of `job`, of which those of `groups` read what is there.
    ///
    /// # Errors
    /// A thread could not be started, or a device not opened.
    pub fn new(
        job: ReadJob,
        groups: GroupStorages,
        clock: Clock,
        comm: Arc<dyn Comm>,
        signals: Signals,
        options: DriverOptions,
    ) -> Result<Self, RunError> {
        set_timer_slack(1);
        let wakes_late = job.is_one_training();
        let conductor = Conductor::new(job.loader, job.accelerators());
        let stepper = Stepper::new(&job.plan, job.own.clone());
        let reads = FileReads::new(job.plan.accelerators);
        let stop = Arc::clone(&signals.stop);
        let shared = Arc::new(Shared::new(job, groups, clock, stop, options.traces));
        let mut driver = RealDriver {
            threads: Vec::new(),
            receivers: Vec::new(),
            signals,
            left_behind: Vec::new(),
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
        // What sleeps as any process does is the conductor, not the workers.
        if wakes_late {
            set_timer_slack(SLACK_NS);
        }
        Ok(driver)
    }

    fn start_workers(&mut self) -> Result<(), RunError> {
        let workers = self.shared.workers.len();
        for place in 0..workers {
            let accelerator = self.shared.placement.accelerators_of(place).start;
            let worker = self.shared.placement.worker_of(place);
            let name = format!("a{accelerator}w{worker}");
            let thread = self.spawn(name, accelerator, worker, move |shared| {
                match Worker::new(shared, place) {
                    Ok(worker) => worker.run(),
                    Err(error) => {
                        shared.fail(error);
                        Vec::new()
                    }
                }
            });
            let thread =
                thread.map_err(|source| RunError::Thread { worker: place, workers, source })?;
            let _ = self.shared.workers[place].thread.set(thread.thread().clone());
            self.threads.push(thread);
        }
        // Starting thousands of threads takes longer than a step: none of it may be counted as waiting for data.
        while (self.shared.started.load(SeqCst) as usize) < workers && !self.is_stopped() {
            std::thread::park_timeout(START_LOOK);
        }
        Ok(())
    }

    fn start_receivers(&mut self) -> Result<(), RunError> {
        if self.shared.job.is_one_training() {
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

    /// Start a thread for `accelerator`, which ends the run if it panics.
    fn spawn<T: Send + 'static>(
        &self,
        name: String,
        accelerator: u32,
        worker: u32,
        run: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        let shared = Arc::clone(&self.shared);
        std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            let _guard = Guard { shared: &shared, accelerator, worker };
            run(&shared)
        })
    }

    /// Run `steps` steps of the next epoch. Between its blocks all accelerators wait while `pause` is called with the steps done.
    pub fn epoch(&mut self, steps: u64, pause: &mut Pause<'_>) -> Epoch {
        self.stepper.prepare(steps);
        let live = &self.signals.live;
        let evaluates = self.evaluates();
        live.enter(if evaluates { LivePhase::Evaluates } else { LivePhase::Trains });
        if live.epoch.fetch_add(u32::from(!evaluates), Relaxed) == 0 {
            live.begun_ns.store(self.now_ns(), Relaxed);
        }
        live.steps.store(steps, Relaxed);
        live.step.store(0, Relaxed);
        self.conductor.publish(steps, &self.shared.queues, &mut self.effects);
        loop {
            self.conductor.push(StepEvent::Started);
            self.block();
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
        let (ranges, ops) = self.collect(&mut accelerators);
        Epoch { accelerators, causes: self.stepper.take_causes(), ranges, ops, failure }
    }

    /// Its epochs are evaluations.
    pub(crate) fn evaluates(&self) -> bool {
        self.shared.job.plan.train.barrier == Barrier::AtEnd
    }

    /// Path of a part by its number.
    pub(crate) fn path_of(&self, part: u64) -> String {
        self.shared.job.path_of(part)
    }

    fn is_stopped(&self) -> bool {
        self.signals.interrupted.load(Relaxed) || self.shared.stop.load(Acquire)
    }

    /// Handle events until the block is over, or nothing may go on.
    fn block(&mut self) {
        loop {
            // Steps that never wait must not keep the conductor from its timers, its flags and those it has to wake.
            let mut stepped = false;
            while !stepped && let Some((event, at_ns)) = self.conductor.pop() {
                stepped = self.stepper.ends_step(event);
                if stepped {
                    self.effects.wake_now();
                }
                let now_ns = at_ns.unwrap_or_else(|| self.now_ns());
                let (queues, effects) = (&self.shared.queues, &mut self.effects);
                let stepper = &mut self.stepper;
                let is_over = self.conductor.handle(event, now_ns, stepper, queues, effects);
                if stepped {
                    show(&self.signals.live, stepper, queues);
                }
                if is_over {
                    // Loaders go on reading while a checkpoint is written.
                    self.effects.wake_now();
                    return;
                }
            }
            let now_ns = self.take_in();
            let nothing_to_do = self.conductor.is_empty();
            if nothing_to_do {
                self.effects.wake_now();
            }
            if (nothing_to_do || stepped) && self.is_stopped() {
                return;
            }
            if nothing_to_do {
                self.effects.look_at_others();
                if self.shared.job.is_one_training()
                    && receiver::serve(&self.shared, 0, || self.is_stopped())
                {
                    continue;
                }
                self.waiter.wait(&self.shared, now_ns, self.effects.next_timer_ns());
                if now_ns + LOOK_NS <= self.now_ns() {
                    self.effects.check_devices();
                }
            }
        }
    }

    /// Turn what workers, devices and timers have done by now into events. Returns the present.
    fn take_in(&mut self) -> u64 {
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

    /// Time since the start of the run.
    pub fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }

    /// Ask all workers for their counters, and wait for them.
    fn collect(&mut self, epochs: &mut [AcceleratorEpoch]) -> (Option<Vec<FileRange>>, Vec<OpLog>) {
        let shared = &self.shared;
        let (mut logs, mut ops) = (Vec::new(), Vec::new());
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
        for (place, worker) in shared.workers.iter().enumerate() {
            let mut counted = worker.counted.lock().unwrap_or_else(PoisonError::into_inner);
            for (accelerator, lane) in
                shared.placement.accelerators_of(place).zip(counted.drain(..))
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
        (RangeLog::joined(logs.into_iter(), self.processes), ops)
    }

    /// Let the workers finish the operation they are at, and end. Those that hang in one are left to the process's end. What
    /// they have open is closed here: processes that close together do so in one order, which workers would not keep. Others leave
    /// it to the process's end where the user waits for that, for a storage may hang in this too.
    fn stop_workers(&mut self) {
        self.shared.stop.store(true, Release);
        for worker in &self.shared.workers {
            worker.unpark();
        }
        self.shared.receivers.iter().for_each(Receiver::unpark);
        for receiver in self.receivers.drain(..) {
            // One that panicked has told its story, as a worker does.
            let _ = receiver.join();
        }
        let together = self.shared.job.plan.loader.file_access == FileAccess::Mpio;
        let grace_ns = if together { GRACE_TOGETHER_NS } else { GRACE_NS };
        let deadline_ns = self.shared.clock.now_ns() + grace_ns;
        let mut pause = END_LOOK_MIN;
        for (place, thread) in self.threads.drain(..).enumerate() {
            while !thread.is_finished()
                && self.shared.clock.now_ns() < deadline_ns
                && !self.signals.leave.load(Relaxed)
            {
                std::thread::park_timeout(pause);
                pause = (2 * pause).min(END_LOOK_MAX);
            }
            if thread.is_finished() {
                // A worker that panicked has told its story on stderr; the run has failed or is over.
                let open = thread.join().unwrap_or_default();
                let storage = self.shared.storage_of(place);
                if together || !self.signals.interrupted.load(Relaxed) {
                    open.into_iter().for_each(|file| storage.close(file));
                } else {
                    // Closing may hang as reading did: it is left to the process's end.
                    std::mem::forget(open);
                }
            } else if !together {
                self.left_behind.extend(self.shared.file_of(place));
            }
        }
    }

    /// The work done so far, for whoever looks on.
    pub fn progress(&self) -> WorkProgress {
        WorkProgress(Arc::clone(&self.shared))
    }

    /// The files of workers that were still in an operation of the storage long after they had been told to stop.
    pub fn left_behind(&self) -> &[String] {
        &self.left_behind
    }
}

impl Drop for RealDriver {
    fn drop(&mut self) {
        self.stop_workers();
    }
}

/// How the conductor waits.
struct Waiter {
    spins: bool,
    /// It is woken when the kernel comes to it.
    wakes_late: bool,
    /// How late the kernel has lately woken it: it asks to be woken so much earlier.
    late_ns: u64,
}

impl Waiter {
    fn new(spins: bool, wakes_late: bool) -> Self {
        Waiter { spins, wakes_late, late_ns: if spins { SPIN_NS } else { 0 } }
    }

    /// Wait until something may have happened. The last stretch before a deadline is spun through where cores are
    /// to spare; else it is yielded to whoever wants the core.
    fn wait(&mut self, shared: &Shared, now_ns: u64, deadline_ns: Option<u64>) {
        let Some(deadline_ns) = deadline_ns else {
            return std::thread::park_timeout(Duration::from_nanos(LOOK_NS));
        };
        let wake_ns = deadline_ns.saturating_sub(self.late_ns).min(now_ns + LOOK_NS);
        if wake_ns > now_ns {
            std::thread::park_timeout(Duration::from_nanos(wake_ns - now_ns));
            if !self.spins && !self.wakes_late && shared.ready.is_empty() {
                self.learn(shared.clock.now_ns().saturating_sub(wake_ns));
            }
            return;
        }
        while shared.ready.is_empty() && shared.clock.now_ns() < deadline_ns {
            if self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    fn learn(&mut self, late_ns: u64) {
        self.late_ns = ((7 * self.late_ns + 2 * late_ns) / 8).min(LATE_NS_MAX);
    }
}

fn show(live: &Live, stepper: &Stepper, queues: &[Queue]) {
    let totals = stepper.recorder().totals();
    live.step.store(stepper.steps_done(), Relaxed);
    live.load_ns.store(totals.load_ns, Relaxed);
    live.compute_ns.store(totals.compute_ns, Relaxed);
    live.barrier_ns.store(totals.barrier_ns, Relaxed);
    live.read_bytes.store(queues.iter().map(Queue::read_bytes).sum(), Relaxed);
}

/// The kernel may delay timers of the calling thread by so much.
fn set_timer_slack(slack_ns: u64) {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) };
}
