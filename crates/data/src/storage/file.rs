//! A file system, read by one of the engines.
//!
//! Paths are opened relative to the root's descriptor. A file being
//! written is `.<name>.<process>-<number>.part` until it is committed.

use super::engine::Engine;
use super::{Handle, ReadStorage, Storage, StorageError, StorageKind, WriteFile};
use feedrate_spec::catalog::{Ability, Member};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file is read so much at a time where only the page cache shall have it.
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
    let root_path = root.to_path_buf();
    let file = File { root: Arc::new(Root { path: root_path, fd: OnceLock::new() }), engine };
    match file.root.find() {
        Ok(_) => Ok(Box::new(file)),
        Err(Errno::NOENT) => Ok(Box::new(file)),
        Err(errno) => Err(StorageError::new("open", root, errno)),
    }
}

struct File {
    root: Arc<Root>,
    engine: &'static dyn Engine,
}

struct Root {
    path: PathBuf,
    fd: OnceLock<OwnedFd>,
}

impl Root {
    /// The root's descriptor; the folder may come into being after the storage.
    fn find(&self) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(fd) = self.fd.get() {
            return Ok(fd.as_fd());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(&self.path, flags, Mode::empty())?;
        Ok(self.fd.get_or_init(|| fd).as_fd())
    }

    fn error(&self, action: &'static str, path: &str, source: impl Into<Error>) -> StorageError {
        StorageError::new(action, self.path.join(path), source)
    }

    fn open_to_read(
        &self,
        action: &'static str,
        path: &str,
        flags: OFlags,
    ) -> Result<OwnedFd, StorageError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | flags;
        self.find()
            .and_then(|root| fs::openat(root, path, flags, Mode::empty()))
            .map_err(|errno| self.error(action, path, errno))
    }
}

impl File {
    /// An error with the path of an open file.
    fn error_of(&self, action: &'static str, file: Handle, source: Errno) -> StorageError {
        let link = format!("/proc/self/fd/{}", self.engine.fd(&file).as_raw_fd());
        let path = std::fs::read_link(link).unwrap_or_else(|_| self.root.path.clone());
        StorageError::new(action, path, source)
    }
}

impl ReadStorage for File {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let fd = self.root.open_to_read("open", path, self.engine.flags())?;
        self.engine.adopt(fd).map_err(|errno| self.root.error("open", path, errno))
    }

    fn len(&self, file: Handle) -> Result<u64, StorageError> {
        if let Some(len) = self.engine.len(&file) {
            return Ok(len);
        }
        let stat = fs::fstat(self.engine.fd(&file));
        stat.map(|stat| stat.st_size as u64).map_err(|errno| self.error_of("stat", file, errno))
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        self.engine
            .read_at(file, offset, buffer)
            .map_err(|errno| self.error_of("read", file, errno))
    }

    fn close(&self, file: Handle) {
        self.engine.close(file);
    }
}

impl Storage for File {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn stat(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.root.find().and_then(|root| fs::statat(root, path, AtFlags::empty())) {
            Ok(stat) => Ok(Some(stat.st_size as u64)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.root.error("stat", path, errno)),
        }
    }

    fn make_dir(&self, path: &str) -> Result<(), StorageError> {
        let whole = self.root.path.join(path);
        std::fs::create_dir_all(&whole).map_err(|source| StorageError::new("make", whole, source))
    }

    /// Under a name that no other process writes to.
    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>, StorageError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let process = std::process::id();
        let mut number = 0;
        loop {
            let part = part_path(path, process, number);
            let mode = Mode::from_raw_mode(0o666);
            match self.root.find().and_then(|root| fs::openat(root, &part, flags, mode)) {
                Ok(fd) => {
                    let (root, path) = (Arc::clone(&self.root), path.to_string());
                    return Ok(Box::new(Part { root, fd, path, part, state: State::Partial }));
                }
                Err(Errno::EXIST) => number += 1,
                Err(errno) => return Err(self.root.error("create", path, errno)),
            }
        }
    }

    fn remove(&self, path: &str) -> Result<(), StorageError> {
        match self.root.find().and_then(|root| fs::unlinkat(root, path, AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.root.error("remove", path, errno)),
        }
    }

    fn remove_dir(&self, path: &str) -> Result<(), StorageError> {
        let whole = self.root.path.join(path);
        match std::fs::remove_dir(&whole) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) =>
            {
                Err(StorageError::new("remove", whole, error))
            }
            _ => Ok(()),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, StorageError> {
        let whole = self.root.path.join(path);
        let entries = match std::fs::read_dir(&whole) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StorageError::new("list", whole, error)),
        };
        let names: Result<Vec<String>, Error> =
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
        let mut names = names.map_err(|source| StorageError::new("list", whole, source))?;
        names.sort_unstable();
        Ok(names)
    }

    fn sync_all(&self) -> Result<(), StorageError> {
        self.root.find().and_then(fs::syncfs).map_err(|errno| self.root.error("sync", "", errno))
    }

    fn free_bytes(&self) -> Result<Option<u64>, StorageError> {
        let space = self.root.find().and_then(fs::fstatvfs);
        let space = space.map_err(|errno| self.root.error("stat", "", errno))?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }

    /// Dirty pages cannot be dropped, so they are written first.
    fn evict(&self, path: &str) -> Result<(), StorageError> {
        let fd = self.root.open_to_read("evict", path, OFlags::empty())?;
        fs::fdatasync(&fd)
            .and_then(|()| fs::fadvise(&fd, 0, None, fs::Advice::DontNeed))
            .map_err(|errno| self.root.error("evict", path, errno))
    }

    /// Read, not advised: the kernel may take no notice of advice.
    fn warm(&self, path: &str) -> Result<(), StorageError> {
        let fd = self.root.open_to_read("read", path, OFlags::empty())?;
        let mut piece = vec![0; WARM_PIECE_BYTES];
        loop {
            match rustix::io::read(&fd, &mut piece) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(self.root.error("read", path, errno)),
            }
        }
    }

    fn resident_bytes(&self, path: &str) -> Result<Option<u64>, StorageError> {
        let fd = self.root.open_to_read("open", path, OFlags::empty())?;
        let len =
            fs::fstat(&fd).map_err(|errno| self.root.error("stat", path, errno))?.st_size as u64;
        Ok(residency::resident_bytes(fd.as_fd(), len))
    }
}

/// `train/a.npz` is written as `train/.a.npz.4711-0.part`.
fn part_path(path: &str, process: u32, number: u32) -> String {
    let (folder, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(_, name)| (&path[..path.len() - name.len()], name));
    format!("{folder}.{name}.{process}-{number}.part")
}

#[derive(PartialEq, Eq)]
enum State {
    Partial,
    Committed,
}

struct Part {
    root: Arc<Root>,
    fd: OwnedFd,
    path: String,
    part: String,
    state: State,
}

impl Part {
    fn error(&self, action: &'static str, errno: Errno) -> StorageError {
        self.root.error(action, &self.path, errno)
    }
}

impl WriteFile for Part {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&self.fd, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("write", errno)),
            }
        }
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.fd, &bytes[done..], offset + done as u64) {
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("write", errno)),
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        fs::fsync(&self.fd).map_err(|errno| self.error("sync", errno))
    }

    fn commit(mut self: Box<Self>) -> Result<(), StorageError> {
        self.root
            .find()
            .and_then(|root| fs::renameat(root, &self.part, root, &self.path))
            .map_err(|errno| self.error("write", errno))?;
        self.state = State::Committed;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let (State::Partial, Ok(root)) = (&self.state, self.root.find()) {
            // What cannot be removed still does not look whole.
            let _ = fs::unlinkat(root, &self.part, AtFlags::empty());
        }
    }
}

/// Counts the bytes of a file that are in the page cache.
mod residency {
    use rustix::fd::{AsRawFd, BorrowedFd};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    /// Mapped at once where `cachestat` is missing.
    const WINDOW_BYTES: u64 = 1 << 30;

    /// By `cachestat` (Linux 6.5), else by `mincore`; `None` where neither works.
    pub(super) fn resident_bytes(fd: BorrowedFd<'_>, len: u64) -> Option<u64> {
        if len == 0 {
            return Some(0);
        }
        let pages = cached_pages(fd).or_else(|| mapped_pages(fd, len))?;
        Some(pages.saturating_mul(rustix::param::page_size() as u64).min(len))
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

    fn cached_pages(fd: BorrowedFd<'_>) -> Option<u64> {
        let whole_file = [0u64; 2];
        let mut stat = CacheStat::default();
        // SAFETY: both structures are as linux/mman.h has them, and live through the call.
        let status = unsafe {
            libc::syscall(CACHESTAT, fd.as_raw_fd(), whole_file.as_ptr(), &raw mut stat, 0)
        };
        (status == 0).then_some(stat.cached)
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
    fn both_ways_of_counting_resident_pages_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, vec![1u8; 1_000_000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let by_cachestat = residency::resident_bytes(file.as_fd(), 1_000_000).unwrap();
        let pages = residency::mapped_pages(file.as_fd(), 1_000_000).unwrap();
        assert_eq!(by_cachestat, (pages * rustix::param::page_size() as u64).min(1_000_000));
        assert_eq!(by_cachestat, 1_000_000);
    }
}
