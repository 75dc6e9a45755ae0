//! Reads the links of a group from its object header, its symbol table or, with many links, its heap.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use super::header::{self, HeaderMessage};
use super::heap::FractalHeap;
use super::index::TreeNode;
use super::tree2::Tree2;

/// Upper limit on the nodes of a symbol table's tree, so that a tree with a loop is refused.
const NODES_MAX: usize = 1024;
const NAME_BYTES_MAX: u64 = 256;
/// Type of the version 2 B-tree that lists links by the hashes of their names.
const LINKS_BY_NAME: u8 = 5;

/// Calls `take` with the name and the address of the object header of each object in the group at `address`.
pub(super) fn for_each_link(
    blocks: &FileBlocks,
    address: u64,
    visit: &mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
) -> ParseResult<()> {
    let mut table = None;
    let mut dense = None;
    header::for_each_message(blocks, address, &mut |HeaderMessage { kind, mut body, .. }| {
        match kind {
            0x02 => {
                body.skip(1)?;
                let flags = body.u8()?;
                body.skip(if flags & 1 != 0 { 8 } else { 0 })?;
                if let (Some(heap), Some(names)) = (body.address()?, body.address()?) {
                    dense = Some((heap, names));
                }
            }
            0x06 => visit_link(body, visit)?,
            0x11 => table = Some((body.address()?, body.address()?)),
            _ => {}
        }
        Ok(())
    })?;
    if let Some((heap, names)) = dense {
        let heap = FractalHeap::read(blocks, heap)?;
        Tree2::read(blocks, names, &[LINKS_BY_NAME])?.for_each(&mut |mut record| {
            // The hash of the name.
            record.skip(4)?;
            visit_link(heap.object(record)?, visit)
        })?;
    }
    match table {
        None => Ok(()),
        Some((Some(tree), Some(heap))) => {
            let mut walk = TableWalk { blocks, heap: heap_data(blocks, heap)?, nodes: 0, visit };
            walk.walk_node(tree, None)
        }
        Some(_) => invalid(address, "a group's symbol table has no address"),
    }
}

fn visit_link(
    mut body: FieldReader,
    visit: &mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
) -> ParseResult<()> {
    let offset = body.offset();
    let version = body.u8()?;
    let flags = body.u8()?;
    if version != 1 {
        return invalid(offset, format!("link of version `{version}`, not 1"));
    }
    let kind = if flags & 8 != 0 { body.u8()? } else { 0 };
    body.skip(if flags & 4 != 0 { 8 } else { 0 })?;
    body.skip(if flags & 16 != 0 { 1 } else { 0 })?;
    let name_bytes = body.number(1 << (flags & 3))?;
    let name = body.take(usize::try_from(name_bytes).unwrap_or(usize::MAX))?;
    // Soft and external links are ignored: their targets are found under another name, or are in another file.
    match (kind, if kind == 0 { body.address()? } else { None }) {
        (0, Some(address)) => visit(name, address),
        _ => Ok(()),
    }
}

/// Address and length of the names in a local heap.
fn heap_data(blocks: &FileBlocks, heap: u64) -> ParseResult<(u64, u64)> {
    let size = 8 + 2 * blocks.length_bytes + blocks.address_bytes;
    let mut fields = blocks.fields(heap, size as u64)?;
    if fields.take(4)? != b"HEAP" {
        return invalid(heap, "no heap of names where the symbol table says");
    }
    fields.skip(4)?;
    let bytes = fields.length()?;
    fields.length()?;
    match fields.address()? {
        Some(data) => Ok((data, bytes)),
        None => invalid(heap, "the heap of names has no address"),
    }
}

struct TableWalk<'w> {
    blocks: &'w FileBlocks,
    /// Address and length of the names.
    heap: (u64, u64),
    nodes: usize,
    visit: &'w mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
}

impl TableWalk<'_> {
    fn count_node(&mut self, address: u64) -> ParseResult<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return invalid(address, format!("a symbol table of more than {NODES_MAX} nodes"));
        }
        Ok(())
    }

    /// Walks the tree below a node. `parent_level` is the level of the node's parent.
    fn walk_node(&mut self, address: u64, parent_level: Option<u8>) -> ParseResult<()> {
        self.count_node(address)?;
        let key_bytes = self.blocks.length_bytes;
        let entry_bytes = key_bytes + self.blocks.address_bytes;
        let TreeNode { level, children, mut entries } = TreeNode::read(
            self.blocks,
            address,
            0,
            "a symbol table's tree",
            entry_bytes,
            parent_level,
        )?;
        for _ in 0..children {
            entries.skip(key_bytes)?;
            let Some(child) = entries.address()? else { continue };
            match level {
                0 => self.walk_leaf(child)?,
                _ => self.walk_node(child, Some(level))?,
            }
        }
        Ok(())
    }

    fn walk_leaf(&mut self, address: u64) -> ParseResult<()> {
        self.count_node(address)?;
        let mut head = self.blocks.fields(address, 8)?;
        if head.take(4)? != b"SNOD" {
            return invalid(address, "no symbols where a symbol table's tree says");
        }
        head.skip(2)?;
        let symbols = u64::from(head.u16()?);
        let symbol_bytes = 2 * self.blocks.address_bytes as u64 + 24;
        let mut body = self.blocks.fields(address + 8, symbols * symbol_bytes)?;
        for _ in 0..symbols {
            let name = body.number(self.blocks.address_bytes)?;
            let object = body.address()?;
            let kind = body.u32()?;
            body.skip(20)?;
            let (data, bytes) = self.heap;
            if name >= bytes {
                return invalid(body.offset(), "a symbol's name is outside the heap");
            }
            let Some(start) = data.checked_add(name) else {
                return invalid(body.offset(), "a symbol's name is outside the file");
            };
            let rest = self.blocks.peek(start, NAME_BYTES_MAX.min(bytes - name))?;
            let text = rest.split(|byte| *byte == 0).next().unwrap_or(rest);
            // 2 is a soft link.
            if let (Some(object), true) = (object, kind != 2) {
                (self.visit)(text, object)?;
            }
        }
        Ok(())
    }
}
