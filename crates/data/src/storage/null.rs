//! A storage that does nothing: every file exists, is practically endless, and is read at no cost.

use super::engine::Engine;
use super::{Handle, ReadStorage, Storage, StorageError, StorageKind, WriteFile};
use feedrate_spec::catalog::{Ability, Member};
use std::io::ErrorKind;
use std::path::Path;

pub(super) const KIND: StorageKind = StorageKind { member: &MEMBER, open };

static MEMBER: Member = Member {
    name: "null",
    summary: "Reads cost nothing and leave the buffer as it was; for measuring the emulation itself.",
    abilities: &[Ability::NoDevice],
};

/// Length of every file.
const FILE_BYTES: u64 = u64::MAX / 2;

fn open(_root: &Path, _engine: &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError> {
    Ok(Box::new(NullStorage))
}

struct NullStorage;

impl ReadStorage for NullStorage {
    fn open(&self, _path: &str) -> Result<Handle, StorageError> {
        Ok(Handle::from_number(0))
    }

    fn len(&self, _file: &Handle) -> Result<u64, StorageError> {
        Ok(FILE_BYTES)
    }

    fn read_piece(
        &self,
        _file: &Handle,
        _offset: u64,
        buffer: &mut [u8],
        _end: u64,
    ) -> Result<usize, StorageError> {
        Ok(buffer.len())
    }

    fn close(&self, _file: Handle) {}
}

impl Storage for NullStorage {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn stat(&self, _path: &str) -> Result<Option<u64>, StorageError> {
        Ok(Some(FILE_BYTES))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        Err(StorageError::new("create", path, ErrorKind::Unsupported))
    }

    fn remove(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    fn list(&self, _path: &str) -> Result<Vec<String>, StorageError> {
        Ok(Vec::new())
    }
}
