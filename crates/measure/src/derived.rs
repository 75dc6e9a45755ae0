//! Input of doubts and verdicts: the metrics of a record, computed once. No judgement here.

use crate::metric::{self, Metric, Values};
use crate::record::{HostEpoch, IoCounters, Record};
use crate::window::Scope;
use feedrate_spec::plan::layout::Layout;

/// From this share of bytes out of memory on, a statement about the storage would be one about memory.
const CACHED_SHARE_MAX: f64 = 0.5;

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
    /// Bytes that came from storage; `None` if the kernel does not say.
    pub device_bytes: Option<u64>,
    /// Counters of all workers over the run.
    pub io: IoCounters,
}

impl<'a> Derived<'a> {
    /// Compute them.
    pub fn new(record: &'a Record) -> Self {
        let layout = Layout::new(&record.plan.dataset);
        let io = metric::counters_of_run(record);
        let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes());
        Derived {
            record,
            dataset_bytes: u64::try_from(payload).unwrap_or(u64::MAX),
            steps: Scope::each(record).map(Scope::steps).max().unwrap_or(0),
            values: metric::values(record),
            device_bytes: sum_known(record, |host| host.process_device_read_bytes),
            io,
        }
    }

    /// The value of a metric.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.id).map(|value| value.number)
    }

    /// Whether a throttle or delay stands for the storage in reads, so that where their bytes came from cannot matter: at least
    /// half of the time in them is theirs.
    pub fn reads_are_emulated(&self) -> bool {
        is_half(self.emulated_reads_s(), self.io.read_ns)
    }

    /// Whether a delay stands for the storage in opens, or throttle and delays for all of it.
    pub fn opens_are_emulated(&self) -> bool {
        let storage = self.record.plan.storage_of_steps();
        let opens_s = self.io.opens as f64 * (storage.delay_s + storage.open_delay_s);
        let all_ns = self.io.open_ns + self.io.read_ns;
        is_half(opens_s, self.io.open_ns) || is_half(opens_s + self.emulated_reads_s(), all_ns)
    }

    /// Time of all readers in the throttle and the delays of reads.
    fn emulated_reads_s(&self) -> f64 {
        let plan = &self.record.plan;
        let storage = plan.storage_of_steps();
        let readers = f64::from(plan.readers()) * f64::from(plan.loader.workers.max(1));
        // Readers beyond the places wait until those before them are through; each process has a place.
        let processes = self.record.processes.len() as u32;
        let places = storage.throttle_concurrency.map(|places| places.max(processes).max(1));
        let waiting = places.map_or(1.0, |places| (readers / f64::from(places)).max(1.0));
        // A throttle serves one read after another: that many wait for each that is served.
        let served_s =
            storage.throttle_bytes_per_second.map_or(0.0, |rate| self.io.read_bytes as f64 / rate);
        let read_s = storage.throttle_latency_s + storage.delay_s + storage.read_delay_s;
        served_s * readers + self.io.reads as f64 * read_s * waiting
    }

    /// Share of the logical bytes that no device gave: the page cache did. `None` where that cannot be known, where nothing was
    /// read, and where reads are emulated.
    pub fn cached_share(&self) -> Option<f64> {
        if !self.reads_through_cache() {
            return None;
        }
        let from_device = self.device_bytes?.min(self.io.read_bytes);
        Some(1.0 - from_device as f64 / self.io.read_bytes as f64)
    }

    /// Largest share of the logical bytes that the page cache can have given where device bytes are unknown: what of the dataset was
    /// in it when epochs began, or all where that is unknown, too. `None` where [`Derived::cached_share`] is known, or would be
    /// without meaning, and where reads bypass the page cache.
    pub fn cached_share_max(&self) -> Option<f64> {
        let is_direct = self.record.plan.storage_of_steps().passes_page_cache;
        if self.device_bytes.is_some() || is_direct || !self.reads_through_cache() {
            return None;
        }
        let cached_max = Scope::all(self.record).map(|scope| {
            let read_bytes =
                scope.epoch.accelerators.iter().map(|accelerator| accelerator.io.read_bytes).sum();
            scope.epoch.host.resident_before_bytes.unwrap_or(u64::MAX).min(read_bytes)
        });
        Some(cached_max.sum::<u64>() as f64 / self.io.read_bytes as f64)
    }

    /// Whether something was read from a storage with a page cache, whose speed was not emulated.
    fn reads_through_cache(&self) -> bool {
        let mut hosts = self.record.epochs.iter().map(|epoch| &epoch.host);
        let has_cache = hosts
            .any(|host| host.resident_before_bytes.is_some() || host.resident_sampled_share > 0.0);
        has_cache && self.io.read_bytes > 0 && !self.reads_are_emulated()
    }

    /// Whether more than half of the bytes came from memory, or can have come from it where device bytes are unknown, so that what the
    /// run says of the storage it may say of memory.
    pub fn is_memory_served(&self) -> bool {
        let share = self.cached_share().or_else(|| self.cached_share_max());
        share.is_some_and(|share| CACHED_SHARE_MAX < share)
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

fn is_half(emulated_s: f64, busy_ns: u64) -> bool {
    emulated_s > 0.0 && emulated_s >= busy_ns as f64 / 2e9
}

fn sum_known(record: &Record, figure: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
    let mut epochs = Scope::all(record).peekable();
    epochs.peek()?;
    epochs.map(|scope| figure(&scope.epoch.host)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;
    use crate::record::Process;
    use feedrate_spec::plan::StagePlan;

    /// Twenty reads of 20 MB in all, which took 10 s, 4 MB of them from the device.
    fn check(change: impl Fn(&mut Record), is_emulated: bool, cached_share: Option<f64>) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        let host = &mut record.epochs[0].host;
        host.process_device_read_bytes = Some(4_000_000);
        host.resident_before_bytes = Some(1_000_000);
        change(&mut record);
        let derived = Derived::new(&record);
        assert_eq!(derived.reads_are_emulated(), is_emulated);
        assert_eq!(derived.cached_share(), cached_share);
    }

    #[test]
    fn bytes_that_no_device_gave_came_from_the_cache() {
        check(|_| {}, false, Some(0.8));
        check(|r| r.epochs[0].host.process_device_read_bytes = Some(0), false, Some(1.0));
        // Readahead fetches more than was read.
        check(|r| r.epochs[0].host.process_device_read_bytes = Some(1 << 40), false, Some(0.0));
        check(|r| r.epochs[0].host.process_device_read_bytes = None, false, None);
        check(|r| r.epochs[0].host.resident_before_bytes = None, false, None);
        check(|r| r.epochs[0].accelerators[0].io.read_bytes = 0, false, None);
        check(|r| r.epochs.clear(), false, None);
    }

    /// Twenty reads of 20 MB in all, of which a device gave an unknown part.
    fn check_unknown(change: impl Fn(&mut Record), cached_share_max: Option<f64>) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        record.epochs[0].host.resident_before_bytes = Some(5_000_000);
        change(&mut record);
        let derived = Derived::new(&record);
        assert_eq!((derived.cached_share(), derived.cached_share_max()), (None, cached_share_max));
        let is_memory_served = cached_share_max.is_some_and(|share| share > 0.5);
        assert_eq!(derived.is_memory_served(), is_memory_served);
    }

    #[test]
    fn without_device_bytes_what_was_resident_may_have_come_from_the_cache() {
        check_unknown(|_| {}, Some(0.25));
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = Some(0), Some(0.0));
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = Some(1 << 40), Some(1.0));
        // Files were looked at, and the kernel did not say.
        let unknown = |r: &mut Record| {
            let host = &mut r.epochs[0].host;
            (host.resident_before_bytes, host.resident_sampled_share) = (None, 1.0);
        };
        check_unknown(unknown, Some(1.0));
        // No page cache, none that reads pass, and none that matters.
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = None, None);
        check_unknown(|r| r.plan.storage.passes_page_cache = true, None);
        check_unknown(|r| r.plan.storage.throttle_bytes_per_second = Some(4e6), None);
    }

    #[test]
    fn device_bytes_tell_without_residency() {
        let unknown = |r: &mut Record| {
            let host = &mut r.epochs[0].host;
            (host.resident_before_bytes, host.resident_sampled_share) = (None, 0.1);
        };
        check(unknown, false, Some(0.8));
    }

    #[test]
    fn a_throttle_or_delay_that_takes_half_the_time_is_the_storage() {
        check(|r| r.plan.storage.throttle_bytes_per_second = Some(4e6), true, None);
        check(|r| r.plan.storage.throttle_bytes_per_second = Some(4.1e6), false, Some(0.8));
        let copied = |r: &mut Record| {
            r.plan.storage.throttle_bytes_per_second = Some(4e6);
            r.plan.stage = Some(StagePlan::default());
        };
        check(copied, false, Some(0.8));
        check(|r| r.plan.storage.throttle_latency_s = 0.25, true, None);
        check(|r| r.plan.storage.throttle_latency_s = 0.24, false, Some(0.8));
        check(|r| r.plan.storage.delay_s = 0.25, true, None);
        check(|r| r.plan.storage.delay_s = 0.24, false, Some(0.8));
        check(|r| r.plan.storage.read_delay_s = 0.25, true, None);
        // A throttle serves one after another, so that two workers wait twice as long.
        let two = |r: &mut Record| {
            r.plan.storage.throttle_bytes_per_second = Some(8e6);
            r.plan.loader.workers = 2;
        };
        check(two, true, None);
    }

    const PROCESS: Process =
        Process { node: 0, id: 1, accelerators: 1, clock_offset_ns: 0, clock_error_ns: 0 };

    /// Ten readers for two places, so that five wait for each read of 50 ms.
    #[test]
    fn who_waits_for_a_place_waits_for_the_throttle() {
        fn ten(r: &mut Record) {
            r.plan.storage.throttle_latency_s = 0.05;
            r.plan.loader.workers = 10;
        }
        check(ten, false, Some(0.8));
        let limited = |r: &mut Record| {
            ten(r);
            r.plan.storage.throttle_concurrency = Some(2);
        };
        check(limited, true, None);
        let in_processes = |r: &mut Record| {
            limited(r);
            r.processes = vec![PROCESS; 5];
        };
        check(in_processes, false, Some(0.8));
        let few_wait = |r: &mut Record| {
            limited(r);
            r.plan.storage.throttle_concurrency = Some(20);
        };
        check(few_wait, false, Some(0.8));
        // Reads take what they take, however few of them at a time.
        let no_wait = |r: &mut Record| {
            limited(r);
            r.plan.storage.throttle_latency_s = 0.0;
        };
        check(no_wait, false, Some(0.8));
    }

    #[test]
    fn delayed_opens_excuse_no_reads_from_the_cache() {
        check(|r| r.plan.storage.open_delay_s = 10.0, false, Some(0.8));
        // Twenty opens of 5 s in all, and reads of 10 s.
        let opens = |change: fn(&mut Record)| {
            let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
            let io = &mut record.epochs[0].accelerators[0].io;
            (io.opens, io.open_ns) = (20, 5_000_000_000);
            change(&mut record);
            Derived::new(&record).opens_are_emulated()
        };
        assert!(opens(|r| r.plan.storage.open_delay_s = 0.125));
        assert!(!opens(|r| r.plan.storage.open_delay_s = 0.12));
        assert!(opens(|r| r.plan.storage.read_delay_s = 0.375));
        assert!(!opens(|r| r.plan.storage.read_delay_s = 0.37));
    }

    #[test]
    fn totals_are_of_whole_epochs() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 3]);
        record.epochs.push(record.epochs[0].clone());
        record.epochs[1].accelerators.clear();
        let derived = Derived::new(&record);
        assert_eq!((derived.io.read_bytes, derived.io.reads, derived.steps), (3_000_000, 3, 3));
        assert_eq!(derived.sum_of_host(|host| host.device_read_bytes), None);
        assert_eq!(derived.dataset_bytes, 3_000_000);
        assert_eq!(derived.resident_bytes(), None);
    }
}
