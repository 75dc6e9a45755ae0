//! The virtual time of the simulated driver: what will happen, the cores that work shares, and the training's process. No storage.

use crate::effects::Effects;
use crate::job::ReadJob;
use crate::loader::Wakes;
use feedrate_spec::plan::LoaderPlan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time and what will happen in it.
pub(crate) struct VirtualTime {
    loader: LoaderPlan,
    cores: Places,
    /// The batch of each accelerator that its training's process takes over, and how long that takes.
    received: Vec<(u64, u64)>,
    /// How long the workers of each accelerator were being started since the last batch.
    started_ns: Vec<u64>,
    pub(crate) now_ns: u64,
    pub(crate) free_at_ns: f64,
    sequence: u64,
    pub(crate) heap: BinaryHeap<Reverse<(u64, u64, Due)>>,
    pub(crate) woken: Vec<usize>,
    workers_each: u32,
    pub(crate) idle: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    Timer(u32),
    Received(u32),
    Started(u32, u64),
    Operation(usize),
}

/// So many at a time, first come first served.
pub(crate) struct Places {
    /// `None` is any number.
    limit: Option<usize>,
    free_at_ns: BinaryHeap<Reverse<u64>>,
}

impl Places {
    pub(crate) fn new(limit: Option<u32>) -> Self {
        let limit = limit.map(|limit| limit.max(1) as usize);
        Places { limit, free_at_ns: BinaryHeap::new() }
    }

    /// When who comes at `now_ns` has a place, to be left again.
    pub(crate) fn enter(&mut self, now_ns: u64) -> u64 {
        let is_full = self.limit.is_some_and(|limit| limit <= self.free_at_ns.len());
        let free_ns = if is_full { self.free_at_ns.pop() } else { None };
        free_ns.map_or(now_ns, |Reverse(free_ns)| free_ns.max(now_ns))
    }

    pub(crate) fn leave(&mut self, at_ns: u64) {
        if self.limit.is_some() {
            self.free_at_ns.push(Reverse(at_ns));
        }
    }
}

impl VirtualTime {
    /// For the workers of `job` on so many cores; `None` is one for each of them.
    pub(crate) fn new(job: &ReadJob, cores: Option<u32>) -> Self {
        let accelerators = job.accelerators() as usize;
        VirtualTime {
            loader: job.plan.loader.clone(),
            cores: Places::new(cores),
            received: vec![(u64::MAX, 0); accelerators],
            started_ns: vec![0; accelerators],
            now_ns: 0,
            free_at_ns: 0.0,
            sequence: 0,
            heap: BinaryHeap::new(),
            woken: Vec::new(),
            workers_each: job.workers(),
            idle: vec![true; accelerators * job.workers() as usize],
        }
    }

    /// When work that may begin at `turn_ns` is done, by a core that is not taken.
    pub(crate) fn work_on_core(&mut self, turn_ns: u64, work_ns: u64) -> u64 {
        let ends_ns = self.cores.enter(turn_ns).saturating_add(work_ns);
        self.cores.leave(ends_ns);
        ends_ns
    }

    pub(crate) fn schedule(&mut self, at_ns: u64, happening: Due) {
        self.sequence += 1;
        self.heap.push(Reverse((at_ns, self.sequence, happening)));
    }
}

impl Effects for VirtualTime {
    fn wake(&mut self, accelerator: u32, wakes: Wakes) {
        let first = (accelerator * self.workers_each) as usize;
        match wakes {
            Wakes::One(worker) => self.woken.push(first + worker as usize),
            // The last pushed is stepped first: worker 0 leads.
            Wakes::Any => self.woken.extend((first..first + self.workers_each as usize).rev()),
        }
    }

    fn compute(&mut self, accelerator: u32, _: u64, at_ns: u64) {
        self.schedule(at_ns, Due::Timer(accelerator));
    }

    fn start(&mut self, accelerator: u32, steps: u64) -> bool {
        let work_ns = (self.loader.start_s() * 1e9).round() as u64;
        if work_ns > 0 {
            let ends_ns = self.work_on_core(self.now_ns, work_ns);
            self.started_ns[accelerator as usize] = ends_ns - self.now_ns;
            self.schedule(ends_ns, Due::Started(accelerator, steps));
        }
        work_ns > 0
    }

    fn receive(&mut self, accelerator: u32, batch: u64, bytes: u64) -> Option<[u64; 2]> {
        let received = self.received[accelerator as usize];
        let first = (accelerator * self.workers_each) as usize;
        let own = &self.idle[first..first + self.workers_each as usize];
        let at_work = own.iter().filter(|is_idle| !**is_idle).count() as u32;
        let times_s = self.loader.receive_s(bytes as f64, at_work);
        let [work_ns, wait_ns] = times_s.map(|s| (s * 1e9).round() as u64);
        let least_ns = work_ns + wait_ns;
        if least_ns > 0 && received.0 != batch {
            let ends_ns = self.work_on_core(self.now_ns, work_ns);
            // Where cores are contended, computing takes longer, and less is left to wait for.
            let ends_ns = ends_ns.max(self.now_ns.saturating_add(least_ns));
            self.received[accelerator as usize] = (batch, ends_ns - self.now_ns);
            self.schedule(ends_ns, Due::Received(accelerator));
            return None;
        }
        let took_ns = if received.0 == batch { received.1 } else { 0 };
        Some([std::mem::take(&mut self.started_ns[accelerator as usize]), took_ns])
    }

    fn barrier(&mut self) -> bool {
        true
    }
}
