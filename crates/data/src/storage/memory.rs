//! Files in the memory of this process, which are lost when it ends. A read is a memory copy, so that runs measure
//! everything but the device.

use super::engine::Engine;
use super::{Handle, ReadStorage, Storage, StorageError, StorageKind, WriteFile};
use feedrate_spec::catalog::{Ability, Member};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) const KIND: StorageKind = StorageKind { member: &MEMBER, open };

static MEMBER: Member = Member {
    name: "memory",
    summary: "Files in the memory of this process, for tests and for runs without a device.",
    abilities: &[Ability::KeepsBytes, Ability::NoDevice, Ability::Writable],
};

fn open(_root: &Path, _engine: &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError> {
    Ok(Box::new(MemoryStorage::default()))
}

#[derive(Default)]
struct MemoryStorage {
    files: Arc<RwLock<FileTable>>,
}

/// All files by number. A replaced or removed file loses its number, so that reads through an old handle fail instead of
/// returning bytes of another file.
#[derive(Default)]
struct FileTable {
    numbers: BTreeMap<String, u64>,
    bytes: HashMap<u64, Vec<u8>>,
    next: u64,
}

fn read_lock(files: &RwLock<FileTable>) -> RwLockReadGuard<'_, FileTable> {
    files.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock(files: &RwLock<FileTable>) -> RwLockWriteGuard<'_, FileTable> {
    files.write().unwrap_or_else(PoisonError::into_inner)
}

impl FileTable {
    fn remove(&mut self, path: &str) {
        if let Some(number) = self.numbers.remove(path) {
            self.bytes.remove(&number);
        }
    }

    fn contents(&self, action: &'static str, file: &Handle) -> Result<&[u8], StorageError> {
        let bytes = file.number().and_then(|number| self.bytes.get(&number)).map(Vec::as_slice);
        bytes.ok_or_else(|| StorageError::new(action, "a removed file", ErrorKind::NotFound))
    }
}

impl ReadStorage for MemoryStorage {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let table = read_lock(&self.files);
        let number = table.numbers.get(path).copied();
        number
            .map(Handle::from_number)
            .ok_or_else(|| StorageError::new("open", path, ErrorKind::NotFound))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        Ok(read_lock(&self.files).contents("stat", file)?.len() as u64)
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        _end: u64,
    ) -> Result<usize, StorageError> {
        let table = read_lock(&self.files);
        let bytes = table.contents("read", file)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let len = buffer.len().min(bytes.len() - start);
        buffer[..len].copy_from_slice(&bytes[start..start + len]);
        Ok(len)
    }

    fn close(&self, _file: Handle) {}
}

impl Storage for MemoryStorage {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        let table = read_lock(&self.files);
        let number = table.numbers.get(path);
        Ok(number.and_then(|number| table.bytes.get(number)).map(|bytes| bytes.len() as u64))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        let files = Arc::clone(&self.files);
        Ok(Box::new(NewFile { files, path: path.to_string(), bytes: Vec::new() }))
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        write_lock(&self.files).remove(path);
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        let folder = path.trim_end_matches('/');
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let table = read_lock(&self.files);
        let names = table.numbers.keys().filter_map(|file| file.strip_prefix(&prefix));
        let names: BTreeSet<&str> = names.filter_map(|name| name.split('/').next()).collect();
        Ok(names.into_iter().map(str::to_string).collect())
    }

    /// The machine's memory minus the files. An upper limit that detects datasets that can never fit.
    fn free_bytes(&self) -> Result<Option<u64>, StorageError> {
        let system = rustix::system::sysinfo();
        let stored_bytes: usize = read_lock(&self.files).bytes.values().map(Vec::len).sum();
        let total = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit));
        Ok(Some(total.saturating_sub(stored_bytes as u64)))
    }
}

struct NewFile {
    files: Arc<RwLock<FileTable>>,
    path: String,
    bytes: Vec<u8>,
}

impl WriteFile for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let range = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..bytes.len()));
        let Some(range) = range else {
            return Err(StorageError::new("patch", &self.path, ErrorKind::InvalidInput));
        };
        range.copy_from_slice(bytes);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), StorageError> {
        let mut table = write_lock(&self.files);
        table.remove(&self.path);
        let number = table.next;
        table.next += 1;
        table.numbers.insert(self.path, number);
        table.bytes.insert(number, self.bytes);
        Ok(())
    }
}
