//! Quantities computed once per record and shared by doubts, verdicts and DLIO's files. This module draws no conclusions.

use crate::data_origin::{DataOrigin, EpochEvidence, ReadEvidence};
use crate::file_system::is_in_memory;
use crate::metric::{self, Metric, Values};
use crate::record::{HostEpoch, IoCounters, Record};
use crate::window::Scope;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::transfers::TransferCounts;

/// Above this share of bytes served from memory, the run measured memory rather than the storage.
const CACHED_SHARE_MAX: f64 = 0.5;

/// A record with quantities computed from it.
pub struct Derived<'a> {
    /// The record.
    pub record: &'a Record,
    /// The utilisation from which accelerators count as fed, in percent: that of the plan, unless [`Derived::with_target`] replaced it.
    pub target_percent: f64,
    /// Payload of the training files.
    pub dataset_bytes: u64,
    /// Steps of the longest epoch.
    pub steps: u64,
    /// Metrics of the run.
    pub values: Values,
    /// Bytes that came from the device; `None` if the kernel does not report them.
    pub device_bytes: Option<u64>,
    /// Counters of all workers over the run.
    pub io: IoCounters,
    /// Requests to an object store over the run; `None` for other storages.
    pub transfers: Option<TransferCounts>,
}

impl<'a> Derived<'a> {
    /// Computes the quantities of a record.
    pub fn new(record: &'a Record) -> Self {
        let layout = Layout::new(&record.plan.dataset);
        let io = metric::counters_of_run(record);
        let payload = layout.sum(layout.files_train(), |shape| shape.payload_bytes());
        Derived {
            record,
            target_percent: record.plan.metric.au_target_percent,
            dataset_bytes: u64::try_from(payload).unwrap_or(u64::MAX),
            steps: Scope::all_epochs(record).map(Scope::steps).max().unwrap_or(0),
            values: metric::measured_values(record),
            device_bytes: sum_known(record, |host| host.process_device_read_bytes),
            io,
            transfers: TransferCounts::sum(
                Scope::whole_epochs(record).map(|scope| scope.epoch.transfers.as_ref()),
            ),
        }
    }

    /// Replaces the utilisation from which accelerators count as fed, if one is given.
    #[must_use]
    pub fn with_target(self, target_percent: Option<f64>) -> Self {
        Derived { target_percent: target_percent.unwrap_or(self.target_percent), ..self }
    }

    /// Value of a metric; `None` if unknown.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.id).map(|value| value.number)
    }

    /// Whether emulation dominates reads: a throttle or delay accounts for at least half of the time in read calls. Then the source of
    /// the bytes, device or memory, does not matter.
    pub fn reads_are_emulated(&self) -> bool {
        is_at_least_half(self.emulated_reads_s(), self.io.read_ns)
    }

    /// Whether emulation dominates opens: delays account for at least half of the time in open calls, or throttle and delays together
    /// account for at least half of the time in open and read calls.
    pub fn opens_are_emulated(&self) -> bool {
        let storage = self.record.plan.storage_of_steps();
        let opens_s = self.io.opens as f64 * (storage.delay_s + storage.open_delay_s);
        let all_ns = self.io.open_ns + self.io.read_ns;
        is_at_least_half(opens_s, self.io.open_ns)
            || is_at_least_half(opens_s + self.emulated_reads_s(), all_ns)
    }

    /// Whether emulated preprocessing accounts for at least half of the time to decode samples.
    pub fn decoding_is_emulated(&self) -> bool {
        let preprocess_s = self.record.plan.loader.preprocess.mean_s();
        is_at_least_half(self.io.samples as f64 * preprocess_s, self.io.decode_ns)
    }

    /// Seconds that all readers together spent in the throttle and in delays of reads.
    fn emulated_reads_s(&self) -> f64 {
        let plan = &self.record.plan;
        let storage = plan.storage_of_steps();
        let readers = f64::from(plan.readers()) * f64::from(plan.loader.streams());
        // With limited concurrency, further readers queue; every process has at least one slot.
        let processes = self.record.processes.len() as u32;
        let slots = storage.throttle_concurrency.map(|slots| slots.max(processes).max(1));
        let readers_per_slot = slots.map_or(1.0, |slots| (readers / f64::from(slots)).max(1.0));
        // The throttle's bandwidth is shared: every reader waits while one read is served.
        let served_s =
            storage.throttle_bytes_per_second.map_or(0.0, |rate| self.io.read_bytes as f64 / rate);
        let read_s = storage.throttle_latency_s + storage.delay_s + storage.read_delay_s;
        served_s * readers + self.io.reads as f64 * read_s * readers_per_slot
    }

    /// Where the bytes came from. `None` if nothing was read, if the storage has no page cache, or if reads are emulated, since then the
    /// origin does not matter.
    pub fn data_origin(&self) -> Option<DataOrigin> {
        let record = self.record;
        let mut hosts = record.epochs.iter().map(|epoch| &epoch.host);
        let has_cache = hosts
            .any(|host| host.resident_before_bytes.is_some() || host.resident_sampled_share > 0.0);
        if !has_cache || self.reads_are_emulated() {
            return None;
        }
        let epochs = Scope::whole_epochs(record).map(|Scope { epoch, .. }| EpochEvidence {
            read_bytes: epoch.accelerators.iter().map(|reader| self.first_bytes(&reader.io)).sum(),
            distinct_bytes: epoch.files_read.as_ref().map(|files| files.unique_bytes),
            resident_bytes: epoch.host.resident_before_bytes,
        });
        DataOrigin::new(&ReadEvidence {
            read_bytes: self.first_bytes(&self.io),
            passes_page_cache: record.plan.storage_of_steps().passes_page_cache,
            process_bytes: self.device_bytes,
            disk_bytes: self.disk_bytes(),
            memory_bytes: record.machines().iter().map(|machine| machine.memory_bytes).sum(),
            has_hidden_caches: record.has_hidden_caches(),
            epochs: epochs.collect(),
        })
    }

    /// Bytes that were read, without those that a library reads again after it opens a file. Memory serves these on any storage.
    fn first_bytes(&self, io: &IoCounters) -> u64 {
        let plan = &self.record.plan;
        let file_bytes = self.dataset_bytes / plan.dataset.files_train.max(1);
        io.read_bytes.saturating_sub(io.opens.saturating_mul(plan.loader.opening_bytes(file_bytes)))
    }

    /// Share of the logical bytes that came from memory and not from the device; `None` if it is unknown or does not matter.
    pub fn cached_share(&self) -> Option<f64> {
        match self.data_origin()? {
            DataOrigin::Counted { cached_share } => Some(cached_share),
            DataOrigin::Uncounted { .. } => None,
        }
    }

    /// Whether more than half of the bytes came from memory, or may have come from memory if device bytes are unknown. Such a run does
    /// not show how fast the storage is.
    pub fn is_memory_served(&self) -> bool {
        self.data_origin().is_some_and(|origin| CACHED_SHARE_MAX < origin.cached_share_max())
    }

    /// Whether more than half of the bytes came from memory, or may have come from caches that the page cache does not show.
    pub fn may_be_memory_served(&self) -> bool {
        self.data_origin().is_some_and(|origin| CACHED_SHARE_MAX < origin.memory_share_max())
    }

    /// Bytes that the disk delivered to all processes; `None` if unknown or if the dataset is not on a disk of this machine.
    pub fn disk_bytes(&self) -> Option<u64> {
        self.sum_over_epochs(|host| host.device_read_bytes)
    }

    /// Type of the dataset's file system if it keeps all files in memory.
    pub fn memory_file_system(&self) -> Option<&'a str> {
        let mount = self.record.system.data_mount.as_ref()?;
        Some(&*mount.file_system).filter(|file_system| is_in_memory(file_system))
    }

    /// Largest number of dataset bytes in the page cache at the start of an epoch; `None` if unknown.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.record.epochs.iter().filter_map(|epoch| epoch.host.resident_before_bytes).max()
    }

    /// Sum of a machine's counter over epochs; `None` unless it is known for each epoch.
    pub fn sum_over_epochs(&self, counter: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
        sum_known(self.record, counter)
    }
}

fn is_at_least_half(emulated_s: f64, busy_ns: u64) -> bool {
    emulated_s > 0.0 && emulated_s >= busy_ns as f64 / 2e9
}

fn sum_known(record: &Record, counter: fn(&HostEpoch) -> Option<u64>) -> Option<u64> {
    let mut epochs = Scope::whole_epochs(record).peekable();
    epochs.peek()?;
    epochs.map(|scope| counter(&scope.epoch.host)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;
    use crate::record::{Mount, Process};
    use feedrate_spec::plan::{Library, StagePlan};

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
    fn bytes_not_read_from_the_device_came_from_the_cache() {
        check(|_| {}, false, Some(0.8));
        check(|r| r.epochs[0].host.process_device_read_bytes = Some(0), false, Some(1.0));
        // Readahead fetches more than was read.
        check(|r| r.epochs[0].host.process_device_read_bytes = Some(1 << 40), false, Some(0.0));
        check(|r| r.epochs[0].host.process_device_read_bytes = None, false, None);
        check(|r| r.epochs[0].host.resident_before_bytes = None, false, None);
        check(|r| r.epochs[0].accelerators[0].io.read_bytes = 0, false, None);
        check(|r| r.epochs.clear(), false, None);
    }

    #[test]
    fn bytes_that_a_library_reads_twice_say_nothing_about_the_device() {
        let with_library = |record: &mut Record| {
            let host = &mut record.epochs[0].host;
            host.process_device_read_bytes = Some(20_000_000 - 1000 * (4096 + 128));
            record.plan.loader.library = Some(Library::NumpyNpy);
            record.plan.dataset.record_dims = vec![20_000];
            record.epochs[0].accelerators[0].io.opens = 1000;
        };
        check(with_library, false, Some(0.0));
    }

    /// Twenty reads of 20 MB in all; the bytes from the device are unknown.
    fn check_unknown(change: impl Fn(&mut Record), cached_share_max: Option<f64>) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        record.epochs[0].host.resident_before_bytes = Some(5_000_000);
        change(&mut record);
        let derived = Derived::new(&record);
        let origin = cached_share_max.map(|share| DataOrigin::Uncounted {
            cached_share_max: share,
            memory_share_max: share,
        });
        assert_eq!((derived.cached_share(), derived.data_origin()), (None, origin));
        let is_memory_served = cached_share_max.is_some_and(|share| share > 0.5);
        assert_eq!(derived.is_memory_served(), is_memory_served);
    }

    #[test]
    fn without_device_bytes_resident_bytes_may_have_come_from_the_cache() {
        check_unknown(|_| {}, Some(0.25));
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = Some(0), Some(0.0));
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = Some(1 << 40), Some(1.0));
        // Residency was sampled, and the kernel reported nothing.
        let unknown = |r: &mut Record| {
            let host = &mut r.epochs[0].host;
            (host.resident_before_bytes, host.resident_sampled_share) = (None, 1.0);
        };
        check_unknown(unknown, Some(1.0));
        // No machine has more of the dataset in its page cache than it has memory.
        check_unknown(
            |r| {
                unknown(r);
                r.system.memory_bytes = Some(4_000_000);
            },
            Some(0.2),
        );
        // The disk delivered little to all processes.
        check_unknown(|r| r.epochs[0].host.device_read_bytes = Some(2_000_000), Some(0.9));
        // No page cache; reads bypass it; reads are emulated.
        check_unknown(|r| r.epochs[0].host.resident_before_bytes = None, None);
        check_unknown(|r| r.plan.storage.passes_page_cache = true, Some(0.0));
        check_unknown(|r| r.plan.storage.throttle_bytes_per_second = Some(4e6), None);
    }

    /// The page cache was cold, and how much memory other caches have is not limited.
    #[test]
    fn hidden_caches_may_have_served_a_run_that_the_page_cache_did_not_serve() {
        for (file_system, expected) in [("ext4", false), ("lustre", false), ("fuse.sshfs", true)] {
            let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
            record.epochs[0].host.resident_before_bytes = Some(0);
            record.system.data_mount =
                Some(Mount { file_system: file_system.into(), ..Mount::default() });
            let derived = Derived::new(&record);
            assert!(!derived.is_memory_served());
            assert_eq!(derived.may_be_memory_served(), expected, "{file_system}");
            record.system.memory_bytes = Some(4_000_000);
            assert!(!Derived::new(&record).may_be_memory_served());
        }
    }

    #[test]
    fn device_bytes_suffice_without_residency() {
        let unknown = |r: &mut Record| {
            let host = &mut r.epochs[0].host;
            (host.resident_before_bytes, host.resident_sampled_share) = (None, 0.1);
        };
        check(unknown, false, Some(0.8));
    }

    #[test]
    fn reads_are_emulated_if_throttle_or_delay_take_half_of_their_time() {
        check(|r| r.plan.storage.throttle_bytes_per_second = Some(4e6), true, None);
        check(|r| r.plan.storage.throttle_bytes_per_second = Some(4.1e6), false, Some(0.8));
        let staged = |r: &mut Record| {
            r.plan.storage.throttle_bytes_per_second = Some(4e6);
            r.plan.stage = Some(StagePlan::default());
        };
        check(staged, false, Some(0.8));
        check(|r| r.plan.storage.throttle_latency_s = 0.25, true, None);
        check(|r| r.plan.storage.throttle_latency_s = 0.24, false, Some(0.8));
        check(|r| r.plan.storage.delay_s = 0.25, true, None);
        check(|r| r.plan.storage.delay_s = 0.24, false, Some(0.8));
        check(|r| r.plan.storage.read_delay_s = 0.25, true, None);
        // The throttle's bandwidth is shared, so two workers wait twice as long.
        let two_workers = |r: &mut Record| {
            r.plan.storage.throttle_bytes_per_second = Some(8e6);
            r.plan.loader.workers = 2;
        };
        check(two_workers, true, None);
    }

    const PROCESS: Process =
        Process { node: 0, id: 1, accelerators: 1, clock_offset_ns: 0, clock_error_ns: 0 };

    /// Ten readers share two slots, so a read of 50 ms takes five times as long.
    #[test]
    fn waiting_for_a_slot_counts_as_throttling() {
        fn ten_workers(r: &mut Record) {
            r.plan.storage.throttle_latency_s = 0.05;
            r.plan.loader.workers = 10;
        }
        check(ten_workers, false, Some(0.8));
        let limited = |r: &mut Record| {
            ten_workers(r);
            r.plan.storage.throttle_concurrency = Some(2);
        };
        check(limited, true, None);
        let in_processes = |r: &mut Record| {
            limited(r);
            r.processes = vec![PROCESS; 5];
        };
        check(in_processes, false, Some(0.8));
        let enough_slots = |r: &mut Record| {
            limited(r);
            r.plan.storage.throttle_concurrency = Some(20);
        };
        check(enough_slots, false, Some(0.8));
        // Without a latency, limited concurrency emulates nothing.
        let no_latency = |r: &mut Record| {
            limited(r);
            r.plan.storage.throttle_latency_s = 0.0;
        };
        check(no_latency, false, Some(0.8));
    }

    #[test]
    fn delayed_opens_do_not_make_reads_emulated() {
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
    fn totals_cover_only_whole_epochs() {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 3]);
        record.epochs.push(record.epochs[0].clone());
        record.epochs[1].accelerators.clear();
        let derived = Derived::new(&record);
        assert_eq!((derived.io.read_bytes, derived.io.reads, derived.steps), (3_000_000, 3, 3));
        assert_eq!(derived.sum_over_epochs(|host| host.device_read_bytes), None);
        assert_eq!(derived.dataset_bytes, 3_000_000);
        assert_eq!(derived.resident_bytes(), None);
    }
}
