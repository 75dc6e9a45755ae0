//! Reads every file of a dataset and compares every byte, headers and indexes too, with what generation makes.

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

/// Bad files that are named.
const NAMED_MAX: usize = 10;

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files looked at.
    pub files: u64,
    /// Bytes compared.
    pub bytes: u64,
    /// Files that are not what they should be.
    pub bad_files: u64,
    /// The first of them, at most ten, in the files' order.
    pub bad: Vec<BadFile>,
}

/// A file that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// Number of the dataset file.
    pub file: u64,
    /// Relative to the dataset's folder, with the suffix of the bad part.
    pub path: String,
    /// Where it first differs; `None` where the file as a whole is meant.
    pub offset: Option<u64>,
    /// A lowercase fragment.
    pub what: String,
}

/// Compare every byte of the dataset of `plan`. `progress` gets files and bytes done so far, from any thread;
/// `cancel` ends it early, with a report of the files looked at.
///
/// # Errors
/// There is no such format. Files that are missing, unreadable or wrong are in the report.
pub fn verify(
    plan: &DatasetPlan,
    layout: &Layout,
    storage: &dyn Storage,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
    cancel: &AtomicBool,
) -> Result<Verified, DatasetError> {
    let names = FileNames::new(plan, layout)?;
    if let Some(version) = Manifest::read(storage)?.and_then(|manifest| manifest.other_version()) {
        return Err(DatasetError::OtherVersion(version));
    }
    let watch = Watch::new(progress, cancel);
    let bad = Mutex::new(Verified::default());
    let parts = names.format.parts;
    let memory = || {
        let sink = CompareSink::new(storage, &watch, parts, Extent::Whole);
        (sink, Content::from_plan(plan), String::new())
    };
    let walked =
        for_each(layout.files(), threads, &watch, memory, |(sink, content, path), file| {
            layout.write_path(file, path);
            let difference = sink.compare(path, |sink| names.encode(file, content, sink))?;
            if let Some(FirstDifference { part, offset, what, .. }) = difference {
                let mut part_path = String::new();
                parts[part].write_path(path, &mut part_path);
                let file = BadFile { file, path: part_path, offset, what };
                bad.lock().unwrap_or_else(PoisonError::into_inner).add(file);
            }
            watch.file_done();
            Ok::<(), StorageError>(())
        });
    if !watch.is_cancelled() {
        walked?;
    }
    let bad = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Verified { files: watch.files(), bytes: watch.bytes(), ..bad })
}

impl Verified {
    /// Threads find bad files in any order: the lowest numbers are kept.
    fn add(&mut self, bad: BadFile) {
        self.bad_files += 1;
        let at = self.bad.partition_point(|other| other.file < bad.file);
        self.bad.insert(at, bad);
        self.bad.truncate(NAMED_MAX);
    }
}
