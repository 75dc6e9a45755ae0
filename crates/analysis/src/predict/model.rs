//! The models of a storage and of a sample, as plain values with rules for combining them.

use feedrate_measure::record::ReadLimits;
use feedrate_spec::plan::StoragePlan;

/// The reads of a run as they arrive at the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceTraffic {
    /// Bytes transferred by the device per byte read.
    pub(super) bytes_per_byte: f64,
    pub(super) requests: DeviceRequests,
}

/// The number of requests at the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum DeviceRequests {
    /// Requests per read.
    PerRead(f64),
    /// Requests per byte read, as the page cache chooses the size of requests.
    PerByte(f64),
}

/// A model of a storage: the times that opens and reads take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageModel {
    /// Bandwidth that all readers share, in order of arrival; `None` if unlimited.
    pub bytes_per_second: Option<f64>,
    /// Interval between two reads of all readers, for reads of any size: 1 ÷ IOPS.
    pub request_s: f64,
    /// Bandwidth of each single reader; `None` if unlimited.
    pub stream_bytes_per_second: Option<f64>,
    /// Latency of a read, without the time for its bytes.
    pub latency_s: f64,
    /// Coefficient of variation of the latency.
    pub latency_spread: f64,
    /// Time of an open, including the query of the length and the close.
    pub open_s: f64,
    /// Number of reads served at a time; `None` if unlimited.
    pub concurrency: Option<u32>,
}

impl StorageModel {
    /// The storage that a plan emulates.
    pub(super) fn from_emulation(plan: &StoragePlan) -> Self {
        StorageModel {
            bytes_per_second: plan.throttle_bytes_per_second,
            latency_s: plan.throttle_latency_s + plan.delay_s + plan.read_delay_s,
            open_s: plan.delay_s + plan.open_delay_s,
            concurrency: plan.throttle_concurrency,
            ..StorageModel::default()
        }
    }

    /// The limits that a control group sets for the device, converted to limits of reads.
    pub(super) fn from_limits(limits: &ReadLimits, traffic: &DeviceTraffic) -> Self {
        let byte_limit = limits.bytes_per_second.map(|rate| rate as f64 / traffic.bytes_per_byte);
        let request_limit = limits.requests_per_second.map(|rate| rate as f64);
        let mut model = StorageModel { bytes_per_second: byte_limit, ..StorageModel::default() };
        if let Some(rate) = request_limit {
            match traffic.requests {
                DeviceRequests::PerRead(requests) => model.request_s = requests / rate,
                DeviceRequests::PerByte(requests) => {
                    let by_requests = Some(rate / requests).filter(|rate| rate.is_finite());
                    model.bytes_per_second =
                        byte_limit.into_iter().chain(by_requests).reduce(f64::min);
                }
            }
        }
        model
    }

    /// Whether all readers share a limit, so more readers do not get more bandwidth.
    pub(super) fn is_shared(&self) -> bool {
        self.bytes_per_second.is_some() || self.request_s > 0.0
    }

    /// Combines this storage with `front`, through which all requests pass first.
    pub(super) fn combine_with(self, front: StorageModel) -> Self {
        let rates = self.bytes_per_second.into_iter().chain(front.bytes_per_second);
        StorageModel {
            bytes_per_second: rates.reduce(f64::min),
            request_s: self.request_s.max(front.request_s),
            latency_s: self.latency_s + front.latency_s,
            open_s: self.open_s + front.open_s,
            concurrency: self.concurrency.into_iter().chain(front.concurrency).min(),
            ..self
        }
    }
}

/// The cost of a sample apart from the times of the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleCost {
    pub(super) opens: f64,
    pub(super) reads: f64,
    pub(super) bytes: f64,
    /// Time to decode, without the configured preprocessing.
    pub(super) cpu_s: f64,
    /// Time that a worker takes for the client's work, without the processor time of the loader's own work.
    pub(super) client_s: f64,
}
