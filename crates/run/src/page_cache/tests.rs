//! Tests the doubts about the page cache, and the order in which caches are prepared.

use super::*;
use feedrate_data::storage::{Handle, ReadStorage, WriteFile};
use feedrate_measure::record::{HostEpoch, Mount};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::DatasetPlan;
use std::collections::BTreeSet;
use std::sync::Mutex;

fn epoch(resident: &[Option<u64>]) -> EpochRecord {
    let host =
        |bytes: &Option<u64>| HostEpoch { resident_before_bytes: *bytes, ..HostEpoch::default() };
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
        let doubts = not_cold_doubts(&epoch(resident), machines, 10);
        doubts.into_iter().map(|doubt| doubt.evidence).collect()
    };
    // Unknown residency, as on `c`, is no evidence.
    let several = evidence(&[Some(10), Some(11), None]);
    assert_eq!(several.len(), 1, "{several:?}");
    assert!(several[0].contains("page cache of b when epoch 2"), "{several:?}");
    assert_eq!(evidence(&[Some(0)]), Vec::<String>::new());
    assert!(evidence(&[Some(11)])[0].contains("page cache when epoch 2"));
}

#[test]
fn files_in_memory_cannot_be_cold() {
    let advice = |file_system: &str| {
        let mount = Mount { file_system: file_system.into(), ..Mount::default() };
        let machine = System { data_mount: Some(mount), ..System::default() };
        not_cold_doubts(&epoch(&[Some(11)]), &[machine], 10).remove(0).advice
    };
    assert_eq!(advice("tmpfs"), "leave out `--cold`: tmpfs keeps all files in memory");
    assert!(advice("ext4").contains("drop caches"));
}

#[test]
fn each_machine_that_is_not_warm_is_named_with_its_bytes() {
    let machines = [System::default()];
    let evidence = |resident, file_bytes| -> Vec<String> {
        let doubts = not_warm_doubts(&epoch(&[resident]), &machines, file_bytes);
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

/// A storage that logs its calls and reports 50 resident bytes for every file.
#[derive(Default)]
struct LoggingStorage {
    log: Mutex<Vec<String>>,
}

impl LoggingStorage {
    fn log_call(&self, action: &str, path: &str) {
        self.log.lock().unwrap().push(format!("{action} {path}"));
    }

    /// Takes the log: the actions, with consecutive equal ones merged, and the set of their files.
    fn take(&self) -> (Vec<String>, BTreeSet<String>) {
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        let parts: Vec<_> = log.iter().map(|line| line.split_once(' ').unwrap()).collect();
        let mut actions: Vec<String> = parts.iter().map(|(action, _)| (*action).into()).collect();
        actions.dedup();
        let files = parts.into_iter().map(|(_, file)| file.into());
        (actions, files.filter(|file: &String| !file.is_empty()).collect())
    }
}

impl ReadStorage for LoggingStorage {
    fn open(&self, _: &str) -> Result<Handle, StorageError> {
        unimplemented!()
    }

    fn len(&self, _: &Handle) -> Result<u64, StorageError> {
        unimplemented!()
    }

    fn read_piece(&self, _: &Handle, _: u64, _: &mut [u8], _: u64) -> Result<usize, StorageError> {
        unimplemented!()
    }

    fn close(&self, _: Handle) {}
}

impl Storage for LoggingStorage {
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
        self.log_call("evict", path);
        Ok(())
    }

    fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.log_call("resident", path);
        Ok(Some(50))
    }
}

fn page_cache(files_train: u64, storage: &Arc<LoggingStorage>, wanted: Cache) -> PageCache {
    let plan = DatasetPlan { files_train, samples_per_file: 1, ..DatasetPlan::default() };
    PageCache::new(Layout::new(&plan), Arc::clone(storage) as _, wanted, Arc::default())
}

/// Records the cache states around an epoch of one accelerator that read `files_read` files.
fn run_epoch(cache: &mut PageCache, files_read: u64) -> EpochRecord {
    let before = cache.prepare().unwrap();
    let mut record = EpochRecord { accelerators: vec![Default::default()], ..epoch(&[None]) };
    before.write_to(&mut record);
    cache.measure_after(Some(files_read)).write_to(&mut record);
    record
}

#[test]
fn residency_is_measured_on_the_same_few_files_in_each_epoch() {
    for (files, sampled_files) in
        [(5, 5), (700, 10), (5000, 50), (99_900, 999), (1 << 40, 1000), (0, 0)]
    {
        let storage = Arc::new(LoggingStorage::default());
        let mut cache = page_cache(files, &storage, Cache::AsIs);
        cache.preparation = Preparation { opens: 3, opened_files: 0 };
        let first = run_epoch(&mut cache, files);
        let (actions, opened) = storage.take();
        assert_eq!(opened.len() as u64, sampled_files);
        assert!(actions.iter().all(|action| action == "resident"));
        let second = run_epoch(&mut cache, files);
        assert!(storage.take().1.is_subset(&opened));
        let opens = |epoch: &EpochRecord| epoch.accelerators[0].io.preparation_opens;
        assert_eq!(
            (opens(&first), opens(&second)),
            (Some(2 * sampled_files + 3), Some(sampled_files))
        );
        let resident = (sampled_files > 0).then_some(50 * files);
        let host = &first.host;
        assert_eq!((host.resident_before_bytes, host.resident_after_bytes), (resident, resident));
        let opened_files = host.metadata_opened_files;
        assert_eq!(opened_files, resident.map(|_| 0), "sampled files are not opened files");
        assert_eq!(second.host.metadata_opened_files, resident.map(|_| files));
        assert_eq!(host.metadata_dropped, None);
    }
}

#[test]
fn dentries_and_inodes_are_dropped_after_files_are_opened() {
    for allowed in [true, false] {
        let storage = Arc::new(LoggingStorage::default());
        let mut cache = page_cache(3, &storage, Cache::Cold);
        let log = Arc::clone(&storage);
        cache.drop_metadata = Box::new(move || {
            log.log_call("drop", "");
            if allowed { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
        });
        for opens in [3 + 3 + 3, 3 + 3 + 3] {
            let epoch = run_epoch(&mut cache, 3);
            assert_eq!(storage.take().0, ["evict", "resident", "drop", "resident"]);
            assert_eq!(epoch.accelerators[0].io.preparation_opens, Some(opens));
            let opened = if allowed { 0 } else { 3 };
            assert_eq!(epoch.host.metadata_opened_files, Some(opened));
            assert_eq!(epoch.host.metadata_dropped, Some(allowed));
        }
    }
}

#[test]
fn a_process_that_is_not_responsible_records_nothing() {
    let storage = Arc::new(LoggingStorage::default());
    let cache = page_cache(9, &storage, Cache::AsIs);
    let epoch = run_epoch(&mut PageCache { is_responsible: false, ..cache }, 9);
    assert_eq!(storage.take().1.len(), 0);
    assert_eq!(epoch.accelerators[0].io.preparation_opens, None);
    assert_eq!(epoch.host, HostEpoch::default());
}
