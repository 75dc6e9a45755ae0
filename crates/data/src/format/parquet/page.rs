//! Reads the header of a page.

use super::thrift::{self, ThriftError, ThriftValue};

/// Kinds of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Data page of version 1: levels and values are compressed together.
    Data,
    /// Data page of version 2: levels are not compressed.
    DataV2,
    Dictionary,
    /// Any other page; skipped.
    #[default]
    Other,
}

/// Fields of a page header. Lengths are not checked, but they are never negative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    pub(super) bytes: u64,
    pub(super) packed_bytes: u64,
    pub(super) values: u64,
    pub(super) encoding: Option<i64>,
    /// Encoding of the definition levels, in a page of version 1.
    pub(super) level_encoding: Option<i64>,
    /// Length of the definition levels, in a page of version 2.
    pub(super) level_bytes: u64,
    pub(super) repetition_bytes: u64,
    /// Whether the values are stored without compression despite the codec.
    pub(super) is_uncompressed: bool,
}

impl PageHeader {
    /// Reads the header at the start of `bytes`, and returns it with its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(PageHeader, usize), ThriftError> {
        let mut header = PageHeader::default();
        let len = thrift::read(bytes, &mut |path, value| {
            match (path, value) {
                ([1], ThriftValue::Int(kind)) => {
                    header.kind = match kind {
                        0 => PageKind::Data,
                        2 => PageKind::Dictionary,
                        3 => PageKind::DataV2,
                        _ => PageKind::Other,
                    }
                }
                ([2], _) => header.bytes = read_count(value)?,
                ([3], _) => header.packed_bytes = read_count(value)?,
                ([5 | 7 | 8, 1], _) => header.values = read_count(value)?,
                ([5 | 7, 2] | [8, 4], ThriftValue::Int(code)) => header.encoding = Some(code),
                ([5, 3], ThriftValue::Int(code)) => header.level_encoding = Some(code),
                ([8, 5], _) => header.level_bytes = read_count(value)?,
                ([8, 6], _) => header.repetition_bytes = read_count(value)?,
                ([8, 7], ThriftValue::Bool(is_packed)) => header.is_uncompressed = !is_packed,
                _ => {}
            }
            Ok(())
        })?;
        Ok((header, len))
    }
}

/// A number that must not be negative or longer than 32 bits.
fn read_count(value: ThriftValue) -> Result<u64, ThriftError> {
    let count = value.unsigned()?;
    if u32::try_from(count).is_ok() { Ok(count) } else { Err(ThriftError::Broken) }
}
