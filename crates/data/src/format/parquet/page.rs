//! The header of a page.

use super::thrift::{Reader, ThriftError};

/// Kinds of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Levels and values, packed together.
    Data,
    /// Levels are not packed.
    DataV2,
    Dictionary,
    /// Nothing that is needed.
    Other,
}

/// Fields of a page header; lengths are as claimed, but never negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    pub(super) bytes: u64,
    pub(super) packed_bytes: u64,
    pub(super) values: u64,
    pub(super) encoding: i64,
    /// Encoding of the levels, in a page of version 1.
    pub(super) level_encoding: i64,
    /// Length of the definition levels, in a page of version 2.
    pub(super) level_bytes: u64,
    pub(super) repetition_bytes: u64,
    pub(super) is_packed: bool,
}

impl PageHeader {
    /// The header that `bytes` begin with, and its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(PageHeader, usize), ThriftError> {
        let mut header = PageHeader {
            kind: PageKind::Other,
            bytes: 0,
            packed_bytes: 0,
            values: 0,
            encoding: -1,
            level_encoding: -1,
            level_bytes: 0,
            repetition_bytes: 0,
            is_packed: true,
        };
        let mut reader = Reader::new(bytes);
        reader.fields(&mut |r, id, kind| {
            match id {
                1 => {
                    header.kind = match r.int(kind)? {
                        0 => PageKind::Data,
                        2 => PageKind::Dictionary,
                        3 => PageKind::DataV2,
                        _ => PageKind::Other,
                    }
                }
                2 => header.bytes = count(r.int(kind)?)?,
                3 => header.packed_bytes = count(r.int(kind)?)?,
                5 | 7 | 8 => r.inner(kind, &mut |r, field, kind| match (id, field) {
                    (_, 1) => header.set(&mut |h| &mut h.values, count(r.int(kind)?)?),
                    (5 | 7, 2) | (8, 4) => r.int(kind).map(|code| header.encoding = code),
                    (5, 3) => r.int(kind).map(|code| header.level_encoding = code),
                    (8, 5) => header.set(&mut |h| &mut h.level_bytes, count(r.int(kind)?)?),
                    (8, 6) => header.set(&mut |h| &mut h.repetition_bytes, count(r.int(kind)?)?),
                    (8, 7) => Reader::bool(kind).map(|is_packed| header.is_packed = is_packed),
                    _ => r.skip(kind),
                })?,
                _ => r.skip(kind)?,
            }
            Ok(())
        })?;
        Ok((header, reader.position()))
    }

    fn set(
        &mut self,
        field: &mut dyn FnMut(&mut Self) -> &mut u64,
        value: u64,
    ) -> Result<(), ThriftError> {
        *field(self) = value;
        Ok(())
    }
}

/// A number that cannot be negative, nor longer than 32 bits.
fn count(value: i64) -> Result<u64, ThriftError> {
    u32::try_from(value).map(u64::from).map_err(|_| ThriftError::Broken)
}
