//! Reads the links of a group from its object header, its symbol table or, with many links, its heap. Lists all of them, or looks one
//! up as the HDF5 library does.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use super::checksum;
use super::header::{self, HeaderMessage};
use super::heap::FractalHeap;
use super::index::TreeNode;
use super::tree2::Tree2;

/// Upper limit on the nodes of a symbol table's tree, so that a tree with a loop is refused.
const NODES_MAX: usize = 1024;
const NAME_BYTES_MAX: u64 = 256;
/// Type of the version 2 B-tree that lists links by the hashes of their names.
const LINKS_BY_NAME: u8 = 5;

/// Where the links of a group are, apart from those in its object header.
#[derive(Clone, Copy, Default)]
struct LinkTables {
    /// Addresses of the heap of links and of its index by name.
    dense: Option<[u64; 2]>,
    /// Addresses of the symbol table's tree and of its names.
    symbols: Option<[u64; 2]>,
}

/// Calls `visit` with the name and the address of the object header of each object in the group at `address`.
pub(super) fn for_each_link(
    blocks: &FileBlocks,
    address: u64,
    visit: &mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
) -> ParseResult<()> {
    let tables = read_header(blocks, address, visit)?;
    if let Some([heap, names]) = tables.dense {
        let heap = FractalHeap::read(blocks, heap)?;
        Tree2::read(blocks, names, &[LINKS_BY_NAME])?.for_each(&mut |mut record| {
            // The hash of the name.
            record.skip(4)?;
            visit_link(heap.object(record)?, visit)
        })?;
    }
    let Some([tree, heap]) = tables.symbols else { return Ok(()) };
    let heap = heap_data(blocks, heap)?;
    TableWalk { blocks, heap, nodes: 0, wanted: None, visit }.walk_node(tree, None)
}

/// Returns the address of the object header that the hard link `name` of the group at `address` leads to. `None` if it is not found,
/// which includes other kinds of links.
pub(super) fn find_link(
    blocks: &FileBlocks,
    address: u64,
    name: &[u8],
) -> ParseResult<Option<u64>> {
    let mut found = None;
    let mut visit = |link: &[u8], object: u64| {
        if link == name {
            found = Some(object);
        }
        Ok(())
    };
    let tables = read_header(blocks, address, &mut visit)?;
    if let Some([heap, names]) = tables.dense {
        let heap = FractalHeap::read(blocks, heap)?;
        let hash = checksum::lookup3(name);
        let tree = Tree2::read(blocks, names, &[LINKS_BY_NAME])?;
        if let Some(mut record) = tree.find(&|mut record| Ok(record.u32()?.cmp(&hash)))? {
            record.skip(4)?;
            visit_link(heap.object(record)?, &mut visit)?;
        }
    }
    if let Some([tree, heap]) = tables.symbols {
        let heap = heap_data(blocks, heap)?;
        TableWalk { blocks, heap, nodes: 0, wanted: Some(name), visit: &mut visit }
            .walk_node(tree, None)?;
    }
    Ok(found)
}

/// Reads a group's object header, and visits the links in it.
fn read_header(
    blocks: &FileBlocks,
    address: u64,
    visit: &mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
) -> ParseResult<LinkTables> {
    let mut tables = LinkTables::default();
    let mut has_no_address = false;
    header::for_each_message(blocks, address, &mut |HeaderMessage { kind, mut body, .. }| {
        match kind {
            0x02 => {
                body.skip(1)?;
                let flags = body.u8()?;
                body.skip(if flags & 1 != 0 { 8 } else { 0 })?;
                if let (Some(heap), Some(names)) = (body.address()?, body.address()?) {
                    tables.dense = Some([heap, names]);
                }
            }
            0x06 => visit_link(body, visit)?,
            0x11 => match (body.address()?, body.address()?) {
                (Some(tree), Some(heap)) => tables.symbols = Some([tree, heap]),
                _ => has_no_address = true,
            },
            _ => {}
        }
        Ok(())
    })?;
    if has_no_address {
        return invalid(address, "a group's symbol table has no address");
    }
    Ok(tables)
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
    /// The name that is looked up. Only the nodes that can contain it are visited.
    wanted: Option<&'w [u8]>,
    visit: &'w mut dyn FnMut(&[u8], u64) -> ParseResult<()>,
}

impl<'w> TableWalk<'w> {
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
        if let Some(wanted) = self.wanted {
            // The last child whose first key is before the name. A key is the name before its child.
            let mut low = 0;
            let mut high = children as usize;
            while low < high {
                let middle = low + (high - low) / 2;
                let mut key = entries.clone();
                key.skip(middle * entry_bytes)?;
                let name = key.length()?;
                if self.name(name, key.offset())? < wanted {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            let Some(child) = low.checked_sub(1) else { return Ok(()) };
            entries.skip(child * entry_bytes + key_bytes)?;
            let Some(child) = entries.address()? else { return Ok(()) };
            return self.walk_child(child, level);
        }
        for _ in 0..children {
            entries.skip(key_bytes)?;
            let Some(child) = entries.address()? else { continue };
            self.walk_child(child, level)?;
        }
        Ok(())
    }

    fn walk_child(&mut self, address: u64, level: u8) -> ParseResult<()> {
        match level {
            0 => self.walk_leaf(address),
            _ => self.walk_node(address, Some(level)),
        }
    }

    /// The name at an offset of the names. `origin` is the position of that offset, for errors.
    fn name(&self, offset: u64, origin: u64) -> ParseResult<&'w [u8]> {
        let (data, bytes) = self.heap;
        if offset >= bytes {
            return invalid(origin, "a symbol's name is outside the heap");
        }
        let Some(start) = data.checked_add(offset) else {
            return invalid(origin, "a symbol's name is outside the file");
        };
        let rest = self.blocks.peek(start, NAME_BYTES_MAX.min(bytes - offset))?;
        Ok(rest.split(|byte| *byte == 0).next().unwrap_or(rest))
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
            let text = self.name(name, body.offset())?;
            // 2 is a soft link.
            if let (Some(object), true) = (object, kind != 2) {
                (self.visit)(text, object)?;
            }
        }
        Ok(())
    }
}
