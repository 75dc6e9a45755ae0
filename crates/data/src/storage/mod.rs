//! Storages: one file per backend, and one row per backend in [`STORAGES`].
//!
//! A storage is rooted at a folder and serves byte ranges of files, which are named by paths relative to the root.
//! Wrappers that take time (emulated, recorded) are in `feedrate-run`, which has the clock.
//!
//! To add a storage: copy `memory.rs`, implement [`Storage`], add its `mod` line and its row. The contract tests in
//! `tests.rs` then run on it.
//!
//! Long because it documents every operation of a storage.

pub mod engine;
mod lookup;
mod file;
mod memory;
mod null;
#[cfg(feature = "object")]
pub mod object;
#[cfg(not(feature = "object"))]
pub mod no_object;
#[cfg(test)]
mod tests;

pub use lookup::EntryLookup;
pub(crate) use lookup::list_lengths;
#[cfg(not(feature = "object"))]
pub use no_object as object;

use engine::Engine;
use feedrate_spec::catalog::Member;
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::transfers::TransferCounts;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::any::Any;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Every storage.
pub static STORAGES: &[StorageKind] = &[
    file::KIND,
    memory::KIND,
    null::KIND,
    #[cfg(feature = "object")]
    object::S3,
    #[cfg(feature = "object")]
    object::GCS,
    #[cfg(feature = "object")]
    object::AZURE,
];

/// A row of [`STORAGES`].
pub struct StorageKind {
    /// Name, summary, abilities.
    pub member: &'static Member,
    /// Opens a storage rooted at a folder, which need not exist before the first [`Storage::make_dir`]. Storages without
    /// the ability `engines` ignore the engine.
    pub open: Open,
}

type Open = fn(&Path, &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError>;

/// Opens the storage called `name`, rooted at `root`.
///
/// # Errors
/// No storage has this name, or `root` cannot be used.
pub fn open(name: &str, root: &Path) -> Result<Box<dyn Storage>, StorageError> {
    open_with_engine(name, root, engine::ENGINES[0])
}

/// Opens the storage of `root`: a store of objects if it is a URL, else a file system.
///
/// # Errors
/// `root` cannot be used, or this build has no such storage.
pub fn open_root(root: &Path) -> Result<Box<dyn Storage>, StorageError> {
    let url = root.to_str().and_then(ObjectUrl::parse);
    open(url.map_or("file", |url| url.storage), root)
}

/// Opens the storage called `name`, rooted at `root`, which reads files by `engine`.
///
/// # Errors
/// No storage has this name, or `root` cannot be used.
pub fn open_with_engine(
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

/// An open file of a storage, which is passed to [`ReadStorage::close`] in the end. The handle owns the open file. A
/// storage refuses handles of other storages.
#[derive(Debug)]
pub struct Handle(HandleTarget);

#[derive(Debug)]
enum HandleTarget {
    Number(u64),
    Descriptor(OwnedFd),
    Object(Box<dyn Any + Send + Sync>),
}

impl Handle {
    /// A handle for storages that number their open files.
    pub fn from_number(number: u64) -> Self {
        Handle(HandleTarget::Number(number))
    }

    /// A handle for a file descriptor. Does not allocate.
    fn from_descriptor(fd: OwnedFd) -> Self {
        Handle(HandleTarget::Descriptor(fd))
    }

    /// A handle that owns an object of the storage.
    pub fn from_object(object: impl Any + Send + Sync) -> Self {
        Handle(HandleTarget::Object(Box::new(object)))
    }

    /// The number given to [`Handle::from_number`].
    pub fn number(&self) -> Option<u64> {
        if let HandleTarget::Number(number) = self.0 { Some(number) } else { None }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        if let HandleTarget::Descriptor(fd) = &self.0 { Some(fd.as_fd()) } else { None }
    }

    /// The object given to [`Handle::from_object`]; `None` if the handle has none of this type.
    pub fn object<T: Any>(&self) -> Option<&T> {
        if let HandleTarget::Object(object) = &self.0 { object.downcast_ref() } else { None }
    }

    /// Turns the handle into the object given to [`Handle::from_object`].
    pub fn into_object<T: Any>(self) -> Option<T> {
        let HandleTarget::Object(object) = self.0 else { return None };
        object.downcast().ok().map(|object| *object)
    }
}

/// The operations of a storage that read files. Storages that wrap another storage implement only these.
pub trait ReadStorage: Send + Sync {
    /// Opens a file for reading. `path` is relative to the root. Does not allocate, except with the engines `mmap` and
    /// `libhdf5`.
    ///
    /// # Errors
    /// The file does not exist or may not be read.
    fn open(&self, path: &str) -> Result<Handle, StorageError>;

    /// Writes the name to open for `path` to `name` and returns true, if files are stored under other names than the
    /// plan's. A separate call, because the look-up reads no storage and must not count as time for opening.
    ///
    /// # Errors
    /// The file does not exist.
    fn look_up(&self, _path: &str, _name: &mut String) -> Result<bool, StorageError> {
        Ok(false)
    }

    /// Length of an open file.
    ///
    /// # Errors
    /// The operation failed.
    fn len(&self, file: &Handle) -> Result<u64, StorageError>;

    /// Fills `buffer` with the bytes from `offset` on and returns their number, which is smaller only at the end of the file.
    /// Does not allocate, except with the engine `direct` if buffer and offset are not aligned to blocks.
    ///
    /// # Errors
    /// The operation failed.
    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        self.read_piece(file, offset, buffer, 0)
    }

    /// Like [`ReadStorage::read_at`], for a piece of the bytes up to `end`, which are expected to be read one after another: a storage can
    /// serve all of them by one request. No other read is expected if `end` is not beyond the piece.
    ///
    /// # Errors
    /// The operation failed.
    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError>;

    /// Reads `len` bytes from `offset` on and drops them: they are read into `buffer`, one part over another. Returns their number, which
    /// is smaller only at the end of the file. Takes one request if the storage can, else one for each length of the buffer.
    ///
    /// # Errors
    /// The operation failed.
    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        read_pieces(offset, len, buffer, |offset, piece| self.read_at(file, offset, piece))
    }

    /// Closes a file.
    fn close(&self, file: Handle);

    /// Requests to an object store since the storage was opened, with those that were repeated; `None` if the storage sends none.
    /// Storages that wrap another one forward the call.
    fn transfers(&self) -> Option<TransferCounts> {
        None
    }
}

/// Reads `len` bytes into `buffer`, one piece over another, and returns their number.
fn read_pieces<E>(
    offset: u64,
    len: u64,
    buffer: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<usize, E>,
) -> Result<u64, E> {
    let mut done = 0;
    while done < len {
        let piece_bytes = (len - done).min(buffer.len() as u64) as usize;
        let bytes = read(offset + done, &mut buffer[..piece_bytes])?;
        done += bytes as u64;
        if bytes < piece_bytes {
            break;
        }
    }
    Ok(done)
}

/// A storage backend.
pub trait Storage: ReadStorage {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Actual path of the file that the plan calls `path`, relative to the root.
    fn real_path(&self, path: &str) -> String {
        path.to_string()
    }

    /// Length of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The operation failed for another reason.
    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError>;

    /// Type of the entry at `path`, without following links; `None` if nothing exists there. Storages without folders
    /// know only files.
    ///
    /// # Errors
    /// The operation failed for another reason.
    fn kind(&self, path: &str) -> Result<Option<EntryKind>, StorageError> {
        Ok(self.stat(path)?.map(|bytes| EntryKind::File { bytes }))
    }

    /// Creates a folder and its parents; `""` is the root. Storages without folders do nothing.
    ///
    /// # Errors
    /// The operation failed.
    fn make_dir(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Creates a file that becomes visible under `path` only at [`WriteFile::commit`].
    ///
    /// # Errors
    /// The operation failed.
    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError>;

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    /// The operation failed.
    fn remove(&self, path: &str) -> Result<(), StorageError>;

    /// Removes a folder if it is empty and not a mount point. A missing folder is not an error. Storages without folders do
    /// nothing.
    ///
    /// # Errors
    /// The operation failed.
    fn remove_dir(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Names in a folder, sorted; empty if the folder does not exist.
    ///
    /// # Errors
    /// The operation failed.
    fn list(&self, path: &str) -> Result<Vec<String>, StorageError>;

    /// Counts or aborts the unfinished uploads of the files for which `is_own` returns true, which killed processes left. Returns their number,
    /// which is 0 for storages without uploads.
    ///
    /// # Errors
    /// The operation failed.
    fn unfinished_uploads(
        &self,
        _action: UploadAction,
        _is_own: &dyn Fn(&str) -> bool,
    ) -> Result<u64, StorageError> {
        Ok(0)
    }

    /// Calls `found` with the entries of a folder, and returns true. Returns false at once if [`Storage::kind`] finds each entry as fast. Only
    /// storages without folders list entries with their types.
    ///
    /// # Errors
    /// The operation failed, or `found` did.
    fn visit_entries(
        &self,
        _path: &str,
        _depth: Depth,
        _found: &mut EntryVisit<'_>,
    ) -> Result<bool, StorageError> {
        Ok(false)
    }

    /// Makes all committed files durable. Storages that do not outlive the process do nothing.
    ///
    /// # Errors
    /// The operation failed.
    fn sync_all(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Bytes that can still be written; `None` if unknown.
    ///
    /// # Errors
    /// The operation failed.
    fn free_bytes(&self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Drops a file from the page cache. Storages without the ability `page_cache` do nothing.
    ///
    /// # Errors
    /// The operation failed.
    fn evict(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Reads a file into the page cache. Storages without the ability `page_cache` do nothing.
    ///
    /// # Errors
    /// The operation failed.
    fn warm(&self, _path: &str) -> Result<(), StorageError> {
        Ok(())
    }

    /// Bytes of a file in the page cache; `None` if unknown.
    ///
    /// # Errors
    /// The operation failed.
    fn resident_bytes(&self, _path: &str) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File {
        /// Length of the file.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A link, a device or another entry that feedrate never creates.
    Other,
}

/// What happens to unfinished uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadAction {
    /// They stay.
    Count,
    /// They are aborted.
    Abort,
}

/// Receives the path of an entry, relative to the visited folder, and its type.
pub type EntryVisit<'v> = dyn FnMut(&str, EntryKind) -> Result<(), StorageError> + 'v;

/// Which entries below a folder are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The files and folders in it.
    Folder,
    /// All files below it, those of a folder and its subfolders together.
    All,
}

impl EntryKind {
    /// Type of the entry at a path of the file system, without following links; `None` if nothing exists there.
    ///
    /// # Errors
    /// The operation failed for another reason.
    pub fn at_path(path: &Path) -> std::io::Result<Option<Self>> {
        match path.symlink_metadata() {
            Ok(found) if found.is_file() => Ok(Some(EntryKind::File { bytes: found.len() })),
            Ok(found) if found.is_dir() => Ok(Some(EntryKind::Folder)),
            Ok(_) => Ok(Some(EntryKind::Other)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A file being written.
pub trait WriteFile: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// The device is full, or the operation failed.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError>;

    /// Announces that `range`, which may not be written yet, will be patched. Storages that send written bytes keep it until
    /// [`WriteFile::release`].
    fn hold(&mut self, _range: Range<u64>) {}

    /// Announces that `range` will not be patched any more.
    fn release(&mut self, _range: Range<u64>) {}

    /// Overwrites bytes that have been written.
    ///
    /// # Errors
    /// The operation failed.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// Makes the written bytes durable.
    ///
    /// # Errors
    /// The operation failed.
    fn sync(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Makes the file visible under its name. A file that is dropped before this never becomes visible.
    ///
    /// # Errors
    /// The operation failed.
    fn commit(self: Box<Self>) -> Result<(), StorageError>;
}

/// A failed operation of a storage.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}", path.display())]
pub struct StorageError {
    /// A verb: `open`, `read`.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: std::io::Error,
}

impl StorageError {
    /// `action` failed on `path`.
    pub fn new(
        action: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        StorageError { action, path: path.as_ref().to_path_buf(), source: source.into() }
    }

    /// Whether the device is full or the user's quota is exceeded.
    pub fn is_full(&self) -> bool {
        let kinds = [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded];
        kinds.contains(&self.source.kind())
    }

    /// Advice for common errors.
    pub fn hint(&self) -> Option<&'static str> {
        if let Some(explained) = explained(&self.source) {
            return explained.hint;
        }
        if self.source.raw_os_error() == Some(libc::EMFILE) {
            return Some("too many files are open: raise `ulimit -n`, or use fewer workers");
        }
        if self.source.raw_os_error() == Some(libc::EINVAL)
            && ["open", "read"].contains(&self.action)
        {
            return Some("the file system may not support O_DIRECT: use `storage.engine=psync`");
        }
        if self.source.raw_os_error() == Some(libc::EPERM) && self.action == "read" {
            return Some(
                "the container may forbid `process_vm_readv`, which reads mapped files: use `storage.engine=psync`",
            );
        }
        match self.source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Some(
                "free space on the device, point `--data` (`dataset.data_folder`) or `--results` elsewhere, or use fewer files",
            ),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Some("point `--data` (or `--results`) at a folder you may write")
            }
            std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists => Some(
                "a file has the name of a folder that is needed: move the file, or use another folder",
            ),
            std::io::ErrorKind::NotFound if ["open", "evict"].contains(&self.action) => Some(
                "a file of the dataset is missing: `feedrate generate`, or `++workload.workflow.generate_data=True`, generates missing files",
            ),
            _ => None,
        }
    }
}

/// Advice of the store of objects that returned `error`, if it has any.
pub fn store_hint(error: &std::io::Error) -> Option<&'static str> {
    explained(error)?.hint
}

fn explained(error: &std::io::Error) -> Option<&Explained> {
    error.get_ref()?.downcast_ref()
}

/// An error of a storage that has its own remedy, as the source of a [`StorageError`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Explained {
    message: String,
    hint: Option<&'static str>,
}
