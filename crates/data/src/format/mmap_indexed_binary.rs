//! `mmap_indexed_binary`: the files of `indexed_binary`, read through a memory map like numpy's `memmap`. Unlike DLIO's
//! reader, which creates the map and reads nothing, this format touches the pages of a sample.

use super::{Format, indexed};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "mmap_indexed_binary",
    summary: "The files of indexed_binary, read through a memory map.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::Sidecars, Ability::Mapped],
};

pub(super) static FORMAT: Format = indexed::format(&MEMBER);
