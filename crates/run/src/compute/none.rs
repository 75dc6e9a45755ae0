//! No compute: accelerators take batches as fast as they are delivered.

use feedrate_spec::catalog::{Ability, Member};

pub(super) static MEMBER: Member = Member {
    name: "none",
    summary: "no compute: batches are taken as fast as they come",
    abilities: &[Ability::TakesNoTime],
};
