//! Chunk indexes that are arrays, as written with `libver='latest'`: a fixed array if the dataset cannot grow, and an
//! extensible array if it can grow along one axis.

use super::blocks::{FieldReader, FileBlocks, ParseResult, invalid};
use super::message::ChunkLocation;

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
    page_elements: u64,
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
    ) -> ParseResult<(Self, FieldReader<'b>)> {
        let mut fields = blocks.checked_fields(header, header_bytes, signature)?;
        fields.skip(1)?;
        let client = fields.u8()?;
        let element_bytes = fields.u8()?;
        let extra = usize::from(element_bytes).checked_sub(blocks.address_bytes);
        if !matches!((client, extra), (0, Some(0)) | (1, Some(5..=12))) {
            let message =
                format!("array of `{element_bytes}` bytes an element for client `{client}`");
            return invalid(header, message);
        }
        let array = ChunkArray {
            blocks,
            header,
            element_bytes: element_bytes.into(),
            is_filtered: client == 1,
            page_elements: 0,
            offset_bytes: 0,
        };
        Ok((array, fields))
    }

    fn set_page_bits(&mut self, bits: u8) -> ParseResult<()> {
        if bits > BITS_MAX {
            return invalid(self.header, format!("a chunk index with pages of 2^`{bits}`"));
        }
        self.page_elements = 1 << bits;
        Ok(())
    }

    /// Number of pages in a data block of `count` elements; 0 if it is not paged.
    fn page_count(&self, count: u64) -> u64 {
        if count > self.page_elements { count.div_ceil(self.page_elements) } else { 0 }
    }

    /// Length of the fixed fields of a block: signature, version, client, address of the header, checksum.
    fn block_bytes(&self) -> u64 {
        10 + self.blocks.address_bytes as u64
    }

    /// The fields of a block of this array, whose body has `bytes` bytes.
    fn block(&self, address: u64, signature: &str, bytes: u64) -> ParseResult<FieldReader<'b>> {
        let block_bytes = self.block_bytes().saturating_add(bytes);
        let mut fields = self.blocks.checked_fields(address, block_bytes, signature)?;
        let offset = fields.offset();
        fields.skip(2)?;
        if fields.address()? != Some(self.header) {
            return invalid(offset, "a block of another chunk index");
        }
        Ok(fields)
    }

    /// Returns element `i` of the `count` elements in a data block. The elements follow after `head_bytes` bytes of its body, or in
    /// the pages after the block.
    fn element_in_data_block(
        &self,
        address: u64,
        signature: &str,
        head_bytes: u64,
        count: u64,
        i: u64,
    ) -> ParseResult<Option<ChunkLocation>> {
        if self.page_count(count) == 0 {
            let bytes = count.saturating_mul(self.element_bytes).saturating_add(head_bytes);
            let mut fields = self.block(address, signature, bytes)?;
            fields.skip(head_bytes as usize)?;
            return self.nth(fields, i);
        }
        let page = i / self.page_elements;
        let page_bytes = self.page_elements.saturating_mul(self.element_bytes).saturating_add(4);
        let start = address
            .saturating_add(self.block_bytes() + head_bytes)
            .saturating_add(page.saturating_mul(page_bytes));
        let page_count = self.page_elements.min(count - page * self.page_elements);
        let bytes = page_count.saturating_mul(self.element_bytes).saturating_add(4);
        self.nth(self.blocks.checked_fields(start, bytes, "")?, i % self.page_elements)
    }

    /// Reads element `i` of `fields`; `None` if the chunk was never written.
    fn nth(&self, mut fields: FieldReader, i: u64) -> ParseResult<Option<ChunkLocation>> {
        fields.skip((i * self.element_bytes) as usize)?;
        fields.truncate(self.element_bytes as usize)?;
        let offset = fields.address()?;
        let mut stored_bytes = None;
        let mut skipped_filters = 0;
        if self.is_filtered {
            stored_bytes = Some(fields.number(fields.remaining().saturating_sub(4))?);
            skipped_filters = fields.u32()?;
        }
        Ok(offset.map(|offset| ChunkLocation { offset, stored_bytes, skipped_filters }))
    }
}

fn is_bit_set(bytes: &[u8], i: u64) -> bool {
    bytes.get((i / 8) as usize).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
}

/// Element `i` of a fixed array.
pub(super) fn find_fixed(
    blocks: &FileBlocks,
    header: u64,
    i: u64,
) -> ParseResult<Option<ChunkLocation>> {
    let bytes = 12 + (blocks.length_bytes + blocks.address_bytes) as u64;
    let (mut array, mut fields) = ChunkArray::read(blocks, header, bytes, "FAHD")?;
    array.set_page_bits(fields.u8()?)?;
    let count = fields.length()?;
    let Some(block) = fields.address()? else { return Ok(None) };
    if i >= count {
        return invalid(header, format!("a chunk index of `{count}` chunks has no chunk {i}"));
    }
    if count.checked_mul(array.element_bytes).is_none_or(|bytes| bytes > blocks.file_bytes) {
        return invalid(
            header,
            format!("a chunk index of `{count}` chunks is longer than the file"),
        );
    }
    let bits_bytes = array.page_count(count).div_ceil(8);
    if bits_bytes > 0 {
        let bits = array.block(block, "FADB", bits_bytes)?.take(bits_bytes as usize)?;
        if !is_bit_set(bits, i / array.page_elements) {
            return Ok(None);
        }
    }
    array.element_in_data_block(block, "FADB", bits_bytes, count, i)
}

/// An array that can grow. Elements are in data blocks, whose addresses are in super blocks. The index block contains the
/// first elements, and the addresses of the data blocks that belong to the first super blocks.
struct Extensible<'b> {
    array: ChunkArray<'b>,
    /// Address of the index block.
    index: u64,
    /// Number of elements in the index block.
    index_elements: u64,
    /// Number of elements in the first data block.
    first_block_elements: u64,
    /// Number of super blocks whose data blocks are listed in the index block.
    listed_super_blocks: u64,
    super_blocks: u64,
}

impl<'b> Extensible<'b> {
    fn read(blocks: &'b FileBlocks, header: u64) -> ParseResult<Option<Self>> {
        let header_bytes = 16 + 6 * blocks.length_bytes as u64 + blocks.address_bytes as u64;
        let (mut array, mut fields) = ChunkArray::read(blocks, header, header_bytes, "EAHD")?;
        let bits = fields.u8()?;
        let index_elements = fields.u8()?;
        let first_block_elements = fields.u8()?;
        let min_pointers = fields.u8()?;
        array.set_page_bits(fields.u8()?)?;
        array.offset_bytes = u64::from(bits).div_ceil(8);
        fields.skip(6 * blocks.length_bytes)?;
        let are_powers = first_block_elements.is_power_of_two() && min_pointers.is_power_of_two();
        if !are_powers || bits > 64 || u32::from(bits) < first_block_elements.trailing_zeros() {
            return invalid(header, "a chunk index with inconsistent numbers");
        }
        Ok(fields.address()?.map(|index| Extensible {
            array,
            index,
            index_elements: index_elements.into(),
            first_block_elements: first_block_elements.into(),
            listed_super_blocks: 2 * u64::from(min_pointers.trailing_zeros()),
            super_blocks: 1 + u64::from(bits) - u64::from(first_block_elements.trailing_zeros()),
        }))
    }

    /// Number of data blocks in a super block, and number of elements in each of them.
    fn super_block_size(&self, super_block: u64) -> (u64, u64) {
        (1 << (super_block / 2), self.first_block_elements << super_block.div_ceil(2))
    }

    /// Number of data blocks listed in the index block.
    fn listed_data_blocks(&self) -> u64 {
        2 * ((1 << (self.listed_super_blocks / 2)) - 1)
    }

    fn index_block(&self) -> ParseResult<FieldReader<'b>> {
        let ChunkArray { blocks, element_bytes, .. } = self.array;
        let addresses =
            self.listed_data_blocks() + self.super_blocks.saturating_sub(self.listed_super_blocks);
        let bytes = self.index_elements * element_bytes + addresses * blocks.address_bytes as u64;
        self.array.block(self.index, "EAIB", bytes)
    }

    /// Address number `i` in the index block. The addresses follow the elements.
    fn address(&self, i: u64) -> ParseResult<Option<u64>> {
        let mut fields = self.index_block()?;
        fields.skip((self.index_elements * self.array.element_bytes) as usize)?;
        fields.skip(i as usize * self.array.blocks.address_bytes)?;
        fields.address()
    }

    /// Element `i` of a super block.
    fn element_in_super_block(&self, number: u64, i: u64) -> ParseResult<Option<ChunkLocation>> {
        let array = &self.array;
        let (count, length) = self.super_block_size(number);
        let address_number = self.listed_data_blocks() + number - self.listed_super_blocks;
        let Some(start) = self.address(address_number)? else { return Ok(None) };
        let addresses = array.blocks.address_bytes as u64;
        let pages = array.page_count(length);
        let bits_bytes = count.saturating_mul(pages.div_ceil(8));
        let bytes = bits_bytes.saturating_add(count.saturating_mul(addresses));
        let mut fields = array.block(start, "EASB", bytes.saturating_add(array.offset_bytes))?;
        fields.skip(array.offset_bytes as usize)?;
        let bits = fields.take(bits_bytes as usize)?;
        let block = i / length;
        let i_in_block = i % length;
        fields.skip((block * addresses) as usize)?;
        let Some(address) = fields.address()? else { return Ok(None) };
        if pages > 0 && !is_bit_set(bits, block * pages + i_in_block / array.page_elements) {
            return Ok(None);
        }
        array.element_in_data_block(address, "EADB", array.offset_bytes, length, i_in_block)
    }
}

/// Element `i` of an extensible array.
pub(super) fn find_extensible(
    blocks: &FileBlocks,
    header: u64,
    i: u64,
) -> ParseResult<Option<ChunkLocation>> {
    let Some(index) = Extensible::read(blocks, header)? else { return Ok(None) };
    let Some(i_in_blocks) = i.checked_sub(index.index_elements) else {
        return index.array.nth(index.index_block()?, i);
    };
    let number = u64::from((i_in_blocks / index.first_block_elements + 1).ilog2());
    if number >= index.super_blocks {
        return invalid(header, format!("a chunk index has no chunk {i_in_blocks}"));
    }
    let i_in_super_block = i_in_blocks - index.first_block_elements * ((1 << number) - 1);
    if number >= index.listed_super_blocks {
        return index.element_in_super_block(number, i_in_super_block);
    }
    let (_, length) = index.super_block_size(number);
    let blocks_before: u64 = (0..number).map(|number| index.super_block_size(number).0).sum();
    match index.address(blocks_before + i_in_super_block / length)? {
        Some(block) => index.array.element_in_data_block(
            block,
            "EADB",
            index.array.offset_bytes,
            length,
            i_in_super_block % length,
        ),
        None => Ok(None),
    }
}
