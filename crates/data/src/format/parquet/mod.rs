//! `parquet`: one row a sample, its bytes in column `image` and the label 0 in column `label`, in row groups of
//! `dataset.row_group_samples` rows, as `parquet.thrift` 2.x specifies it. Plain, uncompressed or by gzip, without
//! statistics; pages of about 1 MiB as pyarrow makes them, of one sample where samples are larger.
//!
//! Parquet knows no dimensions: they stand in the file's key-value metadata, as `feedrate.dims` and
//! `feedrate.element`. Of a file without them a sample is the bytes of the largest column; one whose largest column does not
//! hold bytes is refused.
//!
//! A row group is read as other readers do it, from its first byte on in large pieces, and only the column chunk that
//! is wanted. What a piece holds beyond its sample is kept for the next ones, so that samples asked for in ascending
//! order read each byte once; going back to an earlier sample reads its row group again. Unlike others we stop at the
//! sample, instead of keeping a whole row group in memory: a group that is left early is read only in part.

mod thrift;
mod unpack;
mod layout;
mod write;
mod footer;
mod page;
mod hybrid;
mod values;
mod chunk;
mod rows;
#[cfg(test)]
mod tests;

use super::ahead::AheadCursor;
use super::{
    Content, FileSink, Format, FormatError, PayloadSink, SinkError, cut_off, in_words, packed,
    shape_of_bytes,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Compression, Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "parquet",
    summary: "One row a sample, in row groups; a sample is read by reading its row group up to it.",
    abilities: &[Ability::RandomAccess, Ability::KeepsOpen, Ability::HoldsFiles],
};

const MAGIC: &[u8; 4] = b"PAR1";
/// The footer's length and the magic number, at the end of a file.
const TAIL_BYTES: u64 = 8;
/// The longest footer that is written and read.
const FOOTER_BYTES_MAX: u64 = 16 << 20;
/// Row groups that are written: each takes about 120 bytes of the footer.
const GROUPS_MAX: u64 = 100_000;
/// Thrift counts the bytes of a page in 32 bits, and a value has its length before it.
const SAMPLE_BYTES_MAX: u64 = i32::MAX as u64 - 4;
/// The longest page that is held in memory, packed or not.
const PAGE_BYTES_MAX: u64 = 128 << 20;
/// Longest sample that fits a compressed page of its own even if it does not shrink.
const PACKED_SAMPLE_BYTES_MAX: u64 = PAGE_BYTES_MAX - (1 << 20);
const DIMS_KEY: &str = "feedrate.dims";
const ELEMENT_KEY: &str = "feedrate.element";

/// Physical types.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const FIXED_LEN_BYTE_ARRAY: i64 = 7;
/// Encodings.
const PLAIN: i64 = 0;
const RLE: i64 = 3;

pub(super) static FORMAT: Format = Format {
    begins: |head| head.starts_with(MAGIC),
    ..Format::new(
        FormatEntry {
            compressions: &[Compression::Gzip],
            encoding_keys: &["dataset.compression_level", "dataset.row_group_samples"],
            unfit,
            ..FormatEntry::new(&MEMBER, layout::file_bytes)
        },
        write::file,
        |options| Box::new(AheadCursor::new(options.piece_bytes, rows::RowFinder::default())),
    )
};

fn unfit(shape: &FileShape, encoding: &Encoding) -> Option<Unfit> {
    let rows = encoding.row_group_samples;
    let (samples, bytes) = (shape.samples, shape.sample_bytes());
    let (key, message, hint) = if rows == 0 {
        ("dataset.row_group_samples", "row groups of `0` samples".to_string(), "give at least one")
    } else if bytes > SAMPLE_BYTES_MAX {
        (
            "dataset.record_length_bytes",
            format!("a sample of `{bytes}` bytes is longer than the {SAMPLE_BYTES_MAX} of a page"),
            "use smaller records, or another format",
        )
    } else if encoding.compression != Compression::None && bytes > PACKED_SAMPLE_BYTES_MAX {
        (
            "dataset.compression",
            format!(
                "a sample of `{bytes}` bytes is longer than the {PACKED_SAMPLE_BYTES_MAX} of a compressed page"
            ),
            "use smaller records, or no compression",
        )
    } else if samples.div_ceil(rows) > GROUPS_MAX {
        (
            "dataset.row_group_samples",
            format!(
                "`{samples}` samples in row groups of {rows} are more than {GROUPS_MAX} groups"
            ),
            "use larger row groups, or more files",
        )
    } else {
        return None;
    };
    Some(Unfit { key, message, hint: hint.to_string() })
}

/// The name of a number of the metadata.
fn name_of(names: &'static str, code: i64) -> Option<&'static str> {
    names.split(' ').nth(usize::try_from(code).ok()?)
}
