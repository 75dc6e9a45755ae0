//! `null`: no files and no headers. A sample is as many bytes as the plan says, from wherever the storage takes
//! them; for measuring loaders and storages of known cost.

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::payload_range::PayloadRange;
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};

static MEMBER: Member = Member {
    name: "null",
    summary: "No files: a sample is a stream of bytes of its length and of no content.",
    abilities: &[Ability::RandomAccess, Ability::NoFiles],
};

pub(super) static FORMAT: Format = Format::new(
    FormatEntry::new(&MEMBER, |_, _| 0),
    |_, _, _, _| Ok(()),
    |options| Box::new(LocatedCursor::<Endless>::new(options.piece_bytes)),
);

/// Samples lie one after another in a file without end.
#[derive(Default)]
struct Endless;

impl Locator for Endless {
    /// Without a plan nobody knows how long a sample is: it is empty.
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let bytes = wanted.expected.map_or(0, |shape| shape.sample_bytes());
        let start = wanted.sample.saturating_mul(bytes).min(u64::MAX - bytes);
        Ok(Lookup::Found { payload: PayloadRange::new(start, bytes), shape: None })
    }

    fn learn(&mut self, _wanted: &WantedSample, _bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        Ok(())
    }

    fn forget(&mut self) {}
}
