//! Locks of datasets and of folders of checkpoints: waiting for a lock, and messages about its holder.

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

/// Interval between attempts to take a lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time until the locks of a killed process are released.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// Waits for the lock of the dataset in `folder`. Returns `None` if the file system has no locks.
///
/// # Errors
/// Fails if the user interrupts the wait, or if the folder cannot be locked.
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
            let holder = holder.unwrap_or_else(|| "another process has locked it".into());
            let folder = folder.display();
            listener.important(format!("waiting for the dataset in `{folder}`: {holder}"));
            is_reported = true;
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Locks the folder of the checkpoints of `plan` for a run, because two writing runs would destroy each other's files. Returns `None` if
/// the file system has no locks, as stores have none.
///
/// # Errors
/// Fails if another run has the lock, or if the folder cannot be locked.
pub fn lock_checkpoints(
    plan: &CheckpointPlan,
    listener: &dyn Listener,
) -> Result<Option<DatasetLock>, CheckpointError> {
    if plan.is_in_store() {
        return Ok(None);
    }
    let folder = Path::new(&plan.folder);
    let reads = plan.alone.as_ref().is_some_and(|alone| alone.writes == 0);
    let access = if reads { LockAccess::Shared } else { LockAccess::Exclusive };
    let write_error =
        |error: StorageError| CheckpointError::Write { path: error.path, source: error.source };
    let holder_text = holder_text(access);
    let start = Instant::now();
    loop {
        match attempt(folder, access, &holder_text, listener).map_err(write_error)? {
            ControlFlow::Break(lock) => return Ok(lock),
            ControlFlow::Continue(_) if start.elapsed() < RELEASE_MAX => {
                thread::sleep(RETRY_INTERVAL)
            }
            ControlFlow::Continue(holder) => {
                return Err(CheckpointError::Busy { folder: folder.to_path_buf(), holder });
            }
        }
    }
}

/// Tries to take the lock. Breaks with the lock, or with `None` if there are no locks; continues with the holder's text if another process
/// has the lock.
/// Warns if other processes are not excluded.
fn attempt(
    folder: &Path,
    access: LockAccess,
    holder_text: &str,
    listener: &dyn Listener,
) -> Result<ControlFlow<Option<DatasetLock>, Option<String>>, StorageError> {
    Ok(match DatasetLock::try_acquire(folder, access, holder_text)? {
        LockAttempt::Held(lock) => {
            warn_about_mount(folder, access, listener);
            ControlFlow::Break(Some(lock))
        }
        LockAttempt::Unsupported { reason } => {
            warn(folder, access, &format!("cannot be locked ({reason})"), listener);
            ControlFlow::Break(None)
        }
        LockAttempt::Busy { holder } => ControlFlow::Continue(holder),
    })
}

/// Warns about mounts on which a lock excludes only processes of the same machine.
fn warn_about_mount(folder: &Path, access: LockAccess, listener: &dyn Listener) {
    if access != LockAccess::Exclusive {
        return;
    }
    let mount = system::mount_of(folder);
    if let Some(option) = mount.as_ref().and_then(system::local_lock_option) {
        let state = format!("is locked only for this machine (`{option}`)");
        warn(folder, access, &state, listener);
    }
}

/// Warns a process that changes the dataset, because it is not protected against others.
fn warn(folder: &Path, access: LockAccess, state: &str, listener: &dyn Listener) {
    if access == LockAccess::Exclusive {
        listener.important(format!(
            "warning: `{}` {state}: no other process may read, write or delete it meanwhile",
            folder.display()
        ));
    }
}

/// Describes this process for processes that wait for its lock.
pub fn holder_text(access: LockAccess) -> String {
    let host = system::hostname();
    let process = std::process::id();
    let now = result_folder::local_time_now();
    let since = now.split('.').next().unwrap_or_default();
    match access {
        LockAccess::Exclusive => format!("process {process} on {host} has held it since {since}"),
        LockAccess::Shared => {
            format!("runs are reading it; the latest is process {process} on {host}, since {since}")
        }
    }
}
