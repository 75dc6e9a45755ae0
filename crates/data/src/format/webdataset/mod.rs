//! `webdataset`: tar archives (POSIX ustar) for the library WebDataset. Each sample has a label in `<key>.cls` and an
//! array in `<key>.npy`. The key is unique in the dataset.

mod block;
mod pax;
mod members;
#[cfg(test)]
mod tests;

use super::ahead::ReadAheadCursor;
use super::unpacked::{UNKNOWN_LENGTH, Unpacked};
use super::{
    Content, CursorOptions, FileSink, Format, FormatError, PayloadSink, SinkError, ahead,
    as_one_sample, compare_shapes, describe_shape, npy_header, packed, shape_of_bytes, truncated,
};
use block::BLOCK_BYTES;
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Dims, Encoding, FileShape};
use std::fmt::Write;

static MEMBER: Member = Member {
    name: "webdataset",
    summary: "Tar archives with an array and a label for each sample.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::LooseEnd,
        Ability::HoldsFiles,
        Ability::Sequential,
    ],
};

const LABEL: &[u8] = b"0";
/// Length of the empty blocks after the last member.
const END_BYTES: u64 = 2 * BLOCK_BYTES;

pub(super) static FORMAT: Format = Format {
    // Version 2: headers are written by the crate `tar`.
    version: 2,
    is_recognised: has_header,
    unpacks_streams: true,
    ..Format::new(
        FormatEntry {
            extension: "tar",
            ..FormatEntry::new(&MEMBER, |shape, _| archive_bytes(shape))
        },
        encode,
        |options| {
            let members = Unpacked::new(members::Members::new(options), has_header);
            Box::new(ReadAheadCursor::new(options.piece_bytes, members))
        },
    )
};

/// Whether a file begins with the header of a member.
fn has_header(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

fn encode(
    shape: &FileShape,
    _encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let array = sample_array(shape);
    let array_bytes = npy_header::array_bytes(&array);
    let header = npy_header::write(&array);
    let mut key = String::new();
    for sample in 0..shape.samples {
        write_key(&mut key, content.file(), sample);
        sink.write(0, &block::header(&format!("{key}.cls"), LABEL.len() as u64))?;
        sink.write(0, LABEL)?;
        pad(LABEL.len() as u64, sink)?;
        sink.write(0, &block::header(&format!("{key}.npy"), array_bytes))?;
        sink.write(0, &header)?;
        packed::write_sample(0, sample, shape, content, sink, &mut |_| {})?;
        pad(array_bytes, sink)?;
    }
    sink.write(0, &[0; END_BYTES as usize])
}

/// Fills the last block of a member of `bytes` bytes.
fn pad(bytes: u64, sink: &mut dyn FileSink) -> Result<(), SinkError> {
    sink.write(0, &[0; BLOCK_BYTES as usize][..(round_up_to_block(bytes) - bytes) as usize])
}

/// `bytes` rounded up to whole blocks.
fn round_up_to_block(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

fn archive_bytes(shape: &FileShape) -> u64 {
    sample_bytes(shape).saturating_mul(shape.samples).saturating_add(END_BYTES)
}

/// Length of the two members of a sample, with their headers.
fn sample_bytes(shape: &FileShape) -> u64 {
    let array_bytes = round_up_to_block(npy_header::array_bytes(&sample_array(shape)));
    array_bytes.saturating_add(3 * BLOCK_BYTES)
}

/// The array of one sample. The last axis of the array is the sample's last dimension and not an axis of samples.
fn sample_array(shape: &FileShape) -> FileShape {
    let (last, dims) = shape.dims.as_slice().split_last().unwrap_or((&1, &[]));
    let dims = Dims::new(dims).unwrap_or(shape.dims);
    FileShape { dims, element: shape.element, samples: *last }
}

/// Writes the key of a sample. It contains no dot, because keys end at the first dot.
fn write_key(key: &mut String, file: u64, sample: u64) {
    key.clear();
    // Writing to a string cannot fail.
    let _ = write!(key, "sample{file:06}_{sample:06}");
}
