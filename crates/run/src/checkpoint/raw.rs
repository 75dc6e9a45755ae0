//! The bytes of the tensors one after another, and nothing else.

use super::Checkpoint;
use super::content::StateContent;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::fs::File;
use std::io::{self, Write};

static MEMBER: Member =
    Member { name: "raw", summary: "the bytes of the state and nothing else", abilities: &[] };

/// The member.
#[derive(Debug)]
pub(super) struct Raw;

impl Checkpoint for Raw {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, file: &mut File, state: &StateFile) -> io::Result<()> {
        let mut content = StateContent::new(&state.name);
        for (number, tensor) in state.tensors.iter().enumerate() {
            content.make(number as u64, tensor, &mut |piece| file.write_all(piece))?;
        }
        Ok(())
    }
}
