//! `synthetic`: no files and no reads. A sample is zeros and is available at once, as in DLIO's `synthetic`. Shows how fast
//! a run is without storage.

use super::{Cursor, Format, FormatError, Need, PayloadSink};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::FileShape;

static MEMBER: Member = Member {
    name: "synthetic",
    summary: "No files and no reads: samples of zeros are available at once.",
    abilities: &[Ability::RandomAccess, Ability::NoFiles],
};

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub(super) static FORMAT: Format = Format::new(
    FormatEntry::new(&MEMBER, |_, _| 0),
    |_, _, _, _| Ok(()),
    |options| {
        let wants_payload = options.wants_payload;
        Box::new(SyntheticCursor { wants_payload, remaining: 0, len: 0 })
    },
);

struct SyntheticCursor {
    wants_payload: bool,
    len: u64,
    remaining: u64,
}

impl Cursor for SyntheticCursor {
    /// Without a plan, the length of a sample is unknown, and the sample is empty.
    fn begin(&mut self, _file: u64, _sample: u64, expected: Option<&FileShape>) {
        self.len = expected.map_or(0, FileShape::sample_bytes);
        self.remaining = if self.wants_payload { self.len } else { 0 };
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(if self.remaining == 0 { Need::Done } else { Need::Buffered })
    }

    fn feed(&mut self, _bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let len = self.remaining.min(ZEROS.len() as u64);
        sink.payload(self.len - self.remaining, &ZEROS[..len as usize])?;
        self.remaining -= len;
        Ok(())
    }
}
