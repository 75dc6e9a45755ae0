//! The virtual time of the simulated driver: scheduled events, shared cores and training processes. The model of the storage is in
//! [`crate::simulated`].

use crate::effects::Effects;
use crate::job::ReadJob;
use crate::loader::{CompleteBatch, WakeTarget};
use feedrate_spec::plan::LoaderPlan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The virtual clock with its scheduled events.
pub(crate) struct VirtualTime {
    loader: LoaderPlan,
    cores: VirtualGate,
    /// The batch that the training process of each accelerator received last, and the time spent receiving it.
    last_received: Vec<(u64, u64)>,
    /// Time spent starting the workers of each accelerator since the last batch.
    started_ns: Vec<u64>,
    pub(crate) now_ns: u64,
    /// When the storage has served all reads requested so far.
    pub(crate) storage_free_ns: f64,
    sequence: u64,
    /// Scheduled events by time and sequence number.
    pub(crate) heap: BinaryHeap<Reverse<(u64, u64, TimedEvent)>>,
    /// Workers that were woken and have not run since.
    pub(crate) woken: Vec<usize>,
    threads_per_accelerator: u32,
    threads_per_worker: u32,
    pub(crate) idle: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimedEvent {
    Timer(u32),
    Received(u32),
    Started(u32, u64),
    Operation(usize),
}

/// A gate in virtual time. It admits a limited number of requests at a time, in the order of their arrival.
pub(crate) struct VirtualGate {
    /// `None` for no limit.
    limit: Option<usize>,
    release_times_ns: BinaryHeap<Reverse<u64>>,
}

impl VirtualGate {
    pub(crate) fn new(limit: Option<u32>) -> Self {
        let limit = limit.map(|limit| limit.max(1) as usize);
        VirtualGate { limit, release_times_ns: BinaryHeap::new() }
    }

    /// Returns when a request at `now_ns` is admitted. Each call must be followed by [`VirtualGate::release`].
    pub(crate) fn admit(&mut self, now_ns: u64) -> u64 {
        let is_full = self.limit.is_some_and(|limit| limit <= self.release_times_ns.len());
        let free_ns = if is_full { self.release_times_ns.pop() } else { None };
        free_ns.map_or(now_ns, |Reverse(free_ns)| free_ns.max(now_ns))
    }

    /// Ends an admission at `end_ns`.
    pub(crate) fn release(&mut self, end_ns: u64) {
        if self.limit.is_some() {
            self.release_times_ns.push(Reverse(end_ns));
        }
    }
}

impl VirtualTime {
    /// Creates the virtual time of `job` on `cores` shared cores; `None` for one core per worker.
    pub(crate) fn new(job: &ReadJob, cores: Option<u32>) -> Self {
        let accelerators = job.accelerators() as usize;
        VirtualTime {
            loader: job.plan.loader.clone(),
            cores: VirtualGate::new(cores),
            last_received: vec![(u64::MAX, 0); accelerators],
            started_ns: vec![0; accelerators],
            now_ns: 0,
            storage_free_ns: 0.0,
            sequence: 0,
            heap: BinaryHeap::new(),
            woken: Vec::new(),
            threads_per_accelerator: job.plan.loader.threads(),
            threads_per_worker: job.plan.loader.threads_per_worker(),
            idle: vec![true; accelerators * job.plan.loader.threads() as usize],
        }
    }

    /// Occupies a core for `work_ns`, from the first time after `ready_ns` at which a core is free. Returns when the work is done.
    pub(crate) fn work_on_core(&mut self, ready_ns: u64, work_ns: u64) -> u64 {
        let ends_ns = self.cores.admit(ready_ns).saturating_add(work_ns);
        self.cores.release(ends_ns);
        ends_ns
    }

    /// Occupies a core until `until_ns`, from the first time after `ready_ns` at which a core is free. Returns when the core is released:
    /// later than `until_ns` if no core was free before.
    pub(crate) fn hold_core_until(&mut self, ready_ns: u64, until_ns: u64) -> u64 {
        let ends_ns = self.cores.admit(ready_ns).max(until_ns);
        self.cores.release(ends_ns);
        ends_ns
    }

    /// Schedules an event. Events of the same time occur in the order in which they were scheduled.
    pub(crate) fn schedule(&mut self, at_ns: u64, event: TimedEvent) {
        self.sequence += 1;
        self.heap.push(Reverse((at_ns, self.sequence, event)));
    }
}

impl Effects for VirtualTime {
    fn wake(&mut self, accelerator: u32, target: WakeTarget) {
        let first = accelerator * self.threads_per_accelerator;
        let per_worker = self.threads_per_worker;
        let workers = match target {
            WakeTarget::One(worker) => worker..worker + 1,
            WakeTarget::Any => 0..self.threads_per_accelerator / per_worker,
        };
        // Reversed, since the worker pushed last runs first: worker 0 comes first. The first thread of a worker wakes the others.
        let threads = workers.rev().map(|worker| (first + worker * per_worker) as usize);
        self.woken.extend(threads);
    }

    fn compute(&mut self, accelerator: u32, _: u64, end_ns: u64) {
        self.schedule(end_ns, TimedEvent::Timer(accelerator));
    }

    fn start(&mut self, accelerator: u32, steps: u64) -> bool {
        let work_ns = (self.loader.start_s() * 1e9).round() as u64;
        if work_ns > 0 {
            let ends_ns = self.work_on_core(self.now_ns, work_ns);
            self.started_ns[accelerator as usize] = ends_ns - self.now_ns;
            self.schedule(ends_ns, TimedEvent::Started(accelerator, steps));
        }
        work_ns > 0
    }

    fn receive(&mut self, accelerator: u32, batch: CompleteBatch) -> Option<[u64; 2]> {
        let CompleteBatch { number, bytes, pinned_ns } = batch;
        let (received_batch, received_ns) = self.last_received[accelerator as usize];
        let first = (accelerator * self.threads_per_accelerator) as usize;
        let workers_idle = &self.idle[first..first + self.threads_per_accelerator as usize];
        let active_workers = workers_idle.iter().filter(|is_idle| !**is_idle).count() as u32;
        let times_s = self.loader.receive_s(bytes as f64, active_workers);
        let [work_ns, wait_ns] = times_s.map(|seconds| (seconds * 1e9).round() as u64);
        let begins_ns = self.now_ns.max(pinned_ns);
        let least_end_ns = begins_ns.saturating_add(work_ns + wait_ns);
        if least_end_ns > self.now_ns && received_batch != number {
            // If cores are contended, the work takes longer and the wait gets shorter.
            let ends_ns = self.work_on_core(begins_ns, work_ns).max(least_end_ns);
            self.last_received[accelerator as usize] = (number, ends_ns - self.now_ns);
            self.schedule(ends_ns, TimedEvent::Received(accelerator));
            return None;
        }
        let receive_ns = if received_batch == number { received_ns } else { 0 };
        Some([std::mem::take(&mut self.started_ns[accelerator as usize]), receive_ns])
    }

    fn barrier(&mut self) -> bool {
        true
    }
}
