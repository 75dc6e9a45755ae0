//! A modelled storage, and a modelled sample. Values alone.

use feedrate_measure::record::ReadLimits;
use feedrate_spec::plan::StoragePlan;

/// Reads as the device has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtDevice {
    /// Bytes, for each that is read.
    pub(super) bytes_of_byte: f64,
    pub(super) requests: DeviceRequests,
}

/// Requests at the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeviceRequests {
    /// For each read.
    OfRead(f64),
    /// For each byte that is read: the page cache reads ahead, in requests of its own.
    OfByte(f64),
}

/// A storage: the times that opens and reads take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageModel {
    /// All readers together, first come first served; `None` is no limit.
    pub bytes_per_second: Option<f64>,
    /// A read's turn, all readers together, whatever its bytes: one over IOPS.
    pub request_s: f64,
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

    /// The limits that a control group sets, as what it limits is at the `device`.
    pub(super) fn limited(limits: &ReadLimits, device: &AtDevice) -> Self {
        let bytes = limits.bytes_per_second.map(|rate| rate as f64 / device.bytes_of_byte);
        let requests = limits.requests_per_second.map(|rate| rate as f64);
        let (of_read, of_byte) = match device.requests {
            DeviceRequests::OfRead(each) => (requests.map(|rate| each / rate), None),
            DeviceRequests::OfByte(each) => {
                (None, requests.map(|rate| rate / each).filter(|rate| rate.is_finite()))
            }
        };
        StorageModel {
            bytes_per_second: bytes.into_iter().chain(of_byte).reduce(f64::min),
            request_s: of_read.unwrap_or_default(),
            ..StorageModel::default()
        }
    }

    /// Whether all readers share a limit, so that more of them do not get more.
    pub(super) fn is_shared(&self) -> bool {
        self.bytes_per_second.is_some() || self.request_s > 0.0
    }

    /// The one behind the other.
    pub(super) fn behind(self, other: StorageModel) -> Self {
        let rates = self.bytes_per_second.into_iter().chain(other.bytes_per_second);
        StorageModel {
            bytes_per_second: rates.reduce(f64::min),
            request_s: self.request_s.max(other.request_s),
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
    /// The client's work of a worker, beside what the loader takes of a processor itself.
    pub(super) client_s: f64,
}
