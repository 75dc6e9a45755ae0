//! A dataset in memory, its bytes, dentries and inodes: they are dropped or filled in where that is asked for, what is there is
//! doubted where that is not it, and looking opens few files.

use crate::system;
use feedrate_data::storage::{Storage, StorageError};
use feedrate_data::walk::{self, Watch};
use feedrate_measure::record::{EpochRecord, System};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::Permutation;
use feedrate_spec::plan::{Cache, PlanDoubt};
use feedrate_spec::shape::FileShape;
use feedrate_spec::units;
use std::cell::Cell;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Files that are read at once into the page cache: of small ones a storage is slow to open one after another.
const WARM_THREADS: usize = 8;
/// Share of the dataset that may be said to be all of it: the kernel needs memory for itself too.
const WARM_SHARE_MIN: f64 = 0.95;

/// Files that are looked at to see how much of the dataset is in memory, at most.
const LOOKED_AT_MAX: u64 = 1000;
/// Where nothing else opens all files, looking opens no more than one in so many of them, and yet so many.
const LOOKED_AT_SHARE: u64 = 100;
const LOOKED_AT_MIN: u64 = 10;
/// Shares of the sample, which is the same in each epoch: the files that were opened once are looked at again.
const SAMPLE_SEED: u64 = 0x5eed;

/// Files that were opened before the first epoch on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Files that this process opened to probe the dataset.
    pub opens: u64,
    /// Training files that are known to have been opened or made since the last drop of dentries and inodes, but for those that were
    /// only looked at.
    pub opened_files: u64,
}

/// The page cache of a dataset's machine, and its dentries and inodes.
pub(crate) struct PageCache {
    layout: Layout,
    /// The bare storage.
    storage: Arc<dyn Storage>,
    wanted: Cache,
    interrupted: Arc<AtomicBool>,
    /// One process acts, and looks, for its machine.
    pub(crate) acts: bool,
    pub(crate) known: Preparation,
    drop_metadata: Box<DropMetadata>,
    /// Files that are looked at.
    sample: Vec<u64>,
    /// The share that was there when the epoch before ended, a moment ago.
    last: Option<Residency>,
    /// Sum of all training files, where the first epoch is doubted by it.
    file_bytes: Option<u64>,
}

type DropMetadata = dyn Fn() -> io::Result<()> + Send + Sync;

/// Dataset bytes in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Residency {
    /// Scaled up from the files looked at; `None` where it cannot be known.
    pub(crate) bytes: Option<u64>,
    /// Share of the files looked at, whether the kernel said something of them or not; 0 where there is no page cache.
    pub(crate) sampled_share: f64,
}

/// The machine when an epoch begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Before {
    /// Files opened since the epoch before; `None` where another process acts.
    opens: Option<u64>,
    residency: Residency,
    opened_files: Option<u64>,
    metadata_dropped: Option<bool>,
}

impl Before {
    /// Write it down.
    pub(crate) fn tell(&self, epoch: &mut EpochRecord) {
        if let Some(first) = epoch.accelerators.first_mut() {
            first.io.preparation_opens = self.opens;
        }
        let host = &mut epoch.host;
        host.resident_before_bytes = self.residency.bytes;
        host.resident_sampled_share = self.residency.sampled_share;
        host.metadata_opened_files = self.opened_files;
        host.metadata_dropped = self.metadata_dropped;
    }
}

/// The machine when an epoch has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct After {
    /// Files opened since the epoch began, but for its own reads.
    opens: u64,
    bytes: Option<u64>,
}

impl After {
    /// Write it down.
    pub(crate) fn tell(&self, epoch: &mut EpochRecord) {
        epoch.host.resident_after_bytes = self.bytes;
        let told = epoch.accelerators.first_mut().and_then(|of| of.io.preparation_opens.as_mut());
        if let Some(opens) = told {
            *opens += self.opens;
        }
    }
}

impl PageCache {
    pub(crate) fn new(
        layout: Layout,
        storage: Arc<dyn Storage>,
        wanted: Cache,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let files = layout.files_train();
        let looked_at = match wanted {
            Cache::AsIs => (files / LOOKED_AT_SHARE).clamp(LOOKED_AT_MIN, LOOKED_AT_MAX),
            Cache::Cold | Cache::Warm => LOOKED_AT_MAX,
        };
        let order = Permutation::new(files, SAMPLE_SEED);
        let sample = (0..looked_at.min(files)).map(|i| order.at(i)).collect();
        PageCache {
            layout,
            storage,
            wanted,
            interrupted,
            acts: true,
            known: Preparation::default(),
            drop_metadata: Box::new(system::drop_metadata),
            sample,
            last: None,
            file_bytes: None,
        }
    }

    /// Empty it or fill it where that is asked for, and see how much is there. Dentries and inodes are dropped last: all that is
    /// done before opens files.
    pub(crate) fn prepare(&mut self) -> Result<Before, StorageError> {
        if !self.acts {
            return Ok(Before::default());
        }
        match (self.wanted, self.last) {
            (Cache::Cold, _) => self.each(1, |storage, path| storage.evict(path))?,
            (Cache::Warm, None) => self.each(WARM_THREADS, |storage, path| storage.warm(path))?,
            _ => {}
        }
        let residency = match self.last {
            Some(last) if self.wanted != Cache::Cold => last,
            _ => self.look(),
        };
        let dropped = (self.wanted == Cache::Cold).then(|| (self.drop_metadata)().is_ok());
        if dropped == Some(true) {
            self.known.opened_files = 0;
        }
        Ok(Before {
            opens: Some(std::mem::take(&mut self.known.opens)),
            residency,
            // Without a page cache, no file was opened either.
            opened_files: (residency.sampled_share > 0.0).then_some(self.known.opened_files),
            metadata_dropped: dropped,
        })
    }

    fn each(
        &mut self,
        threads: usize,
        act: fn(&dyn Storage, &str) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.known.opens += self.layout.files();
        self.known.opened_files = self.layout.files_train();
        let watch = Watch::new(&|_, _| {}, &self.interrupted);
        walk::for_each(self.layout.files(), threads, &watch, String::new, |path, file| {
            self.layout.write_path(file, path);
            act(&*self.storage, path)
        })
    }

    /// See how many bytes are there when an epoch of this process ends in which so many files were read.
    pub(crate) fn after(&mut self, files_read: Option<u64>) -> After {
        if !self.acts {
            return After::default();
        }
        self.known.opened_files = self.known.opened_files.max(files_read.unwrap_or(0));
        if self.wanted == Cache::Warm && self.last.is_none() {
            self.file_bytes = self.sampled(|path| self.storage.stat(path)).unwrap_or_default();
        }
        let residency = self.look();
        self.last = Some(residency);
        After { opens: std::mem::take(&mut self.known.opens), bytes: residency.bytes }
    }

    /// That it cannot be known stops no run.
    fn look(&mut self) -> Residency {
        let looked_at = Cell::new(0);
        let resident_bytes = |path: &str| {
            looked_at.set(looked_at.get() + 1);
            self.storage.resident_bytes(path)
        };
        let bytes = self.sampled(resident_bytes).unwrap_or_default();
        let has_cache = || bytes.is_some() || self.storage.member().has(Ability::PageCache);
        if self.sample.is_empty() || !has_cache() {
            return Residency::default();
        }
        // Of a small dataset these few alone would be more than is doubted: they are told as opens, no more.
        self.known.opens += looked_at.get();
        let sampled_share = looked_at.get() as f64 / self.layout.files_train() as f64;
        Residency { bytes, sampled_share }
    }

    /// Bytes of all training files, scaled up from those of the sample.
    fn sampled(
        &self,
        bytes_of: impl Fn(&str) -> Result<Option<u64>, StorageError>,
    ) -> Result<Option<u64>, StorageError> {
        let mut path = String::new();
        let mut sum: u64 = 0;
        for &file in &self.sample {
            self.layout.write_path(file, &mut path);
            let Some(bytes) = bytes_of(&path)? else { return Ok(None) };
            sum += bytes;
        }
        let share = self.sample.len() as f64 / self.layout.files_train() as f64;
        Ok((!self.sample.is_empty()).then(|| (sum as f64 / share) as u64))
    }

    /// Doubts of an epoch that began with another one than the user asked for.
    pub(crate) fn doubts(&self, epoch: &EpochRecord, machines: &[System]) -> Vec<PlanDoubt> {
        match self.wanted {
            Cache::Cold => not_cold(epoch, machines, self.cold_bytes_max()),
            Cache::Warm if epoch.number == 1 => not_warm(epoch, machines, self.file_bytes),
            Cache::AsIs | Cache::Warm => Vec::new(),
        }
    }

    /// The kernel may hold back a few pages; a thousandth of the dataset cannot matter.
    fn cold_bytes_max(&self) -> u64 {
        let payload = self.layout.sum(self.layout.files_train(), FileShape::payload_bytes);
        (payload / 1000) as u64
    }
}

/// The machines of which more than `cold_bytes_max` of the dataset is known to have been in the page cache when an epoch began.
fn not_cold(epoch: &EpochRecord, machines: &[System], cold_bytes_max: u64) -> Vec<PlanDoubt> {
    let doubt = PlanDoubt {
        name: "not_cold".into(),
        evidence: "of the dataset".into(),
        advice: "other processes may hold the files open or mapped; drop caches as root, or use a larger dataset".into(),
    };
    outside(epoch, machines, 0..=cold_bytes_max, &doubt)
}

/// The machines of which less than nearly all `file_bytes` of the dataset are known to have been in the page cache when an epoch began.
fn not_warm(epoch: &EpochRecord, machines: &[System], file_bytes: Option<u64>) -> Vec<PlanDoubt> {
    let enough = file_bytes.map_or(u64::MAX, |bytes| (bytes as f64 * WARM_SHARE_MIN) as u64);
    let all = file_bytes.map_or("unknown size".into(), units::bytes);
    let doubt = PlanDoubt {
        name: "not_warm".into(),
        evidence: format!("of the dataset's {all}"),
        advice: "the page cache takes no more than the memory that is free: use a smaller dataset, or leave `--warm` out".into(),
    };
    outside(epoch, machines, enough..=u64::MAX, &doubt)
}

/// `doubt` of each machine on which other bytes than `wanted` are known to have been in the page cache when an epoch began; its
/// evidence is what they are bytes of.
fn outside(
    epoch: &EpochRecord,
    machines: &[System],
    wanted: RangeInclusive<u64>,
    doubt: &PlanDoubt,
) -> Vec<PlanDoubt> {
    let hosts =
        if epoch.nodes.is_empty() { std::slice::from_ref(&epoch.host) } else { &epoch.nodes };
    let several = machines.len() > 1;
    let doubts = hosts.iter().zip(machines).filter_map(|(host, machine)| {
        let bytes = host.resident_before_bytes.filter(|bytes| !wanted.contains(bytes))?;
        let machine = if several { format!(" of {}", machine.hostname) } else { String::new() };
        let (part, whole, number) = (units::bytes(bytes), &doubt.evidence, epoch.number);
        let evidence =
            format!("{part} {whole} was in the page cache{machine} when epoch {number} began");
        Some(PlanDoubt { evidence, ..doubt.clone() })
    });
    doubts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{Handle, ReadStorage, WriteFile};
    use feedrate_measure::record::HostEpoch;
    use feedrate_spec::catalog::Member;
    use feedrate_spec::plan::DatasetPlan;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    fn epoch(resident: &[Option<u64>]) -> EpochRecord {
        let host = |bytes: &Option<u64>| HostEpoch {
            resident_before_bytes: *bytes,
            ..HostEpoch::default()
        };
        let mut nodes: Vec<HostEpoch> = resident.iter().map(host).collect();
        let host = if nodes.len() == 1 { nodes.remove(0) } else { HostEpoch::default() };
        EpochRecord { number: 2, host, nodes, ..EpochRecord::default() }
    }

    #[test]
    fn each_machine_that_is_not_cold_is_named() {
        let machines =
            ["a", "b", "c"].map(|name| System { hostname: name.into(), ..System::default() });
        let evidence = |resident: &[Option<u64>]| -> Vec<String> {
            let machines = &machines[..resident.len()];
            let doubts = not_cold(&epoch(resident), machines, 10);
            doubts.into_iter().map(|doubt| doubt.evidence).collect()
        };
        // Of `c` nothing is known: that is no evidence.
        let several = evidence(&[Some(10), Some(11), None]);
        assert_eq!(several.len(), 1, "{several:?}");
        assert!(several[0].contains("page cache of b when epoch 2"), "{several:?}");
        assert_eq!(evidence(&[Some(0)]), Vec::<String>::new());
        assert!(evidence(&[Some(11)])[0].contains("page cache when epoch 2"));
    }

    #[test]
    fn a_machine_that_is_not_warm_says_how_much_is_there() {
        let machines = [System::default()];
        let evidence = |resident, file_bytes| -> Vec<String> {
            let doubts = not_warm(&epoch(&[resident]), &machines, file_bytes);
            doubts.into_iter().map(|doubt| doubt.evidence).collect()
        };
        assert_eq!(evidence(Some(950), Some(1000)), Vec::<String>::new());
        assert_eq!(
            evidence(Some(949), Some(1000)),
            ["949 B of the dataset's 1 kB was in the page cache when epoch 2 began"]
        );
        assert_eq!(evidence(None, Some(1000)), Vec::<String>::new());
        assert!(evidence(Some(5), None)[0].contains("of the dataset's unknown size"));
    }

    /// Logs what is done with files; half of each that was opened is in the page cache.
    #[derive(Default)]
    struct Logged {
        log: Mutex<Vec<String>>,
    }

    impl Logged {
        fn note(&self, action: &str, path: &str) {
            self.log.lock().unwrap().push(format!("{action} {path}"));
        }

        /// The actions since this was last asked, those that follow each other and are alike once; and the files.
        fn take(&self) -> (Vec<String>, BTreeSet<String>) {
            let log = std::mem::take(&mut *self.log.lock().unwrap());
            let parts: Vec<_> = log.iter().map(|line| line.split_once(' ').unwrap()).collect();
            let mut actions: Vec<String> =
                parts.iter().map(|(action, _)| (*action).into()).collect();
            actions.dedup();
            let files = parts.into_iter().map(|(_, file)| file.into());
            (actions, files.filter(|file: &String| !file.is_empty()).collect())
        }
    }

    impl ReadStorage for Logged {
        fn open(&self, _: &str) -> Result<Handle, StorageError> {
            unimplemented!()
        }

        fn len(&self, _: &Handle) -> Result<u64, StorageError> {
            unimplemented!()
        }

        fn read_at(&self, _: &Handle, _: u64, _: &mut [u8]) -> Result<usize, StorageError> {
            unimplemented!()
        }

        fn close(&self, _: Handle) {}
    }

    impl Storage for Logged {
        fn member(&self) -> &'static Member {
            unimplemented!()
        }

        fn stat(&self, _: &str) -> Result<Option<u64>, StorageError> {
            unimplemented!()
        }

        fn create(&self, _: &str) -> Result<Box<dyn WriteFile>, StorageError> {
            unimplemented!()
        }

        fn remove(&self, _: &str) -> Result<(), StorageError> {
            unimplemented!()
        }

        fn list(&self, _: &str) -> Result<Vec<String>, StorageError> {
            unimplemented!()
        }

        fn evict(&self, path: &str) -> Result<(), StorageError> {
            self.note("evict", path);
            Ok(())
        }

        fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
            self.note("look", path);
            Ok(Some(50))
        }
    }

    fn cache_of(files_train: u64, storage: &Arc<Logged>, wanted: Cache) -> PageCache {
        let plan = DatasetPlan { files_train, samples_per_file: 1, ..DatasetPlan::default() };
        PageCache::new(Layout::new(&plan), Arc::clone(storage) as _, wanted, Arc::default())
    }

    /// An epoch of one accelerator that read so many files, from the page cache's point of view.
    fn epoch_of(cache: &mut PageCache, files_read: u64) -> EpochRecord {
        let before = cache.prepare().unwrap();
        let mut own = EpochRecord { accelerators: vec![Default::default()], ..epoch(&[None]) };
        before.tell(&mut own);
        cache.after(Some(files_read)).tell(&mut own);
        own
    }

    #[test]
    fn looking_opens_few_files_and_later_the_same() {
        for (files, looked_at) in
            [(5, 5), (700, 10), (5000, 50), (99_900, 999), (1 << 40, 1000), (0, 0)]
        {
            let storage = Arc::new(Logged::default());
            let mut cache = cache_of(files, &storage, Cache::AsIs);
            cache.known = Preparation { opens: 3, opened_files: 0 };
            let first = epoch_of(&mut cache, files);
            let (actions, opened) = storage.take();
            assert_eq!(opened.len() as u64, looked_at);
            assert!(actions.iter().all(|action| action == "look"));
            let second = epoch_of(&mut cache, files);
            assert!(storage.take().1.is_subset(&opened));
            let opens = |own: &EpochRecord| own.accelerators[0].io.preparation_opens;
            assert_eq!((opens(&first), opens(&second)), (Some(2 * looked_at + 3), Some(looked_at)));
            let known = (looked_at > 0).then_some(50 * files);
            let host = &first.host;
            assert_eq!((host.resident_before_bytes, host.resident_after_bytes), (known, known));
            assert_eq!(host.metadata_opened_files, known.map(|_| 0), "looks are told as opens");
            assert_eq!(second.host.metadata_opened_files, known.map(|_| files));
            assert_eq!(host.metadata_dropped, None);
        }
    }

    #[test]
    fn dentries_and_inodes_are_dropped_after_all_that_opens_files() {
        for allowed in [true, false] {
            let storage = Arc::new(Logged::default());
            let mut cache = cache_of(3, &storage, Cache::Cold);
            let own = Arc::clone(&storage);
            cache.drop_metadata = Box::new(move || {
                own.note("drop", "");
                if allowed { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
            });
            for opens in [3 + 3 + 3, 3 + 3 + 3] {
                let own = epoch_of(&mut cache, 3);
                assert_eq!(storage.take().0, ["evict", "look", "drop", "look"]);
                assert_eq!(own.accelerators[0].io.preparation_opens, Some(opens));
                let opened = if allowed { 0 } else { 3 };
                assert_eq!(own.host.metadata_opened_files, Some(opened));
                assert_eq!(own.host.metadata_dropped, Some(allowed));
            }
        }
    }

    #[test]
    fn what_another_process_sees_is_not_told() {
        let storage = Arc::new(Logged::default());
        let cache = cache_of(9, &storage, Cache::AsIs);
        let own = epoch_of(&mut PageCache { acts: false, ..cache }, 9);
        assert_eq!(storage.take().1.len(), 0);
        assert_eq!(own.accelerators[0].io.preparation_opens, None);
        assert_eq!(own.host, HostEpoch::default());
    }
}
