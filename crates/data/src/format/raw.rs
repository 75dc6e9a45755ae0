//! `raw`: samples one after another and nothing else, as `ndarray.tofile` writes them. Only the plan knows where one ends.

use super::packed_cursor::PackedCursor;
use super::{Content, Cursor, CursorOptions, FileSink, Format, SinkError, packed};
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
        Ability::EvenReads,
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
        Box::new(PackedCursor::new(options))
    }
}
