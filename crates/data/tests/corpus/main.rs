//! Checks the contract of every reader on every file of `fuzz/corpus`, so that errors found by fuzzing stay fixed. Each
//! format with files has a folder there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod contract;

use feedrate_data::format::FORMATS;
use feedrate_spec::catalog::Ability;
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Upper limit on the memory of a reader for a file of some kilobytes: the largest output of deflate, and buffers.
const MEMORY_BYTES_MAX: usize = 64 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct TrackingAllocator;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for TrackingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }
}

#[global_allocator]
static TRACKING: TrackingAllocator = TrackingAllocator;

/// The files of a format's corpus, by name.
fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let missing =
        |error| panic!("`{name}` has no corpus: {error}\n  hint: create {}", folder.display());
    let entries = folder.read_dir().unwrap_or_else(missing);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "`{name}` has no file in {}", folder.display());
    paths
}

#[test]
fn every_file_of_the_corpus_satisfies_the_contract() {
    for format in FORMATS.iter().filter(|format| !format.member().has(Ability::NoFiles)) {
        for path in corpus(format.member().name) {
            let input = std::fs::read(&path).unwrap();
            let before = LIVE.load(Relaxed);
            PEAK.store(before, Relaxed);
            let result =
                catch_unwind(AssertUnwindSafe(|| contract::check_contract(format, &input)));
            assert!(result.is_ok(), "{}", path.display());
            let peak_bytes = PEAK.load(Relaxed) - before;
            assert!(peak_bytes <= MEMORY_BYTES_MAX, "{}: {peak_bytes} bytes", path.display());
        }
    }
}

#[test]
fn the_corpus_is_small() {
    for format in FORMATS.iter().filter(|format| !format.member().has(Ability::NoFiles)) {
        let paths = corpus(format.member().name);
        let bytes: u64 = paths.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes <= 256 << 10, "{}: {bytes} bytes", format.member().name);
    }
}
