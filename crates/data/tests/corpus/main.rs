//! Checks the contract of every reader on every file of `fuzz/corpus`, so that errors found by fuzzing stay fixed, and on
//! mutations of these files. Each format with files has a folder there.

#![expect(clippy::disallowed_methods, reason = "tests list intact folders")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod contract;
mod mutation;

use feedrate_data::format::{FORMATS, Format};
use feedrate_spec::catalog::Ability;
use mutation::{Random, mutate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Upper limit on the memory of a reader for a file of some kilobytes: the largest output of deflate, and buffers.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Mutations of each format's files, unless the environment variable `FEEDRATE_MUTATIONS` gives their number.
const MUTATIONS_DEFAULT: u64 = 200;

/// Held while a reader's memory is measured.
static ALONE: Mutex<()> = Mutex::new(());
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

/// Checks a format's reader on one file, and the memory that it takes.
fn check(format: &Format, input: &[u8], name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = catch_unwind(AssertUnwindSafe(|| contract::check_contract(format, input)));
    assert!(result.is_ok(), "{name}");
    let peak_bytes = PEAK.load(Relaxed) - before;
    assert!(peak_bytes <= MEMORY_BYTES_MAX, "{name}: {peak_bytes} bytes");
}

#[test]
fn every_file_of_the_corpus_satisfies_the_contract() {
    for format in FORMATS.iter().filter(|format| !format.member().has(Ability::NoFiles)) {
        for path in corpus(format.member().name) {
            check(format, &std::fs::read(&path).unwrap(), &path.display().to_string());
        }
    }
}

/// A failure is saved, to be added to the corpus.
#[test]
fn mutated_files_satisfy_the_contract() {
    let mutations = std::env::var("FEEDRATE_MUTATIONS");
    let mutations = mutations.map_or(MUTATIONS_DEFAULT, |text| text.parse().unwrap());
    for format in FORMATS.iter().filter(|format| !format.member().has(Ability::NoFiles)) {
        let name = format.member().name;
        let start = Instant::now();
        let files: Vec<_> = corpus(name).iter().map(|path| std::fs::read(path).unwrap()).collect();
        for (number, original) in (0..mutations).zip(files.iter().cycle()) {
            let mut input = original.clone();
            mutate(&mut input, &mut Random(number));
            let saved = std::env::temp_dir().join(format!("feedrate-{name}-mutation-{number}"));
            std::fs::write(&saved, &input).unwrap();
            check(format, &input, &saved.display().to_string());
            std::fs::remove_file(&saved).unwrap();
        }
        println!("{name}: {mutations} mutations, {:.1} s", start.elapsed().as_secs_f64());
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
