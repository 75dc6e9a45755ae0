//! Chunk indexes that are arrays, as written with `libver='latest'`: a fixed array if the dataset cannot grow, and an
//! extensible array if it can grow along one axis.

use super::blocks::{FieldReader, FileBlocks, Parsed, bad};
use super::message::ChunkPlace;

/// Upper limit on the bits of a page number, so that shifts do not overflow.
const BITS_MAX: u8 = 48;

/// An array of chunk addresses.
struct ChunkArray<'b> {
    blocks: &'b FileBlocks,
    header: u64,
    element_bytes: u64,
    /// Whether elements also store the size and the skipped filters of a chunk.
    is_filtered: bool,
    /// Number of elements in a page.
    page: u64,
    /// Length of the field with a data block's offset in the array.
    offset_bytes: u64,
}

impl<'b> ChunkArray<'b> {
    /// Reads the start of an array's header, which has `header_bytes` bytes at address `header`, including the checksum. Also
    /// returns the remaining fields of the header.
    fn read(
        blocks: &'b FileBlocks,
        header: u64,
        header_bytes: u64,
        signature: &str,
    ) -> Parsed<(Self, FieldReader<'b>)> {
        let mut fields = blocks.checked(header, header_bytes, signature)?;
        fields.skip(1)?;
        let client = fields.u8()?;
        let element_bytes = fields.u8()?;
        let extra = usize::from(element_bytes).checked_sub(blocks.address_bytes);
        if !matches!((client, extra), (0, Some(0)) | (1, Some(5..=12))) {
            let message =
                format!("array of `{element_bytes}` bytes an element for client `{client}`");
            return bad(header, message);
        }
        let array = ChunkArray {
            blocks,
            header,
            element_bytes: element_bytes.into(),
            is_filtered: client == 1,
            page: 0,
            offset_bytes: 0,
        };
        Ok((array, fields))
    }

    fn set_page(&mut self, bits: u8) -> Parsed<()> {
        if bits > BITS_MAX {
            return bad(self.header, format!("a chunk index with pages of 2^`{bits}`"));
        }
        self.page = 1 << bits;
        Ok(())
    }

    /// Number of pages in a data block of `count` elements; 0 if it is not paged.
    fn pages(&self, count: u64) -> u64 {
        if count > self.page { count.div_ceil(self.page) } else { 0 }
    }

    /// Length of the fixed fields of a block: signature, version, client, address of the header, checksum.
    fn block_bytes(&self) -> u64 {
        10 + self.blocks.address_bytes as u64
    }

    /// The fields of a block of this array, whose body has `bytes` bytes.
    fn block(&self, address: u64, signature: &str, bytes: u64) -> Parsed<FieldReader<'b>> {
        let block_bytes = self.block_bytes().saturating_add(bytes);
        let mut fields = self.blocks.checked(address, block_bytes, signature)?;
        let offset = fields.offset();
        fields.skip(2)?;
        if fields.address()? != Some(self.header) {
            return bad(offset, "a block of another chunk index");
        }
        Ok(fields)
    }

    /// Element `i` of the `count` elements in a data block. The elements follow after `head_bytes` bytes of its body, or in
    /// the pages after the block.
    fn in_data_block(
        &self,
        address: u64,
        signature: &str,
        head_bytes: u64,
        count: u64,
        i: u64,
    ) -> Parsed<Option<ChunkPlace>> {
        if self.pages(count) == 0 {
            let bytes = count.saturating_mul(self.element_bytes).saturating_add(head_bytes);
            let mut fields = self.block(address, signature, bytes)?;
            fields.skip(head_bytes as usize)?;
            return self.nth(fields, i);
        }
        let page = i / self.page;
        let page_bytes = self.page.saturating_mul(self.element_bytes).saturating_add(4);
        let start = address
            .saturating_add(self.block_bytes() + head_bytes)
            .saturating_add(page.saturating_mul(page_bytes));
        let page_count = self.page.min(count - page * self.page);
        let bytes = page_count.saturating_mul(self.element_bytes).saturating_add(4);
        self.nth(self.blocks.checked(start, bytes, "")?, i % self.page)
    }

    /// Reads element `i` of `fields`; `None` if the chunk was never written.
    fn nth(&self, mut fields: FieldReader, i: u64) -> Parsed<Option<ChunkPlace>> {
        fields.skip((i * self.element_bytes) as usize)?;
        fields.truncate(self.element_bytes as usize)?;
        let offset = fields.address()?;
        let mut stored = None;
        let mut skipped = 0;
        if self.is_filtered {
            stored = Some(fields.number(fields.remaining().saturating_sub(4))?);
            skipped = fields.u32()?;
        }
        Ok(offset.map(|offset| ChunkPlace { offset, stored, skipped }))
    }
}

fn bit(bytes: &[u8], i: u64) -> bool {
    bytes.get((i / 8) as usize).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
}

/// Element `i` of a fixed array.
pub(super) fn find_fixed(blocks: &FileBlocks, header: u64, i: u64) -> Parsed<Option<ChunkPlace>> {
    let bytes = 12 + (blocks.length_bytes + blocks.address_bytes) as u64;
    let (mut array, mut fields) = ChunkArray::read(blocks, header, bytes, "FAHD")?;
    array.set_page(fields.u8()?)?;
    let count = fields.length()?;
    let Some(block) = fields.address()? else { return Ok(None) };
    if i >= count {
        return bad(header, format!("a chunk index of `{count}` chunks has no chunk {i}"));
    }
    if count.checked_mul(array.element_bytes).is_none_or(|bytes| bytes > blocks.file_bytes) {
        return bad(header, format!("a chunk index of `{count}` chunks is longer than the file"));
    }
    let bits_bytes = array.pages(count).div_ceil(8);
    if bits_bytes > 0 {
        let bits = array.block(block, "FADB", bits_bytes)?.take(bits_bytes as usize)?;
        if !bit(bits, i / array.page) {
            return Ok(None);
        }
    }
    array.in_data_block(block, "FADB", bits_bytes, count, i)
}

/// An array that can grow. Elements are in data blocks, whose addresses are in super blocks. The index block contains the
/// first elements and the addresses of the data blocks of the first super blocks.
struct Extensible<'b> {
    array: ChunkArray<'b>,
    /// Address of the index block.
    index: u64,
    /// Number of elements in the index block.
    in_index: u64,
    /// Number of elements in the first data block.
    block_least: u64,
    /// Number of super blocks whose data blocks are listed in the index block.
    listed: u64,
    super_blocks: u64,
}

impl<'b> Extensible<'b> {
    fn read(blocks: &'b FileBlocks, header: u64) -> Parsed<Option<Self>> {
        let header_bytes = 16 + 6 * blocks.length_bytes as u64 + blocks.address_bytes as u64;
        let (mut array, mut fields) = ChunkArray::read(blocks, header, header_bytes, "EAHD")?;
        let bits = fields.u8()?;
        let in_index = fields.u8()?;
        let block_least = fields.u8()?;
        let pointers_least = fields.u8()?;
        array.set_page(fields.u8()?)?;
        array.offset_bytes = u64::from(bits).div_ceil(8);
        fields.skip(6 * blocks.length_bytes)?;
        let are_powers = block_least.is_power_of_two() && pointers_least.is_power_of_two();
        if !are_powers || bits > 64 || u32::from(bits) < block_least.trailing_zeros() {
            return bad(header, "a chunk index with inconsistent numbers");
        }
        Ok(fields.address()?.map(|index| Extensible {
            array,
            index,
            in_index: in_index.into(),
            block_least: block_least.into(),
            listed: 2 * u64::from(pointers_least.trailing_zeros()),
            super_blocks: 1 + u64::from(bits) - u64::from(block_least.trailing_zeros()),
        }))
    }

    /// Number of data blocks in a super block, and number of elements in each of them.
    fn blocks_of(&self, super_block: u64) -> (u64, u64) {
        (1 << (super_block / 2), self.block_least << super_block.div_ceil(2))
    }

    /// Number of data blocks listed in the index block.
    fn listed_data_blocks(&self) -> u64 {
        2 * ((1 << (self.listed / 2)) - 1)
    }

    fn index_block(&self) -> Parsed<FieldReader<'b>> {
        let ChunkArray { blocks, element_bytes, .. } = self.array;
        let listed = self.listed_data_blocks() + self.super_blocks.saturating_sub(self.listed);
        let bytes = self.in_index * element_bytes + listed * blocks.address_bytes as u64;
        self.array.block(self.index, "EAIB", bytes)
    }

    /// Address number `i` in the index block, which follow its elements.
    fn address(&self, i: u64) -> Parsed<Option<u64>> {
        let mut fields = self.index_block()?;
        fields.skip((self.in_index * self.array.element_bytes) as usize)?;
        fields.skip(i as usize * self.array.blocks.address_bytes)?;
        fields.address()
    }

    /// Element `i` of a super block.
    fn in_super_block(&self, number: u64, i: u64) -> Parsed<Option<ChunkPlace>> {
        let array = &self.array;
        let (count, length) = self.blocks_of(number);
        let at = self.listed_data_blocks() + number - self.listed;
        let Some(start) = self.address(at)? else { return Ok(None) };
        let addresses = array.blocks.address_bytes as u64;
        let pages = array.pages(length);
        let bits_bytes = count.saturating_mul(pages.div_ceil(8));
        let bytes = bits_bytes.saturating_add(count.saturating_mul(addresses));
        let mut fields = array.block(start, "EASB", bytes.saturating_add(array.offset_bytes))?;
        fields.skip(array.offset_bytes as usize)?;
        let bits = fields.take(bits_bytes as usize)?;
        let block = i / length;
        let i_in_block = i % length;
        fields.skip((block * addresses) as usize)?;
        let Some(address) = fields.address()? else { return Ok(None) };
        if pages > 0 && !bit(bits, block * pages + i_in_block / array.page) {
            return Ok(None);
        }
        array.in_data_block(address, "EADB", array.offset_bytes, length, i_in_block)
    }
}

/// Element `i` of an extensible array.
pub(super) fn find_extensible(
    blocks: &FileBlocks,
    header: u64,
    i: u64,
) -> Parsed<Option<ChunkPlace>> {
    let Some(index) = Extensible::read(blocks, header)? else { return Ok(None) };
    let Some(i_in_blocks) = i.checked_sub(index.in_index) else {
        return index.array.nth(index.index_block()?, i);
    };
    let number = u64::from((i_in_blocks / index.block_least + 1).ilog2());
    if number >= index.super_blocks {
        return bad(header, format!("a chunk index has no chunk {i_in_blocks}"));
    }
    let i_in_super_block = i_in_blocks - index.block_least * ((1 << number) - 1);
    if number >= index.listed {
        return index.in_super_block(number, i_in_super_block);
    }
    let (_, length) = index.blocks_of(number);
    let blocks_before: u64 = (0..number).map(|number| index.blocks_of(number).0).sum();
    match index.address(blocks_before + i_in_super_block / length)? {
        Some(block) => index.array.in_data_block(
            block,
            "EADB",
            index.array.offset_bytes,
            length,
            i_in_super_block % length,
        ),
        None => Ok(None),
    }
}
