//! The manifest of a checkpoint. It names the files before they are written, so that another run knows them for ours whenever this
//! one ends, and has their lengths and checksums once all are there. A checkpoint without these is not whole, and one whose files
//! differ from them is refused.

use feedrate_data::storage::NameKind;
use feedrate_spec::plan::state::StateFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest that is read.
pub(super) const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// Raised when a field changes meaning.
const VERSION: u32 = 1;

/// All files of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CheckpointManifest {
    version: u32,
    /// The checkpoint that it is.
    pub(super) epoch: u32,
    /// As its folder counts it.
    pub(super) step: u64,
    /// By name; none is known until all are written.
    pub(super) files: CheckpointFiles,
}

pub(super) type CheckpointFiles = BTreeMap<String, Option<CheckpointFile>>;

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckpointFile {
    /// Its length.
    pub(super) bytes: u64,
    /// CRC-32 of all of it.
    pub(super) crc32: u32,
    /// CRC-32 of names, lengths and types of its tensors.
    pub(super) tensors_crc32: u32,
}

impl CheckpointManifest {
    pub(super) fn new(epoch: u32, step: u64, files: CheckpointFiles) -> Self {
        CheckpointManifest { version: VERSION, epoch, step, files }
    }

    /// Whether `name`, which is of this kind, is a file of the checkpoint, as it was written.
    pub(super) fn has(&self, name: &str, kind: NameKind) -> bool {
        match (kind, self.files.get(name)) {
            (NameKind::File { .. }, Some(None)) => true,
            (NameKind::File { bytes }, Some(Some(written))) => bytes == written.bytes,
            _ => false,
        }
    }

    /// The manifest of the checkpoint of `epoch` and `step` with this text, or why it is none.
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
