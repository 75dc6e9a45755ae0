//! The superblock, versions 0 to 3: where addresses count from, where the root group is.

use super::blocks::{FileBlocks, Parsed, bad};
use super::{SIGNATURE, checksum};

/// Behind a user block of 512 bytes, or of twice as many, and so on to this.
const OFFSET_MAX: u64 = 1 << 20;
/// The longest superblock, and what follows it.
const BYTES_MAX: u64 = 128;

/// Read the superblock, and tell `blocks` of it: where the root group's object header lies.
pub(super) fn root(blocks: &mut FileBlocks) -> Parsed<u64> {
    let offset = find(blocks)?;
    let block = blocks.peek(offset, BYTES_MAX)?;
    let mut fields = blocks.fields_of(block, offset);
    fields.skip(SIGNATURE.len())?;
    let version = fields.u8()?;
    if version > 3 {
        return bad(offset, format!("superblock of version `{version}`, not 0 to 3"));
    }
    let old = version < 2;
    fields.skip(if old { 4 } else { 0 })?;
    let (address_bytes, length_bytes) = (fields.u8()?, fields.u8()?);
    // A byte, the groups' K's, flags; in version 1 the K of chunk indexes too. Later flags alone.
    fields.skip([9, 13, 1, 1][usize::from(version)])?;
    if ![2, 4, 8].contains(&address_bytes) || ![2, 4, 8].contains(&length_bytes) {
        let message =
            format!("addresses of `{address_bytes}` and lengths of `{length_bytes}` bytes");
        return bad(offset, message);
    }
    // The fields know no lengths and no base yet.
    let width = usize::from(address_bytes);
    let base = fields.number(width)?;
    fields.skip(width)?;
    let end = fields.number(width)?;
    if old {
        // The driver's block, then the root's name.
        fields.skip(2 * width)?;
    }
    let root = fields.number(width)?;
    if !old {
        let len = (fields.offset() - offset) as usize;
        let sum = fields.u32()?;
        if checksum::lookup3(&block[..len]) != sum {
            return bad(offset, "the superblock's checksum is wrong");
        }
    }
    let file_bytes = blocks.file_bytes;
    if end > file_bytes {
        return bad(file_bytes, format!("the file ends, but it says it is {end} bytes long"));
    }
    if base > offset {
        return bad(offset, format!("addresses count from `{base}`, behind the superblock"));
    }
    let Some(root) = root.checked_add(base).filter(|root| *root < file_bytes) else {
        return bad(offset, "there is no root group");
    };
    blocks.base = base;
    blocks.address_bytes = width;
    blocks.length_bytes = usize::from(length_bytes);
    Ok(root)
}

fn find(blocks: &FileBlocks) -> Parsed<u64> {
    let mut offset = 0;
    while offset <= OFFSET_MAX && offset + SIGNATURE.len() as u64 <= blocks.file_bytes {
        if blocks.get(offset, SIGNATURE.len() as u64)? == SIGNATURE {
            return Ok(offset);
        }
        offset = if offset == 0 { 512 } else { offset * 2 };
    }
    bad(0, "not an HDF5 file: no superblock begins with `\\x89HDF\\r\\n\\x1a\\n`")
}
