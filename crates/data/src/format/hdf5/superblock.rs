//! Reads the superblock, versions 0 to 3: the base address, the lengths of fields and the address of the root group.

use super::blocks::{FileBlocks, ParseResult, invalid};
use super::{SIGNATURE, checksum};

/// Upper limit on the offset of the superblock. It may follow a user block of 512 bytes, or of a larger power of two.
const OFFSET_MAX: u64 = 1 << 20;
/// Upper limit on the length of a superblock.
const BYTES_MAX: u64 = 128;

/// Reads the superblock, stores its properties in `blocks`, and returns the address of the root group's object header.
pub(super) fn read_root_address(blocks: &mut FileBlocks) -> ParseResult<u64> {
    let offset = find_superblock(blocks)?;
    let block = blocks.peek(offset, BYTES_MAX)?;
    let mut fields = blocks.field_reader(block, offset);
    fields.skip(SIGNATURE.len())?;
    let version = fields.u8()?;
    if version > 3 {
        return invalid(offset, format!("superblock of version `{version}`, not 0 to 3"));
    }
    let has_old_layout = version < 2;
    fields.skip(if has_old_layout { 4 } else { 0 })?;
    let address_bytes = fields.u8()?;
    let length_bytes = fields.u8()?;
    // Versions 0 and 1: a reserved byte, tree parameters and flags. Versions 2 and 3: only flags.
    fields.skip([9, 13, 1, 1][usize::from(version)])?;
    if ![2, 4, 8].contains(&address_bytes) || ![2, 4, 8].contains(&length_bytes) {
        let message =
            format!("addresses of `{address_bytes}` and lengths of `{length_bytes}` bytes");
        return invalid(offset, message);
    }
    // Addresses are read as numbers, because the base and the lengths of fields are not set yet.
    let width = usize::from(address_bytes);
    let base = fields.number(width)?;
    fields.skip(width)?;
    let end = fields.number(width)?;
    if has_old_layout {
        // The address of the driver information block, and the root's link name.
        fields.skip(2 * width)?;
    }
    let root = fields.number(width)?;
    if !has_old_layout {
        let len = (fields.offset() - offset) as usize;
        let stored_checksum = fields.u32()?;
        if checksum::lookup3(&block[..len]) != stored_checksum {
            return invalid(offset, "the superblock's checksum is wrong");
        }
    }
    let file_bytes = blocks.file_bytes;
    if end > file_bytes {
        return invalid(file_bytes, format!("the file ends, but its superblock says {end} bytes"));
    }
    if base > offset {
        return invalid(offset, format!("the base address `{base}` is after the superblock"));
    }
    let Some(root) = root.checked_add(base).filter(|root| *root < file_bytes) else {
        return invalid(offset, "there is no root group");
    };
    blocks.base = base;
    blocks.address_bytes = width;
    blocks.length_bytes = usize::from(length_bytes);
    Ok(root)
}

/// Offset of the superblock.
fn find_superblock(blocks: &FileBlocks) -> ParseResult<u64> {
    let mut offset = 0;
    while offset <= OFFSET_MAX && offset + SIGNATURE.len() as u64 <= blocks.file_bytes {
        if blocks.get(offset, SIGNATURE.len() as u64)? == SIGNATURE {
            return Ok(offset);
        }
        offset = if offset == 0 { 512 } else { offset * 2 };
    }
    invalid(0, "not an HDF5 file: no superblock begins with `\\x89HDF\\r\\n\\x1a\\n`")
}
