//! The real driver: one conductor thread runs all accelerators on a heap of timers, worker threads read.
//!
//! Accelerators cost no thread of their own. The conductor sleeps to absolute deadlines; over the last stretch
//! it may spin, where cores are to spare.

use super::conduct::{self, Events, Hands};
use super::job::{Job, RunError};
use super::shared::{Guard, Shared};
use super::worker::Worker;
use super::{Driver, Epoch, Pause};
use crate::clock::Clock;
use crate::comm::Comm;
use crate::compute::{self, Devices, Setup};
use crate::engine::{Event, Training};
use crate::loader::{Queue, Wakes};
use feedrate_data::storage::Handle;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::order::shard;
use feedrate_spec::plan::{Barrier, FileAccess};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Over this stretch before a deadline the conductor may spin: what the kernel's wake-up may overshoot.
const SPIN_NS: u64 = 120_000;
/// It never asks to be woken earlier than this before a deadline.
const LATE_NS_MAX: u64 = 150_000;
/// The conductor looks at the interrupt flag at least so often.
const LOOK_NS: u64 = 100_000_000;
/// An operation may take so long after the run was told to stop; then nobody waits for it any more.
const GRACE_NS: u64 = 3_000_000_000;
/// The same of a read that other processes have to take part in, which they may not do any more.
const GRACE_TOGETHER_NS: u64 = 200_000_000;
/// A worker needs a few kilobytes; formats keep their buffers on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Figures of the epoch being run, for whoever shows them.
#[derive(Debug, Default)]
pub struct Live {
    /// From 1; 0 before the first.
    pub epoch: AtomicU32,
    /// An evaluation is what runs.
    pub evaluates: AtomicBool,
    /// Steps finished.
    pub step: AtomicU64,
    /// Steps of this epoch.
    pub steps: AtomicU64,
    /// Summed over accelerators.
    pub load_ns: AtomicU64,
    /// Summed over accelerators.
    pub compute_ns: AtomicU64,
    /// Summed over accelerators.
    pub barrier_ns: AtomicU64,
    /// Read by all loaders in this epoch.
    pub read_bytes: AtomicU64,
    /// Since the epoch began.
    pub elapsed_ns: AtomicU64,
}

/// What a run shares with whoever started it.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Set by whoever wants the run to end.
    pub interrupted: Arc<AtomicBool>,
    /// Set by the driver when no more work may begin; waits of emulated storages end then.
    pub stop: Arc<AtomicBool>,
    /// Figures of the epoch being run.
    pub live: Arc<Live>,
}

/// What the workers of a driver have done since it was made. It may be looked at from any thread, and holds nobody up.
#[derive(Clone)]
pub struct Progress(Arc<Shared>);

impl Progress {
    /// Bytes that read calls returned.
    pub fn read_bytes(&self) -> u64 {
        self.0.queues.iter().map(Queue::read_bytes_of_run).sum()
    }

    /// Open and read calls of finished tasks.
    pub fn operations(&self) -> u64 {
        self.0.queues.iter().map(Queue::operations_of_run).sum()
    }
}

/// Runs on the thread that made it.
pub struct RealDriver {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<Handle>>>,
    comm: Arc<dyn Comm>,
    signals: Signals,
    left_behind: usize,
    waiter: Waiter,
    events: Events,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    devices: Option<Box<dyn Devices>>,
    wakes: Vec<u32>,
}

impl RealDriver {
    /// Start the workers of `job`. `spins`: the conductor may spin before deadlines.
    ///
    /// # Errors
    /// A thread could not be started, or a device not opened.
    pub fn new(
        job: Job,
        clock: Clock,
        comm: Arc<dyn Comm>,
        signals: Signals,
        spins: bool,
    ) -> Result<Self, RunError> {
        fine_timers();
        let accelerators = job.accelerators() as usize;
        let shared = Arc::new(Shared::new(job, clock, Arc::clone(&signals.stop)));
        let devices = devices(&shared, &*comm)?;
        let mut driver = RealDriver {
            shared,
            threads: Vec::new(),
            comm,
            signals,
            left_behind: 0,
            waiter: Waiter::new(spins),
            events: Events::with_capacity(2 * accelerators + 2),
            timers: BinaryHeap::with_capacity(accelerators),
            devices,
            wakes: Vec::with_capacity(4 * accelerators),
        };
        driver.start_workers()?;
        Ok(driver)
    }

    fn start_workers(&mut self) -> Result<(), RunError> {
        let workers = self.shared.job.workers();
        for place in 0..self.shared.places.len() {
            let shared = Arc::clone(&self.shared);
            let accelerator = self.shared.job.accelerators_of(place).start;
            let worker = place as u32 % workers;
            let thread = std::thread::Builder::new()
                .name(format!("a{accelerator}w{worker}"))
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    let _guard = Guard { shared: &shared, accelerator, worker };
                    match Worker::new(&shared, place) {
                        Ok(worker) => worker.run(),
                        Err(error) => {
                            shared.fail(error);
                            Vec::new()
                        }
                    }
                })
                .map_err(|source| RunError::Thread {
                    worker: place,
                    workers: self.shared.places.len(),
                    source,
                })?;
            let _ = self.shared.places[place].thread.set(thread.thread().clone());
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Handle events until the block is over, or nothing may go on.
    fn conduct(&mut self, training: &mut Training) {
        let shared = Arc::clone(&self.shared);
        let queues = &shared.queues;
        let mut hands = RealHands {
            shared: &shared,
            comm: &*self.comm,
            timers: &mut self.timers,
            devices: &mut self.devices,
            wakes: &mut self.wakes,
        };
        loop {
            // Steps that never wait must not keep the conductor from its timers, its flags and those it has to wake.
            let mut stepped = false;
            while !stepped && let Some((event, at_ns)) = self.events.pop_front() {
                if training.ends_step(event) {
                    hands.wake_now();
                }
                let now_ns = at_ns.unwrap_or_else(|| shared.clock.now_ns());
                let mut done = false;
                let read_bytes = |accelerator: u32| queues[accelerator as usize].read_bytes();
                training.on(event, now_ns, read_bytes, |action| {
                    let loader = shared.job.loader;
                    done |= conduct::perform(
                        action,
                        now_ns,
                        queues,
                        loader,
                        &mut hands,
                        &mut self.events,
                    );
                });
                if training.ends_step(event) {
                    stepped = true;
                    show(&self.signals.live, training, queues, now_ns);
                }
                if done {
                    // Loaders go on reading while a checkpoint is written.
                    hands.wake_now();
                    return;
                }
            }
            while let Some(accelerator) = shared.ready.pop() {
                conduct::retry(
                    accelerator,
                    queues,
                    shared.job.loader,
                    &mut hands,
                    &mut self.events,
                );
            }
            self.events.extend(shared.steps_over());
            let now_ns = shared.clock.now_ns();
            while let Some(&Reverse((at_ns, accelerator))) = hands.timers.peek()
                && at_ns <= now_ns
            {
                hands.timers.pop();
                self.events.push_back((Event::ComputeDone(accelerator), None));
            }
            let nothing_to_do = self.events.is_empty();
            if nothing_to_do {
                hands.wake_now();
            }
            let may_look = nothing_to_do || stepped;
            if may_look && (self.signals.interrupted.load(Relaxed) || shared.stop.load(Acquire)) {
                return;
            }
            if nothing_to_do {
                hands.look_at_others();
                let deadline_ns = hands.timers.peek().map(|Reverse((at_ns, _))| *at_ns);
                self.waiter.wait(&shared, now_ns, deadline_ns);
                hands.check_devices(now_ns);
            }
        }
    }

    /// Ask all workers for their counters, and wait for them.
    fn collect(&mut self, epochs: &mut [AcceleratorEpoch]) {
        let shared = &self.shared;
        if !shared.stop.load(Acquire) {
            shared.flushed.store(0, SeqCst);
            shared.flush_wanted.fetch_add(1, SeqCst);
            for place in &shared.places {
                place.unpark();
            }
            while (shared.flushed.load(SeqCst) as usize) < shared.places.len()
                && !shared.stop.load(Acquire)
            {
                std::thread::park_timeout(Duration::from_millis(10));
            }
        }
        for (place, worker) in shared.places.iter().enumerate() {
            let mut counters = worker.counters.lock().unwrap_or_else(PoisonError::into_inner);
            for (accelerator, counted) in shared.job.accelerators_of(place).zip(counters.drain(..))
            {
                epochs[accelerator as usize].io.add(&counted);
            }
        }
        for (accelerator, epoch) in epochs.iter_mut().enumerate() {
            epoch.io.access.files = shared.touched.take(accelerator);
        }
        conduct::close_epoch(&shared.queues, epochs);
    }

    /// Let the workers finish the operation they are at, and end. Those that hang in one are left to the process's end. What
    /// they have open is closed here: processes that close together do so in one order, which workers would not keep.
    fn stop_workers(&mut self) {
        self.shared.stop.store(true, Release);
        for place in &self.shared.places {
            place.unpark();
        }
        let together = self.shared.job.plan.loader.file_access == FileAccess::Mpio;
        let grace_ns = if together { GRACE_TOGETHER_NS } else { GRACE_NS };
        let deadline_ns = self.shared.clock.now_ns() + grace_ns;
        for (place, thread) in self.threads.drain(..).enumerate() {
            while !thread.is_finished() && self.shared.clock.now_ns() < deadline_ns {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A worker that panicked has told its story on stderr; the run has failed or is over.
                let open = thread.join().unwrap_or_default();
                let storage = self.shared.job.storage_of(place);
                open.into_iter().for_each(|file| storage.close(file));
            } else if !together {
                self.left_behind += 1;
            }
        }
    }

    /// What its workers do, for whoever looks on.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.shared))
    }

    /// Workers that were still in an operation of the storage long after they had been told to stop.
    pub fn left_behind(&self) -> usize {
        self.left_behind
    }
}

impl Driver for RealDriver {
    fn epoch(&mut self, training: &mut Training, steps: u64, pause: &mut Pause<'_>) -> Epoch {
        training.prepare(steps);
        let live = &self.signals.live;
        let evaluates = self.shared.job.plan.train.barrier == Barrier::AtEnd;
        live.evaluates.store(evaluates, Relaxed);
        live.epoch.fetch_add(u32::from(!evaluates), Relaxed);
        live.steps.store(steps, Relaxed);
        live.step.store(0, Relaxed);
        let shared = Arc::clone(&self.shared);
        let mut hands = RealHands {
            shared: &shared,
            comm: &*self.comm,
            timers: &mut self.timers,
            devices: &mut self.devices,
            wakes: &mut self.wakes,
        };
        conduct::publish(steps, &shared.queues, &mut hands);
        let mut event = Event::EpochStarted;
        loop {
            self.events.push_back((event, None));
            self.conduct(training);
            let stopped = self.signals.interrupted.load(Relaxed) || self.shared.stop.load(Acquire);
            if stopped || training.steps_done() >= steps {
                break;
            }
            if let Err(error) = pause(training.steps_done()) {
                self.shared.fail(error);
                break;
            }
            event = Event::BlockStarted;
        }
        if self.signals.interrupted.load(Relaxed) || self.shared.stop.load(Acquire) {
            self.stop_workers();
        }
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut accelerators = training.finish();
        self.collect(&mut accelerators);
        Epoch { accelerators, failure }
    }

    fn now_ns(&self) -> u64 {
        self.shared.clock.now_ns()
    }
}

impl Drop for RealDriver {
    fn drop(&mut self) {
        self.stop_workers();
    }
}

struct RealHands<'a> {
    shared: &'a Shared,
    comm: &'a dyn Comm,
    timers: &'a mut BinaryHeap<Reverse<(u64, u32)>>,
    devices: &'a mut Option<Box<dyn Devices>>,
    /// Workers to wake once every accelerator has been told what happened: waking costs more than telling, and
    /// whoever wakes takes a core.
    wakes: &'a mut Vec<u32>,
}

impl RealHands<'_> {
    /// A step that a device failed at would never end. `waited_ns`: since when nothing has happened, perhaps.
    fn check_devices(&mut self, waited_ns: u64) {
        let Some(devices) = self.devices else { return };
        if waited_ns + LOOK_NS <= self.shared.clock.now_ns()
            && let Err(problem) = devices.check()
        {
            self.shared.fail_device(problem);
        }
    }

    /// What this process waits for may have to come from others, which may go on no more.
    fn look_at_others(&mut self) {
        if let Some(lost) = self.comm.ended() {
            self.shared.fail(lost.into());
        }
    }

    fn wake_now(&mut self) {
        for place in self.wakes.drain(..) {
            self.shared.places[place as usize].unpark();
        }
    }
}

impl Hands for RealHands<'_> {
    fn wake(&mut self, accelerator: u32, wakes: Wakes) {
        let workers = self.shared.job.workers();
        let first = self.shared.job.first_place(accelerator);
        let range = match wakes {
            Wakes::One(worker) => first + worker..first + worker + 1,
            Wakes::Any => first..first + workers,
        };
        for place in range {
            if self.shared.places[place as usize].idle.load(SeqCst) {
                self.wakes.push(place);
            }
        }
    }

    fn compute(&mut self, accelerator: u32, now_ns: u64, at_ns: u64) {
        match self.devices {
            None => self.timers.push(Reverse((at_ns, accelerator))),
            Some(devices) => {
                let begun = devices.begin(accelerator, at_ns - now_ns);
                begun.unwrap_or_else(|problem| self.shared.fail_device(problem));
            }
        }
    }

    fn barrier(&mut self) -> bool {
        if self.comm.size() > 1 {
            // Loaders read on while the other processes are waited for.
            self.wake_now();
        }
        let outcome = self.comm.barrier_in_time();
        outcome.map_err(|error| self.shared.fail(error.into())).is_ok()
    }
}

/// What carries out the steps of a job, where they are not waits.
fn devices(shared: &Arc<Shared>, comm: &dyn Comm) -> Result<Option<Box<dyn Devices>>, RunError> {
    let plan = &shared.job.plan;
    if plan.train.on_devices.is_none() {
        return Ok(None);
    }
    let teller = Arc::clone(shared);
    // Launchers put ranks of a machine side by side.
    let first_rank = comm.rank().saturating_sub(comm.node().local_rank);
    let first = shard(plan.accelerators.into(), comm.size(), first_rank).start as u32;
    let setup = Setup {
        before: shared.job.own.start.saturating_sub(first),
        accelerators: shared.job.accelerators(),
        batch_bytes: shared.job.batch_bytes(),
        clock: shared.clock,
        done: Arc::new(move |accelerator| teller.computed(accelerator)),
    };
    compute::devices(&plan.train, setup).map_err(|problem| shared.device_error(problem))
}

/// How the conductor waits.
struct Waiter {
    spins: bool,
    /// How late the kernel has lately woken it: it asks to be woken so much earlier.
    late_ns: u64,
}

impl Waiter {
    fn new(spins: bool) -> Self {
        Waiter { spins, late_ns: if spins { SPIN_NS } else { 0 } }
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
            if !self.spins && shared.ready.is_empty() {
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

fn show(live: &Live, training: &Training, queues: &[Queue], now_ns: u64) {
    let totals = training.recorder().totals();
    live.step.store(training.steps_done(), Relaxed);
    live.load_ns.store(totals.load_ns, Relaxed);
    live.compute_ns.store(totals.compute_ns, Relaxed);
    live.barrier_ns.store(totals.barrier_ns, Relaxed);
    live.read_bytes.store(queues.iter().map(Queue::read_bytes).sum(), Relaxed);
    live.elapsed_ns.store(now_ns, Relaxed);
}

/// The kernel may delay timers of a thread by its slack, 50 µs by default; the conductor wants none.
fn fine_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
}
