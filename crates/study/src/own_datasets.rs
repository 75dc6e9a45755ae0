//! Datasets that a study generated and may delete. A file in the dataset's folder, the claim, contains the id of the study.

use feedrate_data::lock::DatasetLock;
use feedrate_data::manifest::{self, Manifest, State};
use feedrate_data::removal::{self, Removal};
use feedrate_measure::record::file::{read_folder, read_text_bounded};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the claim, a file with the study's id.
pub const CLAIM: &str = "made-by-study";

/// Claims a dataset for a study before the study generates it. A dataset whose generation has already started is not claimed: it is not the study's to
/// delete. A folder with only foreign files can be claimed, because a removal may leave such a folder.
pub fn claim(folder: &Path, study_id: &str) -> io::Result<()> {
    let is_started = folder.join(manifest::FILE_NAME).symlink_metadata().is_ok();
    if is_started || DatasetLock::writer(folder).is_some() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match File::create_new(folder.join(CLAIM)) {
        // Another study is about to generate it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created?.write_all(study_id.as_bytes()),
    }
}

/// Returns the datasets below `roots` that the study claimed, with their bytes. Excludes datasets whose names do not match their settings: they are
/// copies by the user.
pub fn claimed_by(roots: &BTreeSet<PathBuf>, study_id: &str) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in roots.iter().flat_map(read_folder).flatten().flatten() {
        let folder = entry.path();
        let is_claimed = entry.is_folder()
            && read_text_bounded(&folder.join(CLAIM)).is_ok_and(|id| id == study_id);
        if !is_claimed {
            continue;
        }
        let inspect = || removal::inspect_folder(&folder, &[CLAIM]).ok().flatten();
        let bytes = match Manifest::find_in(&folder) {
            Some(manifest) if !folder.ends_with(Manifest::folder_name(&manifest.settings)) => None,
            // Inspecting each file would take long.
            Some(manifest) if manifest.state == State::Complete => Some(manifest.total_bytes),
            Some(_) => Some(inspect().map_or(0, |contents| contents.bytes)),
            None => inspect().map(|contents| contents.bytes),
        };
        if let Some(bytes) = bytes {
            found.insert(folder, bytes);
        }
    }
    found
}

/// Deletes a dataset of the study. Its folder stays if it contains foreign files.
pub fn delete(folder: &Path) -> io::Result<Removal> {
    let holder = format!("a study of process {}", std::process::id());
    removal::remove_folder(folder, &[CLAIM], &holder).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::lock::LockAccess;

    #[test]
    fn only_datasets_whose_generation_has_not_started_are_claimed() {
        let root = tempfile::tempdir().unwrap();
        let unclaimed = root.path().join("mine");
        let begun = root.path().join("begun");
        let foreign = root.path().join("others");
        for (folder, file) in [(&begun, manifest::FILE_NAME), (&foreign, CLAIM)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
        }
        let claimed = |folder: &Path| {
            claim(folder, "me").unwrap();
            fs::read_to_string(folder.join(CLAIM)).ok()
        };
        assert_eq!(claimed(&unclaimed).as_deref(), Some("me"));
        assert_eq!(claimed(&begun), None);
        assert_eq!(claimed(&foreign).as_deref(), Some(""));
        let made = root.path().join("made");
        let lock = DatasetLock::try_acquire(&made, LockAccess::Exclusive, "a maker").unwrap();
        assert_eq!(claimed(&made), None, "another process generates it");
        drop(lock);
        assert_eq!(claimed(&made).as_deref(), Some("me"));
    }

    /// A generation that was refused, or killed before it wrote its manifest, leaves only the claim.
    #[test]
    fn a_claim_alone_is_removed_and_foreign_files_stay() {
        let root = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([root.path().to_path_buf()]);
        let folder = root.path().join("dataset");
        claim(&folder, "me").unwrap();
        let lock = DatasetLock::try_acquire(&folder, LockAccess::Exclusive, "a maker").unwrap();
        assert!(matches!(delete(&folder).unwrap(), Removal::InUse { .. }));
        drop(lock);
        assert_eq!(claimed_by(&roots, "you"), BTreeMap::new());
        assert_eq!(claimed_by(&roots, "me"), BTreeMap::from([(folder.clone(), 0)]));
        fs::write(folder.join("thesis.txt"), "mine").unwrap();
        assert_eq!(claimed_by(&roots, "me"), BTreeMap::new());
        assert_eq!(delete(&folder).unwrap(), Removal::Foreign);
        fs::remove_file(folder.join("thesis.txt")).unwrap();
        assert!(matches!(delete(&folder).unwrap(), Removal::Removed(_)));
        assert!(!folder.exists());
    }
}
