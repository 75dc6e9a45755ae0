//! `raw`: samples one after another and nothing else, as `ndarray.tofile` writes them. Only the plan knows where one ends.

use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    check_sample, cut_off, packed, piece_len,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Encoding, FileShape};

pub(super) struct Raw;

static MEMBER: Member = Member {
    name: "raw",
    summary: "Samples one after another, without header or index; a sample is read by itself.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::Undescribed,
        Ability::NeedsPlan,
    ],
};

impl Format for Raw {
    fn entry(&self) -> FormatEntry {
        FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes())
    }

    fn encode(
        &self,
        shape: &FileShape,
        _encoding: &Encoding,
        content: &mut Content,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        for sample in 0..shape.samples {
            packed::write_sample(0, sample, shape, content, sink, &mut |_| {})?;
        }
        Ok(())
    }

    fn cursor(&self, options: &CursorOptions) -> Box<dyn Cursor> {
        Box::new(RawCursor {
            piece_bytes: options.piece_bytes,
            file: None,
            sample: 0,
            expected: None,
            length: None,
            size: 0,
            at: 0,
            asked: 0,
        })
    }
}

struct RawCursor {
    piece_bytes: usize,
    file: Option<u64>,
    sample: u64,
    expected: Option<FileShape>,
    /// Of the file; asked once.
    length: Option<u64>,
    size: u64,
    at: u64,
    asked: usize,
}

impl RawCursor {
    fn start(&self) -> u64 {
        self.sample.saturating_mul(self.size)
    }

    fn check(&self, length: u64) -> Result<(), FormatError> {
        match &self.expected {
            Some(shape) if shape.payload_bytes() != length => {
                let wanted = shape.payload_bytes();
                let message = format!("holds {length} bytes, but the plan says {wanted}");
                Err(FormatError::new(length, message))
            }
            Some(shape) => check_sample(shape, self.sample),
            None => Err(FormatError::new(0, "does not say what it holds")),
        }
    }
}

impl Cursor for RawCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        if self.file != Some(file) || self.expected.as_ref() != expected {
            self.length = None;
        }
        self.file = Some(file);
        self.expected = expected.copied();
        self.sample = sample;
        self.at = 0;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else { return Ok(Need::Length { part: 0 }) };
        self.check(length)?;
        self.size = self.expected.as_ref().map_or(0, FileShape::sample_bytes);
        if self.at == self.size {
            return Ok(Need::Done);
        }
        let offset = self.start() + self.at;
        self.asked = piece_len(self.piece_bytes, offset, self.size - self.at);
        Ok(Need::Bytes { part: 0, offset, len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.length.is_none() {
            self.length = bytes.first_chunk().copied().map(u64::from_le_bytes);
            return Ok(());
        }
        sink.payload(self.at, bytes)?;
        self.at += bytes.len() as u64;
        if bytes.len() < self.asked {
            return Err(cut_off(self.start() + self.at, self.size - self.at));
        }
        Ok(())
    }
}
