//! `indexed_binary`: samples one after another, with an index beside them, read by themselves.

use super::{Content, Cursor, CursorOptions, FileSink, Format, Part, SinkError, indexed};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Encoding, FileShape};

pub(super) struct IndexedBinary;

static MEMBER: Member = Member {
    name: "indexed_binary",
    summary: "Samples one after another with an index beside them; a sample is read by itself.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::EvenReads],
};

impl Format for IndexedBinary {
    fn entry(&self) -> FormatEntry {
        FormatEntry::new(&MEMBER, |shape, _| indexed::file_bytes(shape))
    }

    fn parts(&self) -> &'static [Part] {
        &indexed::PARTS
    }

    fn encode(
        &self,
        shape: &FileShape,
        _encoding: &Encoding,
        content: &mut Content,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        indexed::encode(shape, content, sink)
    }

    fn cursor(&self, options: &CursorOptions) -> Box<dyn Cursor> {
        indexed::cursor(options)
    }
}
