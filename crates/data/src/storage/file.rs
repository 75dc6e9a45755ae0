//! A folder of a file system, read by one of the engines.
//!
//! Files are opened for reading relative to the root's descriptor. A file that is being written has a temporary name
//! (`feedrate_spec::part`) until it is committed.

use super::engine::Engine;
use super::{EntryKind, Handle, ReadStorage, Storage, StorageError, StorageKind, WriteFile};
use crate::folder;
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::part::create_part;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufReader, Error, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes of one read when a file is read into the page cache.
const WARM_PIECE_BYTES: usize = 1 << 20;

pub(super) const KIND: StorageKind = StorageKind { member: &MEMBER, open };

static MEMBER: Member = Member {
    name: "file",
    summary: "A file system, local or parallel, read by one of the engines.",
    abilities: &[
        Ability::KeepsBytes,
        Ability::PageCache,
        Ability::Writable,
        Ability::InFolder,
        Ability::Engines,
    ],
};

fn open(root: &Path, engine: &'static dyn Engine) -> Result<Box<dyn Storage>, StorageError> {
    let storage = FileSystem { root: root.to_path_buf(), fd: OnceLock::new(), engine };
    match storage.root_fd() {
        Ok(_) | Err(Errno::NOENT) => Ok(Box::new(storage)),
        Err(errno) => Err(StorageError::new("open", root, errno)),
    }
}

struct FileSystem {
    root: PathBuf,
    fd: OnceLock<OwnedFd>,
    engine: &'static dyn Engine,
}

impl FileSystem {
    /// The root's descriptor, opened at the first use: the folder may be created after the storage.
    fn root_fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(fd) = self.fd.get() {
            return Ok(fd.as_fd());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(&self.root, flags, Mode::empty())?;
        Ok(self.fd.get_or_init(|| fd).as_fd())
    }

    fn error(&self, action: &'static str, path: &str, source: impl Into<Error>) -> StorageError {
        StorageError::new(action, self.root.join(path), source)
    }

    /// An error with the path of an open file.
    fn error_in_file(&self, action: &'static str, file: &Handle, source: Errno) -> StorageError {
        let fd = self.engine.fd(file).map(|fd| format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let path = fd.ok().and_then(|link| std::fs::read_link(link).ok());
        StorageError::new(action, path.unwrap_or_else(|| self.root.clone()), source)
    }
}

impl ReadStorage for FileSystem {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | self.engine.flags();
        self.root_fd()
            .and_then(|root| fs::openat(root, path, flags, Mode::empty()))
            .and_then(|fd| self.engine.adopt(fd))
            .map_err(|errno| self.error("open", path, errno))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        if let Some(len) = self.engine.len(file) {
            return Ok(len);
        }
        let stat = self.engine.fd(file).and_then(fs::fstat);
        stat.map(|stat| stat.st_size as u64)
            .map_err(|errno| self.error_in_file("stat", file, errno))
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        _end: u64,
    ) -> Result<usize, StorageError> {
        self.engine
            .read_at(file, offset, buffer)
            .map_err(|errno| self.error_in_file("read", file, errno))
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        self.engine
            .read_over(file, offset, len, buffer)
            .map_err(|errno| self.error_in_file("read", file, errno))
    }

    fn close(&self, file: Handle) {
        drop(file);
    }
}

impl Storage for FileSystem {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match std::fs::metadata(self.root.join(path)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("stat", path, error)),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, StorageError> {
        EntryKind::at_path(&self.root.join(path)).map_err(|error| self.error("stat", path, error))
    }

    fn make_dir(&self, path: &str) -> Result<(), StorageError> {
        std::fs::create_dir_all(self.root.join(path))
            .map_err(|error| self.error("make", path, error))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        let path = self.root.join(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let created = create_part(&name, std::process::id(), |name| {
            let temporary_path = path.with_file_name(name);
            File::create_new(&temporary_path).map(|file| (file, temporary_path))
        });
        match created {
            Ok((file, temporary_path)) => {
                Ok(Box::new(UncommittedFile { file, temporary_path: Some(temporary_path), path }))
            }
            Err(error) => Err(StorageError::new("create", path, error)),
        }
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        match std::fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.error("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    fn remove_dir(&self, path: &str) -> Result<(), StorageError> {
        match std::fs::remove_dir(self.root.join(path)) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::ResourceBusy
                ) =>
            {
                Err(self.error("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        let entries = match folder::entries(&self.root.join(path)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.error("list", path, error)),
        };
        let names: Result<Vec<String>, Error> =
            entries.map(|name| Ok(name?.to_string_lossy().into_owned())).collect();
        let mut names = names.map_err(|error| self.error("list", path, error))?;
        names.sort_unstable();
        Ok(names)
    }

    fn sync_all(&self) -> Result<(), StorageError> {
        self.root_fd().and_then(fs::syncfs).map_err(|errno| self.error("sync", "", errno))
    }

    fn free_bytes(&self) -> Result<Option<u64>, StorageError> {
        let space = self.root_fd().and_then(fs::fstatvfs);
        let space = space.map_err(|errno| self.error("stat", "", errno))?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }

    /// Writes dirty pages first, because the kernel does not drop them.
    fn evict(&self, path: &str) -> Result<(), StorageError> {
        let evicted = File::open(self.root.join(path)).and_then(|file| {
            file.sync_data()?;
            Ok(fs::fadvise(&file, 0, None, fs::Advice::DontNeed)?)
        });
        evicted.map_err(|error| self.error("evict", path, error))
    }

    /// Reads the file instead of using `posix_fadvise`, which the kernel may ignore.
    fn warm(&self, path: &str) -> Result<(), StorageError> {
        File::open(self.root.join(path))
            .map(|file| BufReader::with_capacity(WARM_PIECE_BYTES, file))
            .and_then(|mut file| io::copy(&mut file, &mut io::sink()))
            .map_err(|error| self.error("read", path, error))?;
        Ok(())
    }

    fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
        let file = File::open(self.root.join(path));
        let file = file.map_err(|error| self.error("open", path, error))?;
        let metadata = file.metadata().map_err(|error| self.error("stat", path, error))?;
        Ok(residency::resident_bytes(&file, &metadata))
    }
}

struct UncommittedFile {
    file: File,
    path: PathBuf,
    /// Where the file is until it is committed.
    temporary_path: Option<PathBuf>,
}

impl UncommittedFile {
    fn with_path(&self, action: &'static str, result: io::Result<()>) -> Result<(), StorageError> {
        result.map_err(|error| StorageError::new(action, &self.path, error))
    }
}

impl WriteFile for UncommittedFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.file.write_all(bytes);
        self.with_path("write", written)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.with_path("write", self.file.write_all_at(bytes, offset))
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        self.with_path("sync", self.file.sync_all())
    }

    fn commit(mut self: Box<Self>) -> Result<(), StorageError> {
        if let Some(temporary_path) = &self.temporary_path {
            self.with_path("write", std::fs::rename(temporary_path, &self.path))?;
        }
        self.temporary_path = None;
        Ok(())
    }
}

impl Drop for UncommittedFile {
    fn drop(&mut self) {
        if let Some(temporary_path) = &self.temporary_path {
            // A temporary file that stays because of an error is recognised by its name.
            let _ = std::fs::remove_file(temporary_path);
        }
    }
}

/// Counts the bytes of a file that are in the page cache.
mod residency {
    use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
    use rustix::fs::{Access, AtFlags, accessat};
    use rustix::io::Errno;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::fs::{File, Metadata};
    use std::io::Error;
    use std::os::unix::fs::MetadataExt;

    /// Number of bytes mapped at once if the kernel has no `cachestat`.
    const WINDOW_BYTES: u64 = 1 << 30;

    /// Bytes of a file in the page cache, from `cachestat`, or from `mincore` before Linux 6.5. `None` if the kernel does
    /// not report them: it does so only for processes that own the file or may write it. For others `cachestat` fails, and
    /// `mincore` reports all pages as resident.
    ///
    /// On overlayfs, `cachestat` reports 0, because the pages belong to a file of another file system. A mapping is of that file, so
    /// `mincore` counts them.
    pub(super) fn resident_bytes(file: &File, metadata: &Metadata) -> Option<u64> {
        let len = metadata.len();
        if len == 0 {
            return Some(0);
        }
        let cached_pages =
            if is_on_overlay(file) { Err(Errno::NOSYS) } else { cached_pages(file.as_fd()) };
        let pages = match cached_pages {
            Ok(pages) => pages,
            Err(Errno::NOSYS) if mincore_is_reliable(file, metadata) => {
                mapped_pages(file.as_fd(), len)?
            }
            Err(_) => return None,
        };
        Some(pages.saturating_mul(rustix::param::page_size() as u64).min(len))
    }

    fn is_on_overlay(file: &File) -> bool {
        rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == libc::OVERLAYFS_SUPER_MAGIC)
    }

    /// Whether `mincore` reports the true state, as decided by `can_do_mincore` in the kernel's mm/mincore.c.
    fn mincore_is_reliable(file: &File, metadata: &Metadata) -> bool {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let may_write =
            || accessat(rustix::fs::CWD, link, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
        // SAFETY: `geteuid` only returns a number.
        let user = unsafe { libc::geteuid() };
        metadata.uid() == user || may_write()
    }

    #[repr(C)]
    #[derive(Default)]
    struct CacheStat {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }

    /// The number of the system call on every architecture.
    const CACHESTAT: libc::c_long = 451;

    fn cached_pages(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
        let whole_file = [0u64; 2];
        let mut stat = CacheStat::default();
        // SAFETY: both structures have the layout of linux/mman.h and live through the call.
        let status = unsafe {
            libc::syscall(CACHESTAT, fd.as_raw_fd(), whole_file.as_ptr(), &raw mut stat, 0)
        };
        if status == 0 {
            return Ok(stat.cached);
        }
        Err(Errno::from_io_error(&Error::last_os_error()).unwrap_or(Errno::INVAL))
    }

    pub(super) fn mapped_pages(fd: BorrowedFd<'_>, len: u64) -> Option<u64> {
        let mut pages = 0;
        let mut offset = 0;
        while offset < len {
            let window = WINDOW_BYTES.min(len - offset);
            pages += window_pages(fd, offset, window as usize)?;
            offset += window;
        }
        Some(pages)
    }

    fn window_pages(fd: BorrowedFd<'_>, offset: u64, len: usize) -> Option<u64> {
        let mut resident = vec![0u8; len.div_ceil(rustix::param::page_size())];
        // SAFETY: a new mapping that nothing reads; `resident` has a byte for each of its pages.
        let status = unsafe {
            let start =
                mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, fd, offset)
                    .ok()?;
            let status = libc::mincore(start, len, resident.as_mut_ptr());
            munmap(start, len).ok()?;
            status
        };
        (status == 0).then(|| resident.iter().filter(|&&page| page & 1 == 1).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cachestat_and_mincore_count_the_same_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, vec![1u8; 1_000_000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let metadata = file.metadata().unwrap();
        let by_cachestat = residency::resident_bytes(&file, &metadata).unwrap();
        let pages = residency::mapped_pages(file.as_fd(), 1_000_000).unwrap();
        assert_eq!(by_cachestat, (pages * rustix::param::page_size() as u64).min(1_000_000));
        assert_eq!(by_cachestat, 1_000_000);
    }
}
