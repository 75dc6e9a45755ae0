//! A page that is in memory as a whole: its levels, and its values, plain or by their number in the dictionary.

use super::footer::SampleColumn;
use super::hybrid::Hybrid;
use super::page::{PageHeader, PageKind};
use super::unpack::{Codec, Unpacker};
use super::{PLAIN, RLE, name_of};

const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;
/// Names of the encodings, in the order of `parquet.thrift`.
const NAMES: &str = "PLAIN GROUP_VAR_INT PLAIN_DICTIONARY RLE BIT_PACKED DELTA_BINARY_PACKED \
                     DELTA_LENGTH_BYTE_ARRAY DELTA_BYTE_ARRAY RLE_DICTIONARY BYTE_STREAM_SPLIT";

/// One page, and the dictionary of its column chunk. Errors are lowercase fragments.
#[derive(Default)]
pub(super) struct PageValues {
    unpacker: Unpacker,
    page: Vec<u8>,
    rows_left: u64,
    column: SampleColumn,
    levels: Hybrid,
    coded: Coded,
    dictionary: Vec<u8>,
    /// End of each entry in `dictionary`. It begins where the one before ends, with its length first.
    entries: Vec<u32>,
}

/// Encoding of the values of a page.
#[derive(Clone, Copy, Debug)]
enum Coded {
    /// Values one after another; the offset of the next one in the page.
    Plain(usize),
    Dictionary(Hybrid),
}

impl Default for Coded {
    fn default() -> Self {
        Coded::Plain(0)
    }
}

impl PageValues {
    /// Start on a column chunk: it has no dictionary yet.
    pub(super) fn start(&mut self, column: SampleColumn) {
        self.column = column;
        self.rows_left = 0;
        self.entries.clear();
        self.dictionary.clear();
    }

    /// Rows of the page that were not passed.
    pub(super) fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// Whether a page can be read by [`PageValues`] or plainly from the file; else why not.
    pub(super) fn check(header: &PageHeader) -> Result<(), String> {
        let code = header.encoding.unwrap_or(-1);
        if header.kind == PageKind::Other
            || [PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY].contains(&code)
        {
            return Ok(());
        }
        let name = name_of(NAMES, code).map_or(code.to_string(), str::to_string);
        Err(format!("values are encoded by `{name}`, not PLAIN or by a dictionary"))
    }

    /// Take a data page.
    pub(super) fn load(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(), String> {
        self.page.clear();
        self.rows_left = header.values;
        let (levels_at, values_at) = match header.kind {
            PageKind::DataV2 => self.load_v2(header, codec, packed)?,
            _ => self.load_v1(header, codec, packed)?,
        };
        let width = u32::BITS - self.column.level.leading_zeros();
        self.levels = Hybrid::new(width, levels_at).unwrap_or_default();
        self.coded = if header.encoding == Some(PLAIN) {
            Coded::Plain(values_at)
        } else {
            Coded::Dictionary(self.indexes(values_at)?)
        };
        Ok(())
    }

    /// Unpack a page of version 1, and return the offsets of its levels and values.
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
        let values_at = len.and_then(|len| usize::try_from(len).ok()?.checked_add(4));
        let values_at = values_at.filter(|&at| at <= self.page.len());
        Ok((4, values_at.ok_or("levels are longer than their page")?))
    }

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
        let split = split.zip(header.bytes.checked_sub(header.level_bytes));
        let ((levels, values), bytes) = split.ok_or("levels are longer than their page")?;
        self.page.extend_from_slice(levels);
        // Some writers pack nothing where there is nothing.
        let codec = if header.is_unpacked || bytes == 0 { Codec::Uncompressed } else { codec };
        let values = if bytes > 0 { values } else { &[] };
        self.unpacker.unpack(codec, values, bytes, &mut self.page)?;
        Ok((0, levels.len()))
    }

    /// The numbers of dictionary entries, their width before them.
    fn indexes(&self, at: usize) -> Result<Hybrid, String> {
        let width = match self.page.get(at) {
            Some(&width) => u32::from(width),
            // All values are missing.
            None => 0,
        };
        Hybrid::new(width, at + 1).ok_or(format!("dictionary indexes of {width} bits"))
    }

    /// Take the dictionary of the chunk.
    pub(super) fn load_dictionary(
        &mut self,
        header: &PageHeader,
        codec: Codec,
        packed: &[u8],
    ) -> Result<(), String> {
        self.dictionary.clear();
        self.entries.clear();
        self.unpacker.unpack(codec, packed, header.bytes, &mut self.dictionary)?;
        let mut at = 0;
        for _ in 0..header.values {
            let value = plain(&self.dictionary, at, self.column)?;
            at = value.end;
            self.entries.push(at as u32);
        }
        Ok(())
    }

    /// Pass over `count` rows of the page.
    pub(super) fn pass(&mut self, count: u64) -> Result<(), String> {
        let mut left = count;
        while left > 0 {
            let (level, run) = self.level()?;
            let run = run.min(left);
            if level == self.column.level {
                self.pass_values(run)?;
            }
            self.pass_level(run);
            left -= run;
        }
        self.rows_left -= count;
        Ok(())
    }

    /// The next row's value; `None` where it is null.
    pub(super) fn take(&mut self) -> Result<Option<&[u8]>, String> {
        let (level, _) = self.level()?;
        self.pass_level(1);
        self.rows_left -= 1;
        if level != self.column.level {
            return Ok(None);
        }
        match &mut self.coded {
            Coded::Plain(at) => {
                let value = plain(&self.page, *at, self.column)?;
                *at = value.end;
                Ok(Some(&self.page[value]))
            }
            Coded::Dictionary(indexes) => {
                let (index, _) =
                    indexes.run(&self.page).ok_or("the page ends within its values")?;
                indexes.pass(1);
                self.entry(index).map(Some)
            }
        }
    }

    fn entry(&self, index: u32) -> Result<&[u8], String> {
        let before = index.checked_sub(1).map_or(Some(&0), |i| self.entries.get(i as usize));
        let prefix = if self.column.value_bytes.is_some() { 0 } else { 4 };
        let range = before.zip(self.entries.get(index as usize));
        let range = range.map(|(start, end)| *start as usize + prefix..*end as usize);
        range.and_then(|range| self.dictionary.get(range)).ok_or_else(|| {
            format!("entry {index} of a dictionary of {} entries", self.entries.len())
        })
    }

    fn pass_values(&mut self, count: u64) -> Result<(), String> {
        match &mut self.coded {
            Coded::Plain(at) => {
                // Each takes bytes of the page, so this ends however many there are said to be.
                for _ in 0..count {
                    *at = plain(&self.page, *at, self.column)?.end;
                }
            }
            Coded::Dictionary(indexes) => {
                let mut left = count;
                while left > 0 {
                    let run = indexes.run(&self.page);
                    let now = run.ok_or("the page ends within its values")?.1.min(left);
                    indexes.pass(now);
                    left -= now;
                }
            }
        }
        Ok(())
    }

    /// The level of the next row, and how many rows have it for certain.
    fn level(&mut self) -> Result<(u32, u64), String> {
        let run = self.levels.run(&self.page);
        run.ok_or_else(|| "the page ends within its levels".to_string())
    }

    fn pass_level(&mut self, count: u64) {
        self.levels.pass(count);
    }
}

/// The range of the plain value that begins at `at`.
fn plain(bytes: &[u8], at: usize, column: SampleColumn) -> Result<std::ops::Range<usize>, String> {
    let (start, len) = match column.value_bytes {
        Some(len) => (at, len),
        None => {
            let prefix = bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
            let len = prefix.map(u32::from_le_bytes).ok_or("the page ends within its values")?;
            (at + 4, u64::from(len))
        }
    };
    let left = (bytes.len() - start) as u64;
    if len > left {
        return Err(format!("a value of {len} bytes, with {left} bytes left of its page"));
    }
    Ok(start..start + len as usize)
}
