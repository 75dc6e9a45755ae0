//! One worker reads one thing at a time, whoever it is for: first come, first served.

use super::super::{pass_on, pass_on_but_reading};
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Those who wait have numbers; a plain lock would go to whoever has just given it back.
#[derive(Default)]
pub(super) struct Turn {
    numbers: Mutex<Numbers>,
    changed: Condvar,
}

#[derive(Default)]
struct Numbers {
    next: u64,
    served: u64,
}

impl Turn {
    fn take<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.wait();
        work()
    }

    fn wait(&self) -> Taken<'_> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = numbers.next;
        numbers.next += 1;
        let taken = self.changed.wait_while(numbers, |numbers| numbers.served != own);
        drop(taken.unwrap_or_else(PoisonError::into_inner));
        Taken(self)
    }
}

struct Taken<'t>(&'t Turn);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.numbers.lock().unwrap_or_else(PoisonError::into_inner).served += 1;
        self.0.changed.notify_all();
    }
}

/// A storage whose every operation waits for its turn.
pub(super) struct InTurn {
    inner: Arc<dyn Storage>,
    turn: Arc<Turn>,
}

impl InTurn {
    pub(super) fn new(inner: Arc<dyn Storage>, turn: Arc<Turn>) -> Self {
        InTurn { inner, turn }
    }
}

impl Storage for InTurn {
    pass_on!();

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        self.turn.take(|| self.inner.open(path))
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        self.turn.take(|| self.inner.read_at(file, offset, buffer))
    }
}
