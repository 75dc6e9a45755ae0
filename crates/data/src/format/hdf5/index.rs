//! Finds the address of a chunk in a B-tree or an array, or computes it if there is no index.

use super::RANK_MAX;
use super::arrays;
use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use super::message::{ChunkIndex, ChunkLocation, RecordDataset};
use super::tree2::Tree2;

/// Upper limit on the number of a chunk. No file has that many chunks.
const ORDINAL_MAX: u64 = 1 << 62;

/// The chunk of `dataset` at position `grid`, of `chunk_bytes` bytes unless it is filtered; `None` if it was never
/// written.
pub(super) fn find(
    blocks: &FileBlocks,
    dataset: &RecordDataset,
    grid: &[u64],
    chunk_bytes: u64,
) -> ParseResult<Option<ChunkLocation>> {
    match dataset.index {
        ChunkIndex::Nothing => Ok(None),
        ChunkIndex::BTree(root) => find_in_tree(blocks, root, &dataset.chunk, grid),
        ChunkIndex::Single { address, stored } => {
            let (stored_bytes, skipped_filters) = stored.unzip();
            let location = ChunkLocation {
                offset: address,
                stored_bytes,
                skipped_filters: skipped_filters.unwrap_or(0),
            };
            Ok(grid.iter().all(|position| *position == 0).then_some(location))
        }
        ChunkIndex::Implicit(address) => {
            let bytes_before = ordinal(dataset, grid)?.checked_mul(chunk_bytes);
            match bytes_before.and_then(|bytes| address.checked_add(bytes)) {
                Some(offset) => {
                    Ok(Some(ChunkLocation { offset, stored_bytes: None, skipped_filters: 0 }))
                }
                None => invalid(address, "a chunk is beyond any file"),
            }
        }
        ChunkIndex::FixedArray(header) => {
            arrays::find_fixed(blocks, header, ordinal(dataset, grid)?)
        }
        ChunkIndex::ExtensibleArray(header) => {
            arrays::find_extensible(blocks, header, ordinal(dataset, grid)?)
        }
        ChunkIndex::BTree2(header) => find_in_tree2(blocks, header, grid),
    }
}

/// Number of the chunk at position `grid` in an index. Chunks are counted along the largest dimensions that the dataset
/// may have; an axis without limit varies slowest.
fn ordinal(dataset: &RecordDataset, grid: &[u64]) -> ParseResult<u64> {
    let limits = &dataset.dims_max[..grid.len()];
    let slowest = limits.iter().position(|max| *max == u64::MAX).unwrap_or(0);
    let mut ordinal = Some(grid[slowest]);
    for i in (0..grid.len()).filter(|i| *i != slowest) {
        let count = limits[i].div_ceil(dataset.chunk[i]);
        ordinal = ordinal.and_then(|number| number.checked_mul(count)?.checked_add(grid[i]));
    }
    match ordinal {
        Some(ordinal) if ordinal < ORDINAL_MAX => Ok(ordinal),
        _ => invalid(0, "more chunks than any file has"),
    }
}

/// A node of a version 1 B-tree.
pub(super) struct TreeNode<'b> {
    pub(super) level: u8,
    pub(super) children: u64,
    pub(super) entries: FieldReader<'b>,
}

impl<'b> TreeNode<'b> {
    /// Reads the node at `address` of a tree of type `kind`, called `name` in errors. `parent_level` is the level of its parent.
    pub(super) fn read(
        blocks: &'b FileBlocks,
        address: u64,
        kind: u8,
        name: &str,
        entry_bytes: usize,
        parent_level: Option<u8>,
    ) -> ParseResult<Self> {
        let head_bytes = 8 + 2 * blocks.address_bytes as u64;
        let mut head = blocks.fields(address, head_bytes)?;
        if head.take(4)? != b"TREE" || head.u8()? != kind {
            return invalid(address, format!("no node of {name} where one should be"));
        }
        let level = head.u8()?;
        let children = u64::from(head.u16()?);
        if parent_level.is_some_and(|parent_level| level >= parent_level) {
            return invalid(address, format!("{name} leads back to itself"));
        }
        let entries = blocks.fields(address + head_bytes, children * entry_bytes as u64)?;
        Ok(TreeNode { level, children, entries })
    }
}

/// Types of version 2 B-trees of chunks, without and with filters.
const CHUNKS: [u8; 2] = [10, 11];

fn find_in_tree2(
    blocks: &FileBlocks,
    header: u64,
    grid: &[u64],
) -> ParseResult<Option<ChunkLocation>> {
    let tree = Tree2::read(blocks, header, &CHUNKS)?;
    let position_bytes = 8 * grid.len() as u64;
    let Some(head_bytes) = tree.record_bytes.checked_sub(position_bytes) else {
        return invalid(header, "chunks of fewer dimensions than their dataset");
    };
    let found = tree.find(&|mut record| {
        record.skip(head_bytes as usize)?;
        Ok(record.numbers(grid.len())?[..grid.len()].cmp(grid))
    })?;
    let Some(mut record) = found else { return Ok(None) };
    let Some(offset) = record.address()? else { return Ok(None) };
    if tree.kind == CHUNKS[0] {
        return Ok(Some(ChunkLocation { offset, stored_bytes: None, skipped_filters: 0 }));
    }
    let Some(length_bytes) = head_bytes.checked_sub(blocks.address_bytes as u64 + 4) else {
        return invalid(header, "records of chunks that are too short");
    };
    let stored_bytes = record.number(length_bytes as usize)?;
    let skipped_filters = record.u32()?;
    Ok(Some(ChunkLocation { offset, stored_bytes: Some(stored_bytes), skipped_filters }))
}

fn find_in_tree(
    blocks: &FileBlocks,
    root: u64,
    chunk: &[u64],
    grid: &[u64],
) -> ParseResult<Option<ChunkLocation>> {
    let mut wanted = [0; RANK_MAX];
    for (i, position) in grid.iter().enumerate() {
        wanted[i] = position.saturating_mul(chunk[i]);
    }
    // Size, skipped filters, offsets including the offset of the element, address.
    let entry_bytes = 8 + 8 * (grid.len() + 1) + blocks.address_bytes;
    let mut address = root;
    let mut parent_level = None;
    loop {
        let node = TreeNode::read(blocks, address, 1, "a chunk index", entry_bytes, parent_level)?;
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
        let stored_bytes = entry.u32()?;
        let skipped_filters = entry.u32()?;
        let offsets = entry.numbers(grid.len())?;
        // The offset of the element, which is always 0.
        entry.skip(8)?;
        let Some(child_address) = entry.address()? else { return Ok(None) };
        if node.level == 0 {
            let location = ChunkLocation {
                offset: child_address,
                stored_bytes: Some(stored_bytes.into()),
                skipped_filters,
            };
            return Ok((offsets == wanted).then_some(location));
        }
        address = child_address;
        parent_level = Some(node.level);
    }
}
