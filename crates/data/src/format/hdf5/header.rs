//! Object headers of versions 1 and 2 with their continuations: a walk over messages.

use super::blocks::{Blocks, Fields, Parsed, bad};

/// Upper limit on the blocks of one object header, the first included, so that reading a chain with a loop ends.
const BLOCKS_MAX: usize = 64;
const CONTINUATION: u16 = 0x10;
/// The message is kept elsewhere, and this is only where.
const SHARED: u8 = 2;

/// One message.
pub(super) struct Message<'b> {
    pub(super) kind: u16,
    pub(super) is_shared: bool,
    pub(super) body: Fields<'b>,
}

/// Give each message of the object at `address` to `take`.
pub(super) fn walk<'b>(
    blocks: &'b Blocks,
    address: u64,
    take: &mut dyn FnMut(Message<'b>) -> Parsed<()>,
) -> Parsed<()> {
    let (first, form) = first_block(blocks, address)?;
    let mut queue = Queue { slots: [(0, 0); BLOCKS_MAX], count: 0 };
    block(first, form, take, &mut queue)?;
    let mut done = 0;
    while done < queue.count {
        let (start, bytes) = queue.slots[done];
        done += 1;
        let fields = match form {
            Form::Old => blocks.fields(start, bytes)?,
            Form::New { .. } => blocks.checked(start, bytes, "OCHK")?,
        };
        block(fields, form, take, &mut queue)?;
    }
    Ok(())
}

/// Blocks that the header goes on in.
struct Queue {
    slots: [(u64, u64); BLOCKS_MAX],
    count: usize,
}

impl Queue {
    fn add(&mut self, mut body: Fields) -> Parsed<()> {
        let offset = body.offset();
        let (Some(start), bytes) = (body.address()?, body.length()?) else {
            return bad(offset, "an object header goes on nowhere");
        };
        let Some(slot) = self.slots.get_mut(self.count) else {
            return bad(offset, format!("an object header in more than {BLOCKS_MAX} blocks"));
        };
        *slot = (start, bytes);
        self.count += 1;
        Ok(())
    }
}

/// How messages begin.
#[derive(Clone, Copy)]
enum Form {
    Old,
    New { has_order: bool },
}

fn first_block(blocks: &Blocks, address: u64) -> Parsed<(Fields<'_>, Form)> {
    let prefix = blocks.peek(address, 16)?;
    if prefix.starts_with(b"OHDR") {
        let mut fields = blocks.fields_of(prefix, address);
        fields.skip(4)?;
        let version = fields.u8()?;
        if version != 2 {
            return bad(address, format!("object header of version `{version}`, not 2"));
        }
        let flags = fields.u8()?;
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let limits = if flags & 0x10 != 0 { 4 } else { 0 };
        let width = 1 << (flags & 3);
        let head = 6 + times + limits;
        let size = blocks.fields(address + head as u64, width)?.number(width as usize)?;
        let whole = (head as u64 + width + 4).saturating_add(size);
        let mut fields = blocks.checked(address, whole, "OHDR")?;
        fields.skip(head - 4 + width as usize)?;
        return Ok((fields, Form::New { has_order: flags & 4 != 0 }));
    }
    let mut fields = blocks.fields_of(prefix, address);
    let version = fields.u8()?;
    if version != 1 {
        return bad(address, "no object header where one should be");
    }
    fields.skip(7)?;
    let size = fields.u32()?;
    Ok((blocks.fields(address + 16, size.into())?, Form::Old))
}

fn block<'b>(
    mut fields: Fields<'b>,
    form: Form,
    take: &mut dyn FnMut(Message<'b>) -> Parsed<()>,
    queue: &mut Queue,
) -> Parsed<()> {
    let head_bytes = match form {
        Form::Old => 8,
        Form::New { has_order } => 4 + if has_order { 2 } else { 0 },
    };
    // What is left may be a gap.
    while fields.left() >= head_bytes {
        let (kind, bytes, flags) = match form {
            Form::Old => {
                let head = (fields.u16()?, fields.u16()?, fields.u8()?);
                fields.skip(3)?;
                head
            }
            Form::New { has_order } => {
                let head = (fields.u8()?.into(), fields.u16()?, fields.u8()?);
                fields.skip(if has_order { 2 } else { 0 })?;
                head
            }
        };
        let mut body = fields.clone();
        body.truncate(bytes.into())?;
        fields.skip(bytes.into())?;
        match kind {
            CONTINUATION => queue.add(body)?,
            _ => take(Message { kind, is_shared: flags & SHARED != 0, body })?,
        }
    }
    Ok(())
}
