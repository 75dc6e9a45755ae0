//! Runs storage calls that may hang on a thread that can be abandoned, so that the caller still reacts to interrupts.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval at which a waiter checks whether to give up.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Work that runs on a separate thread and can be abandoned.
pub(crate) struct AbandonableTask<T> {
    thread: JoinHandle<T>,
    /// Disconnected when the work has ended; carries no messages.
    ended: Receiver<()>,
}

impl<T: Send + 'static> AbandonableTask<T> {
    /// Starts `work` on a new thread.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(crate) fn start(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (sender, ended) = mpsc::channel();
        let thread = Builder::new().name("abandonable".into()).spawn(move || {
            // Dropped when the work ends or panics.
            let _sender: mpsc::Sender<()> = sender;
            work()
        })?;
        Ok(AbandonableTask { thread, ended })
    }

    /// Waits for the result. Returns `None` once `abandon` is set; the thread is then abandoned until the process exits.
    pub(crate) fn wait(self, abandon: &AtomicBool) -> Option<T> {
        while self.ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if abandon.load(Relaxed) {
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

/// Runs `work` on a separate thread and waits for it as [`AbandonableTask::wait`] does.
///
/// # Errors
/// The thread could not be started.
pub(crate) fn run_abandonable<T: Send + 'static>(
    abandon: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    Ok(AbandonableTask::start(work)?.wait(abandon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanging_work_is_abandoned_when_the_flag_is_set() {
        let abandon = AtomicBool::new(false);
        assert_eq!(run_abandonable(&abandon, || 7).unwrap(), Some(7));
        let (_never, hangs) = mpsc::channel::<()>();
        abandon.store(true, Relaxed);
        assert_eq!(run_abandonable(&abandon, move || hangs.recv().is_ok()).unwrap(), None);
    }
}
