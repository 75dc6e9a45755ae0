//! Waits for the lock of a dataset, and says for whom; takes that of a folder of checkpoints.

use crate::{messages, results};
use feedrate_data::error::DatasetError;
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_data::storage::StorageError;
use feedrate_run::checkpoint::CheckpointError;
use feedrate_run::system;
use feedrate_spec::plan::CheckpointPlan;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at whether the lock is free.
const WAIT: Duration = Duration::from_millis(200);

/// A process that was killed may take so long to let go.
const DYING: Duration = Duration::from_secs(2);

/// The lock of the dataset in `folder`; `None` where there are no locks.
pub(crate) fn wait(
    folder: &Path,
    access: LockAccess,
    interrupted: &AtomicBool,
) -> Result<Option<DatasetLock>, DatasetError> {
    let own = own_words(access);
    let mut is_told = false;
    loop {
        let holder = match attempt(folder, access, &own)? {
            ControlFlow::Break(lock) => return Ok(lock),
            ControlFlow::Continue(holder) => holder,
        };
        if interrupted.load(Relaxed) {
            return Err(DatasetError::Busy { holder });
        }
        if !is_told {
            let holder = holder.unwrap_or_else(|| "somebody has it".into());
            messages::say(format!("waiting for the dataset in `{}`: {holder}", folder.display()));
            is_told = true;
        }
        thread::sleep(WAIT);
    }
}

/// The lock of the folder of the checkpoints of `plan`, for a whole run: of two that write there, each would tear what the other has
/// written. `None` where there are no locks.
pub(crate) fn of_checkpoints(
    plan: &CheckpointPlan,
) -> Result<Option<DatasetLock>, CheckpointError> {
    let folder = Path::new(&plan.folder);
    let reads = plan.alone.as_ref().is_some_and(|alone| alone.writes == 0);
    let access = if reads { LockAccess::Shared } else { LockAccess::Exclusive };
    let refused =
        |error: StorageError| CheckpointError::Write { path: error.path, source: error.source };
    let (own, begun) = (own_words(access), Instant::now());
    loop {
        match attempt(folder, access, &own).map_err(refused)? {
            ControlFlow::Break(lock) => return Ok(lock),
            ControlFlow::Continue(_) if begun.elapsed() < DYING => thread::sleep(WAIT),
            ControlFlow::Continue(holder) => {
                return Err(CheckpointError::Busy { folder: folder.to_path_buf(), holder });
            }
        }
    }
}

/// Take the lock, `None` where there are no locks; goes on with the holder where another has it. Says where others are not kept out.
fn attempt(
    folder: &Path,
    access: LockAccess,
    own: &str,
) -> Result<ControlFlow<Option<DatasetLock>, Option<String>>, StorageError> {
    Ok(match DatasetLock::try_acquire(folder, access, own)? {
        LockAttempt::Held(lock) => {
            warn_of_mount(folder, access);
            ControlFlow::Break(Some(lock))
        }
        LockAttempt::Unsupported { reason } => {
            warn(folder, access, &format!("cannot be locked ({reason})"));
            ControlFlow::Break(None)
        }
        LockAttempt::Busy { holder } => ControlFlow::Continue(holder),
    })
}

/// On some mounts a lock is known to its own machine alone.
fn warn_of_mount(folder: &Path, access: LockAccess) {
    let mount = system::mount_of(folder);
    if let Some(option) = mount.as_ref().and_then(system::own_locks) {
        warn(folder, access, &format!("is locked for this machine alone (`{option}`)"));
    }
}

/// Tell a maker who is not kept from meeting others. Readers change nothing.
fn warn(folder: &Path, access: LockAccess, why: &str) {
    if access == LockAccess::Exclusive {
        messages::say(format!(
            "warning: `{}` {why}: let nobody else write, read or delete it meanwhile",
            folder.display()
        ));
    }
}

/// Who this process is, for those who wait for it.
pub(crate) fn own_words(access: LockAccess) -> String {
    let host = system::system(None, None).hostname;
    let (process, now) = (std::process::id(), results::wall_now());
    let since = now.split('.').next().unwrap_or_default();
    match access {
        LockAccess::Exclusive => format!("process {process} on {host} has it since {since}"),
        LockAccess::Shared => {
            format!("runs read it; the last to begin was process {process} on {host}, at {since}")
        }
    }
}
