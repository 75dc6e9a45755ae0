//! The metadata of a file of ours: a version 2 superblock, version 2 object headers, version 1 B-trees. What HDF5 1.8
//! and all after it read.

use super::plan::{Chunks, Places, Plan};
use super::{DEFLATE, Element, SIGNATURE, SinkError, UNDEFINED, checksum};

pub(super) const SUPERBLOCK_BYTES: u64 = 48;
/// Signature, version, flags, four bytes of length, checksum.
const HEADER_EXTRA_BYTES: usize = 14;
/// Half the children of a chunk index's node where the superblock does not say: `HDF5_BTREE_CHUNK_IK_DEF`.
const NODE_CHILDREN: u64 = 64;
const NODE_HEAD_BYTES: u64 = 24;

/// Bytes of superblock and object headers.
pub(super) fn head_bytes(plan: &Plan) -> u64 {
    let none = vec![0; plan.datasets as usize];
    let places = Places { index: none.clone(), labels: 0, records: none, end: 0 };
    SUPERBLOCK_BYTES + object_headers(plan, &places).len() as u64
}

/// The superblock of a file of `end` bytes.
pub(super) fn superblock(end: u64) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([2, 8, 8, 0]);
    put64(&mut bytes, &[0, UNDEFINED, end, SUPERBLOCK_BYTES]);
    put_checksum(&mut bytes);
    bytes
}

/// The root group, then the datasets it links to.
pub(super) fn object_headers(plan: &Plan, places: &Places) -> Vec<u8> {
    let mut headers: Vec<(String, Vec<u8>)> = (0..plan.datasets as usize)
        .map(|i| (format!("records_{i}"), records_header(plan, places.records[i], places.index[i])))
        .collect();
    headers.push(("labels".to_string(), labels_header(plan, places.labels)));
    // Where the datasets lie depends on the length of the root, which does not depend on where they lie.
    let nowhere: Vec<(&str, u64)> = headers.iter().map(|(name, _)| (name.as_str(), 0)).collect();
    let mut at = SUPERBLOCK_BYTES + root_header(&nowhere).len() as u64;
    let mut links = Vec::with_capacity(headers.len());
    for (name, header) in &headers {
        links.push((name.as_str(), at));
        at += header.len() as u64;
    }
    let mut bytes = root_header(&links);
    headers.iter().for_each(|(_, header)| bytes.extend(header));
    bytes
}

fn root_header(links: &[(&str, u64)]) -> Vec<u8> {
    let mut messages = Vec::new();
    let mut link_info = vec![0, 0];
    put64(&mut link_info, &[UNDEFINED, UNDEFINED]);
    put_message(&mut messages, 0x02, &link_info);
    put_message(&mut messages, 0x0a, &[0, 0]);
    for (name, address) in links {
        let mut link = vec![1, 0, name.len() as u8];
        link.extend(name.as_bytes());
        put64(&mut link, &[*address]);
        put_message(&mut messages, 0x06, &link);
    }
    object_header(&messages)
}

fn records_header(plan: &Plan, records: u64, index: u64) -> Vec<u8> {
    let mut messages = Vec::new();
    put_message(&mut messages, 0x01, &dataspace(&plan.dims, &plan.dims_max));
    put_message(&mut messages, 0x03, &datatype(plan.shape.element));
    put_message(&mut messages, 0x05, &fill_value(plan.chunks.is_some()));
    match &plan.chunks {
        None => put_message(&mut messages, 0x08, &contiguous(records, plan.dataset_bytes())),
        Some(chunks) => {
            let mut layout = vec![3, 2, chunks.dims.len() as u8 + 1];
            put64(&mut layout, &[index]);
            chunks.dims.iter().for_each(|&dim| put32(&mut layout, &[dim as u32]));
            put32(&mut layout, &[plan.shape.element.bytes() as u32]);
            put_message(&mut messages, 0x08, &layout);
        }
    }
    if let Some(level) = plan.level {
        let mut filters = vec![2, 1];
        put16(&mut filters, &[DEFLATE, 1, 1]);
        put32(&mut filters, &[level]);
        put_message(&mut messages, 0x0b, &filters);
    }
    object_header(&messages)
}

fn labels_header(plan: &Plan, labels: u64) -> Vec<u8> {
    let mut messages = Vec::new();
    put_message(&mut messages, 0x01, &dataspace(&[plan.shape.samples], &[]));
    put_message(&mut messages, 0x03, &datatype(Element::Int64));
    put_message(&mut messages, 0x05, &fill_value(false));
    put_message(&mut messages, 0x08, &contiguous(labels, plan.labels_bytes()));
    object_header(&messages)
}

fn object_header(messages: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(messages.len() + HEADER_EXTRA_BYTES);
    bytes.extend(b"OHDR\x02\x02");
    put32(&mut bytes, &[messages.len() as u32]);
    bytes.extend(messages);
    put_checksum(&mut bytes);
    bytes
}

fn put_message(messages: &mut Vec<u8>, kind: u8, body: &[u8]) {
    messages.push(kind);
    put16(messages, &[body.len() as u16]);
    messages.push(0);
    messages.extend(body);
}

fn dataspace(dims: &[u64], dims_max: &[u64]) -> Vec<u8> {
    let has_max = u8::from(!dims_max.is_empty());
    let mut body = vec![2, dims.len() as u8, has_max, 1];
    put64(&mut body, dims);
    put64(&mut body, dims_max);
    body
}

fn datatype(element: Element) -> Vec<u8> {
    let bits = element.bytes() as u16 * 8;
    // Sign bit, exponent's place and length, mantissa's length, bias.
    let float = match element {
        Element::Float16 => Some((10, 5, 15)),
        Element::Float32 => Some((23, 8, 127)),
        Element::Float64 => Some((52, 11, 1023)),
        _ => None,
    };
    let signed =
        matches!(element, Element::Int8 | Element::Int16 | Element::Int32 | Element::Int64);
    let mut body = match float {
        None => vec![0x10, u8::from(signed) << 3, 0, 0],
        // The mantissa's top bit is implied.
        Some(_) => vec![0x11, 0x20, bits as u8 - 1, 0],
    };
    put32(&mut body, &[element.bytes() as u32]);
    put16(&mut body, &[0, bits]);
    if let Some((mantissa_bits, exponent_bits, bias)) = float {
        body.extend([mantissa_bits, exponent_bits, 0, mantissa_bits]);
        put32(&mut body, &[bias]);
    }
    body
}

/// None; allocated as the library does it, late or chunk by chunk.
fn fill_value(chunked: bool) -> [u8; 2] {
    [3, if chunked { 0x0b } else { 0x0a }]
}

fn contiguous(address: u64, bytes: u64) -> Vec<u8> {
    let mut layout = vec![3, 1];
    put64(&mut layout, &[address, bytes]);
    layout
}

/// Takes a node and its address.
type Put<'p> = dyn FnMut(u64, &[u8]) -> Result<(), SinkError> + 'p;

/// The B-tree of a dataset's chunks. Its size depends on their number only, so it can come before them.
pub(super) struct Tree {
    /// Nodes of each level, the leaves first.
    levels: Vec<u64>,
    chunks: u64,
    key_bytes: u64,
}

impl Tree {
    pub(super) fn new(chunks: u64, rank: usize) -> Self {
        let mut levels = vec![chunks.div_ceil(NODE_CHILDREN).max(1)];
        let mut nodes = levels[0];
        while nodes > 1 {
            nodes = nodes.div_ceil(NODE_CHILDREN);
            levels.push(nodes);
        }
        Tree { levels, chunks, key_bytes: 8 + 8 * (rank as u64 + 1) }
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
        chunks: &Chunks,
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
        chunks: &Chunks,
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
        put16(bytes, &[(children.end - children.start) as u16]);
        put64(bytes, &[left, right]);
        // Chunks below each child.
        let span = NODE_CHILDREN.pow(level as u32);
        for child in children.clone() {
            put_key(bytes, child * span, chunks, chunk);
            let address = match level {
                0 => chunk(child).0,
                _ => self.node_address(start, level - 1, child),
            };
            put64(bytes, &[address]);
        }
        let next = children.end.saturating_mul(span).min(self.chunks);
        put_key(bytes, next, chunks, chunk);
        bytes.resize(self.node_bytes() as usize, 0);
    }
}

/// A chunk's size, filters that were skipped, offsets; what comes after the last chunk lies beyond it everywhere.
fn put_key(bytes: &mut Vec<u8>, ordinal: u64, chunks: &Chunks, chunk: &dyn Fn(u64) -> (u64, u32)) {
    let is_beyond = ordinal >= chunks.count();
    let size = if is_beyond { 0 } else { chunk(ordinal).1 };
    put32(bytes, &[size, 0]);
    let mut grid = [0; super::RANK_MAX];
    let grid = &mut grid[..chunks.dims.len()];
    place(if is_beyond { chunks.count() - 1 } else { ordinal }, &chunks.counts, grid);
    for (at, dim) in grid.iter().zip(&chunks.dims) {
        put64(bytes, &[(at + u64::from(is_beyond)).saturating_mul(*dim)]);
    }
    put64(bytes, &[0]);
}

/// Position of chunk number `ordinal` among `counts` chunks, the last dimension fastest.
pub(super) fn place(ordinal: u64, counts: &[u64], grid: &mut [u64]) {
    let mut rest = ordinal;
    for (at, count) in grid.iter_mut().zip(counts).rev() {
        *at = rest % count;
        rest /= count;
    }
}

fn put_checksum(bytes: &mut Vec<u8>) {
    let sum = checksum::lookup3(bytes);
    put32(bytes, &[sum]);
}

fn put16(bytes: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

fn put32(bytes: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

fn put64(bytes: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}
