//! `pt`: what `torch.save` writes and `torch.load` reads: a zip archive of stored members, a pickle of the nested dictionary
//! of tensors and the bytes of each tensor's storage, aligned to 64 bytes (torch's `serialization.py`, `inline_container.cc`).

mod pickle;
mod archive;
#[cfg(test)]
mod tests;

use super::Checkpoint;
use super::content::StateContent;
use archive::Archive;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::fs::File;
use std::io;

static MEMBER: Member =
    Member { name: "pt", summary: "as torch.save writes it; torch.load opens it", abilities: &[] };

/// The member.
#[derive(Debug)]
pub(super) struct Pt;

impl Checkpoint for Pt {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, file: &mut File, state: &StateFile) -> io::Result<()> {
        let mut archive = Archive::new(file);
        archive.add("data.pkl", &pickle::of(state))?;
        archive.add("byteorder", b"little")?;
        let mut content = StateContent::new(&state.name);
        for (number, tensor) in state.tensors.iter().enumerate() {
            let mut member = archive.begin(&format!("data/{number}"), tensor.bytes())?;
            content.make(number as u64, tensor, &mut |piece| member.write(piece))?;
            member.finish()?;
        }
        archive.add("version", b"3\n")?;
        archive.finish()
    }
}
