//! Waits for the lock of a dataset, and says for whom.

use crate::{messages, results};
use feedrate_data::error::DatasetError;
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_run::system;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// Between two looks at whether the lock is free.
const WAIT: Duration = Duration::from_millis(200);

/// The lock of the dataset in `folder`; `None` where there are no locks.
pub(crate) fn wait(
    folder: &Path,
    access: LockAccess,
    interrupted: &AtomicBool,
) -> Result<Option<DatasetLock>, DatasetError> {
    let own = own_words(access);
    let mut is_told = false;
    loop {
        match DatasetLock::try_acquire(folder, access, &own)? {
            LockAttempt::Held(lock) => {
                let mount = system::mount_of(folder);
                if let Some(option) = mount.as_ref().and_then(system::own_locks) {
                    let why = format!("is locked for this machine alone (`{option}`)");
                    warn(folder, access, &why);
                }
                return Ok(Some(lock));
            }
            LockAttempt::Unsupported { reason } => {
                warn(folder, access, &format!("cannot be locked ({reason})"));
                return Ok(None);
            }
            LockAttempt::Busy { holder } => {
                if interrupted.load(Relaxed) {
                    return Err(DatasetError::Busy { holder });
                }
                if !is_told {
                    let holder = holder.unwrap_or_else(|| "somebody has it".into());
                    messages::say(format!(
                        "waiting for the dataset in `{}`: {holder}",
                        folder.display()
                    ));
                    is_told = true;
                }
                thread::sleep(WAIT);
            }
        }
    }
}

/// Tell a maker who is not kept from meeting others. Readers change nothing.
fn warn(folder: &Path, access: LockAccess, why: &str) {
    if access == LockAccess::Exclusive {
        messages::say(format!(
            "warning: `{}` {why}: let nobody else generate, read or delete it meanwhile",
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
