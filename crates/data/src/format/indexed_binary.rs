//! `indexed_binary`: samples one after another, with index files. A sample is read by itself.

use super::{Format, indexed};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "indexed_binary",
    summary: "Samples one after another with an index beside them; each sample can be read separately.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::Sidecars, Ability::EvenReads],
};

pub(super) static FORMAT: Format = indexed::format(&MEMBER);
