//! The lock of a run: held by its supervisor, waited for by the next run. Its file is not empty while a run goes on, and stays so if
//! the supervisor is killed. The file may come from others, so that only its length is read.

use super::processes::kill_marked;
use super::{LOOK, UNKILLABLE};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A lock that is held.
pub(super) struct RunningLock {
    file: File,
    mark: String,
}

/// Wait until nothing of an earlier run lives, and end what has lost its supervisor: processes that carry its mark, then with
/// `cleanup_scripts` (texts of bash) what is no process of this machine. `on_wait` is called once, if there is something to wait for.
/// Returns false if `stop` is set meanwhile.
///
/// # Errors
/// The lock cannot be had, or what was left could not be cleaned up: somebody else may be measuring.
pub fn wait_until_alone(
    running: &Path,
    cleanup_scripts: &[String],
    stop: &AtomicBool,
    on_wait: &mut dyn FnMut(),
) -> io::Result<bool> {
    let mut has_told = false;
    loop {
        if let Some(running) = RunningLock::take(running)? {
            return running.clear(cleanup_scripts, stop);
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
    /// Take the lock for a run; `None` where another holds it, or has left something that [`wait_until_alone`] is to end first.
    pub(super) fn begin(path: &Path) -> io::Result<Option<Self>> {
        let Some(running) = RunningLock::take(path)? else { return Ok(None) };
        if running.is_left()? {
            return Ok(None);
        }
        (&running.file).write_all(b"running\n")?;
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

    /// Whether a supervisor was killed while it held the lock.
    fn is_left(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > 0)
    }

    /// End what is left of a run whose supervisor is gone. Returns false if `stop` is set meanwhile.
    fn clear(&self, cleanup_scripts: &[String], stop: &AtomicBool) -> io::Result<bool> {
        if !self.is_left()? {
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
        cleanup_scripts.iter().try_for_each(|script| clean_up(script))?;
        self.file.set_len(0)?;
        Ok(true)
    }
}

fn clean_up(script: &str) -> io::Result<()> {
    let output = Command::new("bash").args(["-c", script]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "could not end what an earlier run left in the queue: {}",
        messages.trim()
    )))
}
