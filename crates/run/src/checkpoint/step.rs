//! The files of one checkpoint, by what lies beside its folder: told from those of others, given up, removed. Knows no plan and no
//! format.

use super::files::FileSystem;
use super::manifest::{BegunCheckpoint, CheckpointFile, CheckpointManifest, MANIFEST_BYTES_MAX};
use crate::clock::Clock;
use feedrate_data::storage::NameKind;
use feedrate_spec::part::part_of;
use feedrate_spec::plan::WriteInterface;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A checkpoint's folder, and what lies beside it.
pub(super) struct StepFolder<'f> {
    pub(super) files: &'f dyn FileSystem,
    /// Tells how long syncs take; `None` where nothing is synced.
    syncs: Option<Clock>,
    /// Waited for syncs of folders and manifests.
    sync_ns: AtomicU64,
    /// That of all checkpoints.
    pub(super) root: PathBuf,
    pub(super) epoch: u32,
    pub(super) step: u64,
    pub(super) path: PathBuf,
}

/// Files that a checkpoint's manifests say are ours.
#[derive(Default)]
pub(super) struct OwnCheckpoint {
    /// Names in its folder, with lengths where they are whole.
    pub(super) files: BTreeMap<String, Option<u64>>,
    /// The manifests.
    pub(super) told_by: Vec<PathBuf>,
}

/// Name of the folder of a checkpoint.
pub(super) fn name(epoch: u32, step: u64) -> String {
    format!("global_epoch{epoch}_step{step}")
}

/// The checkpoints in `root`, in order, by names alone: of their folders, or of what lies beside them.
pub(super) fn steps_in(files: &dyn FileSystem, root: &Path) -> io::Result<BTreeSet<(u32, u64)>> {
    let names = files.list(root)?;
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

impl<'f> StepFolder<'f> {
    pub(super) fn new(
        files: &'f dyn FileSystem,
        syncs: Option<Clock>,
        root: &Path,
        epoch: u32,
        step: u64,
    ) -> Self {
        let path = root.join(name(epoch, step));
        let (root, sync_ns) = (root.to_path_buf(), AtomicU64::new(0));
        StepFolder { files, syncs, sync_ns, root, epoch, step, path }
    }

    /// Another one in the same folder of all.
    pub(super) fn other(&self, epoch: u32, step: u64) -> Self {
        StepFolder::new(self.files, self.syncs, &self.root, epoch, step)
    }

    /// The manifest, which comes last: a checkpoint without it is not whole.
    pub(super) fn manifest(&self) -> PathBuf {
        self.beside("manifest.json")
    }

    /// Names the files of a checkpoint that is not whole, so that another run knows them for ours whenever this one ends.
    fn begun(&self) -> PathBuf {
        self.beside("feedrate-begun.json")
    }

    fn beside(&self, what: &str) -> PathBuf {
        self.root.join(format!(".{}.{what}", name(self.epoch, self.step)))
    }

    pub(super) fn parse(&self, text: &[u8]) -> Result<CheckpointManifest, String> {
        CheckpointManifest::parse(text, self.epoch, self.step)
    }

    /// Files of ours: of a checkpoint that is whole, or was broken off.
    pub(super) fn own(&self) -> io::Result<OwnCheckpoint> {
        let mut own = OwnCheckpoint::default();
        // Links lead to what others have.
        let is_folder = matches!(self.files.kind(&self.path)?, None | Some(NameKind::Folder));
        if !is_folder {
            return Ok(own);
        }
        let begun = self.small(&self.begun())?;
        if let Some(begun) = begun.and_then(|text| serde_json::from_slice(&text).ok()) {
            let BegunCheckpoint { files } = begun;
            own.files.extend(files.into_iter().map(|name| (name, None)));
            own.told_by.push(self.begun());
        }
        let whole = self.small(&self.manifest())?;
        if let Some(whole) = whole.and_then(|text| self.parse(&text).ok()) {
            for (name, file) in whole.files {
                own.files.entry(name).or_insert(Some(file.bytes));
            }
            own.told_by.push(self.manifest());
        }
        // Names that lead elsewhere are nobody's.
        own.files.retain(|name, _| !name.contains('/'));
        Ok(own)
    }

    /// The content of a file that is one, and not too long to be ours.
    fn small(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.files.kind(path)? {
            Some(NameKind::File { bytes }) if bytes <= MANIFEST_BYTES_MAX => {
                let mut text = Vec::new();
                self.files.open(path)?.0.take(bytes).read_to_end(&mut text)?;
                Ok(Some(text))
            }
            _ => Ok(None),
        }
    }

    /// Whatever has a name that is to be written, and is not `own`.
    pub(super) fn strangers(
        &self,
        planned: &BTreeSet<String>,
        own: &OwnCheckpoint,
    ) -> io::Result<Vec<PathBuf>> {
        if !matches!(self.files.kind(&self.path)?, None | Some(NameKind::Folder)) {
            return Ok(vec![self.path.clone()]);
        }
        let mut strangers = Vec::new();
        for name in planned {
            let path = self.path.join(name);
            if let Some(kind) = self.files.kind(&path)?
                && !own.has(name, kind)
            {
                strangers.push(path);
            }
        }
        let manifest = self.manifest();
        if self.files.kind(&manifest)?.is_some() && !own.told_by.contains(&manifest) {
            strangers.push(manifest);
        }
        if !matches!(self.files.kind(&self.begun())?, None | Some(NameKind::File { .. })) {
            strangers.push(self.begun());
        }
        Ok(strangers)
    }

    /// From here on the checkpoint here is not whole, and files of these `names` are ours.
    pub(super) fn give_up(&self, names: BTreeSet<String>, own: &OwnCheckpoint) -> io::Result<()> {
        let begun = self.begun();
        self.replace(&begun, &BegunCheckpoint { files: names }, || Ok(()))?;
        for told in own.told_by.iter().filter(|told| **told != begun) {
            self.remove_file(told)?;
            self.sync_folder(&self.root)?;
        }
        Ok(())
    }

    /// All of `entries` are there: now it is whole.
    pub(super) fn complete(&self, entries: Vec<(String, CheckpointFile)>) -> io::Result<()> {
        let manifest = CheckpointManifest::new(self.epoch, self.step, entries);
        // No storage may keep the manifest's name and lose a file's.
        self.replace(&self.manifest(), &manifest, || self.sync_folder(&self.path))?;
        self.sync_folder(&self.root)?;
        self.remove_file(&self.begun())
    }

    /// Write `content` to `path`, which it gets once it is whole and `before` is done.
    fn replace(
        &self,
        path: &Path,
        content: &impl Serialize,
        before: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(content).map_err(io::Error::other)?;
        let (part, mut output) =
            self.files.create_part(path, text.len() as u64, WriteInterface::Posix)?;
        let written = output
            .write(&text)
            .and_then(|()| self.counted(|| output.sync()))
            .and_then(|()| before());
        self.named(&part, path, written)
    }

    /// Give a file that was written as `part` its name, or remove it where that went wrong.
    pub(super) fn named<T>(
        &self,
        part: &Path,
        path: &Path,
        written: io::Result<T>,
    ) -> io::Result<T> {
        let named = written.and_then(|done| self.files.rename(part, path).map(|()| done));
        if named.is_err() {
            // The first error is the one to tell.
            let _ = self.files.remove(part);
        }
        named
    }

    /// Remove files of `own` that are as they were written, but for those to be `kept`, and what is left of others that were broken off.
    pub(super) fn remove_own(
        &self,
        own: &OwnCheckpoint,
        kept: &BTreeSet<String>,
    ) -> io::Result<()> {
        for name in self.as_written(own)?.difference(kept) {
            self.remove_file(&self.path.join(name))?;
        }
        self.parts(own)?.iter().try_for_each(|part| self.remove_file(part))
    }

    /// Names in the folder that are ours, and nobody has changed.
    fn as_written(&self, own: &OwnCheckpoint) -> io::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for name in own.files.keys() {
            if self.files.kind(&self.path.join(name))?.is_some_and(|kind| own.has(name, kind)) {
                names.insert(name.clone());
            }
        }
        Ok(names)
    }

    /// Files whose writing was broken off.
    fn parts(&self, own: &OwnCheckpoint) -> io::Result<Vec<PathBuf>> {
        let beside = [self.manifest(), self.begun()];
        let inside = own.files.keys().map(|name| self.path.join(name));
        let wholes: BTreeSet<PathBuf> = beside.into_iter().chain(inside).collect();
        let mut parts = Vec::new();
        for folder in [&self.root, &self.path] {
            for name in self.files.list(folder)? {
                let path = folder.join(&name);
                if part_of(&name).is_some_and(|whole| wholes.contains(&folder.join(whole)))
                    && matches!(self.files.kind(&path)?, Some(NameKind::File { .. }))
                {
                    parts.push(path);
                }
            }
        }
        Ok(parts)
    }

    /// All that is ours, of a checkpoint that is whole or was broken off.
    pub(super) fn own_paths(&self) -> io::Result<Vec<PathBuf>> {
        let own = self.own()?;
        let written = self.as_written(&own)?.into_iter().map(|name| self.path.join(name));
        let mut paths: Vec<_> = written.chain(self.parts(&own)?).collect();
        paths.extend(own.told_by);
        Ok(paths)
    }

    /// Remove the checkpoint, as far as it is ours: broken off at any moment, what is left does not look whole, and is known for ours.
    /// Then the folder goes, where nothing else is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        let own = self.own()?;
        if own.told_by.is_empty() {
            return Ok(());
        }
        self.give_up(self.as_written(&own)?, &own)?;
        self.remove_own(&own, &BTreeSet::new())?;
        self.files.remove_empty_folder(&self.path)?;
        self.remove_file(&self.begun())
    }

    /// Remove a file that may not be there.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self.files.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.counted(|| self.files.sync_folder(folder))
    }

    /// How long syncs of folders and manifests have taken so far.
    pub(super) fn sync_ns(&self) -> u64 {
        self.sync_ns.load(Relaxed)
    }

    fn counted(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.sync_ns.fetch_add(self.timed(sync)?, Relaxed);
        Ok(())
    }

    /// Do `sync` where it is asked for; returns how long it took.
    pub(super) fn timed(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
        let Some(clock) = self.syncs else { return Ok(0) };
        let start_ns = clock.now_ns();
        sync()?;
        Ok(clock.now_ns() - start_ns)
    }
}

impl OwnCheckpoint {
    /// Whether `name`, which is of this kind, is ours and as we wrote it.
    pub(super) fn has(&self, name: &str, kind: NameKind) -> bool {
        match (kind, self.files.get(name)) {
            (NameKind::File { .. }, Some(None)) => true,
            (NameKind::File { bytes }, Some(Some(written))) => bytes == *written,
            _ => false,
        }
    }
}
