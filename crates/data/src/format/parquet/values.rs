//! Reads the levels and values of a page in memory. Values are plain or indexes of a dictionary.

use super::hybrid::HybridReader;
use super::page::{PageHeader, PageKind};
use super::schema::SampleColumn;
use super::unpack::{Codec, Unpacker};
use super::{PLAIN, RLE, enum_name};

const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;
/// Names of the encodings, in the order of `parquet.thrift`.
const NAMES: &str = "PLAIN GROUP_VAR_INT PLAIN_DICTIONARY RLE BIT_PACKED DELTA_BINARY_PACKED \
                     DELTA_LENGTH_BYTE_ARRAY DELTA_BYTE_ARRAY RLE_DICTIONARY BYTE_STREAM_SPLIT";

/// Code of the former encoding of levels, which writers also name for columns without levels.
const BIT_PACKED: i64 = 4;

/// Whether pages of this encoding are decoded.
pub(super) fn is_known_encoding(code: i64) -> bool {
    [PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY].contains(&code)
}

/// Name of an encoding.
pub(super) fn encoding_name(code: i64) -> &'static str {
    enum_name(NAMES, code).unwrap_or("an unknown encoding")
}

/// One page, and the dictionary of its column chunk. Errors are lowercase fragments.
#[derive(Default)]
pub(super) struct PageValues {
    unpacker: Unpacker,
    page: Vec<u8>,
    rows_left: u64,
    column: SampleColumn,
    levels: HybridReader,
    position: ValuePosition,
    dictionary: Vec<u8>,
    /// End of each entry in `dictionary`. An entry begins at the end of the previous one, with its length if lengths vary.
    entries: Vec<u32>,
}

/// Encoding of the values of a page, and the position in them.
#[derive(Clone, Copy, Debug)]
enum ValuePosition {
    /// Values one after another, with the offset of the next one.
    Plain(usize),
    Dictionary(HybridReader),
}

impl Default for ValuePosition {
    fn default() -> Self {
        ValuePosition::Plain(0)
    }
}

impl PageValues {
    /// Starts reading a column chunk, without a dictionary.
    pub(super) fn start(&mut self, column: SampleColumn) {
        self.column = column;
        self.rows_left = 0;
        self.entries.clear();
        self.dictionary.clear();
    }

    /// Number of rows of the page that have not been read.
    pub(super) fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// Checks that a page has a supported encoding.
    pub(super) fn check(header: &PageHeader) -> Result<(), String> {
        let code = header.encoding.unwrap_or(-1);
        if header.kind == PageKind::Other
            || [PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY].contains(&code)
        {
            return Ok(());
        }
        let name = enum_name(NAMES, code).map_or(code.to_string(), str::to_string);
        Err(format!("values are encoded by `{name}`, not PLAIN or by a dictionary"))
    }

    /// Loads a data page.
    pub(super) fn load(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(), String> {
        self.page.clear();
        self.rows_left = header.values;
        let (levels_offset, values_offset) = match header.kind {
            PageKind::DataV2 => self.load_v2(header, codec, packed)?,
            _ => self.load_v1(header, codec, packed)?,
        };
        let width = u32::BITS - self.column.level.leading_zeros();
        self.levels = HybridReader::new(width, levels_offset).unwrap_or_default();
        self.position = if header.encoding == Some(PLAIN) {
            ValuePosition::Plain(values_offset)
        } else {
            ValuePosition::Dictionary(self.read_indexes(values_offset)?)
        };
        Ok(())
    }

    /// Decompresses a page of version 1, and returns the offsets of its levels and values.
    fn load_v1(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(usize, usize), String> {
        self.unpacker.unpack(codec, packed, header.bytes, &mut self.page)?;
        if self.column.level == 0 {
            return Ok((0, 0));
        }
        if header.level_encoding != Some(RLE) {
            return Err("levels are not encoded by `RLE`".to_string());
        }
        let len = self.page.first_chunk().copied().map(u32::from_le_bytes);
        let values_offset = len.and_then(|len| usize::try_from(len).ok()?.checked_add(4));
        let values_offset = values_offset.filter(|&offset| offset <= self.page.len());
        Ok((4, values_offset.ok_or("levels are longer than their page")?))
    }

    /// Decompresses a page of version 2, and returns the offsets of its levels and values.
    fn load_v2(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(usize, usize), String> {
        if header.repetition_bytes > 0 {
            return Err("repetition levels in a column that does not repeat".to_string());
        }
        let split = packed.split_at_checked(header.level_bytes as usize);
        let value_bytes = header.bytes.checked_sub(header.level_bytes);
        let ((levels, packed_values), value_bytes) =
            split.zip(value_bytes).ok_or("levels are longer than their page")?;
        self.page.extend_from_slice(levels);
        // Some writers store no compressed data for pages without values.
        if value_bytes > 0 {
            let codec = if header.is_uncompressed { Codec::Uncompressed } else { codec };
            self.unpacker.unpack(codec, packed_values, value_bytes, &mut self.page)?;
        }
        Ok((0, levels.len()))
    }

    /// The dictionary indexes at `offset`, which are preceded by their width.
    fn read_indexes(&self, offset: usize) -> Result<HybridReader, String> {
        let width = match self.page.get(offset) {
            Some(&width) => u32::from(width),
            // All values are null.
            None => 0,
        };
        HybridReader::new(width, offset + 1).ok_or(format!("dictionary indexes of {width} bits"))
    }

    /// Loads the dictionary of the chunk.
    pub(super) fn load_dictionary(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(), String> {
        self.dictionary.clear();
        self.entries.clear();
        self.unpacker.unpack(codec, packed, header.bytes, &mut self.dictionary)?;
        let mut offset = 0;
        for _ in 0..header.values {
            let value = plain_value_range(&self.dictionary, offset, self.column)?;
            offset = value.end;
            self.entries.push(offset as u32);
        }
        Ok(())
    }

    /// Skips `count` rows of the page.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), String> {
        let mut left = count;
        while left > 0 {
            let (level, repeats) = self.peek_level()?;
            let rows = repeats.min(left);
            if level == self.column.level {
                self.skip_values(rows)?;
            }
            self.levels.skip(rows);
            left -= rows;
        }
        self.rows_left -= count;
        Ok(())
    }

    /// The value of the next row; `None` if it is null.
    pub(super) fn next_value(&mut self) -> Result<Option<&[u8]>, String> {
        let (level, _) = self.peek_level()?;
        self.levels.skip(1);
        self.rows_left -= 1;
        if level != self.column.level {
            return Ok(None);
        }
        match &mut self.position {
            ValuePosition::Plain(offset) => {
                let value = plain_value_range(&self.page, *offset, self.column)?;
                *offset = value.end;
                Ok(Some(&self.page[value]))
            }
            ValuePosition::Dictionary(indexes) => {
                let (index, _) =
                    indexes.peek_run(&self.page).ok_or("the page ends within its values")?;
                indexes.skip(1);
                self.entry(index).map(Some)
            }
        }
    }

    fn entry(&self, index: u32) -> Result<&[u8], String> {
        let start = index.checked_sub(1).map_or(Some(&0), |i| self.entries.get(i as usize));
        let end = self.entries.get(index as usize);
        let prefix = if self.column.value_bytes.is_some() { 0 } else { 4 };
        start
            .zip(end)
            .and_then(|(start, end)| self.dictionary.get(*start as usize + prefix..*end as usize))
            .ok_or_else(|| {
                format!("entry {index} of a dictionary of {} entries", self.entries.len())
            })
    }

    fn skip_values(&mut self, count: u64) -> Result<(), String> {
        match &mut self.position {
            ValuePosition::Plain(offset) => {
                // The loop ends even if `count` is invalid, because each value takes bytes of the page.
                for _ in 0..count {
                    *offset = plain_value_range(&self.page, *offset, self.column)?.end;
                }
            }
            ValuePosition::Dictionary(indexes) => {
                let mut left = count;
                while left > 0 {
                    let run = indexes.peek_run(&self.page);
                    let values = run.ok_or("the page ends within its values")?.1.min(left);
                    indexes.skip(values);
                    left -= values;
                }
            }
        }
        Ok(())
    }

    /// The level of the next row, and the least number of following rows that have it.
    fn peek_level(&mut self) -> Result<(u32, u64), String> {
        let run = self.levels.peek_run(&self.page);
        run.ok_or_else(|| "the page ends within its levels".to_string())
    }
}

/// The range of the plain value that begins at `offset`.
fn plain_value_range(
    bytes: &[u8],
    offset: usize,
    column: SampleColumn,
) -> Result<std::ops::Range<usize>, String> {
    let (start, len) = match column.value_bytes {
        Some(len) => (offset, len),
        None => {
            let prefix = bytes.get(offset..).and_then(<[u8]>::first_chunk).copied();
            let len = prefix.map(u32::from_le_bytes).ok_or("the page ends within its values")?;
            (offset + 4, u64::from(len))
        }
    };
    let left = (bytes.len() - start) as u64;
    if len > left {
        return Err(format!("a value of {len} bytes, with {left} bytes left of its page"));
    }
    Ok(start..start + len as usize)
}
