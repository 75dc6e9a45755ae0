//! Operations on the folder of all checkpoints: the check for foreign files before a run, and cleaning. The caller holds the folder's
//! lock.

use super::CheckpointError;
use super::file_names::planned_files;
use super::manifest::CheckpointManifest;
use super::step::{self, CheckpointSet, StepFolder, list_steps};
use feedrate_data::removal::FolderContents;
use feedrate_data::storage::{self, StorageError};
use feedrate_spec::plan::Plan;
use std::collections::BTreeSet;
use std::path::Path;

/// Checks that no checkpoint of `plan` would overwrite files that feedrate did not write. Reports all foreign files at once.
///
/// # Errors
/// There are foreign files, or the folder could not be read.
pub fn refuse_foreign_files(plan: &Plan) -> Result<(), CheckpointError> {
    let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
    let root = Path::new(&checkpoint.folder);
    let read_error = |source| CheckpointError::Read { path: root.into(), source };
    let planned = planned_files(checkpoint);
    let mut paths = Vec::new();
    for (epoch, step) in list_steps(root).map_err(|error| read_error(error.source))? {
        if plan.writes_checkpoint(epoch, step) {
            let folder = StepFolder::new(None, root, epoch, step);
            let manifest = folder.read_manifest().map_err(read_error)?;
            paths.extend(folder.foreign_files(&planned, manifest.as_ref()).map_err(read_error)?);
        }
    }
    if paths.is_empty() { Ok(()) } else { Err(CheckpointError::ForeignFiles { paths }) }
}

/// Whether feedrate wrote one of the checkpoints `steps` in `folder`, complete or not.
///
/// # Errors
/// The folder cannot be read.
pub fn contains_checkpoints(
    folder: &Path,
    steps: &BTreeSet<(u32, u64)>,
) -> Result<bool, StorageError> {
    for &(epoch, step) in steps {
        if read_manifest(folder, epoch, step)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn find_checkpoints(root: &Path) -> Result<CheckpointSet, StorageError> {
    let mut found = CheckpointSet::default();
    for (epoch, step) in list_steps(root)? {
        let manifest = read_manifest(root, epoch, step)?;
        found.manifests.extend(manifest.map(|manifest| (step::folder_name(epoch, step), manifest)));
    }
    Ok(found)
}

fn read_manifest(
    root: &Path,
    epoch: u32,
    step: u64,
) -> Result<Option<CheckpointManifest>, StorageError> {
    let folder = StepFolder::new(None, root, epoch, step);
    let manifest = folder.read_manifest();
    manifest.map_err(|error| StorageError::new("read", folder.manifest_path(), error))
}

/// Counts the files of all checkpoints in `root` and lists a few foreign files. If `removes` is set, the checkpoints and folders that
/// become empty are removed.
///
/// # Errors
/// The file system refused.
pub fn clean(root: &Path, removes: bool) -> Result<FolderContents, StorageError> {
    let checkpoints = find_checkpoints(root)?;
    let storage = storage::open_root(root)?;
    let found = checkpoints.count(&*storage)?;
    if removes {
        checkpoints.remove(&*storage)?;
    }
    Ok(found)
}
