//! No compute: the accelerators take batches as fast as they come.

use feedrate_spec::catalog::{Ability, Member};

pub(super) static MEMBER: Member = Member {
    name: "none",
    summary: "no compute: batches are taken as fast as they come",
    abilities: &[Ability::TakesNoTime],
};
