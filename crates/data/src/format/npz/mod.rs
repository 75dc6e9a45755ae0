//! `npz`: a zip archive of two numpy arrays: `x` has the samples along the last axis, and `y` their labels. Written like
//! `numpy.savez`, as DLIO generates it (`npz_generator.py`), or like `savez_compressed`: the compressions `zip` and `gzip`
//! both stand for deflated members.
//!
//! Archives of other programs can be read too, with other arrays, compressed members, zip64 and in any order.

mod write;
mod directory;
mod member;
mod cursor;
#[cfg(test)]
mod tests;

use super::ahead::ByteCollector;
use super::npy_stream::{self, ArrayStream};
use super::packed::{self, Payload};
use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    decode_length, npy_header, piece_len, truncated,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Compression, Dims, Element, FileShape};

static MEMBER: Member = Member {
    name: "npz",
    summary: "A zip archive of numpy arrays `x` and `y`; reading a sample reads the whole of `x`. In other archives, all large arrays are a sample.",
    abilities: &[Ability::ChecksContent, Ability::EvenReads, Ability::ChoosesMembers],
};

pub(super) static FORMAT: Format = Format {
    is_recognised: is_archive_of_arrays,
    ..Format::new(
        FormatEntry {
            compressions: &[Compression::Zip, Compression::Gzip],
            encoding_keys: &["dataset.compression_level"],
            library: Some(Library::NumpyNpz),
            ..FormatEntry::new(&MEMBER, |shape, _| write::archive_bytes(shape))
        },
        write::write_archive,
        |options| Box::new(cursor::NpzCursor::new(options)),
    )
};

/// Whether the file is a zip archive whose first member is an array.
fn is_archive_of_arrays(head: &[u8]) -> bool {
    let len = head.get(26..28).map_or(0, |len| usize::from(u16::from_le_bytes([len[0], len[1]])));
    let name = head.get(30..30 + len).unwrap_or_default();
    head.starts_with(b"PK\x03\x04") && name.ends_with(b".npy")
}

/// Compression methods.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Shape of the labels of DLIO: one int64 zero per sample.
fn labels(shape: &FileShape) -> FileShape {
    let no_dims = Dims::new(&[]).unwrap_or_else(|| unreachable!("zero dimensions fit"));
    FileShape { dims: no_dims, element: Element::Int64, samples: shape.samples }
}
