//! The manifest of a checkpoint: `manifest.json`, which comes last. A checkpoint without it is not whole; one whose files
//! are not what it says is refused.

use super::CheckpointError;
use super::files::{Files, Input, Syncs};
use super::sink::PIECE_BYTES;
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
    /// Of all of it.
    pub(super) bytes: u64,
    /// Of all of it.
    pub(super) crc32: u32,
    /// Of names, lengths and types of its tensors.
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
        let damaged = |problem: String| CheckpointError::Damaged { path: path.clone(), problem };
        let mut text = Vec::new();
        let mut read = || {
            let mut input = files.open(&path)?;
            let mut piece = vec![0; READ_BYTES];
            loop {
                match input.read(&mut piece)? {
                    0 => return Ok(()),
                    bytes => text.extend_from_slice(&piece[..bytes]),
                }
            }
        };
        read().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => {
                damaged("there is none, so the checkpoint is not whole".into())
            }
            _ => CheckpointError::Read { path: path.clone(), source },
        })?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if manifest.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", manifest.version)));
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
        let damaged = |problem: String| CheckpointError::Damaged { path: path.clone(), problem };
        let entry =
            self.files.get(name).ok_or_else(|| damaged(format!("it is not in `{NAME}`")))?;
        if entry.tensors_crc32 != tensors_crc32(state) {
            return Err(damaged("it holds other tensors than this plan's".into()));
        }
        let open = || {
            let input = files.open(&path)?;
            Ok((input.bytes()?, input))
        };
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => damaged(format!("it is missing, and `{NAME}` names it")),
            _ => CheckpointError::Read { path: path.clone(), source },
        };
        let (bytes, mut input) = open().map_err(refused)?;
        if bytes != entry.bytes {
            return Err(damaged(format!("it has {bytes} bytes of {}", entry.bytes)));
        }
        let (read, crc) = sum(&mut *input).map_err(refused)?;
        if (read, crc) != (entry.bytes, entry.crc32) {
            return Err(damaged(format!("its checksum is {crc:08x}, not {:08x}", entry.crc32)));
        }
        Ok(read)
    }
}

/// Length and CRC-32 of all that `input` holds.
fn sum(input: &mut dyn Input) -> io::Result<(u64, u32)> {
    let mut buffer = AlignedBuffer::new(READ_BYTES.min(PIECE_BYTES))?;
    let piece = buffer.aligned_like(0, READ_BYTES);
    let (mut total, mut crc) = (0, crc32fast::Hasher::new());
    loop {
        match input.read(piece)? {
            0 => return Ok((total, crc.finalize())),
            bytes => {
                crc.update(&piece[..bytes]);
                total += bytes as u64;
            }
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
