//! One worker reads one thing at a time, whoever it is for: first come, first served.

use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A storage whose every open and read waits for its turn. Those who wait have numbers; a plain lock would go to whoever has just
/// given it back.
pub(super) struct InTurn {
    inner: Arc<dyn ReadStorage>,
    numbers: Mutex<TurnNumbers>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnNumbers {
    next: u64,
    served: u64,
}

impl InTurn {
    pub(super) fn new(inner: Arc<dyn ReadStorage>) -> Self {
        InTurn { inner, numbers: Mutex::default(), changed: Condvar::new() }
    }

    fn wait(&self) -> Turn<'_> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = numbers.next;
        numbers.next += 1;
        let served = self.changed.wait_while(numbers, |numbers| numbers.served != own);
        drop(served.unwrap_or_else(PoisonError::into_inner));
        Turn(self)
    }
}

/// Over when it is dropped.
struct Turn<'t>(&'t InTurn);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.numbers.lock().unwrap_or_else(PoisonError::into_inner).served += 1;
        self.0.changed.notify_all();
    }
}

impl ReadStorage for InTurn {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let _turn = self.wait();
        self.inner.open(path)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let _turn = self.wait();
        self.inner.read_at(file, offset, buffer)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }
}
