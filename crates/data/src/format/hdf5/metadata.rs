//! Writes the metadata of a generated file: a version 2 superblock, version 2 object headers and version 1 B-trees, which
//! HDF5 1.8 and all later versions can read.

use super::plan::{ChunkPlan, FileAddresses, FilePlan};
use super::{DEFLATE, Element, FileSink, RANK_MAX, SIGNATURE, SinkError, UNDEFINED, checksum};

pub(super) const SUPERBLOCK_BYTES: u64 = 48;
/// Children of a node of a chunk index: twice the default `HDF5_BTREE_CHUNK_IK_DEF`, since the superblock stores no value.
const NODE_CHILDREN: u64 = 64;
const NODE_HEAD_BYTES: u64 = 24;

/// Minimum length of the metadata before the data: the HDF5 library allocates metadata in blocks of this length.
const HEAD_BYTES: u64 = 2048;
/// Length of a stored block of deflate. Deflate adds some bytes to each block of random data, and zlib to each stream.
const STORED_BLOCK_BYTES: u64 = 16 << 10;
const STORED_BLOCK_EXTRA_BYTES: u64 = 5;
const ZLIB_EXTRA_BYTES: u64 = 11;

impl FilePlan {
    pub(super) fn index_bytes(&self) -> u64 {
        if !self.is_chunked {
            return 0;
        }
        let levels = tree_levels(self.chunks.count());
        let nodes = levels.iter().fold(0, |sum: u64, &nodes| sum.saturating_add(nodes));
        nodes.saturating_mul(node_bytes(self.dims.len()))
    }

    pub(super) fn addresses(&self) -> FileAddresses {
        let mut position = head_bytes(self).next_multiple_of(8).max(HEAD_BYTES);
        let index =
            (0..self.datasets).map(|_| allocate(&mut position, self.index_bytes())).collect();
        let records =
            (0..self.datasets).map(|_| allocate(&mut position, self.dataset_bytes())).collect();
        let labels = allocate(&mut position, self.labels_bytes());
        FileAddresses { index, labels, records, end: position }
    }

    /// Length of the file. Exact without compression, otherwise the length with incompressible content.
    pub(super) fn file_bytes(&self) -> u64 {
        let end = self.addresses().end;
        if self.level.is_none() {
            return end;
        }
        let blocks = self.chunks.bytes.div_ceil(STORED_BLOCK_BYTES);
        let extra = blocks.saturating_mul(STORED_BLOCK_EXTRA_BYTES) + ZLIB_EXTRA_BYTES;
        let chunks = self.chunks.count().saturating_mul(self.datasets);
        end.saturating_add(chunks.saturating_mul(extra))
    }
}

/// Advances `position` by `bytes` and returns its previous value.
fn allocate(position: &mut u64, bytes: u64) -> u64 {
    let start = *position;
    *position = position.saturating_add(bytes);
    start
}

/// Length of the superblock and the object headers.
fn head_bytes(plan: &FilePlan) -> u64 {
    let zeros = vec![0; plan.datasets as usize];
    let addresses = FileAddresses { index: zeros.clone(), labels: 0, records: zeros, end: 0 };
    SUPERBLOCK_BYTES + object_headers(plan, &addresses).len() as u64
}

/// The superblock of a file of `end` bytes.
pub(super) fn superblock(end: u64) -> Vec<u8> {
    let fields = little_endian(&[0, UNDEFINED, end, SUPERBLOCK_BYTES]);
    with_checksum([&SIGNATURE[..], &[2, 8, 8, 0], &fields].concat())
}

/// The object headers of the root group and of the datasets that it links to.
pub(super) fn object_headers(plan: &FilePlan, addresses: &FileAddresses) -> Vec<u8> {
    let records = (0..plan.datasets as usize).map(|i| {
        let header = records_header(plan, addresses.records[i], addresses.index[i]);
        (format!("records_{i}"), header)
    });
    let labels = dataset_header(
        dataspace(&[plan.shape.samples], &[]),
        Element::Int64,
        contiguous(addresses.labels, plan.labels_bytes()),
        None,
    );
    let headers: Vec<_> = records.chain([("labels".to_string(), labels)]).collect();
    // The addresses of the datasets depend on the length of the root header, which does not depend on the addresses.
    let root_bytes = root_header(&headers, 0).len() as u64;
    let mut bytes = root_header(&headers, SUPERBLOCK_BYTES + root_bytes);
    headers.iter().for_each(|(_, header)| bytes.extend(header));
    bytes
}

/// The object header of the root group. The headers of the linked datasets follow one another from `start` on.
fn root_header(datasets: &[(String, Vec<u8>)], start: u64) -> Vec<u8> {
    let mut position = start;
    let info = [&[0, 0][..], &little_endian(&[UNDEFINED, UNDEFINED])].concat();
    let mut messages = vec![(0x02, info), (0x0a, vec![0, 0])];
    for (name, header) in datasets {
        let head = [1, 0, name.len() as u8];
        messages.push((0x06, [&head[..], name.as_bytes(), &position.to_le_bytes()].concat()));
        position += header.len() as u64;
    }
    object_header(&messages)
}

fn records_header(plan: &FilePlan, records: u64, index: u64) -> Vec<u8> {
    let layout = if plan.is_chunked {
        let dims = plan.chunks.dims.iter().copied().chain([plan.shape.element.bytes()]);
        let dims: Vec<u8> = dims.flat_map(|dim| (dim as u32).to_le_bytes()).collect();
        [&[3, 2, plan.chunks.dims.len() as u8 + 1][..], &index.to_le_bytes(), &dims].concat()
    } else {
        contiguous(records, plan.dataset_bytes())
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
    // No fill value. Space is allocated late, or chunk by chunk, as the library does by default.
    let is_chunked = layout[1] == 2;
    let fill_value = vec![3, if is_chunked { 0x0b } else { 0x0a }];
    let (element_type, len) = datatype(element);
    let mut messages = vec![
        (0x01, space),
        (0x03, element_type[..len].to_vec()),
        (0x05, fill_value),
        (0x08, layout),
    ];
    messages.extend(filters.map(|filters| (0x0b, filters)));
    object_header(&messages)
}

/// An object header of version 2 with the given messages, each with its type.
pub(super) fn object_header(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let [low, high] = (message.len() as u16).to_le_bytes();
        body.extend([*kind, low, high, 0]);
        body.extend(message);
    }
    with_checksum([&b"OHDR\x02\x02"[..], &(body.len() as u32).to_le_bytes(), &body].concat())
}

fn dataspace(dims: &[u64], dims_max: &[u64]) -> Vec<u8> {
    let head = [2, dims.len() as u8, u8::from(!dims_max.is_empty()), 1];
    [&head[..], &little_endian(dims), &little_endian(dims_max)].concat()
}

/// The datatype message of an element type, and its length.
pub(super) fn datatype(element: Element) -> ([u8; 20], usize) {
    let size = element.bytes() as u8;
    let bits = size * 8;
    // Bits of the mantissa and of the exponent, bias.
    let float = match element {
        Element::Float16 => Some((10, 5, 15u32)),
        Element::Float32 => Some((23, 8, 127)),
        Element::Float64 => Some((52, 11, 1023)),
        _ => None,
    };
    let is_signed =
        matches!(element, Element::Int8 | Element::Int16 | Element::Int32 | Element::Int64);
    let mut bytes = [0; 20];
    bytes[0] = 0x10;
    bytes[1] = u8::from(is_signed) << 3;
    bytes[4] = size;
    bytes[10] = bits;
    let Some((mantissa, exponent, bias)) = float else { return (bytes, 12) };
    // The mantissa's top bit is implied.
    bytes[..3].copy_from_slice(&[0x11, 0x20, bits - 1]);
    bytes[12..16].copy_from_slice(&[mantissa, exponent, 0, mantissa]);
    bytes[16..].copy_from_slice(&bias.to_le_bytes());
    (bytes, 20)
}

fn contiguous(address: u64, bytes: u64) -> Vec<u8> {
    [&[3, 1][..], &little_endian(&[address, bytes])].concat()
}

/// Number of nodes in each level of the B-tree of a dataset's chunks, the leaves first. It depends only on the number of
/// chunks, so that the tree can be placed before the chunks.
fn tree_levels(chunks: u64) -> Vec<u64> {
    let mut nodes = chunks.div_ceil(NODE_CHILDREN).max(1);
    let mut levels = vec![nodes];
    while nodes > 1 {
        nodes = nodes.div_ceil(NODE_CHILDREN);
        levels.push(nodes);
    }
    levels
}

fn node_bytes(rank: usize) -> u64 {
    let key_bytes = 8 + 8 * (rank as u64 + 1);
    NODE_HEAD_BYTES + NODE_CHILDREN * (key_bytes + 8) + key_bytes
}

/// Writes the B-tree of a dataset's chunks to the reserved bytes at `start`, the root first. `chunk_ranges` contains the address
/// and length of each chunk.
pub(super) fn write_tree(
    start: u64,
    chunks: &ChunkPlan,
    chunk_ranges: &[(u64, u64)],
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let levels = tree_levels(chunks.count());
    let node_bytes = node_bytes(chunks.dims.len());
    let mut level_start = start;
    let mut node = Vec::with_capacity(node_bytes as usize);
    for (level, &nodes) in levels.iter().enumerate().rev() {
        let child_level_start = level_start + nodes * node_bytes;
        let children_in_level = if level == 0 { chunks.count() } else { levels[level - 1] };
        // Number of chunks below each child.
        let span = NODE_CHILDREN.pow(level as u32);
        for i in 0..nodes {
            let node_start = level_start + i * node_bytes;
            let left = if i == 0 { UNDEFINED } else { node_start - node_bytes };
            let right = if i + 1 == nodes { UNDEFINED } else { node_start + node_bytes };
            let children = i * NODE_CHILDREN..children_in_level.min((i + 1) * NODE_CHILDREN);
            let [low, high] = ((children.end - children.start) as u16).to_le_bytes();
            node.clear();
            node.extend(b"TREE\x01");
            node.extend([level as u8, low, high]);
            node.extend([left, right].map(u64::to_le_bytes).as_flattened());
            for child in children.clone() {
                push_key(&mut node, child * span, chunks, chunk_ranges);
                let address = match level {
                    0 => chunk_ranges[child as usize].0,
                    _ => child_level_start + child * node_bytes,
                };
                node.extend(address.to_le_bytes());
            }
            push_key(&mut node, children.end * span, chunks, chunk_ranges);
            node.resize(node_bytes as usize, 0);
            sink.patch(0, node_start, &node)?;
        }
        level_start = child_level_start;
    }
    Ok(())
}

/// Appends the key of a chunk: length, skipped filters and offsets. The key after the last chunk is beyond it along every
/// dimension.
fn push_key(node: &mut Vec<u8>, ordinal: u64, chunks: &ChunkPlan, chunk_ranges: &[(u64, u64)]) {
    let chunk_range = chunk_ranges.get(ordinal as usize);
    let size = chunk_range.map_or(0, |(_, bytes)| *bytes as u32);
    node.extend([size, 0].map(u32::to_le_bytes).as_flattened());
    let mut grid = [0; RANK_MAX];
    let grid = &mut grid[..chunks.dims.len()];
    grid_position(ordinal.min(chunks.count() - 1), &chunks.counts, grid);
    for (position, dim) in grid.iter().zip(&chunks.dims) {
        let beyond = u64::from(chunk_range.is_none());
        node.extend((position + beyond).saturating_mul(*dim).to_le_bytes());
    }
    node.extend([0; 8]);
}

/// Writes the position of chunk number `ordinal` to `grid`. There are `counts` chunks along each dimension; the last one
/// varies fastest.
pub(super) fn grid_position(ordinal: u64, counts: &[u64], grid: &mut [u64]) {
    let mut rest = ordinal;
    for (position, count) in grid.iter_mut().zip(counts).rev() {
        *position = rest % count;
        rest /= count;
    }
}

/// The numbers as little-endian bytes.
pub(super) fn little_endian(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The block followed by its checksum.
pub(super) fn with_checksum(mut block: Vec<u8>) -> Vec<u8> {
    block.extend(checksum::lookup3(&block).to_le_bytes());
    block
}
