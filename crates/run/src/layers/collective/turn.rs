//! Serialises the operations of a worker that reads for several processes, in the order in which they arrive.

use crate::gate::Gate;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_spec::transfers::TransferCounts;
use std::sync::Arc;

/// A storage that does one open or read at a time. It uses a fair gate, because a mutex may starve waiting threads.
pub(super) struct SerialStorage {
    inner: Arc<dyn ReadStorage>,
    turns: Gate,
}

impl SerialStorage {
    pub(super) fn new(inner: Arc<dyn ReadStorage>) -> Self {
        SerialStorage { inner, turns: Gate::new(1) }
    }
}

impl ReadStorage for SerialStorage {
    fn look_up(&self, path: &str, name: &mut String) -> Result<bool, StorageError> {
        self.inner.look_up(path, name)
    }

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let _turn = self.turns.enter();
        self.inner.open(path)
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        self.inner.len(file)
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        let _turn = self.turns.enter();
        self.inner.read_piece(file, offset, buffer, end)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }

    fn transfers(&self) -> Option<TransferCounts> {
        self.inner.transfers()
    }
}
