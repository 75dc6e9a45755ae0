//! `raw`: the bytes of the tensors one after another, without any header.

use super::{Checkpoint, CheckpointSink};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::plan::state::StateFile;
use std::io;

static MEMBER: Member = Member {
    name: "raw",
    summary: "the bytes of the state and nothing else",
    abilities: &[Ability::Undescribed],
};

/// The `raw` format.
#[derive(Debug)]
pub(super) struct RawCheckpoint;

impl Checkpoint for RawCheckpoint {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<Vec<Vec<u8>>> {
        let mut tensors = (0..).zip(&state.tensors);
        tensors.try_for_each(|(number, tensor)| sink.put_tensor(number, tensor).map(|_| ()))?;
        Ok(Vec::new())
    }
}
