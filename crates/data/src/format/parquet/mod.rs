//! `parquet`: one row per sample, with its bytes in column `image` and the label 0 in column `label`, in row groups of
//! `dataset.row_group_samples` rows, as `parquet.thrift` 2.x specifies. Encoding PLAIN, without compression or with gzip,
//! without statistics. Pages have about 1 MiB as in files of pyarrow, or one sample if samples are larger.
//!
//! With `dataset.parquet.columns`, files have these columns instead (`spread.rs`).
//!
//! Parquet stores no dimensions, so they are stored in the file's key-value metadata as `feedrate.dims` and
//! `feedrate.element`. In files without these keys a sample is a value of the longest column of bytes or text. Tables of other
//! columns, and columns whose codec or encoding is unknown, are divided: a sample is an equal share of the stored bytes of its row group.
//!
//! Row groups are read as by pyarrow (`ParquetFile.read_row_group` and `read_table` of version 26): the end of the file first, then the
//! chunks of all selected columns in the order of the file, adjacent ones without a gap between reads. Pages of columns that are not
//! samples are decompressed and dropped. Bytes beyond a sample are used for the next ones, so that samples in ascending order read
//! each byte once. A step backward reads the row group again. Unlike other readers, this one stops after the requested sample instead of
//! keeping a whole row group in memory, so the rest of a group may stay unread.

mod thrift;
mod unpack;
mod layout;
mod spread;
mod write;
mod schema;
mod page;
mod hybrid;
mod values;
mod footer;
mod footer_finder;
mod lister;
mod chunk;
mod unread;
mod group;
mod rows;
#[cfg(test)]
mod tests;

use super::ahead::ReadAheadCursor;
use super::{
    Content, FileSink, Format, FormatError, PayloadSink, SinkError, describe_shape, packed,
    shape_of_bytes, truncated,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, UnsupportedSetting};
use feedrate_spec::shape::{Compression, Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "parquet",
    summary: "One row per sample, in row groups; reading a sample reads its row group up to its row.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::HoldsFiles,
        Ability::RowGroups,
        Ability::ChoosesMembers,
    ],
};

const MAGIC: &[u8; 4] = b"PAR1";
/// The footer's length and the magic number, at the end of a file.
const TAIL_BYTES: u64 = 8;
/// Upper limit on the length of a footer that is written or read.
const FOOTER_BYTES_MAX: u64 = 64 << 20;
/// Upper limit on the row groups of a generated file. Each takes about 120 bytes of the footer.
const GROUPS_MAX: u64 = 100_000;
/// Upper limit on the length of a sample: the length of a page has 32 bits, and each value is preceded by its length.
const SAMPLE_BYTES_MAX: u64 = i32::MAX as u64 - 4;
/// Upper limit on a page that is held in memory, compressed or not.
const PAGE_BYTES_MAX: u64 = 128 << 20;
/// Upper limit on a sample in a compressed page, so that it fits even if compression does not shorten it.
const PACKED_SAMPLE_BYTES_MAX: u64 = PAGE_BYTES_MAX - (1 << 20);
/// Name of the program in the metadata of generated files.
const CREATED_BY: &str = "feedrate";
const DIMS_KEY: &str = "feedrate.dims";
const ELEMENT_KEY: &str = "feedrate.element";
/// Metadata of files whose samples are spread over all columns.
const ROWS_KEY: &str = "feedrate.rows";
const ROWS_SPREAD: &str = "spread";

/// Physical types.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const FIXED_LEN_BYTE_ARRAY: i64 = 7;
/// Encodings.
const PLAIN: i64 = 0;
const RLE: i64 = 3;

pub(super) static FORMAT: Format = Format {
    is_recognised: |head| head.starts_with(MAGIC),
    lister: Some(|options| Box::new(lister::RowGroupLister::new(options))),
    ..Format::new(
        FormatEntry {
            compressions: &[Compression::Gzip],
            encoding_keys: &[
                "dataset.compression_level",
                "dataset.row_group_samples",
                "dataset.parquet.columns",
                "dataset.parquet.row_group_size",
                "dataset.parquet.generation_batch_size",
            ],
            unsupported_setting: find_unsupported_setting,
            ..FormatEntry::new(&MEMBER, file_bytes)
        },
        write_file,
        |options| {
            Box::new(ReadAheadCursor::new(options.piece_bytes, rows::RowFinder::new(options)))
        },
    )
};

/// Length of a file without compression.
fn file_bytes(shape: &FileShape, encoding: &Encoding) -> u64 {
    let compute = if encoding.columns.is_empty() { layout::file_bytes } else { spread::file_bytes };
    compute(shape, encoding)
}

fn write_file(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let write = if encoding.columns.is_empty() { write::write_file } else { spread::write_file };
    write(shape, encoding, content, sink)
}

fn find_unsupported_setting(shape: &FileShape, encoding: &Encoding) -> Option<UnsupportedSetting> {
    if !encoding.columns.is_empty() {
        return find_unsupported_columns(shape, encoding);
    }
    let rows = encoding.row_group_samples;
    let samples = shape.samples;
    let bytes = shape.sample_bytes();
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
    Some(UnsupportedSetting { key, message, hint: hint.to_string() })
}

fn find_unsupported_columns(shape: &FileShape, encoding: &Encoding) -> Option<UnsupportedSetting> {
    let columns = &encoding.columns;
    let longest = columns.iter().max_by_key(|column| column.row_bytes())?;
    let groups = shape.samples.div_ceil(encoding.row_group_samples.max(1));
    let (key, message, hint) = if longest.row_bytes() > PACKED_SAMPLE_BYTES_MAX {
        let message = format!(
            "a row of column `{}` is longer than {PACKED_SAMPLE_BYTES_MAX} bytes",
            longest.name
        );
        ("dataset.parquet.columns", message, "use shorter columns")
    } else if encoding.compression != Compression::None {
        let message = "columns are written without compression".to_string();
        ("dataset.compression", message, "leave it out")
    } else if groups.saturating_mul(columns.len() as u64) > spread::CHUNKS_MAX {
        let message = format!(
            "`{}` columns in {groups} row groups are more than {} column chunks",
            columns.len(),
            spread::CHUNKS_MAX
        );
        ("dataset.parquet.row_group_size", message, "use larger row groups, or more files")
    } else {
        return None;
    };
    Some(UnsupportedSetting { key, message, hint: hint.to_string() })
}

/// Name of an enumeration value, given the names of all values separated by spaces.
fn enum_name(names: &'static str, code: i64) -> Option<&'static str> {
    names.split(' ').nth(usize::try_from(code).ok()?)
}
