//! Reads the links of a group from its object header, its symbol table or, with many links, its heap. Lists all of them, or looks one
//! up as the HDF5 library does.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use super::checksum;
use super::header::{self, HeaderMessage};
use super::heap::FractalHeap;
use super::index::TreeNode;
use super::tree2::Tree2;

/// Upper limit on the nodes of a symbol table's tree, so that a tree with a loop is refused.
const NODES_MAX: usize = 16_384;
const NAME_BYTES_MAX: u64 = 256;
/// Type of the version 2 B-tree that lists links by the hashes of their names.
const LINKS_BY_NAME: u8 = 5;
/// Kinds of links.
const HARD_LINK: u8 = 0;
const SOFT_LINK: u8 = 1;
/// Kind of a soft link in a symbol table.
const SOFT_SYMBOL: u32 = 2;

/// Where the links of a group are, apart from those in its object header.
#[derive(Clone, Copy, Default)]
struct LinkTables {
    /// Addresses of the heap of links and of its index by name.
    dense: Option<[u64; 2]>,
    /// Addresses of the symbol table's tree and of its names.
    symbols: Option<[u64; 2]>,
}

/// Called with the name of a link, and the address of the object header that it leads to; `None` for an object in another file.
type Visit<'v> = dyn FnMut(&[u8], Option<u64>) -> ParseResult<()> + 'v;

/// A hard link, or a link to an object in another file, which has no address.
struct Link<'b> {
    name: &'b [u8],
    object: Option<u64>,
}

/// Position in the list of a group's links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VisitedLinks {
    /// Number of links that were visited, of all kinds.
    links: u64,
    /// Number of symbol nodes that were visited completely.
    nodes: u64,
    /// Number of links up to the last of these nodes.
    node_links: u64,
}

/// Visits the links of a group one after another. Those that were visited before metadata was missing are skipped.
struct LinkVisits<'v> {
    done: &'v mut VisitedLinks,
    /// Links that were passed since listing started again.
    passed: VisitedLinks,
    visit: &'v mut Visit<'v>,
}

impl LinkVisits<'_> {
    /// Passes the next `links` links if all of them were visited.
    fn skips(&mut self, links: u64) -> bool {
        let is_done = self.passed.links + links <= self.done.links;
        self.passed.links += if is_done { links } else { 0 };
        is_done
    }

    /// Passes the next symbol node if all of its links were visited. Its links count as passed.
    fn skips_node(&mut self) -> bool {
        let is_done = self.passed.nodes < self.done.nodes;
        if is_done {
            self.passed.nodes += 1;
            self.passed.links = self.done.node_links;
        }
        is_done
    }

    /// Ends a symbol node of which all links were visited.
    fn end_node(&mut self) {
        self.passed.nodes += 1;
        self.passed.node_links = self.passed.links;
        *self.done = self.passed;
    }

    /// Visits a link; `None` for other kinds, whose targets are found under another name.
    fn visit(&mut self, link: Option<Link>) -> ParseResult<()> {
        if let Some(Link { name, object }) = link {
            (self.visit)(name, object)?;
        }
        self.passed.links += 1;
        self.done.links = self.passed.links;
        Ok(())
    }
}

/// Calls `visit` with each hard or external link of the group at `address`, after the first `done` links. The visited links are added
/// to `done`.
pub(super) fn for_each_link(
    blocks: &FileBlocks,
    address: u64,
    done: &mut VisitedLinks,
    visit: &mut Visit,
) -> ParseResult<()> {
    let mut links = LinkVisits { done, passed: VisitedLinks::default(), visit };
    let tables = read_header(blocks, address, &mut links)?;
    if let Some([heap, names]) = tables.dense {
        let heap = FractalHeap::read(blocks, heap)?;
        Tree2::read(blocks, names, &[LINKS_BY_NAME])?.for_each(&mut |mut record| {
            if links.skips(1) {
                return Ok(());
            }
            // The hash of the name.
            record.skip(4)?;
            links.visit(read_link(heap.object(record)?)?)
        })?;
    }
    let Some([tree, heap]) = tables.symbols else { return Ok(()) };
    let heap = heap_data(blocks, heap)?;
    TableWalk { blocks, heap, nodes: 0, wanted: None, links: &mut links }.walk_node(tree, None)
}

/// Returns the address of the object header that the hard link `name` of the group at `address` leads to. `None` if it is not found,
/// which includes other kinds of links.
pub(super) fn find_link(
    blocks: &FileBlocks,
    address: u64,
    name: &[u8],
) -> ParseResult<Option<u64>> {
    let mut found = None;
    let mut visit = |link: &[u8], object: Option<u64>| {
        if link == name {
            found = object;
        }
        Ok(())
    };
    let mut links = LinkVisits {
        done: &mut VisitedLinks::default(),
        passed: VisitedLinks::default(),
        visit: &mut visit,
    };
    let tables = read_header(blocks, address, &mut links)?;
    if let Some([heap, names]) = tables.dense {
        let heap = FractalHeap::read(blocks, heap)?;
        let hash = checksum::lookup3(name);
        let tree = Tree2::read(blocks, names, &[LINKS_BY_NAME])?;
        if let Some(mut record) = tree.find(&|mut record| Ok(record.u32()?.cmp(&hash)))? {
            record.skip(4)?;
            links.visit(read_link(heap.object(record)?)?)?;
        }
    }
    if let Some([tree, heap]) = tables.symbols {
        let heap = heap_data(blocks, heap)?;
        TableWalk { blocks, heap, nodes: 0, wanted: Some(name), links: &mut links }
            .walk_node(tree, None)?;
    }
    Ok(found)
}

/// Reads a group's object header, and visits the links in it.
fn read_header(
    blocks: &FileBlocks,
    address: u64,
    links: &mut LinkVisits,
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
            0x06 if links.skips(1) => {}
            0x06 => links.visit(read_link(body)?)?,
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

/// Reads a link; `None` for soft links, whose targets are found under another name.
fn read_link(mut body: FieldReader<'_>) -> ParseResult<Option<Link<'_>>> {
    let offset = body.offset();
    let version = body.u8()?;
    let flags = body.u8()?;
    if version != 1 {
        return invalid(offset, format!("link of version `{version}`, not 1"));
    }
    let kind = if flags & 8 != 0 { body.u8()? } else { HARD_LINK };
    body.skip(if flags & 4 != 0 { 8 } else { 0 })?;
    body.skip(if flags & 16 != 0 { 1 } else { 0 })?;
    let name_bytes = body.number(1 << (flags & 3))?;
    let name = body.take(usize::try_from(name_bytes).unwrap_or(usize::MAX))?;
    Ok(match kind {
        HARD_LINK => body.address()?.map(|address| Link { name, object: Some(address) }),
        SOFT_LINK => None,
        // External links, and kinds that users define.
        _ => Some(Link { name, object: None }),
    })
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

struct TableWalk<'w, 'v> {
    blocks: &'w FileBlocks,
    /// Address and length of the names.
    heap: (u64, u64),
    nodes: usize,
    /// The name that is looked up. Only the nodes that can contain it are visited.
    wanted: Option<&'w [u8]>,
    links: &'w mut LinkVisits<'v>,
}

impl<'w> TableWalk<'w, '_> {
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
        if self.links.skips_node() {
            return Ok(());
        }
        let mut head = self.blocks.fields(address, 8)?;
        if head.take(4)? != b"SNOD" {
            return invalid(address, "no symbols where a symbol table's tree says");
        }
        head.skip(2)?;
        let symbols = u64::from(head.u16()?);
        let symbol_bytes = 2 * self.blocks.address_bytes as u64 + 24;
        let mut body = self.blocks.fields(address + 8, symbols * symbol_bytes)?;
        for _ in 0..symbols {
            if self.links.skips(1) {
                body.skip(symbol_bytes as usize)?;
                continue;
            }
            let name = body.number(self.blocks.address_bytes)?;
            let object = body.address()?;
            let kind = body.u32()?;
            body.skip(20)?;
            let text = self.name(name, body.offset())?;
            let is_soft = kind == SOFT_SYMBOL;
            let is_hard = object.is_some() && !is_soft;
            self.links.visit(is_hard.then_some(Link { name: text, object }))?;
        }
        self.links.end_node();
        Ok(())
    }
}
