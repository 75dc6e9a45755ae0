//! `null`: no files and no headers. A sample is the planned number of bytes, with the content that the storage returns. Used
//! to measure loaders, and storages of known cost.

use super::payload_range::PayloadRange;
use super::{Cursor, Format, FormatError, Need, PayloadSink};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::FileShape;

static MEMBER: Member = Member {
    name: "null",
    summary: "No files: a sample is a number of bytes without content.",
    abilities: &[Ability::RandomAccess, Ability::NoFiles],
};

pub(super) static FORMAT: Format = Format::new(
    FormatEntry::new(&MEMBER, |_, _| 0),
    |_, _, _, _| Ok(()),
    |options| {
        Box::new(NullCursor {
            piece_bytes: options.piece_bytes,
            start: 0,
            payload: PayloadRange::default(),
        })
    },
);

struct NullCursor {
    piece_bytes: usize,
    start: u64,
    payload: PayloadRange,
}

impl Cursor for NullCursor {
    /// Without a plan, the length of a sample is unknown, and the sample is empty.
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        let bytes = expected.map_or(0, FileShape::sample_bytes);
        self.start = sample.saturating_mul(bytes);
        self.payload = PayloadRange::new(0, bytes);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(match self.payload.need(0, self.piece_bytes) {
            Need::Bytes { part, offset, len, end } => {
                let [offset, end] = [offset, end].map(|at| self.start.saturating_add(at));
                Need::Bytes { part, offset, len, end }
            }
            need => need,
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.payload.feed(bytes, sink)
    }
}
