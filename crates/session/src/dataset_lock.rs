//! Waits for the lock of a dataset, and reports its holder; takes the lock of a folder of checkpoints.

use crate::result_folder;
use feedrate_data::error::DatasetError;
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_data::storage::StorageError;
use feedrate_run::checkpoint::CheckpointError;
use feedrate_run::system;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::CheckpointPlan;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two attempts to take the lock.
const WAIT: Duration = Duration::from_millis(200);

/// Time in which a killed process releases its locks.
const RELEASE: Duration = Duration::from_secs(2);

/// The lock of the dataset in `folder`; `None` if the file system has no locks.
///
/// # Errors
/// The user interrupted the wait, or the folder cannot be locked.
pub fn wait(
    folder: &Path,
    access: LockAccess,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
) -> Result<Option<DatasetLock>, DatasetError> {
    let holder_text = holder_text(access);
    let mut is_reported = false;
    loop {
        let holder = match attempt(folder, access, &holder_text, listener)? {
            ControlFlow::Break(lock) => return Ok(lock),
            ControlFlow::Continue(holder) => holder,
        };
        if interrupted.load(Relaxed) {
            return Err(DatasetError::Busy { holder });
        }
        if !is_reported {
            let holder = holder.unwrap_or_else(|| "somebody has it".into());
            let folder = folder.display();
            listener.important(format!("waiting for the dataset in `{folder}`: {holder}"));
            is_reported = true;
        }
        thread::sleep(WAIT);
    }
}

/// The lock of the folder of the checkpoints of `plan`, for a whole run: two writers would destroy each other's files. `None` if the file
/// system has no locks.
///
/// # Errors
/// Another run has it, or the folder cannot be locked.
pub fn for_checkpoints(
    plan: &CheckpointPlan,
    listener: &dyn Listener,
) -> Result<Option<DatasetLock>, CheckpointError> {
    let folder = Path::new(&plan.folder);
    let reads = plan.alone.as_ref().is_some_and(|alone| alone.writes == 0);
    let access = if reads { LockAccess::Shared } else { LockAccess::Exclusive };
    let refused =
        |error: StorageError| CheckpointError::Write { path: error.path, source: error.source };
    let holder_text = holder_text(access);
    let begun = Instant::now();
    loop {
        match attempt(folder, access, &holder_text, listener).map_err(refused)? {
            ControlFlow::Break(lock) => return Ok(lock),
            ControlFlow::Continue(_) if begun.elapsed() < RELEASE => thread::sleep(WAIT),
            ControlFlow::Continue(holder) => {
                return Err(CheckpointError::Busy { folder: folder.to_path_buf(), holder });
            }
        }
    }
}

/// Takes the lock, `None` if there are none; continues with the holder if another has it. Warns if others are not kept out.
fn attempt(
    folder: &Path,
    access: LockAccess,
    holder_text: &str,
    listener: &dyn Listener,
) -> Result<ControlFlow<Option<DatasetLock>, Option<String>>, StorageError> {
    Ok(match DatasetLock::try_acquire(folder, access, holder_text)? {
        LockAttempt::Held(lock) => {
            warn_of_mount(folder, access, listener);
            ControlFlow::Break(Some(lock))
        }
        LockAttempt::Unsupported { reason } => {
            warn(folder, access, &format!("cannot be locked ({reason})"), listener);
            ControlFlow::Break(None)
        }
        LockAttempt::Busy { holder } => ControlFlow::Continue(holder),
    })
}

/// On some mounts a lock is known to its own machine only.
fn warn_of_mount(folder: &Path, access: LockAccess, listener: &dyn Listener) {
    if access != LockAccess::Exclusive {
        return;
    }
    let mount = system::mount_of(folder);
    if let Some(option) = mount.as_ref().and_then(system::local_lock_option) {
        let why = format!("is locked for this machine alone (`{option}`)");
        warn(folder, access, &why, listener);
    }
}

/// Warns a process that changes the dataset. Readers change nothing.
fn warn(folder: &Path, access: LockAccess, why: &str, listener: &dyn Listener) {
    if access == LockAccess::Exclusive {
        listener.important(format!(
            "warning: `{}` {why}: let nobody else write, read or delete it meanwhile",
            folder.display()
        ));
    }
}

/// Describes this process to those who wait for it.
pub fn holder_text(access: LockAccess) -> String {
    let host = system::hostname();
    let (process, now) = (std::process::id(), result_folder::wall_now());
    let since = now.split('.').next().unwrap_or_default();
    match access {
        LockAccess::Exclusive => format!("process {process} on {host} has it since {since}"),
        LockAccess::Shared => {
            format!("runs read it; the last to begin was process {process} on {host}, at {since}")
        }
    }
}
