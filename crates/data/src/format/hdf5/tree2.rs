//! Version 2 B-trees: indexes of chunks in datasets that can grow along several axes, and of links in large groups.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use std::cmp::Ordering;

/// Upper limit on the depth of a tree. No file has as many records.
const DEPTH_MAX: usize = 16;
/// Upper limit on the nodes that are visited to list all records.
const NODES_MAX: usize = 4096;
/// Length of a node without records and children: signature, version, type, checksum.
const NODE_HEAD_BYTES: u64 = 10;

/// A tree, as its header describes it.
pub(super) struct Tree2<'b> {
    blocks: &'b FileBlocks,
    /// Address of the header.
    address: u64,
    pub(super) kind: u8,
    pub(super) record_bytes: u64,
    depth: usize,
    root: Option<u64>,
    root_records: u64,
    /// Length of a field with the number of records in a node.
    count_bytes: u64,
    levels: [TreeLevel; DEPTH_MAX + 1],
}

/// Nodes of one level; leaves have level 0.
#[derive(Clone, Copy, Default)]
struct TreeLevel {
    /// Largest number of records in a node.
    records_max: u64,
    /// Length of a field with the number of records below a node; 0 for leaves.
    total_bytes: u64,
}

/// A node: its records, and the pointers to its children.
struct TreeNode2<'b> {
    records: FieldReader<'b>,
    children: FieldReader<'b>,
}

/// A pointer to a child node.
struct ChildNode {
    address: u64,
    records: u64,
}

/// Length of a field for numbers up to `limit`.
fn field_bytes(limit: u64) -> u64 {
    u64::from(limit.max(1).ilog2()) / 8 + 1
}

impl<'b> Tree2<'b> {
    /// Reads the header at `address` of a tree of one of the types `kinds`.
    pub(super) fn read(blocks: &'b FileBlocks, address: u64, kinds: &[u8]) -> ParseResult<Self> {
        let address_bytes = blocks.address_bytes as u64;
        let header_bytes = 22 + address_bytes + blocks.length_bytes as u64;
        let mut fields = blocks.checked_fields(address, header_bytes, "BTHD")?;
        fields.skip(1)?;
        let kind = fields.u8()?;
        let node_bytes = u64::from(fields.u32()?);
        let record_bytes = u64::from(fields.u16()?);
        let depth = usize::from(fields.u16()?);
        fields.skip(2)?;
        let root = fields.address()?;
        let root_records = u64::from(fields.u16()?);
        let leaf_max = node_bytes.saturating_sub(NODE_HEAD_BYTES).checked_div(record_bytes);
        let leaf_max = leaf_max.unwrap_or(0);
        if !kinds.contains(&kind) || depth > DEPTH_MAX || leaf_max == 0 {
            let message = format!("a version 2 B-tree of type `{kind}` and depth `{depth}`");
            return invalid(address, message);
        }
        let count_bytes = field_bytes(leaf_max);
        let mut levels = [TreeLevel { records_max: leaf_max, total_bytes: 0 }; DEPTH_MAX + 1];
        let mut total_max = leaf_max;
        for level in 1..=depth {
            let child_bytes = address_bytes + count_bytes + levels[level - 1].total_bytes;
            let body_bytes = node_bytes.saturating_sub(NODE_HEAD_BYTES + child_bytes);
            let records_max = body_bytes / (record_bytes + child_bytes);
            total_max = total_max.saturating_mul(records_max + 1).saturating_add(records_max);
            levels[level] = TreeLevel { records_max, total_bytes: field_bytes(total_max) };
        }
        Ok(Tree2 {
            blocks,
            address,
            kind,
            record_bytes,
            depth,
            root,
            root_records,
            count_bytes,
            levels,
        })
    }

    fn root(&self) -> Option<ChildNode> {
        let is_empty = self.root_records == 0;
        self.root
            .filter(|_| !is_empty)
            .map(|address| ChildNode { address, records: self.root_records })
    }

    fn node(
        &self,
        ChildNode { address, records }: &ChildNode,
        level: usize,
    ) -> ParseResult<TreeNode2<'b>> {
        if *records > self.levels[level].records_max {
            return invalid(*address, format!("a tree node of `{records}` records"));
        }
        let signature = if level == 0 { "BTLF" } else { "BTIN" };
        let records_bytes = records * self.record_bytes;
        let children_bytes = if level == 0 { 0 } else { (records + 1) * self.child_bytes(level) };
        let bytes = NODE_HEAD_BYTES + records_bytes + children_bytes;
        let mut fields = self.blocks.checked_fields(*address, bytes, signature)?;
        fields.skip(1)?;
        if fields.u8()? != self.kind {
            return invalid(*address, "a node of another tree");
        }
        let mut children = fields.clone();
        children.skip(records_bytes as usize)?;
        Ok(TreeNode2 { records: fields, children })
    }

    /// Length of a pointer in a node of `level`, at least 1.
    fn child_bytes(&self, level: usize) -> u64 {
        self.blocks.address_bytes as u64 + self.count_bytes + self.levels[level - 1].total_bytes
    }

    /// Child `i` of a node of `level`, at least 1.
    fn child(&self, node: &TreeNode2<'b>, level: usize, i: u64) -> ParseResult<ChildNode> {
        let mut fields = node.children.clone();
        fields.skip((i * self.child_bytes(level)) as usize)?;
        let Some(address) = fields.address()? else {
            return invalid(self.address, "a tree node without an address");
        };
        Ok(ChildNode { address, records: fields.number(self.count_bytes as usize)? })
    }

    fn record(&self, node: &TreeNode2<'b>, i: u64) -> ParseResult<FieldReader<'b>> {
        let mut fields = node.records.clone();
        fields.skip((i * self.record_bytes) as usize)?;
        fields.truncate(self.record_bytes as usize)?;
        Ok(fields)
    }

    /// Finds the record for which `compare` returns equality; it returns how a record is ordered relative to the wanted one.
    pub(super) fn find(
        &self,
        compare: &dyn Fn(FieldReader) -> ParseResult<Ordering>,
    ) -> ParseResult<Option<FieldReader<'b>>> {
        let Some(mut next) = self.root() else { return Ok(None) };
        let mut level = self.depth;
        loop {
            let node = self.node(&next, level)?;
            // Binary search for the first record that is not before the wanted one.
            let mut low = 0;
            let mut high = next.records;
            while low < high {
                let middle = low + (high - low) / 2;
                let record = self.record(&node, middle)?;
                match compare(record.clone())? {
                    Ordering::Equal => return Ok(Some(record)),
                    Ordering::Less => low = middle + 1,
                    Ordering::Greater => high = middle,
                }
            }
            if level == 0 {
                return Ok(None);
            }
            next = self.child(&node, level, low)?;
            level -= 1;
        }
    }

    /// Calls `visit` with all records.
    pub(super) fn for_each(
        &self,
        visit: &mut dyn FnMut(FieldReader<'b>) -> ParseResult<()>,
    ) -> ParseResult<()> {
        let mut nodes_left = NODES_MAX;
        match self.root() {
            Some(root) => self.visit_node(&root, self.depth, &mut nodes_left, visit),
            None => Ok(()),
        }
    }

    fn visit_node(
        &self,
        child: &ChildNode,
        level: usize,
        nodes_left: &mut usize,
        visit: &mut dyn FnMut(FieldReader<'b>) -> ParseResult<()>,
    ) -> ParseResult<()> {
        let Some(left) = nodes_left.checked_sub(1) else {
            return invalid(self.address, format!("a tree of more than {NODES_MAX} nodes"));
        };
        *nodes_left = left;
        let node = self.node(child, level)?;
        for i in 0..child.records {
            if level > 0 {
                self.visit_node(&self.child(&node, level, i)?, level - 1, nodes_left, visit)?;
            }
            visit(self.record(&node, i)?)?;
        }
        if level > 0 {
            let last = self.child(&node, level, child.records)?;
            self.visit_node(&last, level - 1, nodes_left, visit)?;
        }
        Ok(())
    }
}
