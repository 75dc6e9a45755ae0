//! Work that a storage may hold for ever, on a thread that can be left behind: whoever conducts a run goes on answering.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Whoever waits looks at least so often whether to go on waiting.
const LOOK: Duration = Duration::from_millis(50);

/// Work that goes on.
pub(crate) struct Aside<T> {
    thread: JoinHandle<T>,
    /// Nothing comes; it hangs up when the work is over.
    over: Receiver<()>,
}

impl<T: Send + 'static> Aside<T> {
    /// Begin `work`.
    ///
    /// # Errors
    /// A thread could not be started.
    pub(crate) fn begin(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (held, over) = mpsc::channel();
        let thread = Builder::new().name("aside".into()).spawn(move || {
            let _held: mpsc::Sender<()> = held;
            work()
        })?;
        Ok(Aside { thread, over })
    }

    /// Wait for it; `None` once `leave` is set, and then it is left to the process's end.
    pub(crate) fn wait(self, leave: &AtomicBool) -> Option<T> {
        while self.over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if leave.load(Relaxed) {
                return None;
            }
        }
        let done = self.thread.join();
        Some(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    #[cfg(test)]
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Do `work` aside and wait for it: see [`Aside::wait`].
///
/// # Errors
/// A thread could not be started.
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
    fn work_that_hangs_is_waited_for_until_one_is_to_leave() {
        let leave = AtomicBool::new(false);
        assert_eq!(aside(&leave, || 7).unwrap(), Some(7));
        let (_never, hangs) = mpsc::channel::<()>();
        leave.store(true, Relaxed);
        assert_eq!(aside(&leave, move || hangs.recv().is_ok()).unwrap(), None);
    }
}
