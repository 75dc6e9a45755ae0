//! The folder of all checkpoints: looked through before a run writes there, and cleaned. Whoever calls holds its lock.

use super::CheckpointError;
use super::folder::planned;
use super::step::{self, OwnCheckpoints, StepFolder, steps_in};
use feedrate_data::removal::FolderContents;
use feedrate_data::storage::{self, StorageError};
use feedrate_spec::plan::Plan;
use std::path::Path;

/// Refuse a run of `plan` whose checkpoints would meet what others have, all of it at once.
///
/// # Errors
/// Such things, or the file system refused.
pub fn refuse_strangers(plan: &Plan) -> Result<(), CheckpointError> {
    let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
    let root = Path::new(&checkpoint.folder);
    let refused = |source| CheckpointError::Read { path: root.into(), source };
    let planned = planned(checkpoint);
    let mut paths = Vec::new();
    for (epoch, step) in steps_in(root).map_err(|error| refused(error.source))? {
        if plan.writes_checkpoint(epoch, step) {
            let at = StepFolder::new(None, root, epoch, step);
            let own = at.own().map_err(refused)?;
            paths.extend(at.strangers(&planned, own.as_ref()).map_err(refused)?);
        }
    }
    if paths.is_empty() { Ok(()) } else { Err(CheckpointError::Strangers { paths }) }
}

/// Whether there are checkpoints of ours in `folder`, or what is left of them.
pub fn are_in(folder: &Path) -> bool {
    own_in(folder).is_ok_and(|own| !own.manifests.is_empty())
}

fn own_in(root: &Path) -> Result<OwnCheckpoints, StorageError> {
    let mut own = OwnCheckpoints::default();
    for (epoch, step) in steps_in(root)? {
        let at = StepFolder::new(None, root, epoch, step);
        let read = at.own().map_err(|error| StorageError::new("read", at.manifest(), error))?;
        own.manifests.extend(read.map(|manifest| (step::name(epoch, step), manifest)));
    }
    Ok(own)
}

/// The files of all checkpoints in `root`, and of a few of others there; where `removes`, ours are removed, and folders that are empty then.
///
/// # Errors
/// The file system refused.
pub fn clean(root: &Path, removes: bool) -> Result<FolderContents, StorageError> {
    let (own, storage) = (own_in(root)?, storage::open("file", root)?);
    let found = own.look_at(&*storage)?;
    if removes {
        own.remove(&*storage)?;
    }
    Ok(found)
}
