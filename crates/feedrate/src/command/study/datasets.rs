//! Datasets that a study made and may delete: each says in its folder which study that is.

use feedrate_data::manifest;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: the study's id.
const CLAIM: &str = "made-by-study";
/// After the name of a dataset that is being deleted: half of it must not be taken for one.
const DELETED: &str = ".deleted";

/// Say whose a dataset is that is about to be made. What others began is not this study's to delete.
pub(super) fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join(CLAIM), study_id)
}

/// Datasets in folders that this study made, with their bytes; those among them that it began to delete.
pub(super) fn made_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(fs::read_dir).flatten().flatten() {
        let folder = entry.path();
        if fs::read_to_string(folder.join(CLAIM)).is_ok_and(|id| id == study_id) {
            let bytes = bytes_in(&folder);
            found.insert(folder, bytes);
        }
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

/// Delete a dataset, its claim last, so that what is left of it by a kill is found again. `false` where somebody reads it.
pub(super) fn delete(folder: &Path) -> io::Result<bool> {
    // Whoever reads a dataset shares the lock of its manifest.
    if let Ok(manifest) = File::open(folder.join(manifest::FILE_NAME))
        && manifest.try_lock().is_err()
    {
        return Ok(false);
    }
    let mut going = folder.to_path_buf();
    if folder.extension().is_none_or(|extension| extension != &DELETED[1..]) {
        going.as_mut_os_string().push(DELETED);
        fs::rename(folder, &going)?;
    }
    for entry in fs::read_dir(&going)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)?;
        } else if !path.ends_with(CLAIM) {
            fs::remove_file(&path)?;
        }
    }
    fs::remove_file(going.join(CLAIM)).or_else(absent_is_fine)?;
    fs::remove_dir(&going).map(|()| true)
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_that_others_made_or_read_is_not_deleted() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let (mine, other) = (root.path().join("mine"), root.path().join("other"));
        fs::create_dir(&other).unwrap();
        claim(&other, "me").unwrap();
        claim(&mine, "me").unwrap();
        fs::create_dir(mine.join("train")).unwrap();
        fs::write(mine.join("train/1.npy"), [0; 100]).unwrap();
        fs::write(mine.join(manifest::FILE_NAME), "{}").unwrap();
        assert_eq!(made_by(&roots, "you"), BTreeMap::new());
        assert_eq!(made_by(&roots, "me"), BTreeMap::from([(mine.clone(), 104)]));
        let reader = File::open(mine.join(manifest::FILE_NAME)).unwrap();
        reader.lock_shared().unwrap();
        assert!(!delete(&mine).unwrap() && mine.exists());
        drop(reader);
        assert!(delete(&mine).unwrap() && !mine.exists());
        // A kill left half of it.
        let half = root.path().join("mine.deleted");
        claim(&half, "me").unwrap();
        assert!(made_by(&roots, "me").contains_key(&half));
        assert!(delete(&half).unwrap() && !half.exists());
    }
}
