//! Datasets that a study made and may delete: each says in its folder which study that is.

use feedrate_data::lock::DatasetLock;
use feedrate_data::manifest::{self, Manifest, State};
use feedrate_data::removal::{self, OwnFound, Removal};
use feedrate_data::storage::{self, StorageError};
use feedrate_measure::record::file::read_text_bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: the study's id.
pub(in crate::command) const CLAIM: &str = "made-by-study";

/// Say whose a dataset is that is about to be made. One that others began is not this study's to delete; a folder with nothing but
/// files of the user's may be what a removal has left.
pub(super) fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    let is_begun = folder.join(manifest::FILE_NAME).symlink_metadata().is_ok();
    if is_begun || DatasetLock::maker(folder).is_some() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match File::create_new(folder.join(CLAIM)) {
        // Another study's, which is about to make it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made?.write_all(study_id.as_bytes()),
    }
}

/// Datasets in folders that this study made, with their bytes. One of another name is a copy of the user's.
pub(super) fn made_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(fs::read_dir).flatten().flatten() {
        let folder = entry.path();
        let is_own = entry.file_type().is_ok_and(|kind| kind.is_dir())
            && read_text_bounded(&folder.join(CLAIM)).is_ok_and(|id| id == study_id);
        if !is_own {
            continue;
        }
        let bytes = match Manifest::own_in(&folder) {
            Some(of) if !folder.ends_with(Manifest::folder_name(&of.settings)) => continue,
            // Looking at each of its files may take long.
            Some(of) if of.state == State::Complete => of.total_bytes,
            Some(_) => {
                let own = removal::look_at_folder(&folder, &[CLAIM]).ok().flatten();
                own.map_or(0, |own| own.bytes)
            }
            // Nothing was made of it.
            None => study_id.len() as u64,
        };
        found.insert(folder, bytes);
    }
    found
}

/// Delete a dataset of the study: the files that it consists of, and its folder where nothing else lies there.
pub(super) fn delete(folder: &Path) -> io::Result<Removal> {
    let holder = format!("a study of process {}", std::process::id());
    match removal::remove_folder(folder, &[CLAIM], &holder).map_err(io::Error::other)? {
        Removal::NotOurs => {
            // It was claimed, and nothing was made of it; what others left there stays.
            let removed = removal::remove_locked(folder, &holder, || {
                storage::open("file", folder)?.remove(CLAIM)?;
                Ok::<_, StorageError>(Some(OwnFound::default()))
            });
            let mut removed = removed.map_err(io::Error::other)?;
            if let Removal::Removed(found) = &mut removed {
                let left = fs::read_dir(folder).into_iter().flatten().flatten();
                found.strangers =
                    left.map(|entry| entry.file_name().display().to_string()).collect();
            }
            Ok(removed)
        }
        removal => Ok(removal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::lock::LockAccess;

    #[test]
    fn a_dataset_that_others_made_is_not_deleted_and_files_of_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let [mine, begun, others] = ["mine", "begun", "others"].map(|name| root.path().join(name));
        for (folder, file) in [(&begun, manifest::FILE_NAME), (&others, CLAIM)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
        }
        for folder in [&mine, &begun, &others] {
            claim(folder, "me").unwrap();
        }
        assert_eq!(made_by(&roots, "you"), BTreeMap::new());
        assert_eq!(made_by(&roots, "me"), BTreeMap::from([(mine.clone(), 2)]));
        fs::write(mine.join("thesis.txt"), "").unwrap();
        let Removal::Removed(found) = delete(&mine).unwrap() else { panic!() };
        assert_eq!(found.strangers, ["thesis.txt"]);
        assert!(mine.join("thesis.txt").exists() && made_by(&roots, "me").is_empty());
    }

    #[test]
    fn a_folder_that_outlived_removal_is_claimed_again() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let folder = root.path().join("dataset");
        // What a generation that was refused leaves.
        let lock = || DatasetLock::try_acquire(&folder, LockAccess::Exclusive, "a maker").unwrap();
        let held = lock();
        claim(&folder, "me").unwrap();
        assert_eq!(made_by(&roots, "me"), BTreeMap::new(), "others make it");
        drop(held);
        claim(&folder, "me").unwrap();
        assert_eq!(made_by(&roots, "me").len(), 1);
        let held = lock();
        assert!(matches!(delete(&folder).unwrap(), Removal::InUse { .. }));
        drop(held);
        assert_eq!(delete(&folder).unwrap(), Removal::Removed(OwnFound::default()));
        assert!(!folder.exists());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("thesis.txt"), "").unwrap();
        claim(&folder, "me").unwrap();
        assert_eq!(made_by(&roots, "me").len(), 1, "beside a file of the user's");
    }
}
