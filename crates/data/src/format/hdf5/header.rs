//! Walks over the messages of object headers of versions 1 and 2, including continuation blocks.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};

/// Upper limit on the continuation blocks of one object header, so that a chain with a loop is refused. The library appends one for
/// each attribute that is written between other objects.
const BLOCKS_MAX: usize = 2048;
/// Upper limit on their total length.
const BYTES_MAX: u64 = 8 << 20;
const CONTINUATION: u16 = 0x10;
/// Flag of a message that contains only the address of a shared message.
const SHARED: u8 = 2;

/// One message.
pub(super) struct HeaderMessage<'b> {
    pub(super) kind: u16,
    pub(super) is_shared: bool,
    pub(super) body: FieldReader<'b>,
}

/// Calls `visit` with each message of the object at `address`.
pub(super) fn for_each_message<'b>(
    blocks: &'b FileBlocks,
    address: u64,
    visit: &mut dyn FnMut(HeaderMessage<'b>) -> ParseResult<()>,
) -> ParseResult<()> {
    let (first, head_bytes) = first_block(blocks, address)?;
    let found = Vec::new();
    let mut walk = HeaderWalk { blocks, head_bytes, bytes_left: BYTES_MAX, found, visit };
    walk.walk_block(first)?;
    let mut next = 0;
    while let Some(block) = walk.found.get(next).cloned() {
        walk.walk_block(block)?;
        next += 1;
    }
    Ok(())
}

/// Length of a message header in version 1. In version 2 it is shorter.
const V1_HEAD_BYTES: usize = 8;

/// The first block of an object header, and the length of a message header.
fn first_block(blocks: &FileBlocks, address: u64) -> ParseResult<(FieldReader<'_>, usize)> {
    let prefix = blocks.peek(address, 16)?;
    blocks.count_parsed(address, 16)?;
    if prefix.starts_with(b"OHDR") {
        let mut fields = blocks.field_reader(prefix, address);
        fields.skip(4)?;
        let version = fields.u8()?;
        if version != 2 {
            return invalid(address, format!("object header of version `{version}`, not 2"));
        }
        let flags = fields.u8()?;
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let limits = if flags & 0x10 != 0 { 4 } else { 0 };
        let width = 1 << (flags & 3);
        let head = 6 + times + limits;
        let size = blocks.fields(address + head as u64, width)?.number(width as usize)?;
        let block_bytes = (head as u64 + width + 4).saturating_add(size);
        blocks.count_parsed(address, block_bytes)?;
        let mut fields = blocks.checked_fields(address, block_bytes, "OHDR")?;
        fields.skip(head - 4 + width as usize)?;
        return Ok((fields, if flags & 4 != 0 { 6 } else { 4 }));
    }
    let mut fields = blocks.field_reader(prefix, address);
    let version = fields.u8()?;
    if version != 1 {
        return invalid(address, "no object header where one should be");
    }
    fields.skip(7)?;
    let size = fields.u32()?.into();
    blocks.count_parsed(address, size)?;
    Ok((blocks.fields(address + 16, size)?, V1_HEAD_BYTES))
}

struct HeaderWalk<'w, 'b> {
    blocks: &'b FileBlocks,
    head_bytes: usize,
    bytes_left: u64,
    /// The continuation blocks, in the order in which they were found.
    found: Vec<FieldReader<'b>>,
    visit: &'w mut dyn FnMut(HeaderMessage<'b>) -> ParseResult<()>,
}

impl<'b> HeaderWalk<'_, 'b> {
    fn walk_block(&mut self, mut fields: FieldReader<'b>) -> ParseResult<()> {
        let is_version_1 = self.head_bytes == V1_HEAD_BYTES;
        // A remainder shorter than a message header is a gap.
        while fields.remaining() >= self.head_bytes {
            let kind = if is_version_1 { fields.u16()? } else { fields.u8()?.into() };
            let bytes = fields.u16()?;
            let flags = fields.u8()?;
            fields.skip(if is_version_1 { 3 } else { self.head_bytes - 4 })?;
            let mut body = fields.clone();
            body.truncate(bytes.into())?;
            fields.skip(bytes.into())?;
            match kind {
                CONTINUATION => self.add_continuation(body)?,
                _ => (self.visit)(HeaderMessage { kind, is_shared: flags & SHARED != 0, body })?,
            }
        }
        Ok(())
    }

    /// Adds the block that a continuation message points to.
    fn add_continuation(&mut self, mut body: FieldReader) -> ParseResult<()> {
        let offset = body.offset();
        let (Some(start), bytes) = (body.address()?, body.length()?) else {
            return invalid(offset, "a continuation of an object header has no address");
        };
        let left = self.bytes_left.checked_sub(bytes).filter(|_| self.found.len() < BLOCKS_MAX);
        let Some(left) = left else {
            let limits = format!("{BLOCKS_MAX} blocks or {BYTES_MAX} bytes");
            return invalid(offset, format!("an object header in more than {limits}"));
        };
        self.bytes_left = left;
        self.blocks.count_parsed(start, bytes)?;
        self.found.push(if self.head_bytes == V1_HEAD_BYTES {
            self.blocks.fields(start, bytes)?
        } else {
            self.blocks.checked_fields(start, bytes, "OCHK")?
        });
        Ok(())
    }
}
