//! `null`: no files and no headers. A sample is as many bytes as the plan says, from wherever the storage takes
//! them; for measuring loaders and storages of known cost.

use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    cut_off, piece_len,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Encoding, FileShape};

pub(super) struct Null;

static MEMBER: Member = Member {
    name: "null",
    summary: "No files: a sample is a stream of bytes of its length and of no content.",
    abilities: &[Ability::RandomAccess, Ability::NoFiles],
};

impl Format for Null {
    fn entry(&self) -> FormatEntry {
        FormatEntry::new(&MEMBER, |_, _| 0)
    }

    fn encode(
        &self,
        _shape: &FileShape,
        _encoding: &Encoding,
        _content: &mut Content,
        _sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        Ok(())
    }

    fn cursor(&self, options: &CursorOptions) -> Box<dyn Cursor> {
        Box::new(NullCursor { piece_bytes: options.piece_bytes, start: 0, len: 0, at: 0, asked: 0 })
    }
}

struct NullCursor {
    piece_bytes: usize,
    start: u64,
    len: u64,
    at: u64,
    asked: usize,
}

impl Cursor for NullCursor {
    /// Without a plan nobody knows how long a sample is: it is empty.
    fn begin(&mut self, _file: u64, sample: u64, expected: Option<&FileShape>) {
        self.len = expected.map_or(0, FileShape::sample_bytes);
        self.start = sample.saturating_mul(self.len);
        self.at = 0;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        if self.at == self.len {
            return Ok(Need::Done);
        }
        self.asked = piece_len(self.piece_bytes, self.at, self.len - self.at);
        Ok(Need::Bytes { part: 0, offset: self.start.saturating_add(self.at), len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        sink.payload(self.at, bytes)?;
        self.at += bytes.len() as u64;
        if bytes.len() < self.asked {
            return Err(cut_off(self.start.saturating_add(self.at), self.len - self.at));
        }
        Ok(())
    }
}
