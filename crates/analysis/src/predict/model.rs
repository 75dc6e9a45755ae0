//! A modelled storage, and a modelled sample. Values alone.

use feedrate_measure::record::ReadLimits;
use feedrate_spec::plan::StoragePlan;

/// Linux hands out the rate of a throttled block device in slices of that length (`DFL_THROTL_SLICE`).
pub(super) const SLICE_S: f64 = 0.1;

/// A storage: the times that opens and reads take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageModel {
    /// All readers together, first come first served; `None` is no limit.
    pub bytes_per_second: Option<f64>,
    /// A read's turn, all readers together, whatever its bytes: one over IOPS.
    pub request_s: f64,
    /// Slices in which the two are handed out, each whole at its begin, as Linux throttles block devices; 0 is evenly.
    pub slice_s: f64,
    /// Each reader by itself; `None` is no limit.
    pub stream_bytes_per_second: Option<f64>,
    /// A read's, beside its bytes.
    pub latency_s: f64,
    /// Coefficient of variation of that.
    pub latency_spread: f64,
    /// An open's, with length and close.
    pub open_s: f64,
    /// Reads served at a time; `None` is any number.
    pub concurrency: Option<u32>,
}

impl StorageModel {
    /// The storage that a plan asks for in place of one.
    pub(super) fn emulated(plan: &StoragePlan) -> Self {
        StorageModel {
            bytes_per_second: plan.throttle_bytes_per_second,
            latency_s: plan.throttle_latency_s + plan.delay_s + plan.read_delay_s,
            open_s: plan.delay_s + plan.open_delay_s,
            concurrency: plan.throttle_concurrency,
            ..StorageModel::default()
        }
    }

    /// The limits that a control group sets, where `of_bytes` of each byte that is read come from the device. Requests are limited as they
    /// are read where no page cache puts them together.
    pub(super) fn limited(limits: &ReadLimits, of_bytes: f64, is_direct: bool) -> Self {
        let requests = if is_direct { limits.requests_per_second } else { None };
        StorageModel {
            bytes_per_second: limits.bytes_per_second.map(|rate| rate as f64 / of_bytes),
            request_s: requests.map_or(0.0, |rate| 1.0 / rate as f64),
            slice_s: SLICE_S,
            ..StorageModel::default()
        }
    }

    /// Whether all readers share a limit, so that more of them do not get more.
    pub(super) fn is_shared(&self) -> bool {
        self.bytes_per_second.is_some() || self.request_s > 0.0
    }

    /// The one behind the other.
    pub(super) fn behind(self, other: StorageModel) -> Self {
        let least = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
        StorageModel {
            bytes_per_second: least(self.bytes_per_second, other.bytes_per_second),
            request_s: self.request_s.max(other.request_s),
            slice_s: self.slice_s.max(other.slice_s),
            latency_s: self.latency_s + other.latency_s,
            open_s: self.open_s + other.open_s,
            concurrency: self.concurrency.into_iter().chain(other.concurrency).min(),
            ..self
        }
    }
}

/// A sample of a plan, but for the times of the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleCost {
    pub(super) opens: f64,
    pub(super) reads: f64,
    pub(super) bytes: f64,
    /// Decoding, beside the preprocessing that the plan asks for.
    pub(super) cpu_s: f64,
}
