//! One worker reads one thing at a time, whoever it is for: first come, first served.

use crate::gate::Gate;
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::sync::Arc;

/// A storage whose every open and read waits for its turn. A plain lock would go to whoever has just given it back.
pub(super) struct InTurn {
    inner: Arc<dyn ReadStorage>,
    turns: Gate,
}

impl InTurn {
    pub(super) fn new(inner: Arc<dyn ReadStorage>) -> Self {
        InTurn { inner, turns: Gate::new(1) }
    }
}

impl ReadStorage for InTurn {
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

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let _turn = self.turns.enter();
        self.inner.read_at(file, offset, buffer)
    }

    fn close(&self, file: Handle) {
        self.inner.close(file);
    }
}
