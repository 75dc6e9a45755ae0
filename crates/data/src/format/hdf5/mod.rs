//! `hdf5`: datasets `records_0`, `records_1`, … with the samples along the first axis, and their `labels`, as DLIO
//! generates them (`hdf5_generator.py`). A sample is the concatenation of its parts in all datasets.
//!
//! Implements the HDF5 File Format Specification 3.0 directly, because the C library has one lock per process and does
//! its own I/O. Metadata is fetched once per file, as far as samples need it, and kept while samples of that file are
//! read.

mod plan;
mod metadata;
mod write;
mod checksum;
mod blocks;
mod superblock;
mod header;
mod message;
mod tree2;
mod heap;
mod group;
mod open;
mod arrays;
mod index;
mod piece;
mod filter;
mod cache;
mod references;
mod referenced;
mod variable;
mod cursor;
#[cfg(test)]
mod tests;

use super::deflate::DeflateSink;
use super::{
    Content, Cursor, CursorOptions, FileSink, Format, FormatError, Need, PayloadSink, SinkError,
    decode_length, describe_shape,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, UnsupportedSetting};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Compression, DIMS_MAX, Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "hdf5",
    summary: "HDF5 datasets with the samples along the first axis; each sample can be read separately.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::ServesSamples,
        Ability::EvenReads,
        Ability::ChoosesMembers,
    ],
};

/// Upper limit on the dimensions of a dataset: the axis of samples and the dimensions of a sample.
const RANK_MAX: usize = DIMS_MAX + 1;
/// The undefined address.
const UNDEFINED: u64 = u64::MAX;
/// Upper limit on a chunk, band or heap that must be in memory at once.
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// First bytes of every file.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Positions of the signature in the head of a file, which can have a block of another program before it, as MATLAB's files have.
const SIGNATURE_OFFSETS: [usize; 4] = [0, 512, 1024, 2048];
/// Identifier of the deflate filter.
const DEFLATE: u16 = 1;

// Version 3: metadata as h5py writes it by default.
pub(super) static FORMAT: Format = Format {
    version: 3,
    is_recognised: |head| {
        let mut ends = SIGNATURE_OFFSETS.iter().filter_map(|offset| head.get(*offset..));
        ends.any(|end| end.starts_with(SIGNATURE))
    },
    ..Format::new(
        FormatEntry {
            library: Some(Library::H5py),
            compressions: &[Compression::Gzip],
            encoding_keys: &[
                "dataset.compression_level",
                "dataset.hdf5.chunk_dims",
                "dataset.hdf5.max_shape",
                "dataset.hdf5.num_dset_per_record",
            ],
            unsupported_setting: plan::find_unsupported_setting,
            ..FormatEntry::new(&MEMBER, |shape, encoding| {
                plan::FilePlan::new(shape, encoding).file_bytes()
            })
        },
        |shape, encoding, content, sink| {
            write::write_file(&plan::FilePlan::new(shape, encoding), content, sink)
        },
        // The engine `libhdf5` serves only payload.
        |options| {
            if options.is_payload_only {
                return super::packed::cursor(options);
            }
            Box::new(cursor::Hdf5Cursor::new(options))
        },
    )
};

/// The product of dimensions, saturating.
fn product(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim))
}
