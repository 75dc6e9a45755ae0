//! Verifies a dataset: compares every byte of every file, including headers and indexes, with the generated content.

use crate::content::Content;
use crate::error::DatasetError;
use crate::manifest::Manifest;
use crate::names::FileNames;
use crate::sink::{CompareSink, Extent, FirstDifference};
use crate::storage::{Storage, StorageError};
use crate::walk::{Watch, for_each};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// Upper limit on the bad files that are reported.
const REPORTED_MAX: usize = 10;

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationResult {
    /// Files compared.
    pub files: u64,
    /// Bytes compared.
    pub bytes: u64,
    /// Files compared that are correct.
    pub correct_files: u64,
    /// Files that differ from the generated ones, including missing files that were not compared.
    pub bad_files: u64,
    /// The first of these files, at most ten, by file number.
    pub bad: Vec<BadFile>,
}

/// A file that differs from the generated one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// Number of the dataset file.
    pub file: u64,
    /// Path relative to the dataset's folder, with the suffix of the bad part.
    pub path: String,
    /// Offset of the first difference; `None` if the difference concerns the whole file.
    pub offset: Option<u64>,
    /// The difference, a lowercase fragment.
    pub difference: String,
}

/// Compares every byte of the dataset of `plan`. `progress` is called with the files and bytes done so far, from any
/// thread. Setting `cancel` ends the verification early; the result covers the files compared so far.
///
/// # Errors
/// The format is unknown or has another version. Missing, unreadable and wrong files are not errors but part of the
/// result.
pub fn verify(
    plan: &DatasetPlan,
    layout: &Layout,
    storage: &dyn Storage,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
    cancel: &AtomicBool,
) -> Result<VerificationResult, DatasetError> {
    let names = FileNames::new(plan, layout)?;
    if let Some(version) = Manifest::read(storage)?.and_then(|manifest| manifest.other_version()) {
        return Err(DatasetError::OtherVersion(version));
    }
    let watch = Watch::new(progress, cancel);
    let bad = Mutex::new(VerificationResult::default());
    let parts = names.format.parts;
    let thread_state = || {
        let sink = CompareSink::new(storage, &watch, parts, Extent::Whole);
        (sink, Content::from_plan(plan), String::new())
    };
    // The plan may have far more files than there are. Of the missing ones, only those to report are compared.
    let existing = names.existing_files(storage)?;
    let missing = missing_files(&existing, layout.files()).take(REPORTED_MAX);
    let files: Vec<u64> = existing.iter().copied().chain(missing).collect();
    let uncompared_count = layout.files() - files.len() as u64;
    let count = files.len() as u64;
    let result = for_each(count, threads, &watch, thread_state, |(sink, content, path), number| {
        let file = files[number as usize];
        layout.write_path(file, path);
        let difference = sink.compare(path, |sink| names.encode(file, content, sink))?;
        if let Some(FirstDifference { part, offset, description, .. }) = difference {
            let mut part_path = String::new();
            parts[part].write_path(path, &mut part_path);
            let bad_file = BadFile { file, path: part_path, offset, difference: description };
            bad.lock().unwrap_or_else(PoisonError::into_inner).add(bad_file);
        }
        watch.add_file();
        Ok::<(), StorageError>(())
    });
    if !watch.is_cancelled() {
        result?;
    }
    let mut bad = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    let files = watch.files();
    let correct_files = files - bad.bad_files;
    bad.bad_files += uncompared_count;
    Ok(VerificationResult { files, bytes: watch.bytes(), correct_files, ..bad })
}

/// The numbers below `count` that are not in `existing`, which is sorted.
fn missing_files(existing: &[u64], count: u64) -> impl Iterator<Item = u64> {
    let mut existing = existing.iter().copied().peekable();
    (0..count).filter(move |file| existing.next_if_eq(file).is_none())
}

impl VerificationResult {
    /// Adds a bad file. Threads find bad files in any order; the ones with the lowest numbers are kept.
    fn add(&mut self, bad_file: BadFile) {
        self.bad_files += 1;
        let position = self.bad.partition_point(|other| other.file < bad_file.file);
        self.bad.insert(position, bad_file);
        self.bad.truncate(REPORTED_MAX);
    }
}
