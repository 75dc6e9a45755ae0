//! What doubts and verdicts look at: the metrics of a record, computed once. No judgement here.

use crate::metric::{self, AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, Metric};
use crate::record::{HostEpoch, IoCounters, Record};
use crate::window::Scope;
use feedrate_spec::plan::layout::Layout;

/// A record and what follows from it.
pub struct Derived<'a> {
    /// What happened.
    pub record: &'a Record,
    /// Payload of the training files.
    pub dataset_bytes: u64,
    /// Steps of the longest epoch.
    pub steps: u64,
    /// Percent.
    pub au_windowed: Option<f64>,
    /// Percent.
    pub au_all_steps: Option<f64>,
    /// Percent.
    pub au_sustained: Option<f64>,
    /// Steps from which `au_sustained` can be measured.
    pub sustained_needs_steps: u64,
    /// Of an accelerator, in the mean.
    pub time: Time,
    /// The parts of `time.load_s`.
    pub stall: StallTime,
    /// Bytes that read calls returned.
    pub logical_bytes: u64,
    /// Bytes that came from storage; `None` if the kernel does not say.
    pub device_bytes: Option<u64>,
    /// Counters of all workers.
    pub io: IoTotals,
}

/// Seconds of an accelerator over the run, in the mean. `None` without epochs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct Time {
    pub load_s: Option<f64>,
    pub compute_s: Option<f64>,
    pub barrier_s: Option<f64>,
}

/// Seconds of an accelerator over the run, in the mean. `None` without epochs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[expect(missing_docs, reason = "the metrics of these names say it")]
pub struct StallTime {
    pub open_s: Option<f64>,
    pub read_s: Option<f64>,
    pub decode_s: Option<f64>,
    pub queue_s: Option<f64>,
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
    /// Of a record.
    pub fn of(record: &'a Record) -> Self {
        let layout = Layout::new(&record.plan.dataset);
        let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes());
        let run = |metric: &Metric| (metric.of_run)(record);
        Derived {
            record,
            dataset_bytes: u64::try_from(payload).unwrap_or(u64::MAX),
            steps: Scope::each(record).map(Scope::steps).max().unwrap_or(0),
            au_windowed: run(&AU_WINDOWED),
            au_all_steps: run(&AU_ALL_STEPS),
            au_sustained: run(&AU_SUSTAINED),
            sustained_needs_steps: metric::sustained_needs_steps(&record.plan),
            time: Time::of(run),
            stall: StallTime::of(run),
            logical_bytes: counters(record).map(|io| io.read_bytes).sum(),
            device_bytes: sum_known(record, |host| host.process_device_read_bytes),
            io: IoTotals::of(record),
        }
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

impl Time {
    /// From its three metrics.
    pub fn of(value: impl Fn(&Metric) -> Option<f64>) -> Self {
        Time {
            load_s: value(&metric::LOAD_S),
            compute_s: value(&metric::COMPUTE_S),
            barrier_s: value(&metric::BARRIER_S),
        }
    }
}

impl StallTime {
    /// From its four metrics.
    pub fn of(value: impl Fn(&Metric) -> Option<f64>) -> Self {
        StallTime {
            open_s: value(&metric::STALL_OPEN),
            read_s: value(&metric::STALL_READ),
            decode_s: value(&metric::STALL_DECODE),
            queue_s: value(&metric::STALL_QUEUE),
        }
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
