//! A dataset in the page cache: it is emptied or filled where that is asked for, and what is there is doubted where that is not it.

use crate::system::{Residency, file_bytes, residency};
use feedrate_data::storage::{Storage, StorageError};
use feedrate_data::walk::{self, Watch};
use feedrate_measure::record::{EpochRecord, System};
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{Cache, PlanDoubt};
use feedrate_spec::shape::FileShape;
use feedrate_spec::units;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

/// Files that are read at once into the page cache: of small ones a storage is slow to open one after another.
const WARM_THREADS: usize = 8;
/// Share of the dataset that may be said to be all of it: the kernel needs memory for itself too.
const WARM_SHARE_MIN: f64 = 0.95;

/// The page cache of a dataset's machine.
pub(crate) struct PageCache<'a> {
    pub(crate) layout: &'a Layout,
    /// The bare storage.
    pub(crate) storage: &'a dyn Storage,
    pub(crate) wanted: Cache,
    /// One process acts, and looks, for its machine.
    pub(crate) acts: bool,
    pub(crate) interrupted: &'a AtomicBool,
}

impl PageCache<'_> {
    /// Empty it or fill it where that is asked for, and see how much is there. `last` is what was there when the epoch before ended,
    /// a moment ago.
    pub(crate) fn prepare(&self, last: Option<Residency>) -> Result<Residency, StorageError> {
        match (self.wanted, last) {
            (Cache::Cold, _) if self.acts => self.each(1, |path| self.storage.evict(path))?,
            (Cache::Warm, None) if self.acts => {
                self.each(WARM_THREADS, |path| self.storage.warm(path))?;
            }
            (Cache::AsIs | Cache::Warm, Some(last)) => return Ok(last),
            _ => {}
        }
        Ok(self.residency())
    }

    fn each(
        &self,
        threads: usize,
        act: impl Fn(&str) -> Result<(), StorageError> + Sync,
    ) -> Result<(), StorageError> {
        let watch = Watch::new(&|_, _| {}, self.interrupted);
        walk::for_each(self.layout.files(), threads, &watch, String::new, |path, file| {
            self.layout.write_path(file, path);
            act(path)
        })
    }

    /// That it cannot be known stops no run.
    pub(crate) fn residency(&self) -> Residency {
        if !self.acts {
            return Residency::default();
        }
        residency(self.storage, self.layout).unwrap_or_default()
    }

    /// Doubts of an epoch that began with another one than the user asked for.
    pub(crate) fn doubts(&self, epoch: &EpochRecord, machines: &[System]) -> Vec<PlanDoubt> {
        match self.wanted {
            Cache::Cold => not_cold(epoch, machines, self.cold_bytes_max()),
            Cache::Warm if epoch.number == 1 => {
                let bytes = file_bytes(self.storage, self.layout).unwrap_or_default();
                not_warm(epoch, machines, bytes)
            }
            Cache::AsIs | Cache::Warm => Vec::new(),
        }
    }

    /// The kernel may hold back a few pages; a thousandth of the dataset cannot matter.
    fn cold_bytes_max(&self) -> u64 {
        let payload = self.layout.sum(self.layout.files_train(), FileShape::payload_bytes);
        (payload / 1000) as u64
    }
}

/// The machines of which more than `cold_bytes_max` of the dataset was in the page cache when an epoch began.
fn not_cold(epoch: &EpochRecord, machines: &[System], cold_bytes_max: u64) -> Vec<PlanDoubt> {
    let doubt = PlanDoubt {
        name: "not_cold".into(),
        evidence: "of the dataset".into(),
        advice: "other processes may hold the files open or mapped; drop caches as root, or use a larger dataset".into(),
    };
    outside(epoch, machines, 0..=cold_bytes_max, &doubt)
}

/// The machines of which less than nearly all `file_bytes` of the dataset were in the page cache when an epoch began.
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

/// `doubt` of each machine on which other bytes than `wanted` were in the page cache when an epoch began; its evidence is what they
/// are bytes of.
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
        let bytes = host.resident_before_bytes;
        if bytes.is_some_and(|bytes| wanted.contains(&bytes)) {
            return None;
        }
        let part = bytes.map_or("an unknown part".into(), units::bytes);
        let of = if several { format!(" of {}", machine.hostname) } else { String::new() };
        let (whole, number) = (&doubt.evidence, epoch.number);
        let evidence =
            format!("{part} {whole} was in the page cache{of} when epoch {number} began");
        Some(PlanDoubt { evidence, ..doubt.clone() })
    });
    doubts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::record::HostEpoch;

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
        let several = evidence(&[Some(10), Some(11), None]);
        assert_eq!(several.len(), 2, "{several:?}");
        assert!(several[0].contains("page cache of b when epoch 2"), "{several:?}");
        assert!(several[1].contains("unknown part") && several[1].contains(" of c "));
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
        assert!(evidence(None, Some(1000))[0].starts_with("an unknown part of the dataset's"));
        assert!(evidence(Some(5), None)[0].contains("of the dataset's unknown size"));
    }
}
