//! Datasets that a study made and may delete: each says in its folder which study that is.

use feedrate_data::lock::DatasetLock;
use feedrate_data::manifest::{self, Manifest, State};
use feedrate_data::removal::{self, Removal};
use feedrate_measure::record::file::read_text_bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: the study's id.
pub const CLAIM: &str = "made-by-study";

/// Say whose a dataset is that is about to be made. One that others began is not this study's to delete; a folder with nothing but
/// files of the user's may be what a removal has left.
pub fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    let is_begun = folder.join(manifest::FILE_NAME).symlink_metadata().is_ok();
    if is_begun || DatasetLock::writer(folder).is_some() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match File::create_new(folder.join(CLAIM)) {
        // Another study's, which is about to make it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made?.write_all(study_id.as_bytes()),
    }
}

/// Datasets in these folders that this study made, with their bytes. One of another name is a copy of the user's.
pub fn made_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(fs::read_dir).flatten().flatten() {
        let folder = entry.path();
        let is_own = entry.file_type().is_ok_and(|kind| kind.is_dir())
            && read_text_bounded(&folder.join(CLAIM)).is_ok_and(|id| id == study_id);
        if !is_own {
            continue;
        }
        let look = || removal::inspect_folder(&folder, &[CLAIM]).ok().flatten();
        let bytes = match Manifest::find_in(&folder) {
            Some(manifest) if !folder.ends_with(Manifest::folder_name(&manifest.settings)) => None,
            // Looking at each of its files may take long.
            Some(manifest) if manifest.state == State::Complete => Some(manifest.total_bytes),
            Some(_) => Some(look().map_or(0, |own| own.bytes)),
            None => look().map(|own| own.bytes),
        };
        if let Some(bytes) = bytes {
            found.insert(folder, bytes);
        }
    }
    found
}

/// Delete a dataset of the study: its files, and its folder where nothing else lies there.
pub fn delete(folder: &Path) -> io::Result<Removal> {
    let holder = format!("a study of process {}", std::process::id());
    removal::remove_folder(folder, &[CLAIM], &holder).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::lock::LockAccess;

    #[test]
    fn only_a_dataset_that_is_not_begun_is_claimed() {
        let root = tempfile::tempdir().unwrap();
        let [mine, begun, others] = ["mine", "begun", "others"].map(|name| root.path().join(name));
        for (folder, file) in [(&begun, manifest::FILE_NAME), (&others, CLAIM)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
        }
        let claimed = |folder: &Path| {
            claim(folder, "me").unwrap();
            fs::read_to_string(folder.join(CLAIM)).ok()
        };
        assert_eq!(claimed(&mine).as_deref(), Some("me"));
        assert_eq!(claimed(&begun), None);
        assert_eq!(claimed(&others).as_deref(), Some(""));
        let made = root.path().join("made");
        let lock = DatasetLock::try_acquire(&made, LockAccess::Exclusive, "a maker").unwrap();
        assert_eq!(claimed(&made), None, "another process makes it");
        drop(lock);
        assert_eq!(claimed(&made).as_deref(), Some("me"));
    }

    /// What a generation leaves that was refused, or killed before it wrote its manifest.
    #[test]
    fn a_claim_alone_is_removed_and_files_of_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let folder = root.path().join("dataset");
        claim(&folder, "me").unwrap();
        let lock = DatasetLock::try_acquire(&folder, LockAccess::Exclusive, "a maker").unwrap();
        assert!(matches!(delete(&folder).unwrap(), Removal::InUse { .. }));
        drop(lock);
        assert_eq!(made_by(&roots, "you"), BTreeMap::new());
        assert_eq!(made_by(&roots, "me"), BTreeMap::from([(folder.clone(), 0)]));
        fs::write(folder.join("thesis.txt"), "mine").unwrap();
        assert_eq!(made_by(&roots, "me"), BTreeMap::new());
        assert_eq!(delete(&folder).unwrap(), Removal::NotOurs);
        fs::remove_file(folder.join("thesis.txt")).unwrap();
        assert!(matches!(delete(&folder).unwrap(), Removal::Removed(_)));
        assert!(!folder.exists());
    }
}
