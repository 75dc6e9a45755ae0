//! Reads every file of a dataset and compares every byte, headers and indexes too, with what generation makes.

use crate::content::Content;
use crate::format;
use crate::manifest::{Manifest, ManifestError};
use crate::sink::{CompareSink, Difference, Extent};
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
pub struct Report {
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

/// Reason that a dataset could not be verified at all.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The plan names a format that is not built in.
    #[error("there is no format `{0}`")]
    NoFormat(String),
    /// The storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Its manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its files were made by another version of their format.
    #[error("only the feedrate that made it can compare its files: {0}")]
    OtherVersion(String),
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
) -> Result<Report, VerifyError> {
    let format =
        format::find(&plan.format).ok_or_else(|| VerifyError::NoFormat(plan.format.clone()))?;
    if let Some(version) = Manifest::read(storage)?.and_then(|manifest| manifest.other_version()) {
        return Err(VerifyError::OtherVersion(version));
    }
    let watch = Watch::new(progress, cancel);
    let bad = Mutex::new(Bad::default());
    let parts = format.parts();
    let state = || {
        let sink = CompareSink::new(storage, &watch, parts.len(), Extent::Whole);
        (sink, Content::from_plan(plan), String::new())
    };
    let walked = for_each(layout.files(), threads, &watch, state, |(sink, content, path), file| {
        layout.write_path(file, path);
        content.start(file);
        let difference = sink.compare_file(path, parts, |sink| {
            format.encode(&layout.shape(file), &plan.encoding, content, sink)
        })?;
        if let Some(Difference { part, offset, what }) = difference {
            let mut part_path = String::new();
            parts[part].write_path(path, &mut part_path);
            bad.lock().unwrap_or_else(PoisonError::into_inner).add(BadFile {
                file,
                path: part_path,
                offset,
                what,
            });
        }
        watch.file_done();
        Ok::<(), StorageError>(())
    });
    if !watch.is_cancelled() {
        walked?;
    }
    let Bad { count, first } = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report { files: watch.files(), bytes: watch.bytes(), bad_files: count, bad: first })
}

/// Bad files found so far.
#[derive(Default)]
struct Bad {
    count: u64,
    first: Vec<BadFile>,
}

impl Bad {
    /// Threads find them in any order: the lowest numbers are kept.
    fn add(&mut self, bad: BadFile) {
        self.count += 1;
        let at = self.first.partition_point(|other| other.file < bad.file);
        self.first.insert(at, bad);
        self.first.truncate(NAMED_MAX);
    }
}
