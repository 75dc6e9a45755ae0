//! Fractal heaps, which contain the links of groups with more than 8 of them. Only managed objects are found: links are
//! short.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};

/// Upper limit on the nested indirect blocks of a heap.
const DEPTH_MAX: usize = 16;
/// Upper limit on the bits of a heap's length, so that shifts do not overflow.
const BITS_MAX: u16 = 48;
/// Type of managed objects in a heap identifier.
const MANAGED: u8 = 0;

/// A heap, as its header describes it.
pub(super) struct FractalHeap<'b> {
    blocks: &'b FileBlocks,
    /// Address of the header.
    address: u64,
    /// Length of an offset in the heap.
    offset_bytes: usize,
    /// Length of the field with an object's length.
    object_length_bytes: usize,
    /// Number of blocks in a row.
    width: u64,
    /// Length of the blocks in the first row.
    first_block_bytes: u64,
    /// Number of rows with direct blocks.
    direct_rows: u64,
    root: Option<u64>,
    /// Number of rows in the root block; 0 if it is a direct block.
    root_rows: u64,
}

impl<'b> FractalHeap<'b> {
    /// Reads the header at `address`.
    pub(super) fn read(blocks: &'b FileBlocks, address: u64) -> ParseResult<Self> {
        let widths = 12 * blocks.length_bytes + 3 * blocks.address_bytes;
        let mut fields = blocks.checked_fields(address, 26 + widths as u64, "FRHP")?;
        fields.skip(3)?;
        let filter_bytes = fields.u16()?;
        fields.skip(1)?;
        let object_bytes_max = fields.u32()?;
        fields.skip(10 * blocks.length_bytes + 2 * blocks.address_bytes)?;
        let width = fields.u16()?;
        let first_block_bytes = fields.length()?;
        let direct_bytes_max = fields.length()?;
        let bits = fields.u16()?;
        fields.skip(2)?;
        let root = fields.address()?;
        let root_rows = u64::from(fields.u16()?);
        let are_powers = first_block_bytes.is_power_of_two() && direct_bytes_max.is_power_of_two();
        if filter_bytes > 0 {
            return invalid(address, "a filtered heap of links: it is not read");
        }
        if width == 0 || !are_powers || first_block_bytes > direct_bytes_max || bits > BITS_MAX {
            return invalid(address, "a heap with inconsistent numbers");
        }
        let object_field_bytes = object_bytes_max.max(1).ilog2() / 8 + 1;
        let object_length_bytes = object_field_bytes.min(direct_bytes_max.ilog2().div_ceil(8));
        Ok(FractalHeap {
            blocks,
            address,
            offset_bytes: usize::from(bits.div_ceil(8)),
            object_length_bytes: object_length_bytes as usize,
            width: width.into(),
            first_block_bytes,
            direct_rows: u64::from(direct_bytes_max.ilog2() - first_block_bytes.ilog2()) + 2,
            root,
            root_rows,
        })
    }

    /// The object with the identifier `id`.
    pub(super) fn object(&self, mut id: FieldReader) -> ParseResult<FieldReader<'b>> {
        let at = id.offset();
        if (id.u8()? >> 4) & 3 != MANAGED {
            return invalid(at, "a link outside the blocks of its heap");
        }
        let offset = id.number(self.offset_bytes)?;
        let bytes = id.number(self.object_length_bytes)?;
        let Some(root) = self.root else { return invalid(at, "a link in an empty heap") };
        let start = self.find(root, self.root_rows, offset, DEPTH_MAX)?;
        self.blocks.fields(start, bytes)
    }

    /// Length of the blocks in a row; saturating.
    fn block_bytes(&self, row: u64) -> u64 {
        let shift = u32::try_from(row.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_block_bytes.checked_shl(shift).filter(|bytes| *bytes > 0).unwrap_or(u64::MAX)
    }

    /// Offset of a row in its block; saturating.
    fn row_start(&self, row: u64) -> u64 {
        if row == 0 { 0 } else { self.width.saturating_mul(self.block_bytes(row)) }
    }

    /// Offset in the file of the byte at `offset` of the block at `address` with `rows` rows; a block without rows is direct.
    fn find(&self, address: u64, rows: u64, offset: u64, depth: usize) -> ParseResult<u64> {
        if rows == 0 {
            return match address.checked_add(offset) {
                Some(start) => Ok(start),
                None => invalid(address, "a link beyond any file"),
            };
        }
        let row = (0..rows).take_while(|row| self.row_start(*row) <= offset).last().unwrap_or(0);
        let block_bytes = self.block_bytes(row);
        let in_row = offset - self.row_start(row);
        let column = in_row / block_bytes;
        if depth == 0 || column >= self.width || rows > u64::from(BITS_MAX) {
            return invalid(self.address, "a link outside its heap");
        }
        let entry = (row * self.width + column) * self.blocks.address_bytes as u64;
        let count =
            rows.saturating_mul(self.width).saturating_mul(self.blocks.address_bytes as u64);
        let head_bytes = 5 + self.blocks.address_bytes + self.offset_bytes;
        let bytes = (head_bytes as u64 + 4).saturating_add(count);
        let mut fields = self.blocks.checked_fields(address, bytes, "FHIB")?;
        fields.skip(head_bytes - 4 + entry as usize)?;
        let Some(child) = fields.address()? else {
            return invalid(address, "a link in a block that does not exist");
        };
        // An indirect block covers the range of one block of its row.
        let covered = block_bytes / self.width.saturating_mul(self.first_block_bytes).max(1);
        let child_rows =
            if row < self.direct_rows { 0 } else { u64::from(covered.max(1).ilog2()) + 1 };
        self.find(child, child_rows, in_row % block_bytes, depth - 1)
    }
}
