//! Input of doubts and verdicts: the metrics of a record, computed once. No judgement here.

use crate::metric::{self, Metric, Values};
use crate::record::{HostEpoch, IoCounters, Record};
use crate::window::Scope;
use feedrate_spec::plan::layout::Layout;

/// A record and what follows from it.
pub struct Derived<'a> {
    /// The record.
    pub record: &'a Record,
    /// Payload of the training files.
    pub dataset_bytes: u64,
    /// Steps of the longest epoch.
    pub steps: u64,
    /// Its metrics.
    pub values: Values,
    /// Steps from which `au_sustained` can be measured.
    pub sustained_needs_steps: u64,
    /// Bytes that read calls returned.
    pub logical_bytes: u64,
    /// Bytes that came from storage; `None` if the kernel does not say.
    pub device_bytes: Option<u64>,
    /// Counters of all workers.
    pub io: IoTotals,
}

/// Time of all workers of all accelerators over the run, by what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the counters of these names say it")]
pub struct IoTotals {
    pub opens: u64,
    pub reads: u64,
    pub open_ns: u64,
    pub read_ns: u64,
    pub decode_ns: u64,
}

impl<'a> Derived<'a> {
    /// Compute them.
    pub fn of(record: &'a Record) -> Self {
        let layout = Layout::new(&record.plan.dataset);
        let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes());
        Derived {
            record,
            dataset_bytes: u64::try_from(payload).unwrap_or(u64::MAX),
            steps: Scope::each(record).map(Scope::steps).max().unwrap_or(0),
            values: metric::values(record),
            sustained_needs_steps: metric::sustained_needs_steps(&record.plan),
            logical_bytes: counters(record).map(|io| io.read_bytes).sum(),
            device_bytes: sum_known(record, |host| host.process_device_read_bytes),
            io: IoTotals::of(record),
        }
    }

    /// The value of a metric.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.id).map(|value| value.number)
    }

    /// Whether a throttle or delay stands for the storage, so that what lies behind it cannot matter: at least half of
    /// the time in its operations is theirs.
    pub fn storage_is_emulated(&self) -> bool {
        let plan = &self.record.plan;
        let storage = &plan.storage;
        // A throttle serves one read after another: that many wait for each that is served.
        let readers = f64::from(plan.accelerators) * f64::from(plan.loader.workers.max(1));
        let served_s =
            storage.throttle_bytes_per_second.map_or(0.0, |rate| self.logical_bytes as f64 / rate);
        let waits_s = self.io.reads as f64 * (storage.throttle_latency_s + storage.delay_s)
            + self.io.opens as f64 * storage.delay_s;
        let busy_s = (self.io.open_ns + self.io.read_ns) as f64 / 1e9;
        let emulated_s = served_s * readers + waits_s;
        emulated_s > 0.0 && emulated_s >= busy_s / 2.0
    }

    /// Share of the logical bytes that no device gave: the page cache did. `None` where that cannot be known, where nothing was
    /// read, and where the storage is emulated.
    pub fn cached_share(&self) -> Option<f64> {
        let has_cache = self.record.epochs.iter().any(|e| e.host.resident_before_bytes.is_some());
        if self.storage_is_emulated() || !has_cache || self.logical_bytes == 0 {
            return None;
        }
        let from_device = self.device_bytes?.min(self.logical_bytes);
        Some(1.0 - from_device as f64 / self.logical_bytes as f64)
    }

    /// Bytes in the page cache when an epoch began, at most.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.record.epochs.iter().filter_map(|epoch| epoch.host.resident_before_bytes).max()
    }

    /// Sum of a figure of the machine over epochs; `None` unless each has it.
    pub fn sum_of_host(&self, figure: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
        sum_known(self.record, figure)
    }
}

impl IoTotals {
    fn of(record: &Record) -> Self {
        counters(record).fold(IoTotals::default(), |total, io| IoTotals {
            opens: total.opens + io.opens,
            reads: total.reads + io.reads,
            open_ns: total.open_ns + io.open_ns,
            read_ns: total.read_ns + io.read_ns,
            decode_ns: total.decode_ns + io.decode_ns,
        })
    }
}

fn counters(record: &Record) -> impl Iterator<Item = &IoCounters> {
    Scope::all(record)
        .flat_map(|scope| &scope.epoch.accelerators)
        .map(|accelerator| &accelerator.io)
}

fn sum_known(record: &Record, figure: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
    let mut epochs = Scope::all(record).peekable();
    epochs.peek()?;
    epochs.map(|scope| figure(&scope.epoch.host)).sum()
}
