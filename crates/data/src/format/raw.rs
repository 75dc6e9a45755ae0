//! `raw`: samples one after another and nothing else, as `ndarray.tofile` writes them. The length of a sample is known
//! only from the plan.

use super::{Format, packed};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};

static MEMBER: Member = Member {
    name: "raw",
    summary: "Samples one after another, without header or index; each sample can be read separately.",
    abilities: &[
        Ability::PlainBytes,
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::Undescribed,
        Ability::NeedsPlan,
        Ability::EvenReads,
    ],
};

pub(super) static FORMAT: Format = Format::new(
    FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes()),
    |shape, _, content, sink| packed::write_samples(shape, content, sink),
    packed::cursor,
);
