//! Processes the numbered files of a dataset on several threads, approximately in ascending order.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

/// Progress and cancellation of a walk.
pub struct Watch<'w> {
    progress: &'w (dyn Fn(u64, u64) + Sync),
    cancel: &'w AtomicBool,
    failed: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl<'w> Watch<'w> {
    /// `progress` is called with the files and bytes done so far, from any thread. Setting `cancel` ends the walk.
    pub fn new(progress: &'w (dyn Fn(u64, u64) + Sync), cancel: &'w AtomicBool) -> Self {
        Watch {
            progress,
            cancel,
            failed: AtomicBool::new(false),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Adds `bytes` to the bytes done.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        let total_bytes = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        (self.progress)(self.files.load(Relaxed), total_bytes);
    }

    /// Adds one file to the files done.
    pub(crate) fn add_file(&self) {
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

    /// Whether the caller has cancelled the walk.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Relaxed)
    }

    /// Whether the walk was cancelled or has failed in another thread.
    pub(crate) fn should_stop(&self) -> bool {
        self.is_cancelled() || self.failed.load(Acquire)
    }
}

/// The files that one of several processes handles: every `count`-th file, beginning with file `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShare {
    /// Number of this share, from 0.
    pub index: u64,
    /// Number of shares.
    pub count: u64,
}

impl FileShare {
    /// One process handles all files.
    pub const ALL: FileShare = FileShare { index: 0, count: 1 };

    /// Number of files in the share, out of `files`.
    pub(crate) fn file_count(self, files: u64) -> u64 {
        (files + self.count - 1 - self.index) / self.count
    }

    /// Number of the share's file `i`.
    pub(crate) fn file_number(self, i: u64) -> u64 {
        i * self.count + self.index
    }
}

/// As [`for_each`], without progress, and to the end.
///
/// # Errors
/// The first error of `work`.
pub fn for_all<State, Error: Send>(
    files: u64,
    threads: usize,
    state: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, u64) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let never = AtomicBool::new(false);
    for_each(files, threads, &Watch::new(&|_, _| {}, &never), state, work)
}

/// Calls `work` with each file number below `files`. Each thread has a separate state, created by `state`. The first
/// error ends the walk.
///
/// # Errors
/// The first error of `work`.
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
        while !watch.should_stop() {
            let file = next.fetch_add(1, Relaxed);
            if file >= files {
                break;
            }
            if let Err(error) = work(&mut state, file) {
                // Store the error before other threads see the flag, since they may fail with follow-up errors.
                first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                watch.failed.store(true, Release);
            }
        }
    };
    let helpers = (threads as u64).min(files).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // If the system provides no further thread, fewer threads do the work.
            if std::thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                break;
            }
        }
        walk();
    });
    let error = first_error.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(()), Err)
}
