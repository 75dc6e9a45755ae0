//! `mmap_indexed_binary`: the files of `indexed_binary`, read through a memory map as numpy's `memmap` does. Pages are
//! really touched: DLIO's reader makes the map and reads nothing.

use super::{Format, indexed};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "mmap_indexed_binary",
    summary: "The files of indexed_binary, read through a memory map.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::Mapped],
};

pub(super) static FORMAT: Format = indexed::format(&MEMBER);
