//! Tracks the files of checkpoints with manifests, which are next to the checkpoints' folders. Only files that a manifest names are
//! overwritten or removed; foreign files are kept. Formats and plans are handled elsewhere.

use super::manifest::{CheckpointFile, CheckpointFiles, CheckpointManifest, MANIFEST_BYTES_MAX};
use super::object::{self, io_error};
use crate::clock::Clock;
use feedrate_data::lock::LOCK_FILE;
use feedrate_data::manifest::LengthRun;
use feedrate_data::names::{OwnFileVisit, OwnFiles, VisitedFiles};
use feedrate_data::removal::{self, FolderContents};
use feedrate_data::storage::{self, EntryKind, EntryLookup, Storage, StorageError, WriteFile};
use feedrate_spec::object_url::ObjectUrl;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const MANIFEST_SUFFIX: &str = ".manifest.json";

/// A checkpoint's folder and the manifest beside it.
pub(super) struct StepFolder {
    /// Clock for timing syncs; `None` if nothing is synced.
    sync_clock: Option<Clock>,
    /// Total time of syncs of folders and manifests.
    sync_ns: AtomicU64,
    /// The folder of all checkpoints.
    pub(super) root: PathBuf,
    pub(super) epoch: u32,
    pub(super) step: u64,
    pub(super) path: PathBuf,
}

/// Returns the name of a checkpoint's folder.
pub(super) fn folder_name(epoch: u32, step: u64) -> String {
    format!("global_epoch{epoch}_step{step}")
}

/// Returns the name of the manifest beside the folder `folder`.
fn manifest_name(folder: &str) -> String {
    format!(".{folder}{MANIFEST_SUFFIX}")
}

/// Lists the epoch and step of each checkpoint in `root`, in order. Checkpoints are recognised by names only.
///
/// # Errors
/// The folder cannot be read.
pub fn list_steps(root: &Path) -> Result<BTreeSet<(u32, u64)>, StorageError> {
    let names = storage::open_root(root)?.list("")?;
    Ok(names.iter().filter_map(|name| step_in_name(name)).collect())
}

/// The epoch and step of a checkpoint by the name of its folder, or of the manifest or a temporary file beside it.
pub fn step_in_name(name: &str) -> Option<(u32, u64)> {
    let hidden = name.strip_prefix('.').and_then(|name| Some(name.split_once('.')?.0));
    parse_folder_name(hidden.unwrap_or(name))
}

/// Parses the name of a checkpoint's folder into epoch and step.
fn parse_folder_name(name: &str) -> Option<(u32, u64)> {
    let (epoch, step) = name.strip_prefix("global_epoch")?.split_once("_step")?;
    let numbers = (epoch.parse().ok()?, step.parse().ok()?);
    // Excludes names like `global_epoch01_step+1`, which parse as well.
    (folder_name(numbers.0, numbers.1) == name).then_some(numbers)
}

/// Whether `name` is that of a checkpoint's folder.
pub fn is_folder_name(name: &str) -> bool {
    parse_folder_name(name).is_some()
}

/// Whether a path is the URL of a store, which has no folders and confirms only what is durable.
pub(crate) fn is_in_store(path: &Path) -> bool {
    ObjectUrl::is_written_in(path)
}

impl StepFolder {
    pub(super) fn new(sync_clock: Option<Clock>, root: &Path, epoch: u32, step: u64) -> Self {
        let path = root.join(folder_name(epoch, step));
        StepFolder {
            sync_clock: sync_clock.filter(|_| !is_in_store(root)),
            sync_ns: AtomicU64::new(0),
            root: root.to_path_buf(),
            epoch,
            step,
            path,
        }
    }

    /// Returns the path of the manifest.
    pub(super) fn manifest_path(&self) -> PathBuf {
        self.root.join(manifest_name(&self.folder()))
    }

    /// Parses the text of this checkpoint's manifest.
    pub(super) fn parse(&self, text: &[u8]) -> Result<CheckpointManifest, String> {
        CheckpointManifest::parse(text, self.epoch, self.step)
    }

    /// Returns the name of the folder, relative to the folder of all checkpoints.
    pub(super) fn folder(&self) -> String {
        folder_name(self.epoch, self.step)
    }

    /// Reads the manifest, if there is one written by feedrate. The files that it names may be overwritten and removed.
    pub(super) fn read_manifest(&self) -> io::Result<Option<CheckpointManifest>> {
        let storage = self.storage()?;
        let name = manifest_name(&self.folder());
        match storage.kind(&name).map_err(io_error)? {
            Some(EntryKind::File { bytes })
                if bytes <= MANIFEST_BYTES_MAX && self.is_folder(&*storage)? => {}
            _ => return Ok(None),
        }
        let text = object::read(&*storage, &name, MANIFEST_BYTES_MAX)?;
        let Ok(mut manifest) = self.parse(&text) else { return Ok(None) };
        // Names with a `/` would lead out of the folder.
        manifest.files.retain(|name, _| !name.contains('/'));
        Ok(Some(manifest))
    }

    /// Whether the checkpoint's path does not exist or is a folder. A link is refused, since it may lead to foreign files.
    fn is_folder(&self, storage: &dyn Storage) -> io::Result<bool> {
        if is_in_store(&self.root) {
            return Ok(true);
        }
        let kind = storage.kind(&self.folder()).map_err(io_error)?;
        Ok(matches!(kind, None | Some(EntryKind::Folder)))
    }

    /// Returns existing files that have the name of a planned file or of the manifest and were not written by feedrate.
    pub(super) fn foreign_files(
        &self,
        planned: &BTreeSet<String>,
        manifest: Option<&CheckpointManifest>,
    ) -> io::Result<Vec<PathBuf>> {
        let storage = self.storage()?;
        if !self.is_folder(&*storage)? {
            return Ok(vec![self.path.clone()]);
        }
        let mut foreign = Vec::new();
        let mut entries = EntryLookup::new(&*storage);
        for name in planned {
            let kind = entries.kind(&format!("{}/{name}", self.folder())).map_err(io_error)?;
            if let Some(kind) = kind
                && !manifest.is_some_and(|manifest| manifest.has(name, kind))
            {
                foreign.push(self.path.join(name));
            }
        }
        let manifest_kind = storage.kind(&manifest_name(&self.folder())).map_err(io_error)?;
        if manifest.is_none() && manifest_kind.is_some() {
            foreign.push(self.manifest_path());
        }
        Ok(foreign)
    }

    /// Marks the checkpoint as incomplete and adds the `planned` files to its manifest. Removes files of an `older` checkpoint
    /// that are not planned.
    pub(super) fn begin(
        &self,
        planned: &BTreeSet<String>,
        older: Option<CheckpointManifest>,
    ) -> io::Result<()> {
        let replaces_older = older.is_some();
        let older_files = older.map(|manifest| manifest.files).unwrap_or_default();
        // Older files keep their lengths in the manifest. A different length shows that another file has replaced an older one.
        let mut files = older_files.clone();
        files.extend(planned.iter().map(|name| (name.clone(), None)));
        let incomplete = CheckpointManifest::new(self.epoch, self.step, files);
        self.write_manifest(&incomplete)?;
        let storage = self.storage()?;
        let set = CheckpointSet::from_manifest(incomplete);
        if replaces_older {
            set.remove_unfinished(&*storage).map_err(io_error)?;
        }
        let obsolete_files: CheckpointFiles =
            older_files.into_iter().filter(|(name, _)| !planned.contains(name)).collect();
        if !obsolete_files.is_empty() {
            let obsolete = CheckpointManifest::new(self.epoch, self.step, obsolete_files);
            removal::remove_files(&CheckpointSet::from_manifest(obsolete), &*storage)
                .map_err(io_error)?;
        }
        Ok(())
    }

    /// Marks the checkpoint as complete with `files`, all of which must be written.
    pub(super) fn complete(&self, files: Vec<(String, CheckpointFile)>) -> io::Result<()> {
        let entries = files.into_iter().map(|(name, file)| (name, Some(file))).collect();
        // The names of the files must be durable before the manifest says that they are complete.
        self.sync_folder(&self.path)?;
        self.write_manifest(&CheckpointManifest::new(self.epoch, self.step, entries))?;
        self.sync_folder(&self.root)
    }

    fn write_manifest(&self, manifest: &CheckpointManifest) -> io::Result<()> {
        write_manifest(manifest, &*self.storage()?, |file| self.sync_and_count(|| file.sync()))
            .map_err(io_error)
    }

    pub(super) fn storage(&self) -> io::Result<Box<dyn Storage>> {
        storage::open_root(&self.root).map_err(io_error)
    }

    /// Removes the files that the manifest names, and the manifest. Other files are kept.
    pub(super) fn remove(&self) -> io::Result<()> {
        if let Some(manifest) = self.read_manifest()? {
            let storage = self.storage()?;
            CheckpointSet::from_manifest(manifest).remove(&*storage).map_err(io_error)?;
        }
        Ok(())
    }

    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.sync_and_count(|| File::open(folder)?.sync_all())
    }

    /// Returns the total time of syncs of folders and manifests so far.
    pub(super) fn sync_ns(&self) -> u64 {
        self.sync_ns.load(Relaxed)
    }

    /// Runs `sync` if syncs are configured, and adds its time to the total.
    fn sync_and_count<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.sync_ns.fetch_add(self.time_sync(sync)?, Relaxed);
        Ok(())
    }

    /// Runs `sync` if syncs are configured. Returns the time it took.
    pub(super) fn time_sync<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<u64, E> {
        let Some(clock) = self.sync_clock else { return Ok(0) };
        let start_ns = clock.now_ns();
        sync()?;
        Ok(clock.now_ns() - start_ns)
    }
}

fn write_manifest(
    manifest: &CheckpointManifest,
    storage: &dyn Storage,
    sync: impl FnOnce(&mut dyn WriteFile) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let file_name = manifest_name(&folder_name(manifest.epoch, manifest.step));
    let text = serde_json::to_vec_pretty(manifest)
        .map_err(|error| StorageError::new("write", Path::new(&file_name), error))?;
    let mut file = storage.create(&file_name)?;
    file.write(&text)?;
    sync(&mut *file)?;
    file.commit()
}

/// Checkpoints in one root folder, by the names of their folders.
#[derive(Default)]
pub(super) struct CheckpointSet {
    pub(super) manifests: BTreeMap<String, CheckpointManifest>,
}

impl CheckpointSet {
    fn from_manifest(manifest: CheckpointManifest) -> Self {
        let folder = folder_name(manifest.epoch, manifest.step);
        CheckpointSet { manifests: BTreeMap::from([(folder, manifest)]) }
    }

    /// Counts the files and manifests, and lists a few foreign files beside them.
    pub(super) fn count(&self, storage: &dyn Storage) -> Result<FolderContents, StorageError> {
        let mut found = removal::inspect_files(self, storage)?;
        for folder in self.manifests.keys() {
            found.files += 1;
            found.bytes += storage.stat(&manifest_name(folder))?.unwrap_or(0);
        }
        Ok(found)
    }

    /// Removes the files and folders that become empty. The manifests are removed last, so that an interrupted removal can be resumed.
    pub(super) fn remove(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        self.manifests.values().try_for_each(|manifest| begin_removal(manifest, storage))?;
        removal::remove_files(self, storage)?;
        self.manifests.keys().try_for_each(|folder| storage.remove(&manifest_name(folder)))
    }
}

/// Marks the checkpoint as incomplete in its manifest, before the first file is removed. Files that were changed since they were written
/// are dropped from the manifest.
pub(super) fn begin_removal(
    manifest: &CheckpointManifest,
    storage: &dyn Storage,
) -> Result<(), StorageError> {
    let folder = folder_name(manifest.epoch, manifest.step);
    let mut files = BTreeMap::new();
    let mut entries = EntryLookup::new(storage);
    for name in manifest.files.keys() {
        if let Some(kind) = entries.kind(&format!("{folder}/{name}"))?
            && manifest.has(name, kind)
        {
            files.insert(name.clone(), None);
        }
    }
    let Some(first) = files.keys().next().cloned() else { return Ok(()) };
    let incomplete = CheckpointManifest::new(manifest.epoch, manifest.step, files);
    match write_manifest(&incomplete, storage, |_| Ok(())) {
        // On a full device, removing a file makes space for the manifest.
        Err(error) if error.is_full() => {
            storage.remove(&format!("{folder}/{first}"))?;
            write_manifest(&incomplete, storage, |_| Ok(()))
        }
        written => written,
    }
}

impl OwnFiles for CheckpointSet {
    fn folders(&self) -> Vec<String> {
        self.manifests.keys().cloned().collect()
    }

    fn visit(
        &self,
        _files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError> {
        for (folder, manifest) in &self.manifests {
            for (name, file) in &manifest.files {
                let run =
                    file.map(|file| LengthRun { files: 1, bytes: file.bytes, data_bytes: None });
                visit(&[format!("{folder}/{name}")], run)?;
            }
        }
        Ok(())
    }

    fn has(&self, path: &str) -> bool {
        let Some((folder, name)) = path.split_once('/') else {
            let folder = path.strip_prefix('.').and_then(|name| name.strip_suffix(MANIFEST_SUFFIX));
            return path == LOCK_FILE
                || folder.is_some_and(|name| self.manifests.contains_key(name));
        };
        self.manifests.get(folder).is_some_and(|manifest| manifest.files.contains_key(name))
    }
}
