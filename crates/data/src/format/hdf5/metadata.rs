//! Writes the metadata of a generated file where h5py writes it by default, so that libraries make the same requests for it as for files
//! of DLIO: a superblock of version 0, the root group's object header, B-tree and heap, the first dataset's object header, the group's
//! symbols, and the other datasets' object headers.

use super::plan::{ChunkPlan, FileAddresses, FilePlan};
use super::{DEFLATE, Element, FileSink, RANK_MAX, SIGNATURE, SinkError, UNDEFINED};

const SUPERBLOCK_BYTES: u64 = 96;
/// Length of the root group's object header: its head, and one message with two addresses.
const ROOT_HEADER_BYTES: u64 = 40;
/// Half the children of a node of the root group's B-tree. The superblock stores it.
const GROUP_NODE_HALF: u16 = 16;
const GROUP_TREE_BYTES: u64 = NODE_HEAD_BYTES + 8 * (4 * GROUP_NODE_HALF as u64 + 1);
/// Minimum of half the symbols of a node, which the superblock stores. One node contains all links.
const SYMBOL_NODE_HALF_MIN: u64 = 4;
const SYMBOL_NODE_HEAD_BYTES: u64 = 8;
const SYMBOL_BYTES: u64 = 40;
const HEAP_HEAD_BYTES: u64 = 32;
/// Minimum length of the names in the root group's heap.
const HEAP_DATA_BYTES_MIN: usize = 88;
/// Minimum length of a free block in a heap, and the offset that means that there is none.
const HEAP_FREE_BYTES_MIN: usize = 16;
const NO_FREE_BLOCK: u64 = 1;
/// Minimum length of the messages of a dataset's object header.
const DATASET_MESSAGES_BYTES_MIN: usize = 256;

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
        let mut position = head_bytes(self).max(HEAD_BYTES);
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

/// Length of the metadata before the indexes of chunks.
fn head_bytes(plan: &FilePlan) -> u64 {
    let zeros = vec![0; plan.datasets as usize];
    let addresses = FileAddresses { index: zeros.clone(), labels: 0, records: zeros, end: 0 };
    head(plan, &addresses, 0).len() as u64
}

/// The metadata before the indexes of chunks, of a file of `end` bytes.
pub(super) fn head(plan: &FilePlan, addresses: &FileAddresses, end: u64) -> Vec<u8> {
    let datasets = datasets(plan, addresses);
    let names = LinkNames::new(&datasets);
    let symbol_node_half = (datasets.len() as u64).div_ceil(2).max(SYMBOL_NODE_HALF_MIN);
    let tree = SUPERBLOCK_BYTES + ROOT_HEADER_BYTES;
    let heap = tree + GROUP_TREE_BYTES;
    let first_dataset = heap + HEAP_HEAD_BYTES + names.data.len() as u64;
    let symbols = first_dataset + datasets[0].header.len() as u64;
    let symbols_bytes = SYMBOL_NODE_HEAD_BYTES + 2 * symbol_node_half * SYMBOL_BYTES;
    let mut position = symbols + symbols_bytes;
    let mut headers = vec![first_dataset];
    headers
        .extend(datasets[1..].iter().map(|next| allocate(&mut position, next.header.len() as u64)));

    let mut bytes = superblock(end, symbol_node_half, tree, heap);
    bytes.extend(object_header(&[(0x11, little_endian(&[tree, heap]))]));
    bytes.extend(group_tree(symbols, names.last_offset()));
    bytes.extend(names.heap(heap + HEAP_HEAD_BYTES));
    bytes.extend(&datasets[0].header);
    bytes.extend(symbol_node(&names, &headers, symbols_bytes as usize));
    datasets[1..].iter().for_each(|next| bytes.extend(&next.header));
    bytes
}

/// The superblock of a file of `end` bytes, with the addresses of the root group's B-tree and heap.
fn superblock(end: u64, symbol_node_half: u64, tree: u64, heap: u64) -> Vec<u8> {
    let node_halves = [symbol_node_half as u16, GROUP_NODE_HALF].map(u16::to_le_bytes);
    let addresses = little_endian(&[0, UNDEFINED, end, UNDEFINED]);
    // The link to the root group has no name. Its symbol repeats the addresses that are in the object header.
    let root = [&little_endian(&[0, SUPERBLOCK_BYTES])[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let group = little_endian(&[tree, heap]);
    let versions_and_lengths = [0, 0, 0, 0, 0, 8, 8, 0];
    let flags = [0; 4];
    [
        &SIGNATURE[..],
        &versions_and_lengths,
        node_halves.as_flattened(),
        &flags,
        &addresses,
        &root,
        &group,
    ]
    .concat()
}

/// A B-tree with one node, which contains all symbols.
fn group_tree(symbols: u64, last_name: u64) -> Vec<u8> {
    let head = [&b"TREE"[..], &[0, 0, 1, 0], &little_endian(&[UNDEFINED, UNDEFINED])].concat();
    let mut bytes = [head, little_endian(&[0, symbols, last_name])].concat();
    bytes.resize(GROUP_TREE_BYTES as usize, 0);
    bytes
}

/// The links of the root group, ordered by name.
fn symbol_node(names: &LinkNames, headers: &[u64], bytes: usize) -> Vec<u8> {
    let [low, high] = (headers.len() as u16).to_le_bytes();
    let mut node = [&b"SNOD"[..], &[1, 0, low, high]].concat();
    for &dataset in &names.ordered {
        node.extend(little_endian(&[names.offsets[dataset], headers[dataset], 0, 0, 0]));
    }
    node.resize(bytes, 0);
    node
}

/// A dataset and the name of the root group's link to it.
struct LinkedDataset {
    name: String,
    header: Vec<u8>,
}

fn datasets(plan: &FilePlan, addresses: &FileAddresses) -> Vec<LinkedDataset> {
    let records = (0..plan.datasets as usize).map(|i| LinkedDataset {
        name: format!("records_{i}"),
        header: records_header(plan, addresses.records[i], addresses.index[i]),
    });
    let labels = LinkedDataset {
        name: "labels".to_string(),
        header: dataset_header(
            dataspace(&[plan.shape.samples], &[]),
            Element::Int64,
            contiguous(addresses.labels, plan.labels_bytes()),
            None,
        ),
    };
    records.chain([labels]).collect()
}

/// Names of the root group's links, as its heap contains them.
struct LinkNames {
    /// Names that end with zeros, after an empty one, then unused space.
    data: Vec<u8>,
    used_bytes: usize,
    /// Offset of each dataset's name.
    offsets: Vec<u64>,
    /// Indexes of the datasets, ordered by name.
    ordered: Vec<usize>,
}

impl LinkNames {
    fn new(datasets: &[LinkedDataset]) -> Self {
        let mut data = vec![0; 8];
        let mut offsets = Vec::with_capacity(datasets.len());
        for dataset in datasets {
            offsets.push(data.len() as u64);
            data.extend(dataset.name.as_bytes());
            data.resize((data.len() + 1).next_multiple_of(8), 0);
        }
        let used_bytes = data.len();
        data.resize(used_bytes.max(HEAP_DATA_BYTES_MIN), 0);
        let mut ordered: Vec<usize> = (0..datasets.len()).collect();
        ordered.sort_by_key(|&dataset| &datasets[dataset].name);
        LinkNames { data, used_bytes, offsets, ordered }
    }

    fn last_offset(&self) -> u64 {
        self.ordered.last().map_or(0, |&dataset| self.offsets[dataset])
    }

    /// The heap, whose names are at `data_address`.
    fn heap(&self, data_address: u64) -> Vec<u8> {
        let mut data = self.data.clone();
        let free_bytes = data.len() - self.used_bytes;
        let mut free_offset = NO_FREE_BLOCK;
        if free_bytes >= HEAP_FREE_BYTES_MIN {
            free_offset = self.used_bytes as u64;
            let block = little_endian(&[NO_FREE_BLOCK, free_bytes as u64]);
            data[self.used_bytes..][..block.len()].copy_from_slice(&block);
        }
        let addresses = little_endian(&[data.len() as u64, free_offset, data_address]);
        [&b"HEAP"[..], &[0; 4], &addresses, &data].concat()
    }
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
        // One filter with a name of 8 bytes and one value, which is padded.
        let deflate = [DEFLATE, 8, 1, 1].map(u16::to_le_bytes);
        let head = [1, 1, 0, 0, 0, 0, 0, 0];
        [&head[..], deflate.as_flattened(), b"deflate\0", &level.to_le_bytes(), &[0; 4]].concat()
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
    // The default fill value. Space is allocated late, or chunk by chunk, as the library does by default.
    let is_chunked = layout[1] == 2;
    let fill_value = vec![2, if is_chunked { 3 } else { 2 }, 2, 1, 0, 0, 0, 0];
    let (element_type, len) = datatype(element);
    let mut messages = vec![
        (0x01, space),
        (0x03, element_type[..len].to_vec()),
        (0x05, fill_value),
        (0x08, layout),
    ];
    messages.extend(filters.map(|filters| (0x0b, filters)));
    object_header(&with_padding(messages))
}

/// Appends a message without content that fills the rest of a dataset's object header.
fn with_padding(mut messages: Vec<(u8, Vec<u8>)>) -> Vec<(u8, Vec<u8>)> {
    let used_bytes: usize =
        messages.iter().map(|(_, message)| 8 + message.len().next_multiple_of(8)).sum();
    if let Some(padding) = DATASET_MESSAGES_BYTES_MIN.checked_sub(used_bytes + 8) {
        messages.push((0x00, vec![0; padding]));
    }
    messages
}

/// An object header of version 1 with the given messages, each with its type.
fn object_header(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let padded_bytes = message.len().next_multiple_of(8);
        let [low, high] = (padded_bytes as u16).to_le_bytes();
        body.extend([*kind, 0, low, high, 0, 0, 0, 0]);
        body.extend(message);
        body.resize(body.len() + padded_bytes - message.len(), 0);
    }
    let [low, high] = (messages.len() as u16).to_le_bytes();
    let links = 1u32.to_le_bytes();
    let body_bytes = (body.len() as u32).to_le_bytes();
    [&[1, 0, low, high][..], &links, &body_bytes, &[0; 4], &body].concat()
}

fn dataspace(dims: &[u64], dims_max: &[u64]) -> Vec<u8> {
    let head = [1, dims.len() as u8, u8::from(!dims_max.is_empty()), 0, 0, 0, 0, 0];
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
