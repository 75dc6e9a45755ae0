//! What the conductor of the real driver and its workers share.

use super::gate::Gate;
use super::job::{Job, RunError};
use super::memory::SampleMemory;
use super::touched::Touched;
use crate::clock::Clock;
use crate::engine::Event;
use crate::loader::Queue;
use crossbeam_queue::ArrayQueue;
use feedrate_measure::record::IoCounters;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

/// What conductor and workers share.
pub(super) struct Shared {
    pub(super) job: Job,
    pub(super) clock: Clock,
    pub(super) queues: Vec<Queue>,
    pub(super) places: Vec<Place>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) flush_wanted: AtomicU32,
    pub(super) flushed: AtomicU32,
    pub(super) ready: ArrayQueue<u32>,
    /// Accelerators whose step a device has carried out.
    pub(super) computed: ArrayQueue<u32>,
    pub(super) conductor: Thread,
    pub(super) failure: Mutex<Option<RunError>>,
    pub(super) kept: Vec<Mutex<Vec<u8>>>,
    /// Samples that were read once, where they stay.
    pub(super) memory: Option<SampleMemory>,
    /// Which files each accelerator read in this epoch.
    pub(super) touched: Touched,
    /// Of each reading accelerator, where not all its workers may decode at once.
    pub(super) decoders: Vec<Gate>,
}

/// A worker as the conductor sees it.
#[derive(Default)]
pub(super) struct Place {
    pub(super) idle: AtomicBool,
    /// One for each accelerator it reads for.
    pub(super) counters: Mutex<Vec<IoCounters>>,
    pub(super) thread: OnceLock<Thread>,
}

impl Shared {
    pub(super) fn new(job: Job, clock: Clock, stop: Arc<AtomicBool>) -> Self {
        let queues = job.queues();
        let places = job.places();
        let slots = u64::from(job.plan.loader.stock_batches.max(1)) * job.plan.loader.batch_size;
        let kept =
            if job.plan.loader.materialize { slots * u64::from(job.accelerators()) } else { 0 };
        Shared {
            ready: ArrayQueue::new(job.accelerators() as usize),
            computed: ArrayQueue::new(job.accelerators() as usize),
            queues,
            places: (0..places).map(|_| Place::default()).collect(),
            stop,
            flush_wanted: AtomicU32::new(0),
            flushed: AtomicU32::new(0),
            conductor: std::thread::current(),
            failure: Mutex::new(None),
            kept: (0..kept).map(|_| Mutex::default()).collect(),
            memory: job.plan.loader.in_memory.then(|| SampleMemory::new(job.groups())),
            touched: Touched::new(job.accelerators(), job.layout.files()),
            decoders: match job.plan.loader.decode_threads {
                Some(threads) => (0..job.accelerators()).map(|_| Gate::new(threads)).collect(),
                None => Vec::new(),
            },
            job,
            clock,
        }
    }

    /// A batch that the training waits for is whole.
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

    /// What devices have carried out since this was last asked.
    pub(super) fn steps_over(&self) -> impl Iterator<Item = (Event, Option<u64>)> {
        let over = std::iter::from_fn(|| self.computed.pop());
        over.map(|accelerator| (Event::ComputeDone(accelerator), None))
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

    pub(super) fn flushed_one(&self) {
        self.flushed.fetch_add(1, SeqCst);
        self.conductor.unpark();
    }

    /// Those who may have work because the batch that `place` worked on is whole.
    pub(super) fn wake_siblings(&self, place: usize) {
        let first = self.job.first_place(self.job.accelerators_of(place).start) as usize;
        for (sibling, worker) in
            self.places[first..].iter().take(self.job.workers() as usize).enumerate()
        {
            if first + sibling != place && worker.idle.load(SeqCst) {
                worker.unpark();
            }
        }
    }

    /// What lets the worker at `place` decode; `None` where nothing need.
    pub(super) fn decoders(&self, place: usize) -> Option<&Gate> {
        self.decoders.get(place / self.job.workers() as usize)
    }

    /// Memory for one sample of a batch in flight, where batches are kept.
    pub(super) fn kept_sample(
        &self,
        accelerator: u32,
        slot: usize,
        sample: u64,
    ) -> Option<&Mutex<Vec<u8>>> {
        let loader = &self.job.plan.loader;
        let slots = loader.stock_batches.max(1) as usize;
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

impl Place {
    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
