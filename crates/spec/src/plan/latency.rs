//! How long reads may take on average, so that no accelerator waits (Little's law).

use super::shards::FileSplit;
use super::{Estimate, FileAccess, Plan, ReadAhead};

/// What a worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadUnit {
    /// A read call.
    Read,
    /// A request for a whole file or row group.
    Request,
}

/// The mean latency of reads at the required rate, if workers do nothing but read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequiredLatency {
    /// What is read.
    pub unit: ReadUnit,
    /// Mean bytes of a read.
    pub bytes: f64,
    /// Number of reads in flight over all accelerators.
    pub in_flight: u64,
    /// Reads per second at the required rate.
    pub per_second: f64,
    /// Maximum mean duration of a read, in seconds.
    pub latency_s: f64,
}

/// Returns the latency that reads may have. `None` if no rate is required, or if the number of reads or those in flight does not follow from the
/// plan: if the training thread reads, if batches limit the workers, or if a read may serve several samples of a file.
pub fn required_latency(plan: &Plan, estimate: &Estimate) -> Option<RequiredLatency> {
    let loader = &plan.loader;
    let needed = estimate.needed_bytes_per_second.filter(|needed| *needed > 0.0)?;
    let shares_reads = loader.is_broadcast() || loader.file_access == FileAccess::Mpio;
    if loader.in_memory || loader.workers == 0 || shares_reads {
        return None;
    }
    // Fewer batches than workers leave some without work.
    if loader.batches_in_flight < loader.workers {
        return None;
    }
    let idle = idle_workers(plan);
    let workers = (u64::from(plan.accelerators) * u64::from(loader.workers)).checked_sub(idle)?;
    let in_flight = workers * u64::from(loader.in_flight());
    let sample_bytes = estimate.sample_read_bytes_mean;
    let (unit, bytes) = match loader.requests {
        Some(requests) => {
            // Without reading ahead, the open batches may have fewer requests.
            if requests.in_flight > 1 && !matches!(requests.ahead, ReadAhead::Sliding(_)) {
                return None;
            }
            (ReadUnit::Request, sample_bytes * plan.samples_per_request() as f64)
        }
        None => {
            if may_share_reads(plan) {
                return None;
            }
            let heads = loader.head.map_or(0, |head| u64::from(head.reads));
            let before = loader.opening_reads(sample_bytes) + heads;
            let reads = loader.payload_reads(sample_bytes) + before as f64;
            (ReadUnit::Read, sample_bytes / reads)
        }
    };
    let per_second = needed / bytes;
    let is_known = in_flight > 0 && bytes > 0.0 && per_second.is_finite();
    is_known.then_some(RequiredLatency {
        unit,
        bytes,
        in_flight,
        per_second,
        latency_s: in_flight as f64 / per_second,
    })
}

/// Whether a read may serve several samples of a file, so that the number of reads does not follow from the plan.
pub fn may_share_reads(plan: &Plan) -> bool {
    plan.loader.requests.is_none() && plan.dataset.samples_per_file != 1
}

/// Returns the number of workers of all accelerators that have no file in the first epoch.
pub(super) fn idle_workers(plan: &Plan) -> u64 {
    let splits = (0..plan.accelerators).filter_map(|accelerator| FileSplit::new(plan, accelerator));
    splits.map(|split| split.idle_workers()).sum()
}
