//! Makes the files of a dataset on all cores. A generation that was broken off is continued; a file is visible
//! only once it is whole.

pub use crate::foreign::{ForeignError, Probe, Probed, probe_foreign};

use crate::content::Content;
use crate::manifest::{Manifest, ManifestError, State};
use crate::names::{Names, first_stranger};
use crate::sink::{CompareSink, Extent, WriteSink};
use crate::storage::{Storage, StorageError};
pub use crate::walk::Watch;
use crate::walk::for_each;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Result of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// Files made.
    pub files_written: u64,
    /// Files that were there already.
    pub files_kept: u64,
    /// Bytes of the files made.
    pub bytes_written: u64,
    /// Bytes of those that were there.
    pub bytes_kept: u64,
}

impl std::iter::Sum for Generated {
    fn sum<I: Iterator<Item = Generated>>(parts: I) -> Self {
        parts.fold(Generated::default(), |sum, part| Generated {
            files_written: sum.files_written + part.files_written,
            files_kept: sum.files_kept + part.files_kept,
            bytes_written: sum.bytes_written + part.bytes_written,
            bytes_kept: sum.bytes_kept + part.bytes_kept,
        })
    }
}

/// Reason that a dataset was not made.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The plan names a format that is not built in.
    #[error("there is no format `{0}`")]
    NoFormat(String),
    /// The storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The manifest cannot be read or written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Another dataset lies there.
    #[error("a dataset of other settings lies there:\n  {}", .differences.join("\n  "))]
    OtherDataset {
        /// The differences, one line a setting.
        differences: Vec<String>,
    },
    /// Files lie there that this tool did not make.
    #[error("`{path}` lies there, and no manifest says that feedrate made it")]
    Strangers {
        /// One of them, relative to the dataset's folder.
        path: String,
    },
    /// The device is too small.
    #[error("the dataset needs {}, but only {} are free", units::bytes(*.needed_bytes), units::bytes(*.free_bytes))]
    NoSpace {
        /// Still to be written.
        needed_bytes: u64,
        /// Bytes free on the device.
        free_bytes: u64,
    },
    /// Somebody else has its lock, and nobody wanted to wait any longer.
    #[error("interrupted while waiting for {}", .holder.as_deref().unwrap_or("runs that read the dataset"))]
    Busy {
        /// The holder, as in [`crate::lock::Attempt::Busy`].
        holder: Option<String>,
    },
    /// Somebody else changed files meanwhile.
    #[error(
        "its files have {} where {} were made: somebody else has changed them", units::bytes(*.there_bytes), units::bytes(*.total_bytes)
    )]
    Changed {
        /// Length of all files, as they are.
        there_bytes: u64,
        /// Length of all files, as they were made.
        total_bytes: u64,
    },
    /// Somebody wanted it to end. What was made is kept.
    #[error(
        "interrupted after {files} of {files_total} files{}; the next generation goes on from there", of_part(*part)
    )]
    Cancelled {
        /// Files that are complete.
        files: u64,
        /// Files of the dataset, or of the part.
        files_total: u64,
        /// Made here, where others make the rest.
        part: Option<Part>,
    },
}

impl GenerateError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            GenerateError::Storage(error)
            | GenerateError::Manifest(ManifestError::Storage(error)) => error.hint(),
            GenerateError::Manifest(ManifestError::Broken { .. }) => Some(
                "remove the dataset's folder, or point `--data` (`dataset.data_folder`) elsewhere",
            ),
            GenerateError::OtherDataset { .. } => Some(
                "point `--data` (`dataset.data_folder`) elsewhere, or change the workload to what lies there",
            ),
            GenerateError::Strangers { .. } => Some(
                "`feedrate run --foreign`, or `dlio_benchmark` without `generate_data`, reads the files as they are; else point `--data` (`dataset.data_folder`) elsewhere",
            ),
            GenerateError::NoSpace { .. } => Some(
                "free space on the device, point `--data` (`dataset.data_folder`) elsewhere, or use fewer files (`--scale`, `dataset.num_files_train`)",
            ),
            GenerateError::Changed { .. } => Some("generate it again: what is right is kept"),
            GenerateError::NoFormat(_)
            | GenerateError::Busy { .. }
            | GenerateError::Cancelled { .. } => None,
        }
    }
}

fn of_part(part: Option<Part>) -> String {
    part.map_or_else(String::new, |part| format!(" of process {}, one of {}", part.index, part.of))
}

/// Make what is missing of the dataset of `plan`. `progress` gets files and bytes done so far, from any thread;
/// `cancel` ends it early.
///
/// # Errors
/// See [`GenerateError`]. Whole files stay, and are kept by the next generation.
pub fn generate(
    plan: &DatasetPlan,
    layout: &Layout,
    storage: &dyn Storage,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
    cancel: &AtomicBool,
) -> Result<Generated, GenerateError> {
    let Some(generation) = Generation::new(plan, layout, storage)? else {
        return Ok(Generated::default());
    };
    let begun = generation.prepare()?;
    let made = generation.make(begun, Part::ALL, threads, &Watch::new(progress, cancel))?;
    generation.complete(made)?;
    Ok(made)
}

/// Whether files may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begun {
    /// Nothing is there.
    Now,
    /// A generation was broken off.
    Before,
}

/// The files that one of several processes makes: each so many-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of this part, from 0.
    pub index: u64,
    /// Processes.
    pub of: u64,
}

impl Part {
    /// One process makes all.
    pub const ALL: Part = Part { index: 0, of: 1 };

    /// The number of `files` in the part.
    fn files(self, files: u64) -> u64 {
        (files + self.of - 1 - self.index) / self.of
    }

    fn file(self, i: u64) -> u64 {
        i * self.of + self.index
    }
}

/// A generation in its steps, so that several processes can share it: one prepares, each makes its part, one completes.
pub struct Generation<'g> {
    names: Names<'g>,
    storage: &'g dyn Storage,
}

impl<'g> Generation<'g> {
    /// `None` where there are no files to make.
    ///
    /// # Errors
    /// There is no such format.
    pub fn new(
        plan: &'g DatasetPlan,
        layout: &'g Layout,
        storage: &'g dyn Storage,
    ) -> Result<Option<Self>, GenerateError> {
        let names = Names::new(plan, layout);
        let names = names.ok_or_else(|| GenerateError::NoFormat(plan.format.clone()))?;
        let has_files = !names.format.member().has(Ability::NoFiles);
        Ok(has_files.then_some(Generation { names, storage }))
    }

    /// Refuse what cannot work before anything is written or removed, then say in a manifest what is being made.
    /// The caller holds the dataset's lock.
    ///
    /// # Errors
    /// See [`GenerateError`].
    pub fn prepare(&self) -> Result<Begun, GenerateError> {
        let folders = self.names.folders();
        let begun = match Manifest::read(self.storage)? {
            // Nothing of ours can lie there.
            None => match first_stranger(self.storage, &folders, |_| false)? {
                Some(path) => return Err(GenerateError::Strangers { path }),
                None => Begun::Now,
            },
            Some(manifest) => {
                let mut differences = manifest.differences(self.names.plan);
                if differences.is_empty() {
                    differences.extend(manifest.other_version());
                }
                if !differences.is_empty() {
                    return Err(GenerateError::OtherDataset { differences });
                }
                Begun::Before
            }
        };
        self.storage.make_dir("")?;
        self.check_space(begun)?;
        self.names.sweep(self.storage)?;
        self.manifest().write(self.storage)?;
        for folder in &folders {
            self.storage.make_dir(folder)?;
        }
        Ok(begun)
    }

    fn manifest(&self) -> Manifest {
        Manifest::new(self.names.plan, self.names.layout, self.names.format)
    }

    fn check_space(&self, begun: Begun) -> Result<(), GenerateError> {
        let Some(free_bytes) = self.storage.free_bytes()? else { return Ok(()) };
        let mut needed_bytes = self.manifest().total_bytes;
        if needed_bytes > free_bytes && begun == Begun::Before {
            needed_bytes = needed_bytes.saturating_sub(self.bytes_there()?);
        }
        if needed_bytes > free_bytes {
            return Err(GenerateError::NoSpace { needed_bytes, free_bytes });
        }
        Ok(())
    }

    fn bytes_there(&self) -> Result<u64, StorageError> {
        let mut bytes = 0u64;
        self.names.each(|path| {
            bytes = bytes.saturating_add(self.storage.stat(path)?.unwrap_or(0));
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Make the files of `part`, and have them on the device.
    ///
    /// # Errors
    /// See [`GenerateError`]. Whole files stay, and are kept by the next generation.
    pub fn make(
        &self,
        begun: Begun,
        part: Part,
        threads: usize,
        watch: &Watch,
    ) -> Result<Generated, GenerateError> {
        let files = part.files(self.names.layout.files());
        let (files_kept, bytes_kept) = (AtomicU64::new(0), AtomicU64::new(0));
        let made = for_each(
            files,
            threads,
            watch,
            || Maker::new(self, watch),
            |maker, i| {
                let file = part.file(i);
                maker.layout_path(file);
                let there = if begun == Begun::Before { maker.bytes_there(file)? } else { None };
                if let Some(bytes) = there {
                    files_kept.fetch_add(1, Relaxed);
                    bytes_kept.fetch_add(bytes, Relaxed);
                    watch.bytes_done(bytes);
                } else {
                    maker.write(file)?;
                }
                watch.file_done();
                Ok(())
            },
        );
        if watch.is_cancelled() && watch.files() < files {
            let (done, part) = (watch.files(), Some(part).filter(|part| part.of > 1));
            return Err(GenerateError::Cancelled { files: done, files_total: files, part });
        }
        made.map_err(GenerateError::Storage)?;
        self.storage.sync_all()?;
        let (files_kept, bytes_kept) = (files_kept.into_inner(), bytes_kept.into_inner());
        let (files_written, bytes_written) = (files - files_kept, watch.bytes() - bytes_kept);
        Ok(Generated { files_written, files_kept, bytes_written, bytes_kept })
    }

    /// All parts are made: look at the lengths of all files, and say so in the manifest.
    ///
    /// # Errors
    /// They are not as long as they were made, or the manifest cannot be written.
    pub fn complete(&self, made: Generated) -> Result<(), GenerateError> {
        let total_bytes = made.bytes_written + made.bytes_kept;
        let there_bytes = self.bytes_there()?;
        if there_bytes != total_bytes {
            return Err(GenerateError::Changed { there_bytes, total_bytes });
        }
        Manifest { state: State::Complete, total_bytes, ..self.manifest() }.write(self.storage)?;
        Ok(())
    }
}

/// Memory of one thread.
struct Maker<'g> {
    generation: &'g Generation<'g>,
    content: Content,
    writer: WriteSink<'g>,
    comparer: CompareSink<'g>,
    path: String,
}

impl<'g> Maker<'g> {
    fn new(generation: &'g Generation<'g>, watch: &'g Watch<'g>) -> Self {
        let parts = generation.names.format.parts().len();
        let storage = generation.storage;
        Maker {
            generation,
            content: Content::from_plan(generation.names.plan),
            writer: WriteSink::new(watch, parts),
            comparer: CompareSink::new(storage, watch, parts, Extent::Ends),
            path: String::new(),
        }
    }

    fn layout_path(&mut self, file: u64) {
        self.generation.names.layout.write_path(file, &mut self.path);
        self.content.start(file);
    }

    /// The file's bytes, if it is there, of the right length, and right at both ends.
    fn bytes_there(&mut self, file: u64) -> Result<Option<u64>, StorageError> {
        let Names { format, layout, plan } = self.generation.names;
        let shape = layout.shape(file);
        let difference = self.comparer.compare_file(&self.path, format.parts(), |sink| {
            format.encode(&shape, &plan.encoding, &mut self.content, sink)
        })?;
        Ok(difference.is_none().then(|| self.comparer.bytes()))
    }

    fn write(&mut self, file: u64) -> Result<(), StorageError> {
        let Generation { names: Names { format, layout, plan }, storage } = self.generation;
        let shape = layout.shape(file);
        let written = self
            .writer
            .begin(*storage, &self.path, format.parts())
            .and_then(|()| {
                format.encode(&shape, &plan.encoding, &mut self.content, &mut self.writer)
            })
            .and_then(|()| self.writer.commit());
        if written.is_err() {
            self.writer.abandon();
        }
        written
    }
}
