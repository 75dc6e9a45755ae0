//! Wakes workers, begins steps on timers or devices, and waits for the other processes.

use super::error::RunError;
use super::shared::Shared;
use crate::comm::Comm;
use crate::compute::{self, DeviceSetup, Devices};
use feedrate_engine::effects::Effects;
use feedrate_engine::loader::Wakes;
use feedrate_spec::plan::order::shard;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, SeqCst};

/// The conductor's means.
pub(super) struct RealEffects {
    shared: Arc<Shared>,
    comm: Arc<dyn Comm>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    devices: Option<Box<dyn Devices>>,
    /// Workers to wake once every accelerator has been told what happened: waking costs more than telling, and
    /// whoever wakes takes a core.
    wakes: Vec<u32>,
    /// The batch of each accelerator that is being taken over, or was last.
    received: Vec<Option<u64>>,
    /// Those whose timer is for the end of taking it over, not of a step.
    receiving: Vec<bool>,
}

impl RealEffects {
    /// With the devices of the job opened, where it has any.
    pub(super) fn new(shared: Arc<Shared>, comm: Arc<dyn Comm>) -> Result<Self, RunError> {
        let accelerators = shared.job.own.len();
        Ok(RealEffects {
            timers: BinaryHeap::with_capacity(accelerators),
            devices: devices(&shared, &*comm)?,
            wakes: Vec::with_capacity(4 * accelerators),
            received: vec![None; accelerators],
            receiving: vec![false; accelerators],
            shared,
            comm,
        })
    }

    /// When the next step is over, or the next batch taken over.
    pub(super) fn next_timer_ns(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// An accelerator whose step is over at `now_ns`, or that has taken a batch over.
    pub(super) fn pop_timer(&mut self, now_ns: u64) -> Option<u32> {
        if self.next_timer_ns()? > now_ns {
            return None;
        }
        self.timers.pop().map(|Reverse((_, accelerator))| accelerator)
    }

    /// Whether the timer of `accelerator` was for a batch.
    pub(super) fn has_received(&mut self, accelerator: u32) -> bool {
        std::mem::take(&mut self.receiving[accelerator as usize])
    }

    pub(super) fn wake_now(&mut self) {
        for place in self.wakes.drain(..) {
            self.shared.workers[place as usize].unpark();
        }
    }

    /// A step that a device failed at would never end.
    pub(super) fn check_devices(&mut self) {
        if let Some(devices) = &mut self.devices
            && let Err(problem) = devices.check()
        {
            self.shared.fail_device(problem);
        }
    }

    /// Fail if other processes, for which this one may have to wait, go on no more.
    pub(super) fn look_at_others(&self) {
        if let Some(lost) = self.comm.ended() {
            self.shared.fail(lost.into());
        }
    }
}

impl Effects for RealEffects {
    fn wake(&mut self, accelerator: u32, wakes: Wakes) {
        let places = self.shared.placement.places_of(accelerator);
        let places = match wakes {
            Wakes::One(worker) => places.start + worker..places.start + worker + 1,
            Wakes::Any => places,
        };
        for place in places {
            if self.shared.workers[place as usize].idle.load(SeqCst) {
                self.wakes.push(place);
            }
        }
    }

    fn compute(&mut self, accelerator: u32, now_ns: u64, at_ns: u64) {
        let Some(devices) = &mut self.devices else {
            return self.timers.push(Reverse((at_ns, accelerator)));
        };
        if let Err(problem) = devices.begin(accelerator, at_ns - now_ns) {
            self.shared.fail_device(problem);
        }
    }

    fn start(&mut self, accelerator: u32, steps: u64) -> bool {
        let receiver = self.shared.receivers.get(accelerator as usize);
        receiver.map(|receiver| receiver.start(steps, self.shared.clock.now_ns())).is_some()
    }

    fn receive(&mut self, accelerator: u32, batch: u64, bytes: u64) -> Option<[u64; 2]> {
        let Some(receiver) = self.shared.receivers.get(accelerator as usize) else {
            return Some([0, 0]);
        };
        let (at, now_ns) = (accelerator as usize, self.shared.clock.now_ns());
        if self.received[at].replace(batch) != Some(batch) {
            receiver.receive(bytes, now_ns);
            return None;
        }
        let ends_ns = receiver.ends_ns.load(Acquire);
        if ends_ns <= now_ns {
            return Some(receiver.took_ns(now_ns));
        }
        self.receiving[at] = true;
        self.timers.push(Reverse((ends_ns, accelerator)));
        None
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

/// The devices that carry out the steps of a job, where those are not waits.
fn devices(shared: &Arc<Shared>, comm: &dyn Comm) -> Result<Option<Box<dyn Devices>>, RunError> {
    let plan = &shared.job.plan;
    if plan.train.on_devices.is_none() {
        return Ok(None);
    }
    let teller = Arc::clone(shared);
    // Launchers put ranks of a machine side by side.
    let first_rank = comm.rank().saturating_sub(comm.node().local_rank);
    let first = shard(plan.accelerators.into(), comm.size(), first_rank).start as u32;
    let setup = DeviceSetup {
        before: shared.job.own.start.saturating_sub(first),
        accelerators: shared.job.accelerators(),
        batch_bytes: shared.job.batch_bytes(),
        clock: shared.clock,
        done: Arc::new(move |accelerator| teller.computed(accelerator)),
    };
    compute::devices(&plan.train, setup).map_err(|problem| shared.device_error(problem))
}
