//! `pt`: the format of `torch.save` and `torch.load`. It is a zip archive of uncompressed members: a pickle of the nested dictionary
//! of tensors, and the bytes of each tensor's storage, aligned to 64 bytes (torch's `serialization.py`, `inline_container.cc`).

mod pickle;
mod archive;
#[cfg(test)]
mod tests;

use super::{Checkpoint, CheckpointSink};
use archive::Archive;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::io;

static MEMBER: Member =
    Member { name: "pt", summary: "as torch.save writes it; torch.load opens it", abilities: &[] };

/// The `pt` format.
#[derive(Debug)]
pub(super) struct Pt;

impl Checkpoint for Pt {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<Vec<Vec<u8>>> {
        let mut archive = Archive::new(sink);
        archive.add_member("data.pkl", &pickle::pickle(state))?;
        archive.add_member("byteorder", b"little")?;
        for (number, tensor) in (0..).zip(&state.tensors) {
            archive.add_tensor(number, tensor)?;
        }
        archive.add_member("version", b"3\n")?;
        archive.finish()?;
        Ok(Vec::new())
    }
}
