//! The metadata of a file of ours: a version 2 superblock, version 2 object headers, version 1 B-trees. What HDF5 1.8
//! and all after it read.

use super::plan::{ChunkPlan, FilePlaces, FilePlan};
use super::{DEFLATE, Element, RANK_MAX, SIGNATURE, SinkError, UNDEFINED, checksum};

pub(super) const SUPERBLOCK_BYTES: u64 = 48;
/// Half the children of a chunk index's node where the superblock does not say: `HDF5_BTREE_CHUNK_IK_DEF`.
const NODE_CHILDREN: u64 = 64;
const NODE_HEAD_BYTES: u64 = 24;

/// Records begin at multiples of this.
const ALIGN_BYTES: u64 = 4096;
/// Bytes that deflate and zlib add to each stretch of noise of this length.
const STORED_BLOCK_BYTES: u64 = 16 << 10;
const STORED_BLOCK_EXTRA_BYTES: u64 = 5;
const ZLIB_EXTRA_BYTES: u64 = 11;

impl FilePlan {
    pub(super) fn index_bytes(&self) -> u64 {
        let Some(chunks) = &self.chunks else { return 0 };
        ChunkTree::new(chunks.count(), self.dims.len()).bytes()
    }

    pub(super) fn places(&self) -> FilePlaces {
        let mut at = head_bytes(self).next_multiple_of(8);
        let index = (0..self.datasets).map(|_| advance(&mut at, self.index_bytes())).collect();
        let labels = advance(&mut at, self.labels_bytes());
        let records = (0..self.datasets).map(|_| {
            at = at.checked_next_multiple_of(ALIGN_BYTES).unwrap_or(u64::MAX);
            advance(&mut at, self.dataset_bytes())
        });
        let records = records.collect();
        FilePlaces { index, labels, records, end: at }
    }

    /// Exact without compression; else as noise would have it.
    pub(super) fn file_bytes(&self) -> u64 {
        let end = self.places().end;
        let (Some(_), Some(chunks)) = (self.level, &self.chunks) else { return end };
        let blocks = chunks.bytes.div_ceil(STORED_BLOCK_BYTES);
        let extra = blocks.saturating_mul(STORED_BLOCK_EXTRA_BYTES) + ZLIB_EXTRA_BYTES;
        let chunks = chunks.count().saturating_mul(self.datasets);
        end.saturating_add(chunks.saturating_mul(extra))
    }
}

fn advance(at: &mut u64, bytes: u64) -> u64 {
    let start = *at;
    *at = at.saturating_add(bytes);
    start
}

/// Bytes of superblock and object headers.
fn head_bytes(plan: &FilePlan) -> u64 {
    let none = vec![0; plan.datasets as usize];
    let places = FilePlaces { index: none.clone(), labels: 0, records: none, end: 0 };
    SUPERBLOCK_BYTES + object_headers(plan, &places).len() as u64
}

/// The superblock of a file of `end` bytes.
pub(super) fn superblock(end: u64) -> Vec<u8> {
    let addresses = words(&[0, UNDEFINED, end, SUPERBLOCK_BYTES]);
    summed([&SIGNATURE[..], &[2, 8, 8, 0], &addresses].concat())
}

/// The root group, then the datasets it links to.
pub(super) fn object_headers(plan: &FilePlan, places: &FilePlaces) -> Vec<u8> {
    let records = (0..plan.datasets as usize).map(|i| {
        let header = records_header(plan, places.records[i], places.index[i]);
        (format!("records_{i}"), header)
    });
    let labels = dataset_header(
        dataspace(&[plan.shape.samples], &[]),
        Element::Int64,
        contiguous(places.labels, plan.labels_bytes()),
        None,
    );
    let headers: Vec<_> = records.chain([("labels".to_string(), labels)]).collect();
    // Where the datasets lie depends on the length of the root, which does not depend on where they lie.
    let root_bytes = root_header(&headers, 0).len() as u64;
    let mut bytes = root_header(&headers, SUPERBLOCK_BYTES + root_bytes);
    headers.iter().for_each(|(_, header)| bytes.extend(header));
    bytes
}

/// The root group, with links to datasets that lie one after another from `at` on.
fn root_header(datasets: &[(String, Vec<u8>)], mut at: u64) -> Vec<u8> {
    let info = [&[0, 0][..], &words(&[UNDEFINED, UNDEFINED])].concat();
    let mut messages = vec![(0x02, info), (0x0a, vec![0, 0])];
    for (name, header) in datasets {
        let head = [1, 0, name.len() as u8];
        messages.push((0x06, [&head[..], name.as_bytes(), &at.to_le_bytes()].concat()));
        at += header.len() as u64;
    }
    object_header(&messages)
}

fn records_header(plan: &FilePlan, records: u64, index: u64) -> Vec<u8> {
    let layout = match &plan.chunks {
        None => contiguous(records, plan.dataset_bytes()),
        Some(chunks) => {
            let dims = chunks.dims.iter().copied().chain([plan.shape.element.bytes()]);
            let dims: Vec<u8> = dims.flat_map(|dim| (dim as u32).to_le_bytes()).collect();
            let head = [3, 2, chunks.dims.len() as u8 + 1];
            [&head[..], &index.to_le_bytes(), &dims].concat()
        }
    };
    let filters = plan.level.map(|level| {
        let deflate = [DEFLATE, 1, 1].map(u16::to_le_bytes);
        [&[2, 1][..], deflate.as_flattened(), &level.to_le_bytes()].concat()
    });
    let space = dataspace(&plan.dims, &plan.dims_max);
    dataset_header(space, plan.shape.element, layout, filters)
}

fn dataset_header(
    space: Vec<u8>,
    element: Element,
    layout: Vec<u8>,
    filters: Option<Vec<u8>>,
) -> Vec<u8> {
    // No fill value; allocated as the library does it, late or chunk by chunk.
    let is_chunked = layout[1] == 2;
    let fill_value = vec![3, if is_chunked { 0x0b } else { 0x0a }];
    let (element, len) = datatype(element);
    let mut messages =
        vec![(0x01, space), (0x03, element[..len].to_vec()), (0x05, fill_value), (0x08, layout)];
    messages.extend(filters.map(|filters| (0x0b, filters)));
    object_header(&messages)
}

/// An object header of version 2: messages of a kind each.
pub(super) fn object_header(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let [low, high] = (message.len() as u16).to_le_bytes();
        body.extend([*kind, low, high, 0]);
        body.extend(message);
    }
    summed([&b"OHDR\x02\x02"[..], &(body.len() as u32).to_le_bytes(), &body].concat())
}

fn dataspace(dims: &[u64], dims_max: &[u64]) -> Vec<u8> {
    let head = [2, dims.len() as u8, u8::from(!dims_max.is_empty()), 1];
    [&head[..], &words(dims), &words(dims_max)].concat()
}

/// The message of an element type, and its length.
pub(super) fn datatype(element: Element) -> ([u8; 20], usize) {
    let [size, bits] = [1, 8].map(|times| element.bytes() as u8 * times);
    // Mantissa's and exponent's length, bias.
    let float = match element {
        Element::Float16 => Some((10, 5, 15u32)),
        Element::Float32 => Some((23, 8, 127)),
        Element::Float64 => Some((52, 11, 1023)),
        _ => None,
    };
    let signed =
        matches!(element, Element::Int8 | Element::Int16 | Element::Int32 | Element::Int64);
    let mut bytes = [0; 20];
    [bytes[0], bytes[1], bytes[4], bytes[10]] = [0x10, u8::from(signed) << 3, size, bits];
    let Some((mantissa, exponent, bias)) = float else { return (bytes, 12) };
    // The mantissa's top bit is implied.
    bytes[..3].copy_from_slice(&[0x11, 0x20, bits - 1]);
    bytes[12..16].copy_from_slice(&[mantissa, exponent, 0, mantissa]);
    bytes[16..].copy_from_slice(&bias.to_le_bytes());
    (bytes, 20)
}

fn contiguous(address: u64, bytes: u64) -> Vec<u8> {
    [&[3, 1][..], &words(&[address, bytes])].concat()
}

/// Takes a node and its address.
type Put<'p> = dyn FnMut(u64, &[u8]) -> Result<(), SinkError> + 'p;

/// The B-tree of a dataset's chunks. Its size depends on their number only, so it can come before them.
pub(super) struct ChunkTree {
    /// Nodes of each level, the leaves first.
    levels: Vec<u64>,
    chunks: u64,
    key_bytes: u64,
}

impl ChunkTree {
    pub(super) fn new(chunks: u64, rank: usize) -> Self {
        let mut levels = vec![chunks.div_ceil(NODE_CHILDREN).max(1)];
        let mut nodes = levels[0];
        while nodes > 1 {
            nodes = nodes.div_ceil(NODE_CHILDREN);
            levels.push(nodes);
        }
        ChunkTree { levels, chunks, key_bytes: 8 + 8 * (rank as u64 + 1) }
    }

    fn node_bytes(&self) -> u64 {
        NODE_HEAD_BYTES + NODE_CHILDREN * (self.key_bytes + 8) + self.key_bytes
    }

    pub(super) fn bytes(&self) -> u64 {
        let nodes = self.levels.iter().fold(0, |sum: u64, &nodes| sum.saturating_add(nodes));
        nodes.saturating_mul(self.node_bytes())
    }

    /// Address of a node of a tree at `start`: the root comes first.
    fn node_address(&self, start: u64, level: usize, node: u64) -> u64 {
        let above: u64 = self.levels[level + 1..].iter().sum();
        start + (above + node) * self.node_bytes()
    }

    /// The nodes in their order, each given to `put` with its address. `chunk` says address and size of a chunk.
    pub(super) fn write(
        &self,
        start: u64,
        chunks: &ChunkPlan,
        chunk: &dyn Fn(u64) -> (u64, u32),
        put: &mut Put,
    ) -> Result<(), SinkError> {
        let mut node = Vec::with_capacity(self.node_bytes() as usize);
        for level in (0..self.levels.len()).rev() {
            for i in 0..self.levels[level] {
                self.make_node(&mut node, start, level, i, chunks, chunk);
                put(self.node_address(start, level, i), &node)?;
            }
        }
        Ok(())
    }

    fn make_node(
        &self,
        bytes: &mut Vec<u8>,
        start: u64,
        level: usize,
        i: u64,
        chunks: &ChunkPlan,
        chunk: &dyn Fn(u64) -> (u64, u32),
    ) {
        let below = if level == 0 { self.chunks } else { self.levels[level - 1] };
        let children = i * NODE_CHILDREN..below.min((i + 1) * NODE_CHILDREN);
        let is_last = i + 1 == self.levels[level];
        let left = if i == 0 { UNDEFINED } else { self.node_address(start, level, i - 1) };
        let right = if is_last { UNDEFINED } else { self.node_address(start, level, i + 1) };
        bytes.clear();
        bytes.extend(b"TREE\x01");
        bytes.push(level as u8);
        bytes.extend(((children.end - children.start) as u16).to_le_bytes());
        bytes.extend([left, right].map(u64::to_le_bytes).as_flattened());
        // Chunks below each child.
        let span = NODE_CHILDREN.pow(level as u32);
        for child in children.clone() {
            put_key(bytes, child * span, chunks, chunk);
            let address = match level {
                0 => chunk(child).0,
                _ => self.node_address(start, level - 1, child),
            };
            bytes.extend(address.to_le_bytes());
        }
        let next = children.end.saturating_mul(span).min(self.chunks);
        put_key(bytes, next, chunks, chunk);
        bytes.resize(self.node_bytes() as usize, 0);
    }
}

/// A chunk's size, filters that were skipped, offsets; what comes after the last chunk lies beyond it everywhere.
fn put_key(
    bytes: &mut Vec<u8>,
    ordinal: u64,
    chunks: &ChunkPlan,
    chunk: &dyn Fn(u64) -> (u64, u32),
) {
    let is_beyond = ordinal >= chunks.count();
    let size = if is_beyond { 0 } else { chunk(ordinal).1 };
    bytes.extend([size, 0].map(u32::to_le_bytes).as_flattened());
    let mut grid = [0; RANK_MAX];
    let grid = &mut grid[..chunks.dims.len()];
    place(if is_beyond { chunks.count() - 1 } else { ordinal }, &chunks.counts, grid);
    for (at, dim) in grid.iter().zip(&chunks.dims) {
        bytes.extend((at + u64::from(is_beyond)).saturating_mul(*dim).to_le_bytes());
    }
    bytes.extend([0; 8]);
}

/// Position of chunk number `ordinal` among `counts` chunks, the last dimension fastest.
pub(super) fn place(ordinal: u64, counts: &[u64], grid: &mut [u64]) {
    let mut rest = ordinal;
    for (at, count) in grid.iter_mut().zip(counts).rev() {
        *at = rest % count;
        rest /= count;
    }
}

/// Little-endian numbers.
pub(super) fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The block with its checksum.
pub(super) fn summed(mut block: Vec<u8>) -> Vec<u8> {
    block.extend(checksum::lookup3(&block).to_le_bytes());
    block
}
