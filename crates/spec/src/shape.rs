//! Elements, dimensions and the shape of one file. Values only.

use serde::{Deserialize, Serialize};

/// The most dimensions a sample may have.
pub const DIMS_MAX: usize = 8;

/// A numpy element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are numpy's")]
pub enum Element {
    Uint8,
    Int8,
    Uint16,
    Int16,
    Uint32,
    Int32,
    Uint64,
    Int64,
    Float16,
    Float32,
    Float64,
}

impl Element {
    /// Every element type, in numpy's order.
    pub const ALL: [Element; 11] = [
        Element::Uint8,
        Element::Int8,
        Element::Uint16,
        Element::Int16,
        Element::Uint32,
        Element::Int32,
        Element::Uint64,
        Element::Int64,
        Element::Float16,
        Element::Float32,
        Element::Float64,
    ];

    /// Its name, its `descr`, and its bytes.
    fn row(self) -> (&'static str, &'static str, u64) {
        match self {
            Element::Uint8 => ("uint8", "|u1", 1),
            Element::Int8 => ("int8", "|i1", 1),
            Element::Uint16 => ("uint16", "<u2", 2),
            Element::Int16 => ("int16", "<i2", 2),
            Element::Uint32 => ("uint32", "<u4", 4),
            Element::Int32 => ("int32", "<i4", 4),
            Element::Uint64 => ("uint64", "<u8", 8),
            Element::Int64 => ("int64", "<i8", 8),
            Element::Float16 => ("float16", "<f2", 2),
            Element::Float32 => ("float32", "<f4", 4),
            Element::Float64 => ("float64", "<f8", 8),
        }
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        self.row().2
    }

    /// numpy's name, as in `record_element_type`.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The `descr` of an npy header, little-endian.
    pub fn npy_descr(self) -> &'static str {
        self.row().1
    }
}

/// The dimensions of one sample, without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    count: usize,
    extents: [u64; DIMS_MAX],
}

impl Dims {
    /// `None` if there are more than [`DIMS_MAX`].
    pub fn new(extents: &[u64]) -> Option<Self> {
        let mut all = [1; DIMS_MAX];
        all.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(Dims { count: extents.len(), extents: all })
    }

    /// The extents, outermost first.
    pub fn as_slice(&self) -> &[u64] {
        &self.extents[..self.count]
    }

    /// Elements in a sample; saturates instead of overflowing.
    pub fn elements(&self) -> u64 {
        self.as_slice().iter().fold(1, |product: u64, &d| product.saturating_mul(d))
    }
}

/// Content of one file: `samples` samples of the same dimensions and element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShape {
    /// Dimensions of each sample.
    pub dims: Dims,
    /// Element type.
    pub element: Element,
    /// Samples in the file.
    pub samples: u64,
}

impl FileShape {
    /// Payload bytes of one sample.
    pub fn sample_bytes(&self) -> u64 {
        self.dims.elements().saturating_mul(self.element.bytes())
    }

    /// Payload bytes of the file, without headers.
    pub fn payload_bytes(&self) -> u64 {
        self.sample_bytes().saturating_mul(self.samples)
    }
}

/// Compression inside a file. The names are DLIO's; which of them a format has is in its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the methods")]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Lzf,
    Bz2,
    Zip,
    Xz,
}

impl Compression {
    const ALL: [Compression; 6] = [
        Compression::None,
        Compression::Gzip,
        Compression::Lzf,
        Compression::Bz2,
        Compression::Zip,
        Compression::Xz,
    ];

    /// As in `dataset.compression`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Lzf => "lzf",
            Compression::Bz2 => "bz2",
            Compression::Zip => "zip",
            Compression::Xz => "xz",
        }
    }

    /// The compression called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }
}

/// How much of the content repeats itself; one for the whole dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redundancy {
    /// Share of the bytes that are zeros, in short runs everywhere: compression saves about as much.
    pub compressible_percent: u32,
    /// Share of the content that stands elsewhere in the dataset too: deduplication saves about as much.
    pub duplicate_percent: u32,
}

/// How samples are written into files, beside their shape; one for the whole dataset. Formats read what concerns
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// Inside the file.
    pub compression: Compression,
    /// Level of the compression, 0 to 9.
    pub compression_level: u32,
    /// HDF5: dimensions of a chunk, the samples' axis first; empty means one contiguous piece.
    pub chunk_dims: Vec<u64>,
    /// HDF5: the largest shape of a dataset; empty means as it is.
    pub max_shape: Vec<u64>,
    /// HDF5: datasets that share a record along its first dimension.
    pub datasets_per_record: u64,
    /// Parquet: samples in a row group.
    pub row_group_samples: u64,
}

impl Default for Encoding {
    fn default() -> Self {
        Encoding {
            compression: Compression::None,
            compression_level: 4,
            chunk_dims: Vec::new(),
            max_shape: Vec::new(),
            datasets_per_record: 1,
            row_group_samples: 64,
        }
    }
}
