//! Lets so many through at once; the others wait. Only where fewer threads may decode than read, or fewer reads are served than begun.

use std::sync::{Condvar, Mutex, PoisonError};

/// Counts those that may still go in.
pub(crate) struct Gate {
    free: Mutex<u32>,
    left: Condvar,
}

/// Someone is in, until this is dropped.
pub(crate) struct Permit<'g>(&'g Gate);

impl Gate {
    /// For `places` at once.
    pub(crate) fn new(places: u32) -> Self {
        Gate { free: Mutex::new(places.max(1)), left: Condvar::new() }
    }

    /// Wait for a place, and take it.
    pub(crate) fn enter(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    #[test]
    fn no_more_than_asked_for_are_in() {
        let gate = Gate::new(2);
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let permit = gate.enter();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.load(SeqCst)), "{most:?}");
        assert_eq!(*gate.free.lock().unwrap(), 2);
    }
}
