//! Storages: one file per backend, one row per backend in [`STORAGES`].
//!
//! A storage is rooted at a folder and serves byte ranges of files named by paths relative to it.
//! Wrappers that cost time (emulated, recorded) live in `feedrate-run`, which has the clock.
//!
//! To add a storage: copy `memory.rs`, implement [`Storage`], add its `mod` line and its row; the
//! contract suite (`tests.rs`) runs on it.

pub mod engine;
mod file;
mod memory;
mod null;
#[cfg(test)]
mod tests;

use engine::Engine;
use feedrate_spec::catalog::Member;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::any::Any;
use std::path::{Path, PathBuf};

/// Every storage.
pub static STORAGES: &[StorageKind] = &[file::KIND, memory::KIND, null::KIND];

/// A row of [`STORAGES`].
pub struct StorageKind {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// A storage rooted at a folder, which need not exist before the first [`Storage::make_dir`]. Storages without the
    /// ability `engines` take no notice of the engine.
    pub open: Open,
}

type Open = fn(&Path, &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError>;

/// The storage called `name`, rooted at `root`.
///
/// # Errors
/// There is none of that name, or `root` cannot be used.
pub fn open(name: &str, root: &Path) -> Result<Box<dyn Storage>, StorageError> {
    open_by(name, root, engine::ENGINES[0])
}

/// The storage called `name`, rooted at `root`, its files read by `engine`.
///
/// # Errors
/// There is none of that name, or `root` cannot be used.
pub fn open_by(
    name: &str,
    root: &Path,
    engine: &'static dyn Engine,
) -> Result<Box<dyn Storage>, StorageError> {
    let Some(kind) = STORAGES.iter().find(|kind| kind.member.name == name) else {
        let source = std::io::Error::other(format!("there is no storage `{name}`"));
        return Err(StorageError::new("open", root, source));
    };
    (kind.open)(root, engine)
}

/// An open file of a storage, to be given back to [`ReadStorage::close`]. It owns what it stands for: another storage finds nothing
/// of its own in it, and refuses it.
#[derive(Debug)]
pub struct Handle(Opened);

#[derive(Debug)]
enum Opened {
    Number(u64),
    Descriptor(OwnedFd),
    Kept(Box<dyn Any + Send + Sync>),
}

impl Handle {
    /// Handle of a storage that counts its open files.
    pub fn from_number(number: u64) -> Self {
        Handle(Opened::Number(number))
    }

    /// Handle that does not allocate, of a file of the system's.
    fn from_descriptor(fd: OwnedFd) -> Self {
        Handle(Opened::Descriptor(fd))
    }

    /// Handle that keeps what the storage knows of the file.
    pub fn keeping(known: impl Any + Send + Sync) -> Self {
        Handle(Opened::Kept(Box::new(known)))
    }

    /// The number given to [`Handle::from_number`].
    pub fn number(&self) -> Option<u64> {
        if let Opened::Number(number) = self.0 { Some(number) } else { None }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        if let Opened::Descriptor(fd) = &self.0 { Some(fd.as_fd()) } else { None }
    }

    /// The object given to [`Handle::keeping`].
    pub fn kept<T: Any>(&self) -> Option<&T> {
        if let Opened::Kept(known) = &self.0 { known.downcast_ref() } else { None }
    }

    /// The same, given back.
    pub fn into_kept<T: Any>(self) -> Option<T> {
        let Opened::Kept(known) = self.0 else { return None };
        known.downcast().ok().map(|known| *known)
    }
}

/// A backend, as those see it who only read files. Storages around a storage are no more than this.
pub trait ReadStorage: Send + Sync {
    /// Open for reading. `path` is relative to the root. Does not allocate, but for the engines `mmap` and `libhdf5`.
    ///
    /// # Errors
    /// There is no such file, or it may not be read.
    fn open(&self, path: &str) -> Result<Handle, StorageError>;

    /// Put into `name` what the file called `path` is opened by, where that has to be looked up first: who times opens does not time
    /// this, for it asks no storage.
    ///
    /// # Errors
    /// There is no such file.
    fn look_up(&self, _path: &str, _name: &mut String) -> Result<bool, StorageError> {
        Ok(false)
    }

    /// Length of an open file.
    ///
    /// # Errors
    /// The backend's own.
    fn len(&self, file: &Handle) -> Result<u64, StorageError>;

    /// Fill `buffer` from `offset`; fewer bytes only where the file ends. Does not allocate, but for the engine `direct` where
    /// buffer and offset are not at whole blocks.
    ///
    /// # Errors
    /// The backend's own.
    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8])
    -> Result<usize, StorageError>;

    /// Close.
    fn close(&self, file: Handle);
}

/// A backend.
pub trait Storage: ReadStorage {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Name that the file called `path` has in the folder.
    fn name_of(&self, path: &str) -> String {
        path.to_string()
    }

    /// Length of a file that may not be there.
    ///
    /// # Errors
    /// Anything but absence.
    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError>;

    /// Kind of what has this name, links not followed; `None` where nothing has. Storages without folders know files alone.
    ///
    /// # Errors
    /// Anything but absence.
    fn kind(&self, path: &str) -> Result<Option<NameKind>, StorageError> {
        Ok(self.stat(path)?.map(|bytes| NameKind::File { bytes }))
    }

    /// Make a folder and those above it; `""` is the root. Storages without folders do nothing.
    ///
    /// # Errors
    /// The backend's own.
    fn make_dir(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Start a file that becomes visible under `path` only at `commit`.
    ///
    /// # Errors
    /// The backend's own.
    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError>;

    /// Remove a file; absence is fine.
    ///
    /// # Errors
    /// The backend's own.
    fn remove(&self, path: &str) -> Result<(), StorageError>;

    /// Remove a folder if it is empty and no mount point; absence is fine. Storages without folders do nothing.
    ///
    /// # Errors
    /// The backend's own.
    fn remove_dir(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Names in a folder, sorted; empty where there is no such folder.
    ///
    /// # Errors
    /// The backend's own.
    fn list(&self, path: &str) -> Result<Vec<String>, StorageError>;

    /// Make all that was committed durable. Storages that do not outlive the process do nothing.
    ///
    /// # Errors
    /// The backend's own.
    fn sync_all(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Bytes that can still be written, `None` where that cannot be known.
    ///
    /// # Errors
    /// The backend's own.
    fn free_bytes(&self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Drop a file from the page cache. Storages without the ability `page_cache` do nothing.
    ///
    /// # Errors
    /// The backend's own.
    fn evict(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Read a file into the page cache, and keep nothing else of it. Storages without the ability `page_cache` do nothing.
    ///
    /// # Errors
    /// The backend's own.
    fn warm(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Bytes of a file in the page cache, `None` where that cannot be known.
    ///
    /// # Errors
    /// The backend's own.
    fn resident_bytes(&self, _path: &str) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }
}

/// Kind of what has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A file of this length.
    File {
        /// Its length.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A link, or something else that no generation makes.
    Other,
}

impl NameKind {
    /// That of a path of the system; `None` where nothing is.
    ///
    /// # Errors
    /// Anything but absence.
    pub fn of_path(path: &Path) -> std::io::Result<Option<Self>> {
        match path.symlink_metadata() {
            Ok(found) if found.is_file() => Ok(Some(NameKind::File { bytes: found.len() })),
            Ok(found) if found.is_dir() => Ok(Some(NameKind::Folder)),
            Ok(_) => Ok(Some(NameKind::Other)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A file being written.
pub trait WriteFile: Send {
    /// Append.
    ///
    /// # Errors
    /// The device is full, or the backend's own.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError>;

    /// Overwrite what was written.
    ///
    /// # Errors
    /// The backend's own.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// Make what was written durable.
    ///
    /// # Errors
    /// The backend's own.
    fn sync(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Make it visible under its name. A file dropped before this leaves nothing that looks whole.
    ///
    /// # Errors
    /// The backend's own.
    fn commit(self: Box<Self>) -> Result<(), StorageError>;
}

/// Operation and path that a storage refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}", path.display())]
pub struct StorageError {
    /// A verb: `open`, `read`.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The operating system's word.
    pub source: std::io::Error,
}

impl StorageError {
    /// `action` on `path` was refused.
    pub fn new(
        action: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        StorageError { action, path: path.as_ref().to_path_buf(), source: source.into() }
    }

    /// Whether the device has no room, or the user may have no more of it.
    pub fn is_full(&self) -> bool {
        let kinds = [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded];
        kinds.contains(&self.source.kind())
    }

    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        if self.source.raw_os_error() == Some(libc::EMFILE) {
            return Some("too many files are open: raise `ulimit -n`, or use fewer workers");
        }
        if self.source.raw_os_error() == Some(libc::EINVAL)
            && ["open", "read"].contains(&self.action)
        {
            return Some("the file system may not know O_DIRECT: use `storage.engine=psync`");
        }
        if self.source.raw_os_error() == Some(libc::EPERM) && self.action == "read" {
            return Some(
                "the container may forbid `process_vm_readv`, by which mapped files are read: use `storage.engine=psync`",
            );
        }
        match self.source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Some(
                "free space on the device, point `--data` (`dataset.data_folder`) elsewhere, or use fewer files",
            ),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Some("point `--data` (or `--results`) at a folder you may write")
            }
            std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists => {
                Some("a file is in the way where a folder is needed; point elsewhere or move it")
            }
            std::io::ErrorKind::NotFound if self.action == "open" => Some(
                "a file of the dataset is missing: `feedrate generate`, or `workflow.generate_data=True`, makes what is missing",
            ),
            _ => None,
        }
    }
}
