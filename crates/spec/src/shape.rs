//! Element types, dimensions, encoding and the shape of a file. They are plain values without I/O.

use crate::names;
use serde::{Deserialize, Serialize};

/// Maximum number of dimensions of a sample.
pub const DIMS_MAX: usize = 8;

names! {
    /// A numpy element type, in numpy's order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[expect(missing_docs, reason = "the names are numpy's")]
    pub enum Element {
        #[default]
        Uint8 = "uint8",
        Int8 = "int8",
        Uint16 = "uint16",
        Int16 = "int16",
        Uint32 = "uint32",
        Int32 = "int32",
        Uint64 = "uint64",
        Int64 = "int64",
        Float16 = "float16",
        Float32 = "float32",
        Float64 = "float64",
    }
}

impl Element {
    /// Returns the bytes of one element: the last digit of numpy's `descr`.
    pub fn bytes(self) -> u64 {
        u64::from(self.npy_descr().as_bytes()[2] - b'0')
    }

    /// Returns the `descr` of an npy header, little-endian.
    pub fn npy_descr(self) -> &'static str {
        match self {
            Element::Uint8 => "|u1",
            Element::Int8 => "|i1",
            Element::Uint16 => "<u2",
            Element::Int16 => "<i2",
            Element::Uint32 => "<u4",
            Element::Int32 => "<i4",
            Element::Uint64 => "<u8",
            Element::Int64 => "<i8",
            Element::Float16 => "<f2",
            Element::Float32 => "<f4",
            Element::Float64 => "<f8",
        }
    }
}

names! {
    /// Element type of the state of a model or an optimizer, by its name in workloads.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StateType {
        /// Signed 8-bit integers.
        Int8 = "int8",
        /// Unsigned 8-bit integers.
        Uint8 = "uint8",
        /// 16-bit IEEE floats.
        Fp16 = "fp16",
        /// 16-bit floats with the exponent range of 32-bit ones (bfloat16).
        Bf16 = "bf16",
        /// 32-bit floats.
        Fp32 = "fp32",
        /// 64-bit floats.
        Fp64 = "fp64",
    }
}

impl StateType {
    /// Returns the bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            StateType::Int8 | StateType::Uint8 => 1,
            StateType::Fp16 | StateType::Bf16 => 2,
            StateType::Fp32 => 4,
            StateType::Fp64 => 8,
        }
    }
}

/// The dimensions of one sample, stored without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    count: usize,
    extents: [u64; DIMS_MAX],
}

impl Dims {
    /// Stores the extents, outermost first; `None` if there are more than [`DIMS_MAX`].
    pub fn new(extents: &[u64]) -> Option<Self> {
        let mut all = [1; DIMS_MAX];
        all.get_mut(..extents.len())?.copy_from_slice(extents);
        Some(Dims { count: extents.len(), extents: all })
    }

    /// Returns the extents, outermost first.
    pub fn as_slice(&self) -> &[u64] {
        &self.extents[..self.count]
    }

    /// Returns the number of elements in a sample; saturates instead of overflowing.
    pub fn elements(&self) -> u64 {
        self.as_slice().iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }
}

/// Shape of one file: `samples` samples of the same dimensions and element type.
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
    /// Returns the payload bytes of one sample.
    pub fn sample_bytes(&self) -> u64 {
        self.dims.elements().saturating_mul(self.element.bytes())
    }

    /// Returns the payload bytes of the file, without headers.
    pub fn payload_bytes(&self) -> u64 {
        self.sample_bytes().saturating_mul(self.samples)
    }
}

names! {
    /// Compression inside a file, by DLIO's names. Each format lists the compressions that it supports.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[expect(missing_docs, reason = "the names are well-known methods")]
    pub enum Compression {
        #[default]
        None = "none",
        Gzip = "gzip",
        Lzf = "lzf",
        Bz2 = "bz2",
        Zip = "zip",
        Xz = "xz",
    }
}

names! {
    /// Type of a column's values, by the names of DLIO.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[expect(missing_docs, reason = "the names are well-known types")]
    pub enum ColumnType {
        Uint8 = "uint8",
        Uint16 = "uint16",
        Uint32 = "uint32",
        Uint64 = "uint64",
        Int8 = "int8",
        Int16 = "int16",
        Int32 = "int32",
        Int64 = "int64",
        Float16 = "float16",
        #[default]
        Float32 = "float32",
        Float64 = "float64",
        List = "list",
        String = "string",
        Binary = "binary",
        Bool = "bool",
    }
}

/// A column of generated files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableColumn {
    /// Name in the file.
    pub name: String,
    /// Type of its values.
    #[serde(rename = "dtype")]
    pub column_type: ColumnType,
    /// Values in a row, or bytes of `binary`.
    pub size: u64,
}

impl TableColumn {
    /// Length of a short text, as DLIO generates it, with the length that precedes it in a file.
    const TEXT_BYTES: u64 = 16;

    /// Returns the stored bytes of a value. Parquet stores small integers in 4 bytes, or in 1 by a dictionary.
    pub fn value_bytes(&self) -> u64 {
        match self.column_type {
            ColumnType::Uint8 | ColumnType::Int8 | ColumnType::Bool => 1,
            ColumnType::Float16 => 2,
            ColumnType::Uint64 | ColumnType::Int64 | ColumnType::Float64 => 8,
            ColumnType::String => Self::TEXT_BYTES,
            ColumnType::Binary => self.size,
            _ => 4,
        }
    }

    /// Returns the number of values in a row.
    pub fn row_values(&self) -> u64 {
        let is_single =
            matches!(self.column_type, ColumnType::String | ColumnType::Binary | ColumnType::Bool);
        if is_single { 1 } else { self.size }
    }

    /// Returns the stored bytes of a row; saturates instead of overflowing.
    pub fn row_bytes(&self) -> u64 {
        self.value_bytes().saturating_mul(self.row_values())
    }
}

/// Redundancy of a dataset's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redundancy {
    /// Share of the bytes that are zeros, spread in short runs. Compression saves about this share.
    pub compressible_percent: u32,
    /// Share of the content that occurs repeatedly in the dataset. Deduplication saves about this share.
    pub duplicate_percent: u32,
}

/// Settings for writing samples into files, in addition to the shape. They apply to the whole dataset; each format uses some of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// Compression inside the file.
    pub compression: Compression,
    /// Level of the compression, 0 to 9.
    pub compression_level: u32,
    /// HDF5: dimensions of a chunk, the sample axis first; empty for a contiguous layout.
    pub chunk_dims: Vec<u64>,
    /// HDF5: maximum shape of a dataset; empty for its actual shape.
    pub max_shape: Vec<u64>,
    /// HDF5: number of datasets into which each record is split along its first dimension.
    pub datasets_per_record: u64,
    /// Parquet: samples in a row group.
    pub row_group_samples: u64,
    /// Parquet: columns; empty for a column with the sample and one with its label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<TableColumn>,
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
            columns: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_names() {
        for element in Element::ALL {
            assert_eq!(Element::from_name(element.name()), Some(element));
        }
        for compression in Compression::ALL {
            assert_eq!(Compression::from_name(compression.name()), Some(compression));
        }
        for element in StateType::ALL {
            assert_eq!(StateType::from_name(element.name()), Some(element));
        }
        assert_eq!(Element::from_name("Uint8"), None);
        assert_eq!(Compression::from_name(""), None);
    }

    #[test]
    fn element_sizes_match_their_names() {
        for (element, bytes, descr) in [
            (Element::Uint8, 1, "|u1"),
            (Element::Int16, 2, "<i2"),
            (Element::Float16, 2, "<f2"),
            (Element::Uint32, 4, "<u4"),
            (Element::Float32, 4, "<f4"),
            (Element::Int64, 8, "<i8"),
            (Element::Float64, 8, "<f8"),
        ] {
            assert_eq!((element.bytes(), element.npy_descr()), (bytes, descr));
        }
    }

    #[test]
    fn shapes_saturate_instead_of_overflowing() {
        let dims = Dims::new(&[u64::MAX, 2]).unwrap();
        assert_eq!(dims.elements(), u64::MAX);
        let shape = FileShape { dims, element: Element::Float64, samples: 3 };
        assert_eq!((shape.sample_bytes(), shape.payload_bytes()), (u64::MAX, u64::MAX));
        assert_eq!(Dims::new(&[]).unwrap().elements(), 1);
        assert!(Dims::new(&[1; DIMS_MAX + 1]).is_none());
    }
}
