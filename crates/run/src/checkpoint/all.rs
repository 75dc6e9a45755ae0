//! Operations on the folder of all checkpoints: the check for foreign files before a run, and cleaning. The caller holds the folder's
//! lock.

use super::CheckpointError;
use super::file_names::planned_files;
use super::step::{self, CheckpointSet, StepFolder, list_steps};
use feedrate_data::removal::FolderContents;
use feedrate_data::storage::{self, StorageError};
use feedrate_spec::plan::Plan;
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

/// Whether `folder` contains checkpoints written by feedrate, complete or not.
///
/// # Errors
/// The folder cannot be read.
pub fn contains_checkpoints(folder: &Path) -> Result<bool, StorageError> {
    Ok(!find_checkpoints(folder)?.manifests.is_empty())
}

fn find_checkpoints(root: &Path) -> Result<CheckpointSet, StorageError> {
    let mut found = CheckpointSet::default();
    for (epoch, step) in list_steps(root)? {
        let folder = StepFolder::new(None, root, epoch, step);
        let manifest = folder
            .read_manifest()
            .map_err(|error| StorageError::new("read", folder.manifest_path(), error))?;
        found.manifests.extend(manifest.map(|manifest| (step::folder_name(epoch, step), manifest)));
    }
    Ok(found)
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
