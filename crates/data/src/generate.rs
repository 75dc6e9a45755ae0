//! Makes the files of a dataset on all cores. A generation that was broken off is continued; a file is visible
//! only once it is whole.

pub use crate::foreign::{
    FoundSamples, Probe, Probed, UnfitFiles, files_there, find_samples, probe_foreign,
};
pub use crate::walk::{FileShare, Watch};

use crate::content::Content;
use crate::error::DatasetError;
use crate::manifest::{MadeOn, Manifest, State};
use crate::names::{FileNames, OwnFiles, first_in};
use crate::removal;
use crate::sink::{CompareSink, Extent, FirstDifference, WriteSink};
use crate::storage::{NameKind, Storage};
use crate::walk::for_each;
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Result of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// Files made.
    pub files_written: u64,
    /// Those of them that were there and not as they are made: a generation was broken off.
    pub files_mended: u64,
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
            files_mended: sum.files_mended + part.files_mended,
            files_kept: sum.files_kept + part.files_kept,
            bytes_written: sum.bytes_written + part.bytes_written,
            bytes_kept: sum.bytes_kept + part.bytes_kept,
        })
    }
}

/// Make what is missing of the dataset of `plan`. `progress` gets files and bytes done so far, from any thread;
/// `cancel` ends it early.
///
/// # Errors
/// See [`DatasetError`]. Whole files stay, and are kept by the next generation.
pub fn generate(
    plan: &DatasetPlan,
    layout: &Layout,
    storage: &dyn Storage,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
    cancel: &AtomicBool,
) -> Result<Generated, DatasetError> {
    let Some(generation) = Generation::new(plan, layout, storage)? else {
        return Ok(Generated::default());
    };
    let begun = generation.prepare()?;
    let made = generation.make(begun, FileShare::ALL, threads, &Watch::new(progress, cancel))?;
    generation.complete(made, Vec::new())?;
    Ok(made)
}

/// Whether files may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begun {
    /// Nothing is there.
    Now,
    /// A generation was broken off.
    Before,
    /// All were there once: none that has changed since is written over.
    Whole,
    /// All are there, made by an older version of their format: they are kept as they are.
    Older,
}

/// A generation in its steps, so that several processes can share it: one prepares, each makes its share, one completes.
pub struct Generation<'g> {
    names: FileNames<'g>,
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
    ) -> Result<Option<Self>, DatasetError> {
        let names = FileNames::new(plan, layout)?;
        let has_files = !names.format.member().has(Ability::NoFiles);
        Ok(has_files.then_some(Generation { names, storage }))
    }

    /// Refuse what lies there and is not this dataset. Writes and removes nothing.
    ///
    /// # Errors
    /// See [`DatasetError`].
    pub fn look(&self) -> Result<Begun, DatasetError> {
        match Manifest::read(self.storage)? {
            // Nothing of ours can lie there.
            None => match first_in(self.storage, &self.names.folders())? {
                Some(path) => Err(DatasetError::Strangers { path }),
                None => Ok(Begun::Now),
            },
            Some(manifest) => {
                let differences = manifest.differences(self.names.plan);
                if !differences.is_empty() {
                    return Err(DatasetError::OtherDataset { differences });
                }
                if manifest.other_version().is_some() {
                    return match removal::first_not_whole(&manifest, self.storage)? {
                        Some(path) => Err(DatasetError::OlderIncomplete { path }),
                        None => Ok(Begun::Older),
                    };
                }
                let was_whole = manifest.state == State::Complete || manifest.removing;
                Ok(if was_whole { Begun::Whole } else { Begun::Before })
            }
        }
    }

    /// Refuse what cannot work before anything is written or removed, then say in a manifest what is being made.
    /// The caller holds the dataset's lock.
    ///
    /// # Errors
    /// See [`DatasetError`].
    pub fn prepare(&self) -> Result<Begun, DatasetError> {
        let begun = self.look()?;
        if begun == Begun::Older {
            return Ok(begun);
        }
        self.storage.make_dir("")?;
        self.check_space(begun)?;
        self.names.sweep(self.storage)?;
        if begun != Begun::Whole {
            self.manifest().write(self.storage)?;
        }
        for folder in self.names.folders() {
            self.storage.make_dir(&folder)?;
        }
        Ok(begun)
    }

    fn manifest(&self) -> Manifest {
        Manifest::new(self.names.plan, self.names.layout, self.names.format)
    }

    fn check_space(&self, begun: Begun) -> Result<(), DatasetError> {
        let Some(free_bytes) = self.storage.free_bytes()? else { return Ok(()) };
        let mut needed_bytes = self.manifest().total_bytes;
        if needed_bytes > free_bytes && begun != Begun::Now {
            needed_bytes =
                needed_bytes.saturating_sub(self.names.lengths_there(self.storage)?.bytes);
        }
        if needed_bytes > free_bytes {
            return Err(DatasetError::NoSpace { needed_bytes, free_bytes });
        }
        Ok(())
    }

    /// Make the files of `share`, and have them on the device.
    ///
    /// # Errors
    /// See [`DatasetError`]. Whole files stay, and are kept by the next generation.
    pub fn make(
        &self,
        begun: Begun,
        share: FileShare,
        threads: usize,
        watch: &Watch,
    ) -> Result<Generated, DatasetError> {
        let Generation { names, storage } = *self;
        let files = share.files(names.layout.files());
        if begun == Begun::Older {
            return self.kept(share);
        }
        let [files_kept, bytes_kept, files_mended] = [0; 3].map(AtomicU64::new);
        let memory = || {
            let writer = WriteSink::new(storage, watch, names.format.parts);
            let comparer = CompareSink::new(storage, watch, names.format.parts, Extent::Ends);
            (Content::from_plan(names.plan), writer, comparer, String::new())
        };
        let made =
            for_each(files, threads, watch, memory, |(content, writer, comparer, path), i| {
                let file = share.file(i);
                names.layout.write_path(file, path);
                // A file of a generation before is kept if its length is right, and both of its ends are.
                let difference = match begun {
                    Begun::Now => None,
                    _ => comparer.compare(path, |sink| names.encode(file, content, sink))?,
                };
                let is_there = begun != Begun::Now && difference.is_none();
                if let Some(FirstDifference { what, is_missing: false, .. }) = difference {
                    if begun == Begun::Whole {
                        return Err(DatasetError::Altered { path: path.clone(), what });
                    }
                    files_mended.fetch_add(1, Relaxed);
                }
                if is_there {
                    files_kept.fetch_add(1, Relaxed);
                    bytes_kept.fetch_add(comparer.bytes(), Relaxed);
                    watch.bytes_done(comparer.bytes());
                } else {
                    if begun != Begun::Now {
                        self.refuse_link(path)?;
                    }
                    writer.write_file(path, |sink| names.encode(file, content, sink))?;
                }
                watch.file_done();
                Ok::<(), DatasetError>(())
            });
        if watch.is_cancelled() && watch.files() < files {
            let (done, share) = (watch.files(), Some(share).filter(|share| share.of > 1));
            return Err(DatasetError::Cancelled { files: done, files_total: files, share });
        }
        made?;
        storage.sync_all()?;
        let (files_kept, bytes_kept) = (files_kept.into_inner(), bytes_kept.into_inner());
        let (files_written, bytes_written) = (files - files_kept, watch.bytes() - bytes_kept);
        let files_mended = files_mended.into_inner();
        Ok(Generated { files_written, files_mended, files_kept, bytes_written, bytes_kept })
    }

    /// A link that leads nowhere looks like nothing, and is somebody's all the same.
    fn refuse_link(&self, path: &str) -> Result<(), DatasetError> {
        let mut part_path = String::new();
        for part in self.names.format.parts {
            part.write_path(path, &mut part_path);
            if self.storage.kind(&part_path)? == Some(NameKind::Other) {
                let what = "no file, but a link or a device".to_string();
                return Err(DatasetError::Altered { path: part_path, what });
            }
        }
        Ok(())
    }

    /// The files of `share`, none of which is made again.
    fn kept(&self, share: FileShare) -> Result<Generated, DatasetError> {
        let Generation { names, storage } = *self;
        let files_kept = share.files(names.layout.files());
        let (mut path, mut part_path, mut bytes_kept) = (String::new(), String::new(), 0);
        for file in (0..files_kept).map(|i| share.file(i)) {
            names.layout.write_path(file, &mut path);
            for part in names.format.parts {
                part.write_path(&path, &mut part_path);
                bytes_kept += storage.stat(&part_path)?.unwrap_or(0);
            }
        }
        Ok(Generated { files_kept, bytes_kept, ..Generated::default() })
    }

    /// All shares are made, on these machines: look at the lengths of all files, and say so in the manifest.
    ///
    /// # Errors
    /// They are not as long as they were made, or the manifest cannot be written.
    pub fn complete(&self, made: Generated, made_on: Vec<MadeOn>) -> Result<(), DatasetError> {
        let total_bytes = made.bytes_written + made.bytes_kept;
        let there = self.names.lengths_there(self.storage)?;
        if there.bytes != total_bytes {
            return Err(DatasetError::Changed { there_bytes: there.bytes, total_bytes });
        }
        if Manifest::read(self.storage)?.is_some_and(|there| there.other_version().is_some()) {
            // An older dataset that was kept: it stays what its manifest says.
            return Ok(());
        }
        let complete = State::Complete;
        Manifest { state: complete, total_bytes, files: there.files, made_on, ..self.manifest() }
            .write(self.storage)?;
        Ok(())
    }
}
