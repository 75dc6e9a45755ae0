//! Finds the fields of variable length in an element type. Such a field refers to values in a heap of the file.

use super::blocks::{FieldReader, ParseResult, invalid};

/// Upper limit on the fields of an element that are followed.
const FIELDS_MAX: usize = 8;
/// Upper limit on nested types.
const DEPTH_MAX: usize = 16;
/// Classes of element types.
const INTEGER: u8 = 0;
const FLOAT: u8 = 1;
const TIME: u8 = 2;
const STRING: u8 = 3;
const BITS: u8 = 4;
const OPAQUE: u8 = 5;
const COMPOUND: u8 = 6;
const REFERENCE: u8 = 7;
const ENUMERATION: u8 = 8;
const VARIABLE_LENGTH: u8 = 9;
const ARRAY: u8 = 10;

/// The fields of variable length of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VariableFields {
    fields: [VariableField; FIELDS_MAX],
    count: usize,
    /// Whether there are, or may be, others that are not followed.
    pub(super) has_others: bool,
}

/// A field: the number of items, then the position of their values in a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VariableField {
    /// Offset in the element.
    pub(super) offset: usize,
    /// Length of an item.
    pub(super) item_bytes: u64,
}

impl VariableFields {
    /// Reads a datatype message. A type that is not understood may have other fields.
    pub(super) fn read(mut body: FieldReader) -> Self {
        let mut found = VariableFields::default();
        if !matches!(
            body.clone().u8().map(|head| head & 15),
            Ok(COMPOUND | VARIABLE_LENGTH | ARRAY)
        ) {
            return found;
        }
        match found.walk(&mut body, 0, DEPTH_MAX) {
            Ok(bytes) => {
                let end = body.reference_bytes();
                let is_outside = |field: &VariableField| field.offset as u64 + end > bytes;
                if found.list().iter().any(is_outside) {
                    return VariableFields { has_others: true, ..Self::default() };
                }
            }
            Err(_) => found.has_others = true,
        }
        found
    }

    pub(super) fn list(&self) -> &[VariableField] {
        &self.fields[..self.count]
    }

    fn add(&mut self, offset: u64, item_bytes: u64) {
        match (self.fields.get_mut(self.count), usize::try_from(offset)) {
            (Some(field), Ok(offset)) => {
                *field = VariableField { offset, item_bytes };
                self.count += 1;
            }
            _ => self.has_others = true,
        }
    }

    /// Adds the fields of a type that begins at `offset` of the element. Returns the type's length.
    fn walk(&mut self, body: &mut FieldReader, offset: u64, depth: usize) -> ParseResult<u64> {
        let start = body.offset();
        let Some(depth) = depth.checked_sub(1) else {
            return invalid(start, format!("types in more than {DEPTH_MAX} others"));
        };
        let head = body.take(8)?;
        let (version, class) = (head[0] >> 4, head[0] & 15);
        let members = u16::from_le_bytes([head[1], head[2]]);
        let bytes = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        match class {
            INTEGER | BITS => body.skip(4)?,
            FLOAT => body.skip(12)?,
            TIME => body.skip(2)?,
            STRING | REFERENCE => {}
            OPAQUE => body.skip(usize::from(head[1]).next_multiple_of(8))?,
            COMPOUND => {
                for _ in 0..members {
                    self.walk_member(body, version, bytes, offset, depth)?;
                }
            }
            ENUMERATION => {
                let item_bytes = self.walk(body, offset, depth)?;
                for _ in 0..members {
                    skip_name(body, version)?;
                }
                body.skip(usize::from(members).saturating_mul(item_bytes as usize))?;
            }
            VARIABLE_LENGTH => {
                let mut items = VariableFields::default();
                let item_bytes = items.walk(body, 0, depth)?;
                self.add(offset, item_bytes);
                self.has_others |= items.count > 0 || items.has_others;
            }
            ARRAY => {
                let rank = body.u8()?;
                body.skip(if version < 3 { 3 } else { 0 })?;
                let mut count = 1u64;
                for _ in 0..rank {
                    count = count.saturating_mul(body.u32()?.into());
                }
                body.skip(if version < 3 { 4 * usize::from(rank) } else { 0 })?;
                self.walk_items(body, offset, count, depth)?;
            }
            _ => return invalid(start, format!("a type of class `{class}`")),
        }
        Ok(bytes)
    }

    fn walk_member(
        &mut self,
        body: &mut FieldReader,
        version: u8,
        compound_bytes: u64,
        offset: u64,
        depth: usize,
    ) -> ParseResult<()> {
        skip_name(body, version)?;
        let width = if version < 3 { 4 } else { compound_bytes.max(1).ilog2() as usize / 8 + 1 };
        let member = offset.saturating_add(body.number(width)?);
        let mut count = 1u64;
        if version == 1 {
            let rank = body.u8()?;
            body.skip(11)?;
            for axis in 0..4 {
                let dim = body.u32()?;
                count = count.saturating_mul(if axis < rank { dim.into() } else { 1 });
            }
        }
        self.walk_items(body, member, count, depth)
    }

    /// Adds the fields of `count` items of a type, one after another from `offset` of the element on.
    fn walk_items(
        &mut self,
        body: &mut FieldReader,
        offset: u64,
        count: u64,
        depth: usize,
    ) -> ParseResult<()> {
        let first = body.clone();
        let fields = self.count;
        let item_bytes = self.walk(body, offset, depth)?;
        for i in 1..count {
            if self.count == fields || self.has_others {
                break;
            }
            let item = offset.saturating_add(i.saturating_mul(item_bytes));
            self.walk(&mut first.clone(), item, depth)?;
        }
        Ok(())
    }
}

/// Skips a name that ends with a zero; in old versions, to a multiple of 8 bytes.
fn skip_name(body: &mut FieldReader, version: u8) -> ParseResult<()> {
    let mut bytes = 1usize;
    while body.u8()? != 0 {
        bytes += 1;
    }
    body.skip(if version < 3 { bytes.next_multiple_of(8) - bytes } else { 0 })
}
