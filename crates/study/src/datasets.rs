//! Decides which datasets of a study are deleted to make room for the next one. Deletes nothing itself.

use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

names! {
    /// Policy for datasets that the study generated. Other datasets are never deleted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Policy {
        /// Keep all datasets.
        Keep = "keep",
        /// Keep datasets until their space is needed, then delete the least needed first.
        #[default]
        MakeRoom = "make-room",
    }
}

/// A dataset that the study generated and may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedDataset {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes on the storage.
    pub bytes: u64,
    /// Number of runs before the next run that needs it; `None` if no run does.
    pub next_use: Option<usize>,
}

/// Returns the datasets to delete before the next run, the least needed first. The run itself needs none of `owned`; it still has to write
/// `needed_bytes`. `free_bytes` is `None` if unknown.
///
/// # Errors
/// The space is too small even after all deletions: returns the missing bytes.
pub fn datasets_to_delete(
    policy: Policy,
    owned: &[OwnedDataset],
    needed_bytes: u64,
    free_bytes: Option<u64>,
) -> Result<Vec<PathBuf>, u64> {
    let mut candidates: Vec<&OwnedDataset> = owned.iter().collect();
    // Datasets that no run needs come first, then those needed latest, and larger before smaller ones.
    candidates.sort_by_key(|dataset| {
        (dataset.next_use.map_or(0, |runs| usize::MAX - runs), u64::MAX - dataset.bytes)
    });
    let mut room_bytes = free_bytes.unwrap_or(u64::MAX);
    let mut deleted = Vec::new();
    for dataset in candidates {
        if policy == Policy::MakeRoom && room_bytes < needed_bytes {
            room_bytes = room_bytes.saturating_add(dataset.bytes);
            deleted.push(dataset.folder.clone());
        }
    }
    let short_bytes = needed_bytes.saturating_sub(room_bytes);
    if short_bytes > 0 { Err(short_bytes) } else { Ok(deleted) }
}

/// Forecast of disk usage over a sequence of runs.
#[derive(Debug)]
pub struct Forecast {
    policy: Policy,
    /// The dataset of each run, in the order of runs.
    uses: Vec<Option<PathBuf>>,
    owned: BTreeMap<PathBuf, u64>,
    made: BTreeSet<PathBuf>,
    deleted: BTreeSet<PathBuf>,
    /// Bytes generated minus bytes deleted, by parent folder of the datasets.
    written: BTreeMap<PathBuf, i128>,
}

/// Change to the disk by one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskChange {
    /// Datasets to delete before the run.
    pub delete: Vec<PathBuf>,
    /// Bytes to generate before the run.
    pub generate_bytes: u64,
    /// Missing bytes, if there is too little space.
    pub short_bytes: Option<u64>,
}

/// The current state of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct CurrentDataset<'a> {
    /// Its folder, which may not exist yet.
    pub folder: &'a Path,
    /// Bytes on the storage once it is complete.
    pub bytes: u64,
    /// Whether all of its files exist.
    pub is_complete: bool,
    /// Free bytes of its file system; `None` if unknown.
    pub free_bytes: Option<u64>,
}

impl Forecast {
    /// Starts a forecast of runs that read `uses`; `owned` are the existing datasets of the study, with their bytes.
    pub fn new(policy: Policy, uses: Vec<Option<PathBuf>>, owned: BTreeMap<PathBuf, u64>) -> Self {
        Forecast {
            policy,
            uses,
            owned,
            made: BTreeSet::new(),
            deleted: BTreeSet::new(),
            written: BTreeMap::new(),
        }
    }

    /// Forecasts the change by run `index` (from 0), which reads `dataset`. Must be called for each run in order.
    pub fn step(&mut self, index: usize, dataset: CurrentDataset) -> DiskChange {
        let root = dataset.folder.parent().unwrap_or(dataset.folder).to_path_buf();
        let existed = dataset.is_complete && !self.deleted.contains(dataset.folder);
        let is_complete = existed || self.made.contains(dataset.folder);
        let needed_bytes = if is_complete { 0 } else { dataset.bytes };
        let written_before = self.written.get(&root).copied().unwrap_or(0);
        let free_bytes = dataset.free_bytes.map(|free| {
            u64::try_from((i128::from(free) - written_before).max(0)).unwrap_or(u64::MAX)
        });
        let mut change = DiskChange { generate_bytes: needed_bytes, ..DiskChange::default() };
        let candidates = self.candidates(index, dataset.folder, &root);
        match datasets_to_delete(self.policy, &candidates, needed_bytes, free_bytes) {
            Ok(folders) => change.delete = folders,
            Err(short_bytes) => change.short_bytes = Some(short_bytes),
        }
        let written = self.written.entry(root).or_default();
        for folder in &change.delete {
            *written -= i128::from(self.owned.remove(folder).unwrap_or(0));
            self.made.remove(folder);
            self.deleted.insert(folder.clone());
        }
        if !is_complete {
            *written += i128::from(dataset.bytes);
            self.owned.insert(dataset.folder.to_path_buf(), dataset.bytes);
            self.made.insert(dataset.folder.to_path_buf());
        }
        change
    }

    /// Datasets in `root` that may be deleted before run `index`, whose own dataset is in `folder`.
    fn candidates(&self, index: usize, folder: &Path, root: &Path) -> Vec<OwnedDataset> {
        let others = self
            .owned
            .iter()
            .filter(|(other, _)| other.as_path() != folder && other.parent() == Some(root));
        let candidates = others.map(|(other, bytes)| OwnedDataset {
            folder: other.clone(),
            bytes: *bytes,
            next_use: self.uses[index..].iter().position(|used| used.as_ref() == Some(other)),
        });
        candidates.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        policy: Policy,
        owned: &[(&str, u64, Option<usize>)],
        (needed_bytes, free_bytes): (u64, Option<u64>),
        expected: Result<&[&str], u64>,
    ) {
        let owned: Vec<OwnedDataset> = owned
            .iter()
            .map(|&(folder, bytes, next_use)| OwnedDataset {
                folder: folder.into(),
                bytes,
                next_use,
            })
            .collect();
        let found = datasets_to_delete(policy, &owned, needed_bytes, free_bytes);
        let expected = expected.map(|names| names.iter().map(PathBuf::from).collect());
        assert_eq!(found, expected);
    }

    #[test]
    fn the_least_needed_datasets_make_room() {
        let owned =
            [("soon", 50, Some(1)), ("late", 30, Some(7)), ("never", 10, None), ("nor", 20, None)];
        let make_room = |room, expected| check(Policy::MakeRoom, &owned, room, expected);
        make_room((100, Some(100)), Ok(&[]));
        make_room((100, Some(90)), Ok(&["nor"]));
        make_room((100, Some(75)), Ok(&["nor", "never"]));
        make_room((100, Some(65)), Ok(&["nor", "never", "late"]));
        make_room((100, Some(0)), Ok(&["nor", "never", "late", "soon"]));
        make_room((200, Some(0)), Err(90));
        make_room((100, None), Ok(&[]));
    }

    #[test]
    fn a_forecast_includes_the_changes_of_earlier_runs() {
        let path = |name: &str| Path::new("/data").join(name);
        let uses = ["a", "b", "a", "a"].map(|name| Some(path(name))).to_vec();
        let mut forecast = Forecast::new(Policy::MakeRoom, uses, BTreeMap::new());
        let mut step = |index, name: &str| {
            let folder = path(name);
            let now = CurrentDataset {
                folder: &folder,
                bytes: 60,
                is_complete: false,
                free_bytes: Some(100),
            };
            forecast.step(index, now)
        };
        let made = |delete: &[&str]| DiskChange {
            delete: delete.iter().map(|name| path(name)).collect(),
            generate_bytes: 60,
            short_bytes: None,
        };
        assert_eq!(step(0, "a"), made(&[]));
        assert_eq!(step(1, "b"), made(&["a"]));
        assert_eq!(step(2, "a"), made(&["b"]));
        assert_eq!(step(3, "a"), DiskChange::default());
    }

    #[test]
    fn keep_deletes_nothing() {
        let owned = [("soon", 50, Some(1)), ("never", 10, None)];
        check(Policy::Keep, &owned, (100, Some(90)), Err(10));
        check(Policy::Keep, &owned, (100, Some(100)), Ok(&[]));
    }
}
