//! `hdf5`: datasets `records_0`, `records_1`, … with the samples along the first axis, and their `labels`, as DLIO
//! generates them (`hdf5_generator.py`). A sample is its part of each dataset, one after the other.
//!
//! Written to and read from the bytes themselves (HDF5 File Format Specification 3.0): the C library locks all of a
//! process out at once, and does its own I/O. Metadata is fetched once a file, as far as samples need it, and kept while
//! samples of that file are read.

mod plan;
mod metadata;
mod write;
mod checksum;
mod blocks;
mod superblock;
mod header;
mod message;
mod group;
mod open;
mod arrays;
mod index;
mod piece;
mod filter;
mod cursor;
#[cfg(test)]
mod tests;

use super::deflate::DeflateSink;
use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    in_words, length_of,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Compression, DIMS_MAX, Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "hdf5",
    summary: "HDF5 datasets with the samples along the first axis; a sample is read by itself.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::ServesSamples,
        Ability::EvenReads,
    ],
};

/// Dimensions of a dataset: a sample's, after the samples' axis.
const RANK_MAX: usize = DIMS_MAX + 1;
/// Address that means none.
const UNDEFINED: u64 = u64::MAX;
/// First bytes of every file.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// The filter that is zlib.
const DEFLATE: u16 = 1;

// 2: sizes are DLIO's, and a part's first dimension is left out where it is 1.
pub(super) static FORMAT: Format = Format {
    version: 2,
    begins: |head| head.starts_with(SIGNATURE),
    ..Format::new(
        FormatEntry {
            compressions: &[Compression::Gzip],
            encoding_keys: &[
                "dataset.compression_level",
                "dataset.hdf5.chunk_dims",
                "dataset.hdf5.max_shape",
                "dataset.hdf5.num_dset_per_record",
            ],
            unfit: plan::unfit,
            ..FormatEntry::new(&MEMBER, |shape, encoding| {
                plan::FilePlan::new(shape, encoding).file_bytes()
            })
        },
        |shape, encoding, content, sink| {
            write::file(&plan::FilePlan::new(shape, encoding), content, sink)
        },
        // The engine `libhdf5` serves samples alone.
        |options| {
            if options.samples_alone {
                return super::packed::cursor(options);
            }
            Box::new(cursor::Hdf5Cursor::new(options))
        },
    )
};

/// The product of dimensions, or the largest number.
fn product(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim))
}
