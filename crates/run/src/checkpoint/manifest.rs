//! The manifest of a checkpoint. It is written twice. The first manifest, written before the files, holds their names, by which a later run
//! recognises the files of a killed run. The second, written after the files, also holds their lengths and checksums; without it the
//! checkpoint is incomplete. A checkpoint with files that differ from its manifest is refused.

use feedrate_data::storage::EntryKind;
use feedrate_spec::plan::state::StateFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Size above which a manifest is refused.
pub(super) const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// Version of the format. It is increased when the meaning of a field changes.
const VERSION: u32 = 1;

/// The manifest of one checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CheckpointManifest {
    version: u32,
    /// Epoch of the checkpoint.
    pub(super) epoch: u32,
    /// Step in the name of its folder.
    pub(super) step: u64,
    /// Files by name; the values are `None` until the checkpoint is complete.
    pub(super) files: CheckpointFiles,
}

pub(super) type CheckpointFiles = BTreeMap<String, Option<CheckpointFile>>;

/// Length and checksums of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckpointFile {
    /// Length of the file.
    pub(super) bytes: u64,
    /// CRC-32 of its content.
    pub(super) crc32: u32,
    /// CRC-32 of names, lengths and types of its tensors.
    pub(super) tensors_crc32: u32,
}

impl CheckpointManifest {
    pub(super) fn new(epoch: u32, step: u64, files: CheckpointFiles) -> Self {
        CheckpointManifest { version: VERSION, epoch, step, files }
    }

    /// Whether the folder's entry `name` is a file of the checkpoint. If the manifest records a length, the file must have it.
    pub(super) fn has(&self, name: &str, kind: EntryKind) -> bool {
        match (kind, self.files.get(name)) {
            (EntryKind::File { .. }, Some(None)) => true,
            (EntryKind::File { bytes }, Some(Some(written))) => bytes == written.bytes,
            _ => false,
        }
    }

    /// Parses the manifest of the checkpoint of `epoch` and `step`; `Err` has the reason why it is invalid.
    pub(super) fn parse(text: &[u8], epoch: u32, step: u64) -> Result<Self, String> {
        let manifest: CheckpointManifest =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if manifest.version != VERSION {
            return Err(format!("its version is {}, not {VERSION}", manifest.version));
        }
        if (manifest.epoch, manifest.step) != (epoch, step) {
            return Err(format!("it is of epoch {} and step {}", manifest.epoch, manifest.step));
        }
        Ok(manifest)
    }
}

/// Returns a checksum that distinguishes states with different tensors.
pub(super) fn tensors_crc32(state: &StateFile) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for tensor in &state.tensors {
        crc.update(tensor.name.as_bytes());
        crc.update(&[0, tensor.element as u8]);
        crc.update(&tensor.elements.to_le_bytes());
    }
    crc.finalize()
}
