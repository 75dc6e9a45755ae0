//! Finds the address of a chunk in a version 1 B-tree or an array, or computes it if there is no index.

use super::RANK_MAX;
use super::arrays;
use super::blocks::{FieldReader, FileBlocks, Parsed, bad};
use super::message::{ChunkIndex, ChunkPlace, RecordDataset};

/// Upper limit on the number of a chunk. No file has that many.
const ORDINAL_MAX: u64 = 1 << 62;

/// The chunk of `dataset` at position `grid`, of `chunk_bytes` bytes unless it is filtered; `None` if it was never
/// written.
pub(super) fn find(
    blocks: &FileBlocks,
    dataset: &RecordDataset,
    grid: &[u64],
    chunk_bytes: u64,
) -> Parsed<Option<ChunkPlace>> {
    match dataset.index {
        ChunkIndex::Nothing => Ok(None),
        ChunkIndex::BTree(root) => find_in_tree(blocks, root, &dataset.chunk, grid),
        ChunkIndex::Single { address, stored } => {
            let (stored, skipped) = stored.unzip();
            let place = ChunkPlace { offset: address, stored, skipped: skipped.unwrap_or(0) };
            Ok(grid.iter().all(|at| *at == 0).then_some(place))
        }
        ChunkIndex::Implicit(address) => {
            let before = ordinal(dataset, grid)?.checked_mul(chunk_bytes);
            match before.and_then(|before| address.checked_add(before)) {
                Some(offset) => Ok(Some(ChunkPlace { offset, stored: None, skipped: 0 })),
                None => bad(address, "a chunk is beyond any file"),
            }
        }
        ChunkIndex::FixedArray(at) => arrays::find_fixed(blocks, at, ordinal(dataset, grid)?),
        ChunkIndex::ExtensibleArray(at) => {
            arrays::find_extensible(blocks, at, ordinal(dataset, grid)?)
        }
    }
}

/// Number of the chunk at position `grid` in an index. Chunks are counted along the largest dimensions that the dataset
/// may have; an axis without limit varies slowest.
fn ordinal(dataset: &RecordDataset, grid: &[u64]) -> Parsed<u64> {
    let limits = &dataset.dims_max[..grid.len()];
    let slowest = limits.iter().position(|max| *max == u64::MAX).unwrap_or(0);
    let mut ordinal = Some(grid[slowest]);
    for i in (0..grid.len()).filter(|i| *i != slowest) {
        let count = limits[i].div_ceil(dataset.chunk[i]);
        ordinal = ordinal.and_then(|number| number.checked_mul(count)?.checked_add(grid[i]));
    }
    match ordinal {
        Some(ordinal) if ordinal < ORDINAL_MAX => Ok(ordinal),
        _ => bad(0, "more chunks than any file has"),
    }
}

/// A node of a version 1 B-tree.
pub(super) struct TreeNode<'b> {
    pub(super) level: u8,
    pub(super) children: u64,
    pub(super) entries: FieldReader<'b>,
}

impl<'b> TreeNode<'b> {
    /// Reads the node at `address` of a tree of type `kind`, called `name` in errors. `above` is the level of its parent.
    pub(super) fn read(
        blocks: &'b FileBlocks,
        address: u64,
        kind: u8,
        name: &str,
        entry_bytes: usize,
        above: Option<u8>,
    ) -> Parsed<Self> {
        let head_bytes = 8 + 2 * blocks.address_bytes as u64;
        let mut head = blocks.fields(address, head_bytes)?;
        if head.take(4)? != b"TREE" || head.u8()? != kind {
            return bad(address, format!("no node of {name} where one should be"));
        }
        let level = head.u8()?;
        let children = u64::from(head.u16()?);
        if above.is_some_and(|above| level >= above) {
            return bad(address, format!("{name} leads back to itself"));
        }
        let entries = blocks.fields(address + head_bytes, children * entry_bytes as u64)?;
        Ok(TreeNode { level, children, entries })
    }
}

fn find_in_tree(
    blocks: &FileBlocks,
    root: u64,
    chunk: &[u64],
    grid: &[u64],
) -> Parsed<Option<ChunkPlace>> {
    let mut wanted = [0; RANK_MAX];
    for (i, at) in grid.iter().enumerate() {
        wanted[i] = at.saturating_mul(chunk[i]);
    }
    // Size, skipped filters, offsets including the offset of the element, address.
    let entry_bytes = 8 + 8 * (grid.len() + 1) + blocks.address_bytes;
    let mut address = root;
    let mut above = None;
    loop {
        let node = TreeNode::read(blocks, address, 1, "a chunk index", entry_bytes, above)?;
        // Binary search for the last child that begins at the chunk or before it.
        let mut low = 0;
        let mut high = node.children as usize;
        while low < high {
            let middle = low + (high - low) / 2;
            let mut key = node.entries.clone();
            key.skip(middle * entry_bytes + 8)?;
            if key.numbers(grid.len())? <= wanted { low = middle + 1 } else { high = middle }
        }
        let Some(child) = low.checked_sub(1) else { return Ok(None) };
        let mut entry = node.entries;
        entry.skip(child * entry_bytes)?;
        let stored = entry.u32()?;
        let skipped = entry.u32()?;
        let offsets = entry.numbers(grid.len())?;
        // The offset of the element, which is always 0.
        entry.skip(8)?;
        let Some(below) = entry.address()? else { return Ok(None) };
        if node.level == 0 {
            let place = ChunkPlace { offset: below, stored: Some(stored.into()), skipped };
            return Ok((offsets == wanted).then_some(place));
        }
        address = below;
        above = Some(node.level);
    }
}
