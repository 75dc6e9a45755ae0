//! Decides which datasets a study keeps while its runs need them in turn. Deletes nothing.

use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

names! {
    /// Policy for datasets that the study made. Those of others are never touched.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Policy {
        /// All stay.
        Keep = "keep",
        /// All stay until their place is needed; then the one goes first that is needed least.
        #[default]
        MakeRoom = "make-room",
    }
}

/// A dataset that the study made and may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Where it lies.
    pub folder: PathBuf,
    /// On the storage.
    pub bytes: u64,
    /// How many runs come before the next that needs it; `None` where none does.
    pub next_use: Option<usize>,
}

/// The datasets to delete before the next run, which itself needs none of `owned`, the least needed first. `needed_bytes` are still to be written;
/// `free_bytes` are `None` where it cannot be told.
///
/// # Errors
/// The bytes by which the room is too little even without all that may go.
pub fn to_delete(
    policy: Policy,
    owned: &[Owned],
    needed_bytes: u64,
    free_bytes: Option<u64>,
) -> Result<Vec<PathBuf>, u64> {
    let mut candidates: Vec<&Owned> = owned.iter().collect();
    // Not needed comes first, then what is needed last; of equal ones the largest.
    candidates.sort_by_key(|of| (of.next_use.map_or(0, |n| usize::MAX - n), u64::MAX - of.bytes));
    let mut free_bytes = free_bytes.unwrap_or(u64::MAX);
    let mut gone = Vec::new();
    for dataset in candidates {
        if policy == Policy::MakeRoom && free_bytes < needed_bytes {
            free_bytes = free_bytes.saturating_add(dataset.bytes);
            gone.push(dataset.folder.clone());
        }
    }
    let short_bytes = needed_bytes.saturating_sub(free_bytes);
    if short_bytes > 0 { Err(short_bytes) } else { Ok(gone) }
}

/// Forecast of the disk while runs are made one after another.
#[derive(Debug)]
pub struct Forecast {
    policy: Policy,
    /// The dataset of each run, in their order.
    uses: Vec<Option<PathBuf>>,
    owned: BTreeMap<PathBuf, u64>,
    made: BTreeSet<PathBuf>,
    deleted: BTreeSet<PathBuf>,
    /// Bytes made less bytes deleted, by the folder that datasets lie in.
    written: BTreeMap<PathBuf, i128>,
}

/// Change that one run would make to the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskChange {
    /// Deleted before.
    pub delete: Vec<PathBuf>,
    /// Generated before.
    pub generate_bytes: u64,
    /// There is too little room, by so many bytes.
    pub short_bytes: Option<u64>,
}

/// A dataset as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// Where it lies, or will lie.
    pub folder: &'a Path,
    /// On the storage.
    pub bytes: u64,
    /// All of it is there.
    pub is_whole: bool,
    /// Free where it lies.
    pub free_bytes: Option<u64>,
}

impl Forecast {
    /// Start a forecast of runs that use these datasets; `owned` are those that the study made.
    pub fn new(policy: Policy, uses: Vec<Option<PathBuf>>, owned: BTreeMap<PathBuf, u64>) -> Self {
        let (made, deleted, written) = Default::default();
        Forecast { policy, uses, owned, made, deleted, written }
    }

    /// The next run, the `n`th from 0, whose dataset is `now`.
    pub fn step(&mut self, n: usize, now: Now) -> DiskChange {
        let root = now.folder.parent().unwrap_or(now.folder).to_path_buf();
        let was_there = now.is_whole && !self.deleted.contains(now.folder);
        let is_whole = was_there || self.made.contains(now.folder);
        let needed_bytes = if is_whole { 0 } else { now.bytes };
        let written = self.written.get(&root).copied().unwrap_or(0);
        let free_bytes = now
            .free_bytes
            .map(|free| u64::try_from((i128::from(free) - written).max(0)).unwrap_or(u64::MAX));
        let mut change = DiskChange { generate_bytes: needed_bytes, ..DiskChange::default() };
        let candidates = self.candidates(n, now.folder, &root);
        match to_delete(self.policy, &candidates, needed_bytes, free_bytes) {
            Ok(folders) => change.delete = folders,
            Err(short_bytes) => change.short_bytes = Some(short_bytes),
        }
        let written = self.written.entry(root).or_default();
        for folder in &change.delete {
            *written -= i128::from(self.owned.remove(folder).unwrap_or(0));
            self.made.remove(folder);
            self.deleted.insert(folder.clone());
        }
        if !is_whole {
            *written += i128::from(now.bytes);
            self.owned.insert(now.folder.to_path_buf(), now.bytes);
            self.made.insert(now.folder.to_path_buf());
        }
        change
    }

    fn candidates(&self, n: usize, folder: &Path, root: &Path) -> Vec<Owned> {
        let beside = self
            .owned
            .iter()
            .filter(|(other, _)| other.as_path() != folder && other.parent() == Some(root));
        let of = beside.map(|(other, bytes)| Owned {
            folder: other.clone(),
            bytes: *bytes,
            next_use: self.uses[n..].iter().position(|used| used.as_ref() == Some(other)),
        });
        of.collect()
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
        let owned: Vec<Owned> = owned
            .iter()
            .map(|&(folder, bytes, next_use)| Owned { folder: folder.into(), bytes, next_use })
            .collect();
        let found = to_delete(policy, &owned, needed_bytes, free_bytes);
        let expected = expected.map(|names| names.iter().map(PathBuf::from).collect());
        assert_eq!(found, expected);
    }

    #[test]
    fn room_is_made_by_what_is_needed_least() {
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
    fn a_forecast_knows_what_runs_before_have_made_and_deleted() {
        let path = |name: &str| Path::new("/data").join(name);
        let uses = ["a", "b", "a", "a"].map(|name| Some(path(name))).to_vec();
        let mut forecast = Forecast::new(Policy::MakeRoom, uses, BTreeMap::new());
        let mut step = |n, name: &str| {
            let folder = path(name);
            let now = Now { folder: &folder, bytes: 60, is_whole: false, free_bytes: Some(100) };
            forecast.step(n, now)
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
