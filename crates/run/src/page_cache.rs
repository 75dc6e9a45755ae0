//! Manages the kernel's caches of a dataset: its bytes in the page cache, and its dentries and inodes. Before an epoch, it empties or
//! fills them as configured. After the epoch, it measures residency on a sample of the files, because opening all files would fill the
//! metadata caches. An epoch that began in another state than configured raises a doubt.

#[cfg(test)]
mod tests;

use crate::system;
use feedrate_data::storage::{Storage, StorageError};
use feedrate_data::walk::{self, Watch};
use feedrate_measure::file_system::is_in_memory;
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

/// Number of files that are read into the page cache concurrently. Reading small files one by one would take as long as opening them.
const WARM_THREADS: usize = 8;
/// Resident share of the dataset from which the page cache counts as warm. It is below 1 because the kernel reclaims a few pages.
const WARM_SHARE_MIN: f64 = 0.95;

/// Upper limit of the files sampled for residency.
const SAMPLED_FILES_MAX: u64 = 1000;
/// One file in this many is sampled if the cache is used as it is. Opening more files would change the metadata caches.
const SAMPLED_FILES_INTERVAL: u64 = 100;
/// Lower limit of the files sampled for residency.
const SAMPLED_FILES_MIN: u64 = 10;
/// Seed of the sample. It is fixed, so that later epochs sample files that were already opened.
const SAMPLE_SEED: u64 = 0x5eed;

/// Files opened on this machine before the first epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Opens by this process to probe the dataset.
    pub opens: u64,
    /// Training files known to have been opened or created since dentries and inodes were last dropped, not counting files opened to
    /// measure residency.
    pub opened_files: u64,
}

/// Prepares and measures the kernel caches of a dataset on one machine.
pub(crate) struct PageCache {
    layout: Layout,
    /// The storage without layers.
    storage: Arc<dyn Storage>,
    wanted: Cache,
    interrupted: Arc<AtomicBool>,
    /// Whether this process is the one that prepares and measures the caches of its machine.
    pub(crate) is_responsible: bool,
    /// Opens that were not recorded yet, and files opened since the last drop of dentries and inodes.
    pub(crate) preparation: Preparation,
    drop_metadata: Box<DropMetadata>,
    /// Numbers of the files in the sample for residency.
    sample: Vec<u64>,
    /// Residency at the end of the previous epoch.
    last_residency: Option<Residency>,
    /// Size of all training files; measured only if the first epoch has to start with a warm cache.
    file_bytes: Option<u64>,
}

type DropMetadata = dyn Fn() -> io::Result<()> + Send + Sync;

/// Dataset bytes in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Residency {
    /// Resident bytes, scaled up from the sample; `None` if unknown.
    pub(crate) bytes: Option<u64>,
    /// Share of the files that were sampled, even if the kernel reported nothing about them; 0 without a page cache.
    pub(crate) sampled_share: f64,
}

/// State of the caches when an epoch begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CacheBefore {
    /// Opens since the previous epoch; `None` if another process is responsible.
    opens: Option<u64>,
    residency: Residency,
    opened_files: Option<u64>,
    metadata_dropped: Option<bool>,
}

impl CacheBefore {
    /// Adds the state to the record of an epoch.
    pub(crate) fn write_to(&self, epoch: &mut EpochRecord) {
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

/// State of the caches when an epoch has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CacheAfter {
    /// Opens since the epoch began, not counting opens by the epoch's reads.
    opens: u64,
    bytes: Option<u64>,
}

impl CacheAfter {
    /// Adds the state to the record of an epoch.
    pub(crate) fn write_to(&self, epoch: &mut EpochRecord) {
        epoch.host.resident_after_bytes = self.bytes;
        let first = epoch.accelerators.first_mut();
        if let Some(opens) = first.and_then(|first| first.io.preparation_opens.as_mut()) {
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
        let sampled_files = match wanted {
            Cache::AsIs => {
                (files / SAMPLED_FILES_INTERVAL).clamp(SAMPLED_FILES_MIN, SAMPLED_FILES_MAX)
            }
            Cache::Cold | Cache::Warm => SAMPLED_FILES_MAX,
        };
        let order = Permutation::new(files, SAMPLE_SEED);
        let sample = (0..sampled_files.min(files)).map(|i| order.number_at(i)).collect();
        PageCache {
            layout,
            storage,
            wanted,
            interrupted,
            is_responsible: true,
            preparation: Preparation::default(),
            drop_metadata: Box::new(system::drop_metadata),
            sample,
            last_residency: None,
            file_bytes: None,
        }
    }

    /// Empties or fills the caches as configured and measures residency before an epoch. Dentries and inodes are dropped last, since
    /// the other steps open files.
    pub(crate) fn prepare(&mut self) -> Result<CacheBefore, StorageError> {
        if !self.is_responsible {
            return Ok(CacheBefore::default());
        }
        match (self.wanted, self.last_residency) {
            (Cache::Cold, _) => self.for_each_file(1, |storage, path| storage.evict(path))?,
            (Cache::Warm, None) => {
                self.for_each_file(WARM_THREADS, |storage, path| storage.warm(path))?;
            }
            _ => {}
        }
        let residency = match self.last_residency {
            Some(last) if self.wanted != Cache::Cold => last,
            _ => self.measure_residency(),
        };
        let dropped = (self.wanted == Cache::Cold).then(|| (self.drop_metadata)().is_ok());
        if dropped == Some(true) {
            self.preparation.opened_files = 0;
        }
        Ok(CacheBefore {
            opens: Some(std::mem::take(&mut self.preparation.opens)),
            residency,
            // Without a page cache, no file was opened either.
            opened_files: (residency.sampled_share > 0.0).then_some(self.preparation.opened_files),
            metadata_dropped: dropped,
        })
    }

    /// Calls `work` with the path of every file.
    fn for_each_file(
        &mut self,
        threads: usize,
        work: fn(&dyn Storage, &str) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.preparation.opens += self.layout.files();
        self.preparation.opened_files = self.layout.files_train();
        let watch = Watch::new(&|_, _| {}, &self.interrupted);
        walk::for_each(self.layout.files(), threads, &watch, String::new, |path, file| {
            self.layout.write_path(file, path);
            work(&*self.storage, path)
        })
    }

    /// Measures residency after an epoch in which this process read `files_read` files.
    pub(crate) fn measure_after(&mut self, files_read: Option<u64>) -> CacheAfter {
        if !self.is_responsible {
            return CacheAfter::default();
        }
        let opened_files = &mut self.preparation.opened_files;
        *opened_files = (*opened_files).max(files_read.unwrap_or(0));
        if self.wanted == Cache::Warm && self.last_residency.is_none() {
            self.file_bytes = self.extrapolate(|path| self.storage.stat(path)).unwrap_or_default();
        }
        let residency = self.measure_residency();
        self.last_residency = Some(residency);
        CacheAfter { opens: std::mem::take(&mut self.preparation.opens), bytes: residency.bytes }
    }

    /// Measures residency on the sample. Failures make it unknown and do not stop the run.
    fn measure_residency(&mut self) -> Residency {
        let sampled_files = Cell::new(0);
        let resident_bytes = |path: &str| {
            sampled_files.set(sampled_files.get() + 1);
            self.storage.resident_bytes(path)
        };
        let bytes = self.extrapolate(resident_bytes).unwrap_or_default();
        let has_cache = || bytes.is_some() || self.storage.member().has(Ability::PageCache);
        if self.sample.is_empty() || !has_cache() {
            return Residency::default();
        }
        // Sampled files count as opens, but not as opened files: in a small dataset they alone would exceed the threshold of the doubt.
        self.preparation.opens += sampled_files.get();
        let sampled_share = sampled_files.get() as f64 / self.layout.files_train() as f64;
        Residency { bytes, sampled_share }
    }

    /// Estimates the sum of `file_bytes` over all training files from the sample.
    fn extrapolate(
        &self,
        file_bytes: impl Fn(&str) -> Result<Option<u64>, StorageError>,
    ) -> Result<Option<u64>, StorageError> {
        let mut path = String::new();
        let mut sum: u64 = 0;
        for &file in &self.sample {
            self.layout.write_path(file, &mut path);
            let Some(bytes) = file_bytes(&path)? else { return Ok(None) };
            sum += bytes;
        }
        let share = self.sample.len() as f64 / self.layout.files_train() as f64;
        Ok((!self.sample.is_empty()).then(|| (sum as f64 / share) as u64))
    }

    /// Returns the doubts about an epoch that did not begin with the configured page cache.
    pub(crate) fn doubts(&self, epoch: &EpochRecord, machines: &[System]) -> Vec<PlanDoubt> {
        match self.wanted {
            Cache::Cold => not_cold_doubts(epoch, machines, self.cold_bytes_max()),
            Cache::Warm if epoch.number == 1 => not_warm_doubts(epoch, machines, self.file_bytes),
            Cache::AsIs | Cache::Warm => Vec::new(),
        }
    }

    /// Returns the maximum resident bytes of a cold page cache: a thousandth of the dataset, because the kernel may keep a few pages.
    fn cold_bytes_max(&self) -> u64 {
        let payload = self.layout.sum(self.layout.files_train(), FileShape::payload_bytes);
        (payload / 1000) as u64
    }
}

/// Returns doubts about the machines that had more than `cold_bytes_max` of the dataset in the page cache when the epoch began.
fn not_cold_doubts(
    epoch: &EpochRecord,
    machines: &[System],
    cold_bytes_max: u64,
) -> Vec<PlanDoubt> {
    let mounts = machines.iter().filter_map(|machine| machine.data_mount.as_ref());
    let mut file_systems = mounts.map(|mount| &*mount.file_system);
    let advice = match file_systems.find(|file_system| is_in_memory(file_system)) {
        Some(name) => format!("leave out `--cold`: {name} keeps all files in memory"),
        None => "other processes may hold the files open or mapped; drop caches as root, or use a larger dataset".into(),
    };
    let doubt = PlanDoubt { name: "not_cold".into(), evidence: "of the dataset".into(), advice };
    doubts_outside(epoch, machines, 0..=cold_bytes_max, &doubt)
}

/// Returns doubts about the machines that had less than [`WARM_SHARE_MIN`] of `file_bytes` in the page cache when the epoch began.
fn not_warm_doubts(
    epoch: &EpochRecord,
    machines: &[System],
    file_bytes: Option<u64>,
) -> Vec<PlanDoubt> {
    let warm_bytes_min =
        file_bytes.map_or(u64::MAX, |bytes| (bytes as f64 * WARM_SHARE_MIN) as u64);
    let size = file_bytes.map_or("unknown size".into(), units::bytes);
    let doubt = PlanDoubt {
        name: "not_warm".into(),
        evidence: format!("of the dataset's {size}"),
        advice: "the page cache takes no more than the memory that is free: use a smaller dataset, or leave out `--warm`".into(),
    };
    doubts_outside(epoch, machines, warm_bytes_min..=u64::MAX, &doubt)
}

/// Returns a copy of `doubt` for each machine with known resident bytes outside `wanted`. The evidence of `doubt` is the phrase that
/// follows the number of bytes.
fn doubts_outside(
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
        let evidence = format!(
            "{} {} was in the page cache{machine} when epoch {} began",
            units::bytes(bytes),
            doubt.evidence,
            epoch.number
        );
        Some(PlanDoubt { evidence, ..doubt.clone() })
    });
    doubts.collect()
}
