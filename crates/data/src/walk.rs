//! Walks all files of a dataset, or other numbered things, on many threads, in about the order of their numbers.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

/// Progress of a walk, and the wish to end it.
pub struct Watch<'w> {
    progress: &'w (dyn Fn(u64, u64) + Sync),
    cancel: &'w AtomicBool,
    failed: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl<'w> Watch<'w> {
    /// `progress` gets files and bytes done so far, from any thread; `cancel` ends the walk.
    pub fn new(progress: &'w (dyn Fn(u64, u64) + Sync), cancel: &'w AtomicBool) -> Self {
        let (files, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Watch { progress, cancel, failed: AtomicBool::new(false), files, bytes }
    }

    /// That many more bytes are done.
    pub(crate) fn bytes_done(&self, bytes: u64) {
        let bytes = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        (self.progress)(self.files.load(Relaxed), bytes);
    }

    /// One more file is done.
    pub(crate) fn file_done(&self) {
        let files = self.files.fetch_add(1, Relaxed) + 1;
        (self.progress)(files, self.bytes.load(Relaxed));
    }

    /// Files done so far.
    pub(crate) fn files(&self) -> u64 {
        self.files.load(Relaxed)
    }

    /// Bytes done so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Somebody wants the walk to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Relaxed)
    }

    /// The walk is over: cancelled, or failed elsewhere.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.failed.load(Acquire)
    }
}

/// The files that one of several processes makes: each so many-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShare {
    /// Number of this share, from 0.
    pub index: u64,
    /// Processes.
    pub of: u64,
}

impl FileShare {
    /// One process makes all.
    pub const ALL: FileShare = FileShare { index: 0, of: 1 };

    /// The number of `files` in the share.
    pub(crate) fn files(self, files: u64) -> u64 {
        (files + self.of - 1 - self.index) / self.of
    }

    pub(crate) fn file(self, i: u64) -> u64 {
        i * self.of + self.index
    }
}

/// Do `work` for each of `files` files, each thread with a state of its own. The first error ends the walk.
///
/// # Errors
/// The first of `work`.
pub fn for_each<State, Error: Send>(
    files: u64,
    threads: usize,
    watch: &Watch,
    state: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, u64) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicU64::new(0);
    let first_error = Mutex::new(None);
    let walk = || {
        let mut state = state();
        while !watch.is_over() {
            let file = next.fetch_add(1, Relaxed);
            if file >= files {
                break;
            }
            if let Err(error) = work(&mut state, file) {
                // Kept before others are told, who then fail too.
                first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                watch.failed.store(true, Release);
            }
        }
    };
    let helpers = (threads as u64).min(files).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // Where no further thread can be had, fewer do the work.
            if std::thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                break;
            }
        }
        walk();
    });
    let error = first_error.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(()), Err)
}
