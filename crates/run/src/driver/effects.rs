//! Carries out the engine's effects on the real machine: wakes workers, starts compute on timers or devices, and waits at barriers.

use super::error::RunError;
use super::shared::Shared;
use crate::comm::Comm;
use crate::compute::{self, DeviceSetup, Devices};
use feedrate_engine::effects::Effects;
use feedrate_engine::loader::{CompleteBatch, WakeTarget};
use feedrate_spec::plan::order::shard;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// The effects of the conductor on the real machine.
pub(super) struct RealEffects {
    shared: Arc<Shared>,
    comm: Arc<dyn Comm>,
    /// Deadlines of compute and handovers, each with its accelerator.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    devices: Option<Box<dyn Devices>>,
    /// Indices of workers to wake after all events are handled: waking is expensive, and a woken thread occupies a core.
    wakes: Vec<u32>,
    /// The latest batch of each accelerator that was handed over or is being handed over.
    received: Vec<Option<u64>>,
    /// Whether the timer of each accelerator is for the end of a handover rather than of compute.
    receiving: Vec<bool>,
    /// The wait of each accelerator until its current batch is pinned.
    pin_waits: Vec<PinWait>,
}

/// The wait of an accelerator until its batch is pinned.
#[derive(Clone, Copy, Default)]
struct PinWait {
    since_ns: Option<u64>,
    waited_ns: u64,
}

impl RealEffects {
    /// Creates the effects and opens the devices of the job, if it has any.
    pub(super) fn new(shared: Arc<Shared>, comm: Arc<dyn Comm>) -> Result<Self, RunError> {
        let accelerators = shared.job.local.len();
        Ok(RealEffects {
            timers: BinaryHeap::with_capacity(accelerators),
            devices: open_devices(&shared, &*comm)?,
            wakes: Vec::with_capacity(4 * accelerators),
            received: vec![None; accelerators],
            receiving: vec![false; accelerators],
            pin_waits: vec![PinWait::default(); accelerators],
            shared,
            comm,
        })
    }

    /// Returns the time at which the next compute or handover ends.
    pub(super) fn next_timer_ns(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Returns an accelerator whose compute or handover has ended by `now_ns`.
    pub(super) fn pop_timer(&mut self, now_ns: u64) -> Option<u32> {
        if self.next_timer_ns()? > now_ns {
            return None;
        }
        self.timers.pop().map(|Reverse((_, accelerator))| accelerator)
    }

    /// Whether the timer of `accelerator` was for a handover.
    pub(super) fn has_received(&mut self, accelerator: u32) -> bool {
        std::mem::take(&mut self.receiving[accelerator as usize])
    }

    /// Lets the conductor receive the batch of `accelerator` again at `at_ns`.
    fn retry_at(&mut self, accelerator: u32, at_ns: u64) -> Option<[u64; 2]> {
        self.receiving[accelerator as usize] = true;
        self.timers.push(Reverse((at_ns, accelerator)));
        None
    }

    /// Wakes all workers that wait to be woken.
    pub(super) fn wake_now(&mut self) {
        for index in self.wakes.drain(..) {
            self.shared.workers[index as usize].unpark();
        }
    }

    /// Fails the run if a device has failed, since its steps would never end.
    pub(super) fn check_devices(&mut self) {
        if let Some(devices) = &mut self.devices
            && let Err(problem) = devices.check()
        {
            self.shared.fail_device(problem);
        }
    }

    /// Fails the run if another process has ended, since this one may wait for it.
    pub(super) fn check_other_processes(&self) {
        if let Some(error) = self.comm.end_reason() {
            self.shared.fail(error.into());
        }
    }
}

impl Effects for RealEffects {
    fn wake(&mut self, accelerator: u32, target: WakeTarget) {
        self.wakes.extend(self.shared.idle_threads(accelerator, target));
    }

    fn compute(&mut self, accelerator: u32, now_ns: u64, end_ns: u64) {
        let Some(devices) = &mut self.devices else {
            return self.timers.push(Reverse((end_ns, accelerator)));
        };
        if let Err(problem) = devices.begin(accelerator, end_ns - now_ns) {
            self.shared.fail_device(problem);
        }
    }

    fn start(&mut self, accelerator: u32, steps: u64) -> bool {
        let receiver = self.shared.receivers.get(accelerator as usize);
        receiver.map(|receiver| receiver.start(steps, self.shared.clock.now_ns())).is_some()
    }

    fn receive(&mut self, accelerator: u32, batch: CompleteBatch) -> Option<[u64; 2]> {
        let index = accelerator as usize;
        let now_ns = self.shared.clock.now_ns();
        let pin_wait = &mut self.pin_waits[index];
        if now_ns < batch.pinned_ns {
            pin_wait.since_ns.get_or_insert(now_ns);
            return self.retry_at(accelerator, batch.pinned_ns);
        }
        pin_wait.waited_ns += pin_wait.since_ns.take().map_or(0, |since_ns| now_ns - since_ns);
        let Some(receiver) = self.shared.receivers.get(index) else {
            return Some([0, std::mem::take(&mut pin_wait.waited_ns)]);
        };
        if self.received[index].replace(batch.number) != Some(batch.number) {
            receiver.receive(batch.bytes, now_ns);
            return None;
        }
        let ends_ns = receiver.receive_end_ns.load(Acquire);
        if ends_ns <= now_ns {
            let [start_ns, receive_ns] = receiver.durations_ns(now_ns);
            return Some([start_ns, receive_ns + std::mem::take(&mut pin_wait.waited_ns)]);
        }
        self.retry_at(accelerator, ends_ns)
    }

    fn barrier(&mut self) -> bool {
        if self.comm.size() > 1 {
            // Loaders continue to read during the barrier.
            self.wake_now();
        }
        let outcome = self.comm.barrier_with_timeout();
        outcome.map_err(|error| self.shared.fail(error.into())).is_ok()
    }
}

/// Opens the devices that compute the steps of a job; `None` if its steps are waits.
fn open_devices(
    shared: &Arc<Shared>,
    comm: &dyn Comm,
) -> Result<Option<Box<dyn Devices>>, RunError> {
    let plan = &shared.job.plan;
    if plan.train.on_devices.is_none() {
        return Ok(None);
    }
    let notified = Arc::clone(shared);
    // Ranks of a machine are assumed to be contiguous, as launchers place them.
    let first_rank = comm.rank().saturating_sub(comm.node().local_rank);
    let first = shard(plan.accelerators.into(), comm.size(), first_rank).start as u32;
    let setup = DeviceSetup {
        earlier_accelerators: shared.job.local.start.saturating_sub(first),
        accelerators: shared.job.accelerators(),
        batch_bytes: shared.job.batch_bytes(),
        clock: shared.clock,
        done: Arc::new(move |accelerator| notified.notify_computed(accelerator)),
    };
    compute::devices(&plan.train, setup).map_err(|problem| shared.device_error(problem))
}
