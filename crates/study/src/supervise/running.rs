//! The lock of whatever runs: held by a supervisor, waited for by the next run. While it is held its file says what there is to
//! clean up, for the case that nobody is left who knows.

use super::processes::kill_marked;
use super::{LOOK, Supervision, UNKILLABLE, to_end_of};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A lock that is held.
pub(super) struct RunningLock {
    file: File,
    mark: String,
}

/// Files that tell how to clean up after a run.
#[derive(Serialize, Deserialize)]
struct Remains {
    cleanup: Option<PathBuf>,
    stderr: PathBuf,
}

/// Wait until nothing of an earlier run lives, and end what has lost its supervisor. `on_wait` is called once, if there is
/// something to wait for. Returns false if `stop` is set meanwhile.
///
/// # Errors
/// The lock cannot be had, or what was left could not be cleaned up: somebody else may be measuring.
pub fn wait_until_alone(
    running: &Path,
    stop: &AtomicBool,
    on_wait: &mut dyn FnMut(),
) -> io::Result<bool> {
    let mut has_told = false;
    loop {
        if let Some(running) = RunningLock::take(running)? {
            return running.clear(stop);
        }
        if !std::mem::replace(&mut has_told, true) {
            on_wait();
        }
        if stop.load(Relaxed) {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

impl RunningLock {
    /// Take the lock for a run; `None` where another holds it.
    pub(super) fn begin(order: &Supervision) -> io::Result<Option<Self>> {
        let Some(running) = RunningLock::take(&order.running)? else { return Ok(None) };
        running.clear(&AtomicBool::new(false))?;
        let cleanup = order.cleanup.as_ref().map(std::path::absolute).transpose()?;
        let remains = Remains { cleanup, stderr: std::path::absolute(&order.stderr)? };
        (&running.file).write_all(serde_json::to_string(&remains)?.as_bytes())?;
        running.file.sync_data()?;
        Ok(Some(running))
    }

    /// Mark that its processes carry.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Nothing lives, and nothing is left.
    pub(super) fn end(self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// `None` where another holds it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        let mark = fs::canonicalize(path)?.display().to_string();
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(RunningLock { file, mark })),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// End what is left of a run whose supervisor is gone. Returns false if `stop` is set meanwhile.
    fn clear(&self, stop: &AtomicBool) -> io::Result<bool> {
        let mut text = String::new();
        (&self.file).read_to_string(&mut text)?;
        if text.is_empty() {
            return Ok(true);
        }
        let mut left = UNKILLABLE;
        while kill_marked(&self.mark) && !left.is_zero() {
            if stop.load(Relaxed) {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
            left = left.saturating_sub(LOOK);
        }
        // A supervisor that was killed while it wrote this had started nothing.
        if let Ok(Remains { cleanup: Some(cleanup), stderr }) = serde_json::from_str(&text)
            && cleanup.exists()
        {
            clean_up(&cleanup, &stderr)?;
        }
        self.file.set_len(0)?;
        Ok(true)
    }
}

fn clean_up(script: &Path, log: &Path) -> io::Result<()> {
    let mut bash = Command::new("bash");
    bash.arg(script).stdin(Stdio::null()).stdout(to_end_of(log)?).stderr(to_end_of(log)?);
    if bash.status()?.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`{}` could not end what an earlier run left; `{}` says why",
        script.display(),
        log.display()
    )))
}
