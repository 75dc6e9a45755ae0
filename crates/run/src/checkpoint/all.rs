//! The folder of all checkpoints: looked through before a run writes there, and cleaned. Whoever calls holds its lock.

use super::CheckpointError;
use super::files::{FileSystem, SystemFiles};
use super::folder::planned;
use super::step::{StepFolder, steps_in};
use feedrate_data::lock::LOCK_FILE;
use feedrate_data::removal::OwnFound;
use feedrate_data::storage::NameKind;
use feedrate_spec::plan::Plan;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Refuse a run of `plan` whose checkpoints would meet what others have, all of it at once.
///
/// # Errors
/// Such things, or the file system refused.
pub fn refuse_strangers(plan: &Plan) -> Result<(), CheckpointError> {
    let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
    let root = Path::new(&checkpoint.folder);
    let strangers = || {
        let mut paths = Vec::new();
        let planned = planned(checkpoint);
        for (epoch, step) in steps_in(&SystemFiles, root)? {
            if plan.writes_checkpoint(epoch, step) {
                let at = StepFolder::new(&SystemFiles, None, root, epoch, step);
                paths.extend(at.strangers(&planned, &at.own()?)?);
            }
        }
        Ok(paths)
    };
    let paths =
        strangers().map_err(|source| CheckpointError::Read { path: root.into(), source })?;
    if paths.is_empty() { Ok(()) } else { Err(CheckpointError::Strangers { paths }) }
}

/// Whether there are checkpoints of ours in `folder`, or what is left of them.
pub fn are_in(folder: &Path) -> bool {
    steps_of_ours(folder).is_ok_and(|steps| !steps.is_empty())
}

fn steps_of_ours(root: &Path) -> io::Result<Vec<StepFolder<'static>>> {
    let mut ours = Vec::new();
    for (epoch, step) in steps_in(&SystemFiles, root)? {
        let at = StepFolder::new(&SystemFiles, None, root, epoch, step);
        if !at.own()?.told_by.is_empty() {
            ours.push(at);
        }
    }
    Ok(ours)
}

/// The files of all checkpoints in `root`, and of a few of others there; where `removes`, ours are removed, and folders that are empty then.
///
/// # Errors
/// The file system refused.
pub fn clean(root: &Path, removes: bool) -> io::Result<OwnFound> {
    let files = &SystemFiles;
    let (mut found, mut own, mut others) = (OwnFound::default(), BTreeSet::new(), Vec::new());
    let ours = steps_of_ours(root)?;
    for at in &ours {
        own.insert(at.path.clone());
        own.extend(at.own_paths()?);
    }
    for folder in [root].into_iter().chain(ours.iter().map(|at| &*at.path)) {
        others.extend(files.list(folder)?.iter().map(|name| folder.join(name)));
    }
    others.sort();
    others.retain(|path| !own.contains(path) && *path != root.join(LOCK_FILE));
    for path in others {
        found.add(path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned());
    }
    for path in &own {
        if let Some(NameKind::File { bytes }) = files.kind(path)? {
            found.files += 1;
            found.bytes = found.bytes.saturating_add(bytes);
        }
    }
    if removes {
        ours.iter().try_for_each(StepFolder::remove)?;
    }
    Ok(found)
}
