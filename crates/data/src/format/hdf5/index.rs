//! Finds the place of a chunk: by the version 1 B-tree, or directly where no index is needed.

use super::RANK_MAX;
use super::arrays;
pub(super) use super::arrays::{Lookup, Place};
use super::blocks::{Blocks, Fields, Parsed, bad};
use super::message::Index;

impl Lookup<'_> {
    /// The chunk at `grid`; `None` if it was never written.
    pub(super) fn find(&self, index: Index, grid: &[u64]) -> Parsed<Option<Place>> {
        match index {
            Index::Nothing => Ok(None),
            Index::BTree(root) => self.find_in_tree(root, grid),
            Index::Single { address, stored } => {
                let (bytes, skipped) = stored.unzip();
                let skipped = skipped.unwrap_or(0);
                let is_first = grid.iter().all(|at| *at == 0);
                let place = Place { offset: address, stored: bytes, skipped };
                Ok(is_first.then_some(place))
            }
            Index::Implicit(address) => {
                let before = arrays::ordinal(self, grid)?.checked_mul(self.chunk_bytes);
                match before.and_then(|before| address.checked_add(before)) {
                    Some(offset) => Ok(Some(Place { offset, stored: None, skipped: 0 })),
                    None => bad(address, "a chunk lies beyond any file"),
                }
            }
            Index::FixedArray(address) => arrays::find_fixed(self, address, grid),
            Index::ExtensibleArray(address) => arrays::find_extensible(self, address, grid),
        }
    }

    fn find_in_tree(&self, root: u64, grid: &[u64]) -> Parsed<Option<Place>> {
        let rank = grid.len();
        let mut wanted = [0; RANK_MAX];
        for (i, offset) in wanted[..rank].iter_mut().enumerate() {
            *offset = grid[i].saturating_mul(self.chunk[i]);
        }
        let wanted = &wanted[..rank];
        let (mut address, mut above) = (root, None);
        loop {
            let node = Node::read(self.blocks, address, rank, above)?;
            // The last child that begins at the chunk or before it.
            let (mut low, mut high) = (0, node.children);
            while low < high {
                let middle = low + (high - low) / 2;
                let begins_there = node.entry(middle)?.offsets[..rank] <= *wanted;
                if begins_there { low = middle + 1 } else { high = middle }
            }
            let Some(child) = low.checked_sub(1) else { return Ok(None) };
            let Entry { stored, skipped, offsets, below } = node.entry(child)?;
            let Some(below) = below else { return Ok(None) };
            if node.level == 0 {
                let place = Place { offset: below, stored: Some(stored.into()), skipped };
                return Ok((offsets[..rank] == *wanted).then_some(place));
            }
            (address, above) = (below, Some(node.level));
        }
    }
}

/// A node of a chunk index's tree.
struct Node<'b> {
    level: u8,
    children: u64,
    rank: usize,
    entries: Fields<'b>,
    entry_bytes: usize,
}

impl<'b> Node<'b> {
    fn read(blocks: &'b Blocks, address: u64, rank: usize, above: Option<u8>) -> Parsed<Self> {
        let head_bytes = 8 + 2 * blocks.address_bytes as u64;
        let mut head = blocks.fields(address, head_bytes)?;
        if head.take(4)? != b"TREE" || head.u8()? != 1 {
            return bad(address, "no node of a chunk index where one should be");
        }
        let (level, children) = (head.u8()?, u64::from(head.u16()?));
        if above.is_some_and(|above| level >= above) {
            return bad(address, "a chunk index leads back to itself");
        }
        let entry_bytes = 8 + 8 * (rank + 1) + blocks.address_bytes;
        let entries = blocks.fields(address + head_bytes, children * entry_bytes as u64)?;
        Ok(Node { level, children, rank, entries, entry_bytes })
    }

    fn entry(&self, child: u64) -> Parsed<Entry> {
        let mut fields = self.entries.clone();
        fields.skip(child as usize * self.entry_bytes)?;
        let (stored, skipped) = (fields.u32()?, fields.u32()?);
        let mut offsets = [0; RANK_MAX];
        for offset in &mut offsets[..self.rank] {
            *offset = fields.number(8)?;
        }
        // The element's, always 0.
        fields.skip(8)?;
        Ok(Entry { stored, skipped, offsets, below: fields.address()? })
    }
}

/// A child of a node, and where it begins.
struct Entry {
    stored: u32,
    skipped: u32,
    offsets: [u64; RANK_MAX],
    below: Option<u64>,
}
