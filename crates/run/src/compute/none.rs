//! No compute: the accelerators take batches as fast as they come.

use super::Compute;
use feedrate_spec::catalog::{Ability, Member};

pub(super) static MEMBER: Member = Member {
    name: "none",
    summary: "no compute: batches are taken as fast as they come",
    abilities: &[Ability::TakesNoTime],
};

/// Steps of length zero.
#[derive(Debug)]
pub(super) struct NoCompute;

impl Compute for NoCompute {
    fn next_ns(&mut self) -> u64 {
        0
    }
}
