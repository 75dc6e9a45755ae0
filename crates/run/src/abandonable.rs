//! Runs storage calls that may hang on a thread that can be abandoned, so that the caller still reacts to interrupts.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval at which a waiter checks whether to give up.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Work that runs on a thread of its own and can be abandoned.
pub(crate) struct Aside<T> {
    thread: JoinHandle<T>,
    /// Disconnected when the work has ended; carries no messages.
    ended: Receiver<()>,
}

impl<T: Send + 'static> Aside<T> {
    /// Starts `work` on a new thread.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(crate) fn begin(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (sender, ended) = mpsc::channel();
        let thread = Builder::new().name("aside".into()).spawn(move || {
            // Dropped when the work ends or panics.
            let _sender: mpsc::Sender<()> = sender;
            work()
        })?;
        Ok(Aside { thread, ended })
    }

    /// Waits for the result. Returns `None` once `leave` is set; the thread is then abandoned until the process exits.
    pub(crate) fn wait(self, leave: &AtomicBool) -> Option<T> {
        while self.ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if leave.load(Relaxed) {
                return None;
            }
        }
        let result = self.thread.join();
        Some(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    #[cfg(test)]
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Runs `work` on a thread of its own and waits for it as [`Aside::wait`] does.
///
/// # Errors
/// The thread could not be started.
pub(crate) fn aside<T: Send + 'static>(
    leave: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    Ok(Aside::begin(work)?.wait(leave))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanging_work_is_abandoned_when_leave_is_set() {
        let leave = AtomicBool::new(false);
        assert_eq!(aside(&leave, || 7).unwrap(), Some(7));
        let (_never, hangs) = mpsc::channel::<()>();
        leave.store(true, Relaxed);
        assert_eq!(aside(&leave, move || hangs.recv().is_ok()).unwrap(), None);
    }
}
