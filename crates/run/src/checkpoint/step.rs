//! The files of checkpoints by their manifests, which are beside their folders: begun, completed, removed, and never confused
//! with files of others. Knows no plan and no format.

use super::manifest::{CheckpointFile, CheckpointManifest, MANIFEST_BYTES_MAX};
use crate::clock::Clock;
use feedrate_data::lock::LOCK_FILE;
use feedrate_data::manifest::FileRun;
use feedrate_data::names::{OwnFileVisit, OwnFiles};
use feedrate_data::removal::{self, FolderContents};
use feedrate_data::storage::{self, NameKind, Storage, StorageError, WriteFile};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const MANIFEST_SUFFIX: &str = ".manifest.json";

/// A checkpoint's folder, and the manifest beside it.
pub(super) struct StepFolder {
    /// Times syncs; `None` where nothing is synced.
    syncs: Option<Clock>,
    /// Time that syncs of folders and manifests took.
    sync_ns: AtomicU64,
    /// The folder of all checkpoints.
    pub(super) root: PathBuf,
    pub(super) epoch: u32,
    pub(super) step: u64,
    pub(super) path: PathBuf,
}

/// Name of the folder of a checkpoint.
pub(super) fn name(epoch: u32, step: u64) -> String {
    format!("global_epoch{epoch}_step{step}")
}

/// Name of the manifest of the checkpoint in the folder of this name.
fn manifest_name(folder: &str) -> String {
    format!(".{folder}{MANIFEST_SUFFIX}")
}

/// The checkpoints in `root`, in order, by names alone: of their folders, or of what lies beside them.
pub(super) fn steps_in(root: &Path) -> Result<BTreeSet<(u32, u64)>, StorageError> {
    let names = storage::open("file", root)?.list("")?;
    let steps = names.iter().filter_map(|name| {
        let hidden = name.strip_prefix('.').and_then(|name| Some(name.split_once('.')?.0));
        let (epoch, step) =
            hidden.unwrap_or(name).strip_prefix("global_epoch")?.split_once("_step")?;
        let numbers = (epoch.parse().ok()?, step.parse().ok()?);
        // `+1` and `01` are numbers too.
        (self::name(numbers.0, numbers.1) == hidden.unwrap_or(name)).then_some(numbers)
    });
    Ok(steps.collect())
}

impl StepFolder {
    pub(super) fn new(syncs: Option<Clock>, root: &Path, epoch: u32, step: u64) -> Self {
        let path = root.join(name(epoch, step));
        StepFolder {
            syncs,
            sync_ns: AtomicU64::new(0),
            root: root.to_path_buf(),
            epoch,
            step,
            path,
        }
    }

    /// The manifest: names the files from the beginning, and says at the end that they are whole.
    pub(super) fn manifest(&self) -> PathBuf {
        self.root.join(manifest_name(&name(self.epoch, self.step)))
    }

    pub(super) fn parse(&self, text: &[u8]) -> Result<CheckpointManifest, String> {
        CheckpointManifest::parse(text, self.epoch, self.step)
    }

    /// The manifest, where there is one of ours: the files that it names may be overwritten and removed.
    pub(super) fn own(&self) -> io::Result<Option<CheckpointManifest>> {
        let manifest = self.manifest();
        match NameKind::at_path(&manifest)? {
            Some(NameKind::File { bytes })
                if bytes <= MANIFEST_BYTES_MAX && self.is_folder()? => {}
            _ => return Ok(None),
        }
        let Ok(mut own) = self.parse(&fs::read(manifest)?) else { return Ok(None) };
        // Names that lead elsewhere are not ours.
        own.files.retain(|name, _| !name.contains('/'));
        Ok(Some(own))
    }

    /// Whether the name of the folder is free, or that of a folder. Links lead to files of others.
    fn is_folder(&self) -> io::Result<bool> {
        Ok(matches!(NameKind::at_path(&self.path)?, None | Some(NameKind::Folder)))
    }

    /// Whatever has a name that is to be written, and is not `own`.
    pub(super) fn strangers(
        &self,
        planned: &BTreeSet<String>,
        own: Option<&CheckpointManifest>,
    ) -> io::Result<Vec<PathBuf>> {
        if !self.is_folder()? {
            return Ok(vec![self.path.clone()]);
        }
        let mut strangers = Vec::new();
        for name in planned {
            let path = self.path.join(name);
            if let Some(kind) = NameKind::at_path(&path)?
                && !own.is_some_and(|own| own.has(name, kind))
            {
                strangers.push(path);
            }
        }
        let manifest = self.manifest();
        if own.is_none() && NameKind::at_path(&manifest)?.is_some() {
            strangers.push(manifest);
        }
        Ok(strangers)
    }

    /// From here on the checkpoint is not whole, and its `planned` files are ours. Those of an older one with other names go.
    pub(super) fn begin(
        &self,
        planned: &BTreeSet<String>,
        own: Option<CheckpointManifest>,
    ) -> io::Result<()> {
        let older = own.map(|own| own.files).unwrap_or_default();
        // Older files keep their lengths, by which a file that somebody else put in their place is known.
        let mut files = older.clone();
        files.extend(planned.iter().map(|name| (name.clone(), None)));
        let begun = CheckpointManifest::new(self.epoch, self.step, files);
        self.write_manifest(&begun)?;
        let storage = self.storage()?;
        let all = OwnCheckpoints::of_step(begun);
        all.remove_unfinished(&*storage).map_err(|error| error.source)?;
        let others = older.into_iter().filter(|(name, _)| !planned.contains(name)).collect();
        let others = CheckpointManifest::new(self.epoch, self.step, others);
        if !others.files.is_empty() {
            let others = OwnCheckpoints::of_step(others);
            removal::remove_files(&others, &*storage).map_err(|error| error.source)?;
        }
        Ok(())
    }

    /// All of `files` are there: now it is whole.
    pub(super) fn complete(&self, files: Vec<(String, CheckpointFile)>) -> io::Result<()> {
        let files = files.into_iter().map(|(name, file)| (name, Some(file))).collect();
        // No storage may keep the manifest's name and lose a file's.
        self.sync_folder(&self.path)?;
        self.write_manifest(&CheckpointManifest::new(self.epoch, self.step, files))?;
        self.sync_folder(&self.root)
    }

    fn write_manifest(&self, manifest: &CheckpointManifest) -> io::Result<()> {
        write_manifest(manifest, &*self.storage()?, |file| self.counted(|| file.sync()))
            .map_err(|error| error.source)
    }

    fn storage(&self) -> io::Result<Box<dyn Storage>> {
        storage::open("file", &self.root).map_err(|error| error.source)
    }

    /// Remove the checkpoint, as far as it is ours.
    pub(super) fn remove(&self) -> io::Result<()> {
        if let Some(own) = self.own()? {
            let storage = self.storage()?;
            OwnCheckpoints::of_step(own).remove(&*storage).map_err(|error| error.source)?;
        }
        Ok(())
    }

    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.counted(|| File::open(folder)?.sync_all())
    }

    /// Time that syncs of folders and manifests took so far.
    pub(super) fn sync_ns(&self) -> u64 {
        self.sync_ns.load(Relaxed)
    }

    fn counted<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.sync_ns.fetch_add(self.timed(sync)?, Relaxed);
        Ok(())
    }

    /// Do `sync` where it is wanted; returns the time that it took.
    pub(super) fn timed<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<u64, E> {
        let Some(clock) = self.syncs else { return Ok(0) };
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
    let file_name = manifest_name(&name(manifest.epoch, manifest.step));
    let text = serde_json::to_vec_pretty(manifest)
        .map_err(|error| StorageError::new("write", Path::new(&file_name), error))?;
    let mut file = storage.create(&file_name)?;
    file.write(&text)?;
    sync(&mut *file)?;
    file.commit()
}

/// The files of checkpoints in one folder, as their manifests name them. The keys are the names of their folders.
#[derive(Default)]
pub(super) struct OwnCheckpoints {
    pub(super) manifests: BTreeMap<String, CheckpointManifest>,
}

impl OwnCheckpoints {
    fn of_step(manifest: CheckpointManifest) -> Self {
        let folder = name(manifest.epoch, manifest.step);
        OwnCheckpoints { manifests: BTreeMap::from([(folder, manifest)]) }
    }

    /// Count them and their manifests, and name a few files of others beside them.
    pub(super) fn look_at(&self, storage: &dyn Storage) -> Result<FolderContents, StorageError> {
        let mut found = removal::inspect_files(self, storage)?;
        for folder in self.manifests.keys() {
            found.files += 1;
            found.bytes += storage.stat(&manifest_name(folder))?.unwrap_or(0);
        }
        Ok(found)
    }

    /// Remove them, and folders that are empty then. The manifests, which say that they are ours, go last.
    pub(super) fn remove(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        self.manifests.values().try_for_each(|manifest| begin_removal(manifest, storage))?;
        removal::remove_files(self, storage)?;
        self.manifests.keys().try_for_each(|folder| storage.remove(&manifest_name(folder)))
    }
}

/// Have the manifest say that its checkpoint is not whole, before the first file goes. Files that somebody else changed are not named.
pub(super) fn begin_removal(
    manifest: &CheckpointManifest,
    storage: &dyn Storage,
) -> Result<(), StorageError> {
    let folder = name(manifest.epoch, manifest.step);
    let mut files = BTreeMap::new();
    for name in manifest.files.keys() {
        if let Some(kind) = storage.kind(&format!("{folder}/{name}"))?
            && manifest.has(name, kind)
        {
            files.insert(name.clone(), None);
        }
    }
    let Some(first) = files.keys().next().cloned() else { return Ok(()) };
    let begun = CheckpointManifest::new(manifest.epoch, manifest.step, files);
    match write_manifest(&begun, storage, |_| Ok(())) {
        // A full device has room for it once a file is gone.
        Err(error) if error.is_full() => {
            storage.remove(&format!("{folder}/{first}"))?;
            write_manifest(&begun, storage, |_| Ok(()))
        }
        written => written,
    }
}

impl OwnFiles for OwnCheckpoints {
    fn folders(&self) -> Vec<String> {
        self.manifests.keys().cloned().collect()
    }

    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        for (folder, manifest) in &self.manifests {
            for (name, file) in &manifest.files {
                let run =
                    file.map(|file| FileRun { files: 1, bytes: file.bytes, data_bytes: None });
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
