//! `null`: no files and no headers. A sample is as many bytes as the plan says, from wherever the storage takes
//! them; for measuring loaders and storages of known cost.

use super::payload_range::PayloadRange;
use super::{Cursor, Format, FormatError, Need, PayloadSink};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::FileShape;

static MEMBER: Member = Member {
    name: "null",
    summary: "No files: a sample is a stream of bytes of its length and of no content.",
    abilities: &[Ability::RandomAccess, Ability::NoFiles],
};

pub(super) static FORMAT: Format = Format::new(
    FormatEntry::new(&MEMBER, |_, _| 0),
    |_, _, _, _| Ok(()),
    |options| {
        let (piece_bytes, payload) = (options.piece_bytes, PayloadRange::default());
        Box::new(NullCursor { piece_bytes, start: 0, payload })
    },
);

struct NullCursor {
    piece_bytes: usize,
    start: u64,
    payload: PayloadRange,
}

impl Cursor for NullCursor {
    /// Without a plan nobody knows how long a sample is: it is empty.
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        let bytes = expected.map_or(0, FileShape::sample_bytes);
        self.start = sample.saturating_mul(bytes);
        self.payload = PayloadRange::new(0, bytes);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(match self.payload.need(0, self.piece_bytes) {
            Need::Bytes { part, offset, len } => {
                Need::Bytes { part, offset: self.start.saturating_add(offset), len }
            }
            need => need,
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.payload.feed(bytes, sink)
    }
}
