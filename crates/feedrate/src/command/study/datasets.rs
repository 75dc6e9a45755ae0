//! Datasets that a study made and may delete: each says in its folder which study that is.

use feedrate_data::manifest::{Manifest, State};
use feedrate_data::removal::{self, OwnFound, Removal};
use feedrate_data::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: the study's id.
pub(in crate::command) const CLAIM: &str = "made-by-study";

/// Say whose a dataset is that is about to be made. What others began is not this study's to delete.
pub(super) fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join(CLAIM), study_id)
}

/// Datasets in folders that this study made, with their bytes. One of another name is a copy of the user's.
pub(super) fn made_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(fs::read_dir).flatten().flatten() {
        let folder = entry.path();
        let is_own = entry.file_type().is_ok_and(|kind| kind.is_dir())
            && fs::read_to_string(folder.join(CLAIM)).is_ok_and(|id| id == study_id);
        if !is_own {
            continue;
        }
        let storage = storage::open("file", &folder).ok();
        let manifest = storage.and_then(|storage| Manifest::read(&*storage).ok()?);
        let bytes = match manifest {
            Some(of) if !folder.ends_with(Manifest::folder_name(&of.settings)) => continue,
            // Looking at each of its files may take long.
            Some(of) if of.state == State::Complete => of.total_bytes,
            _ => bytes_in(&folder),
        };
        found.insert(folder, bytes);
    }
    found
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
            let left = fs::read_dir(folder).into_iter().flatten().flatten();
            let strangers = left.map(|entry| entry.file_name().display().to_string()).collect();
            Ok(Removal::Removed(OwnFound { strangers, ..OwnFound::default() }))
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
        let Removal::Removed(found) = delete(&mine).unwrap() else { panic!() };
        assert_eq!(found.strangers, ["thesis.txt"]);
        assert!(mine.join("thesis.txt").exists() && made_by(&roots, "me").is_empty());
    }
}
