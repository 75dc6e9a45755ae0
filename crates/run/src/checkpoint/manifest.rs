//! The manifest of a checkpoint: `manifest.json`, which comes last. A checkpoint without it is not whole; one whose files
//! are not what it says is refused.

use super::CheckpointError;
use super::files::{Files, Input, Syncs};
use crate::buffer::AlignedBuffer;
use feedrate_spec::plan::state::StateFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Its name. It ends in nothing that a framework's loader looks for.
pub(super) const NAME: &str = "manifest.json";
/// Raised when a field changes meaning.
const VERSION: u32 = 1;
/// Read and summed up at once, so that it stays in a core's cache between the two.
const READ_BYTES: usize = 512 << 10;

/// All files of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    files: BTreeMap<String, Entry>,
}

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its length.
    pub(super) bytes: u64,
    /// CRC-32 of all of it.
    pub(super) crc32: u32,
    /// CRC-32 of names, lengths and types of its tensors.
    pub(super) tensors_crc32: u32,
}

impl Manifest {
    pub(super) fn new(files: impl IntoIterator<Item = (String, Entry)>) -> Self {
        Manifest { version: VERSION, files: files.into_iter().collect() }
    }

    /// Put it into `folder`, where all its files are already.
    pub(super) fn write(
        &self,
        files: &dyn Files,
        folder: &Path,
        syncs: &mut Syncs,
    ) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        let part = folder.join(format!("{NAME}.part"));
        let mut output = files.create(&part, text.len() as u64)?;
        output.write(&text)?;
        syncs.file(&mut *output)?;
        // No storage may keep the manifest's name and lose a file's.
        syncs.folder(files, folder)?;
        files.rename(&part, &folder.join(NAME))?;
        syncs.folder(files, folder)
    }

    /// From here on the checkpoint in `folder` is not whole, if there is one.
    pub(super) fn withdraw(files: &dyn Files, folder: &Path, syncs: &mut Syncs) -> io::Result<()> {
        match files.remove(&folder.join(NAME)) {
            Ok(()) => syncs.folder(files, folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read(files: &dyn Files, folder: &Path) -> Result<Self, CheckpointError> {
        let path = folder.join(NAME);
        let mut text = Vec::new();
        files
            .open(&path)
            .and_then(|mut input| read_all(&mut *input, |piece| text.extend_from_slice(piece)))
            .map_err(|source| {
                unreadable(&path, source, "there is none, so the checkpoint is not whole")
            })?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(&path, error.to_string()))?;
        if manifest.version != VERSION {
            let problem = format!("its version is {}, not {VERSION}", manifest.version);
            return Err(damaged(&path, problem));
        }
        Ok(manifest)
    }

    /// Read the file `name` of `folder`, which is to hold `state`; returns its length.
    pub(super) fn check(
        &self,
        files: &dyn Files,
        folder: &Path,
        name: &str,
        state: &StateFile,
    ) -> Result<u64, CheckpointError> {
        let path = folder.join(name);
        let Some(entry) = self.files.get(name) else {
            return Err(damaged(&path, format!("it is not in `{NAME}`")));
        };
        if entry.tensors_crc32 != tensors_crc32(state) {
            return Err(damaged(&path, "it holds other tensors than this plan's".into()));
        }
        let missing = format!("it is missing, and `{NAME}` names it");
        let opened = files.open(&path).and_then(|input| Ok((input.bytes()?, input)));
        let (bytes, mut input) = opened.map_err(|source| unreadable(&path, source, &missing))?;
        if bytes != entry.bytes {
            return Err(damaged(&path, format!("it has {bytes} bytes of {}", entry.bytes)));
        }
        let (mut read, mut crc) = (0, crc32fast::Hasher::new());
        read_all(&mut *input, |piece| {
            crc.update(piece);
            read += piece.len() as u64;
        })
        .map_err(|source| unreadable(&path, source, &missing))?;
        let crc = crc.finalize();
        if (read, crc) != (entry.bytes, entry.crc32) {
            let problem = format!("its checksum is {crc:08x}, not {:08x}", entry.crc32);
            return Err(damaged(&path, problem));
        }
        Ok(read)
    }
}

fn damaged(path: &Path, problem: String) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), problem }
}

fn unreadable(path: &Path, source: io::Error, missing: &str) -> CheckpointError {
    match source.kind() {
        io::ErrorKind::NotFound => damaged(path, missing.to_owned()),
        _ => CheckpointError::Read { path: path.to_owned(), source },
    }
}

/// Read `input` to its end, piece by piece.
fn read_all(input: &mut dyn Input, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = AlignedBuffer::new(READ_BYTES)?;
    let piece = buffer.aligned_like(0, READ_BYTES);
    loop {
        match input.read(piece)? {
            0 => return Ok(()),
            bytes => take(&piece[..bytes]),
        }
    }
}

/// Tells states from another.
pub(super) fn tensors_crc32(state: &StateFile) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for tensor in &state.tensors {
        crc.update(tensor.name.as_bytes());
        crc.update(&[0, tensor.element as u8]);
        crc.update(&tensor.elements.to_le_bytes());
    }
    crc.finalize()
}
