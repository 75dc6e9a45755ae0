//! Datasets that a study made and may delete: each says in its folder which study that is.

use feedrate_data::manifest::{Manifest, State};
use feedrate_data::removal::{self, Removal};
use feedrate_data::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: the study's id.
const CLAIM: &str = "made-by-study";

/// Say whose a dataset is that is about to be made. What others began is not this study's to delete.
pub(super) fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join(CLAIM), study_id)
}

/// Datasets in folders that this study made, with their bytes.
pub(super) fn made_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(fs::read_dir).flatten().flatten() {
        let folder = entry.path();
        if fs::read_to_string(folder.join(CLAIM)).is_ok_and(|id| id == study_id) {
            let bytes = complete_bytes(&folder).unwrap_or_else(|| bytes_in(&folder));
            found.insert(folder, bytes);
        }
    }
    found
}

/// As the manifest of a whole dataset says: looking at each of its files may take long.
fn complete_bytes(folder: &Path) -> Option<u64> {
    let storage = storage::open("file", folder).ok()?;
    let manifest = Manifest::read(&*storage).ok()??;
    (manifest.state == State::Complete).then_some(manifest.total_bytes)
}

fn bytes_in(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
    }
    bytes
}

/// Delete a dataset of the study: the files that it consists of, and its folder where nothing else lies there.
pub(super) fn delete(folder: &Path) -> io::Result<Removal> {
    let holder = format!("a study of process {}", std::process::id());
    match removal::remove_folder(folder, &[CLAIM], &holder).map_err(io::Error::other)? {
        Removal::NotOurs => {
            // It was claimed, and nothing was made of it; what others left there stays.
            fs::remove_file(folder.join(CLAIM))?;
            let _ = fs::remove_dir(folder);
            Ok(Removal::Removed)
        }
        removal => Ok(removal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_that_others_made_is_not_deleted_and_files_of_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let (mine, other) = (root.path().join("mine"), root.path().join("other"));
        fs::create_dir(&other).unwrap();
        claim(&other, "me").unwrap();
        claim(&mine, "me").unwrap();
        assert_eq!(made_by(&roots, "you"), BTreeMap::new());
        assert_eq!(made_by(&roots, "me"), BTreeMap::from([(mine.clone(), 2)]));
        fs::write(mine.join("thesis.txt"), "").unwrap();
        assert_eq!(delete(&mine).unwrap(), Removal::Removed);
        assert!(mine.join("thesis.txt").exists() && made_by(&roots, "me").is_empty());
    }
}
