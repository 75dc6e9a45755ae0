//! Measures the machine during an epoch: bytes of the device, processor time and steps of the clock.

use super::busiest::BusiestWatch;
use super::facts::meminfo;
use super::proc::{DeviceReads, Proc, Totals};
use crate::clock::Clock;
use feedrate_measure::record::HostEpoch;

/// Minimum difference that counts as a step of the wall clock. Smaller differences are drift.
const CLOCK_STEP_MIN_NS: u64 = 1_000_000;

/// Counters at the start of an epoch.
pub struct Sampler {
    proc: Proc,
    start_totals: Totals,
    others: Option<BusiestWatch>,
    meminfo: Vec<(String, String)>,
    clock: Clock,
    clock_step_ns: i64,
}

impl Sampler {
    /// Starts counting. `device` is the `major:minor` of the disk under the dataset.
    pub fn start(device: Option<&str>, device_reads: DeviceReads, clock: Clock) -> Self {
        let mut proc = Proc::open(device, device_reads);
        Sampler {
            others: BusiestWatch::start(),
            start_totals: proc.totals(),
            proc,
            meminfo: meminfo(),
            clock,
            clock_step_ns: clock.wall_step_ns(),
        }
    }

    /// Returns the measurements since the start, except for residency.
    pub fn finish(mut self) -> HostEpoch {
        let added = self.proc.totals().since(self.start_totals);
        let step_ns = self.clock.wall_step_ns() - self.clock_step_ns;
        let cpu_busy_share = added.cpu_busy_share();
        let watched = self.others.map(|others| others.finish(cpu_busy_share)).unwrap_or_default();
        let process_cpu_ns =
            added.counts.process_cpu_ns.map(|cpu_ns| cpu_ns.saturating_sub(watched.cpu_ns));
        let is_stepped = step_ns.unsigned_abs() >= CLOCK_STEP_MIN_NS;
        HostEpoch {
            process_device_read_bytes: added.counts.process_device_read_bytes,
            device_read_bytes: added.counts.device_read_bytes,
            device_reads: added.device_reads,
            device_write_bytes: added.counts.device_written_bytes,
            process_cpu_ns,
            major_page_faults: added.major_page_faults,
            cpu_busy_share,
            busiest_other: watched.busiest,
            clock_step_ns: Some(if is_stepped { step_ns } else { 0 }),
            meminfo: self.meminfo,
            ..HostEpoch::default()
        }
    }
}
