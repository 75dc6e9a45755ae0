//! Chunk indexes that are arrays, as `libver='latest'` makes them: fixed where no axis grows, extensible where one does.

use super::RANK_MAX;
use super::blocks::{Blocks, Fields, Parsed, bad};
use super::message::Dataset;

/// Page bits and the like beyond this are refused: shifts must not overflow.
const BITS_MAX: u8 = 48;
/// More chunks than any file has.
const ORDINAL_MAX: u64 = 1 << 62;

/// A chunk in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) offset: u64,
    /// Bytes as it is stored, where the index says them.
    pub(super) stored: Option<u64>,
    /// A bit for each filter that was skipped.
    pub(super) skipped: u32,
}

/// A dataset cut into chunks of `chunk`, and the file it lies in.
pub(super) struct Lookup<'l> {
    pub(super) blocks: &'l Blocks,
    pub(super) dataset: &'l Dataset,
    pub(super) chunk: &'l [u64],
    pub(super) chunk_bytes: u64,
}

/// Number of the chunk at `grid` in an index: along the dimensions that the dataset may grow to, an axis without limit
/// slowest.
pub(super) fn ordinal(lookup: &Lookup, grid: &[u64]) -> Parsed<u64> {
    let rank = grid.len();
    let unlimited = lookup.dataset.dims_max[..rank].iter().position(|max| *max == u64::MAX);
    let slowest = unlimited.unwrap_or(0);
    let mut ordinal = Some(grid[slowest]);
    for i in (0..rank).filter(|i| *i != slowest) {
        let count = lookup.dataset.dims_max[i].div_ceil(lookup.chunk[i]);
        ordinal = ordinal.and_then(|all| all.checked_mul(count)?.checked_add(grid[i]));
    }
    let ordinal = ordinal.filter(|ordinal| *ordinal < ORDINAL_MAX);
    ordinal.map_or_else(|| bad(0, "more chunks than any file has"), Ok)
}

/// Elements of an array.
struct Elements {
    bytes: u64,
    /// With size and skipped filters.
    is_filtered: bool,
}

impl Elements {
    fn new(offset: u64, client: u8, bytes: u8, address_bytes: usize) -> Parsed<Self> {
        let is_filtered = client == 1;
        let extra = usize::from(bytes).checked_sub(address_bytes);
        match (client, extra) {
            (0, Some(0)) | (1, Some(5..=12)) => Ok(Elements { bytes: bytes.into(), is_filtered }),
            _ => bad(offset, format!("array of `{bytes}` bytes an element for client `{client}`")),
        }
    }

    fn read(&self, mut fields: Fields) -> Parsed<Option<Place>> {
        let offset = fields.address()?;
        let (mut stored, mut skipped) = (None, 0);
        if self.is_filtered {
            stored = Some(fields.number(fields.left().saturating_sub(4))?);
            skipped = fields.u32()?;
        }
        Ok(offset.map(|offset| Place { offset, stored, skipped }))
    }

    /// Element `i` of a stretch of `count` at `start` that ends with its checksum, which is checked.
    fn in_page(&self, blocks: &Blocks, start: u64, count: u64, i: u64) -> Parsed<Option<Place>> {
        let page = blocks.checked(start, (count * self.bytes).saturating_add(4), "")?;
        self.nth(page, i)
    }

    fn nth(&self, mut fields: Fields, i: u64) -> Parsed<Option<Place>> {
        fields.skip((i * self.bytes) as usize)?;
        fields.truncate(self.bytes as usize)?;
        self.read(fields)
    }
}

/// Check the start of a data block: version, client, and the header it belongs to.
fn check_owner(fields: &mut Fields, header: u64) -> Parsed<()> {
    let offset = fields.offset();
    fields.skip(2)?;
    if fields.address()? != Some(header) {
        return bad(offset, "a block of another chunk index");
    }
    Ok(())
}

fn bit(bytes: &[u8], i: u64) -> bool {
    bytes.get((i / 8) as usize).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
}

fn short(bits: u8, offset: u64) -> Parsed<u64> {
    if bits > BITS_MAX {
        return bad(offset, format!("a chunk index with pages of 2^`{bits}`"));
    }
    Ok(1 << bits)
}

pub(super) fn find_fixed(lookup: &Lookup, header: u64, grid: &[u64]) -> Parsed<Option<Place>> {
    let blocks = lookup.blocks;
    let (addresses, lengths) = (blocks.address_bytes as u64, blocks.length_bytes as u64);
    let mut fields = blocks.checked(header, 12 + lengths + addresses, "FAHD")?;
    fields.skip(1)?;
    let (client, bytes, page_bits) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let elements = Elements::new(header, client, bytes, blocks.address_bytes)?;
    let count = fields.length()?;
    let Some(block) = fields.address()? else { return Ok(None) };
    let i = ordinal(lookup, grid)?;
    if i >= count {
        return bad(header, format!("a chunk index of `{count}` chunks has no chunk {i}"));
    }
    if count.checked_mul(elements.bytes).is_none_or(|bytes| bytes > blocks.file_bytes) {
        return bad(header, format!("a chunk index of `{count}` chunks is longer than the file"));
    }
    let page = short(page_bits, header)?;
    let pages = if count > page { count.div_ceil(page) } else { 0 };
    let prefix_bytes = 6 + addresses + pages.div_ceil(8);
    let data_bytes = if pages > 0 { 0 } else { count * elements.bytes };
    let mut fields = blocks.checked(block, prefix_bytes + data_bytes + 4, "FADB")?;
    check_owner(&mut fields, header)?;
    if pages == 0 {
        return elements.nth(fields, i);
    }
    if !bit(fields.take(pages.div_ceil(8) as usize)?, i / page) {
        return Ok(None);
    }
    let start = block + prefix_bytes + 4 + i / page * (page * elements.bytes + 4);
    let there = page.min(count - i / page * page);
    elements.in_page(blocks, start, there, i % page)
}

/// The header of an extensible array.
struct Extensible {
    header: u64,
    elements: Elements,
    /// Bytes of a block's offset in the array.
    offset_bytes: u64,
    in_index: u64,
    /// Elements of the first data block.
    block_least: u64,
    /// Super blocks whose data blocks the index block lists itself.
    listed: u64,
    super_blocks: u64,
    page: u64,
    index: u64,
}

impl Extensible {
    fn read(blocks: &Blocks, header: u64) -> Parsed<Option<Self>> {
        let (addresses, lengths) = (blocks.address_bytes as u64, blocks.length_bytes as u64);
        let mut fields = blocks.checked(header, 16 + 6 * lengths + addresses, "EAHD")?;
        fields.skip(1)?;
        let (client, bytes) = (fields.u8()?, fields.u8()?);
        let elements = Elements::new(header, client, bytes, blocks.address_bytes)?;
        let (bits, in_index, block_least) = (fields.u8()?, fields.u8()?, fields.u8()?);
        let (pointers_least, page_bits) = (fields.u8()?, fields.u8()?);
        fields.skip(6 * lengths as usize)?;
        let is_even = block_least.is_power_of_two() && pointers_least.is_power_of_two();
        if !is_even || bits > 64 || u32::from(bits) < block_least.trailing_zeros() {
            return bad(header, "a chunk index with numbers that do not belong together");
        }
        let listed = 2 * u64::from(pointers_least.trailing_zeros());
        let super_blocks = 1 + u64::from(bits) - u64::from(block_least.trailing_zeros());
        let page = short(page_bits, header)?;
        Ok(fields.address()?.map(|index| Extensible {
            header,
            elements,
            offset_bytes: u64::from(bits).div_ceil(8),
            in_index: in_index.into(),
            block_least: block_least.into(),
            listed,
            super_blocks,
            page,
            index,
        }))
    }

    /// Data blocks in a super block, and elements in each of them.
    fn blocks_of(&self, super_block: u64) -> (u64, u64) {
        (1 << (super_block / 2), self.block_least << super_block.div_ceil(2))
    }

    /// Address number `i` of `listed` in the index block, behind its elements.
    fn listed(&self, blocks: &Blocks, i: u64) -> Parsed<Option<u64>> {
        let mut fields = self.index_block(blocks)?;
        fields.skip((self.in_index * self.elements.bytes) as usize)?;
        fields.skip(i as usize * blocks.address_bytes)?;
        fields.address()
    }

    fn index_block<'b>(&self, blocks: &'b Blocks) -> Parsed<Fields<'b>> {
        let addresses = blocks.address_bytes as u64;
        let listed = self.data_listed() + self.super_blocks.saturating_sub(self.listed);
        let bytes = 10 + addresses + self.in_index * self.elements.bytes + listed * addresses;
        let mut fields = blocks.checked(self.index, bytes, "EAIB")?;
        check_owner(&mut fields, self.header)?;
        Ok(fields)
    }

    /// Data blocks that the index block lists.
    fn data_listed(&self) -> u64 {
        2 * ((1 << (self.listed / 2)) - 1)
    }

    /// Element `i` of a data block that is not paged.
    fn in_block(&self, blocks: &Blocks, block: u64, count: u64, i: u64) -> Parsed<Option<Place>> {
        let bytes = 10 + blocks.address_bytes as u64 + self.offset_bytes;
        let bytes = bytes.saturating_add(count.saturating_mul(self.elements.bytes));
        let mut fields = blocks.checked(block, bytes, "EADB")?;
        check_owner(&mut fields, self.header)?;
        fields.skip(self.offset_bytes as usize)?;
        self.elements.nth(fields, i)
    }

    /// Element `i` of a super block.
    fn in_super_block(&self, blocks: &Blocks, number: u64, i: u64) -> Parsed<Option<Place>> {
        let (count, length) = self.blocks_of(number);
        let at = self.data_listed() + number - self.listed;
        let Some(start) = self.listed(blocks, at)? else { return Ok(None) };
        let addresses = blocks.address_bytes as u64;
        let pages = if length > self.page { length / self.page } else { 0 };
        let bits_bytes = count.saturating_mul(pages.div_ceil(8));
        let bytes = (10 + addresses + self.offset_bytes)
            .saturating_add(bits_bytes)
            .saturating_add(count.saturating_mul(addresses));
        let mut fields = blocks.checked(start, bytes, "EASB")?;
        check_owner(&mut fields, self.header)?;
        fields.skip(self.offset_bytes as usize)?;
        let bits = fields.take(bits_bytes as usize)?;
        let (block, i) = (i / length, i % length);
        fields.skip((block * addresses) as usize)?;
        let Some(address) = fields.address()? else { return Ok(None) };
        if pages == 0 {
            return self.in_block(blocks, address, length, i);
        }
        if !bit(bits, block * pages + i / self.page) {
            return Ok(None);
        }
        let page_bytes = self.page.saturating_mul(self.elements.bytes).saturating_add(4);
        let skew = (10 + addresses + self.offset_bytes)
            .saturating_add((i / self.page).saturating_mul(page_bytes));
        let start = address.saturating_add(skew);
        self.elements.in_page(blocks, start, self.page, i % self.page)
    }
}

pub(super) fn find_extensible(lookup: &Lookup, header: u64, grid: &[u64]) -> Parsed<Option<Place>> {
    let blocks = lookup.blocks;
    let Some(array) = Extensible::read(blocks, header)? else { return Ok(None) };
    debug_assert!(grid.len() <= RANK_MAX);
    let i = ordinal(lookup, grid)?;
    let Some(i) = i.checked_sub(array.in_index) else {
        return array.elements.nth(array.index_block(blocks)?, i);
    };
    let number = u64::from((i / array.block_least + 1).ilog2());
    if number >= array.super_blocks {
        return bad(header, format!("a chunk index has no chunk {i}"));
    }
    let i = i - array.block_least * ((1 << number) - 1);
    if number >= array.listed {
        return array.in_super_block(blocks, number, i);
    }
    let (_, length) = array.blocks_of(number);
    let before: u64 = (0..number).map(|number| array.blocks_of(number).0).sum();
    match array.listed(blocks, before + i / length)? {
        Some(block) => array.in_block(blocks, block, length, i % length),
        None => Ok(None),
    }
}
