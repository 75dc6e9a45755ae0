//! `mmap_indexed_binary`: the files of `indexed_binary`, read through a memory map as numpy's `memmap` does. Pages are
//! really touched: DLIO's reader makes the map and reads nothing.

use super::{Content, Cursor, CursorOptions, FileSink, Format, Part, SinkError, indexed};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Encoding, FileShape};

pub(super) struct MmapIndexedBinary;

static MEMBER: Member = Member {
    name: "mmap_indexed_binary",
    summary: "The files of indexed_binary, read through a memory map.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::Mapped],
};

impl Format for MmapIndexedBinary {
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
