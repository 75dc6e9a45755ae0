//! Files with columns that the user chose. The samples of a row group follow each other across its columns: the values of all columns,
//! in the order of the file, are cut into samples. So files are written and verified as a stream, and a reader needs no row group in
//! memory.
//!
//! Columns of several values in a row are lists. Integers of 8 bits are indexes of a dictionary of all 256 values, because
//! parquet stores plain integers in at least 4 bytes. Pages are not compressed.

use super::super::packed;
use super::layout::{LABEL_BYTES, PAGE_BYTES, saturating_i32};
use super::thrift::{BINARY, I32, STRUCT, ThriftWriter};
use super::{
    CREATED_BY, Content, DIMS_KEY, ELEMENT_KEY, Encoding, FIXED_LEN_BYTE_ARRAY, FileShape,
    FileSink, GROUPS_MAX, INT64, MAGIC, PLAIN, RLE, ROWS_KEY, ROWS_SPREAD, SinkError, TAIL_BYTES,
};
use feedrate_spec::shape::{ColumnType, TableColumn};

/// Upper limit on the rows of a page, so that the levels of lists are short.
const PAGE_ROWS_MAX: u64 = 1 << 16;
/// Upper limit on the chunks of a file. Each takes about 100 bytes of the footer.
pub(super) const CHUNKS_MAX: u64 = 6 * GROUPS_MAX;
/// Physical types.
const INT32: i64 = 1;
const FLOAT: i64 = 4;
const DOUBLE: i64 = 5;
/// Repetition types.
const REQUIRED: i64 = 0;
const REPEATED: i64 = 2;
/// Converted types.
const LIST: i64 = 3;
const UINT_8: i64 = 11;
const UINT_32: i64 = 13;
const UINT_64: i64 = 14;
const INT_8: i64 = 15;
/// Field of a 16-bit float in the union of logical types.
const FLOAT16_FIELD: i16 = 15;
const RLE_DICTIONARY: i64 = 8;
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const DICTIONARY_ENTRIES: i64 = 256;
const DICTIONARY_BYTES: i64 = 4 * DICTIONARY_ENTRIES;
const VERSION: i64 = 2;

/// Length of a file.
pub(super) fn file_bytes(shape: &FileShape, encoding: &Encoding) -> u64 {
    let layout = SpreadLayout::new(shape, encoding);
    if layout.chunks() > CHUNKS_MAX {
        return shape.payload_bytes().saturating_add(layout.chunks().saturating_mul(100));
    }
    let end = layout.groups().last().map_or(MAGIC.len() as u64, |group| {
        let chunks = layout.group_chunks(group.rows);
        chunks.iter().fold(group.start, |end, chunk| end.saturating_add(chunk.bytes))
    });
    end.saturating_add(layout.footer().len() as u64 + TAIL_BYTES)
}

/// Writes a file of this shape.
pub(super) fn write_file(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let layout = SpreadLayout::new(shape, encoding);
    let sample_bytes = shape.sample_bytes();
    sink.write(0, MAGIC)?;
    for group in layout.groups() {
        // Position in the samples of the group.
        let mut position = 0;
        for column in &layout.columns {
            sink.write(0, &column.dictionary_page())?;
            for rows in column.pages(group.rows) {
                sink.write(0, &column.page_header(rows))?;
                sink.write(0, &column.page_head(rows))?;
                let bytes = rows * column.row_bytes;
                packed::write_generated(0, bytes, sink, &mut |offset, piece| {
                    let mut start = position + offset;
                    let mut rest = piece;
                    while !rest.is_empty() {
                        let skip = start % sample_bytes;
                        let len = (sample_bytes - skip).min(rest.len() as u64) as usize;
                        let (part, remainder) = rest.split_at_mut(len);
                        content.fill(group.first + start / sample_bytes, skip, shape.element, part);
                        start += len as u64;
                        rest = remainder;
                    }
                })?;
                position += bytes;
                sink.write(0, &[0; LABEL_BYTES as usize][..column.padding(rows) as usize])?;
            }
        }
    }
    let footer = layout.footer();
    sink.write(0, &footer)?;
    sink.write(0, &(footer.len() as u32).to_le_bytes())?;
    sink.write(0, MAGIC)
}

/// Layout of a whole file.
struct SpreadLayout<'s> {
    shape: &'s FileShape,
    columns: Vec<SpreadColumn<'s>>,
    /// Rows of each group but the last.
    group_rows: u64,
    /// The chunks of a group with so many rows.
    full_chunks: Vec<ChunkLayout>,
}

struct SpreadGroup {
    /// Number of its first sample.
    first: u64,
    rows: u64,
    start: u64,
}

/// Length of a column chunk.
#[derive(Clone, Copy)]
struct ChunkLayout {
    bytes: u64,
    /// Length of the page with the dictionary, which comes first.
    dictionary_bytes: u64,
}

impl<'s> SpreadLayout<'s> {
    fn new(shape: &'s FileShape, encoding: &'s Encoding) -> Self {
        let columns: Vec<_> = encoding.columns.iter().map(SpreadColumn::new).collect();
        let group_rows = encoding.row_group_samples.min(shape.samples).max(1);
        let full_chunks = columns.iter().map(|column| column.chunk(group_rows)).collect();
        SpreadLayout { shape, columns, group_rows, full_chunks }
    }

    /// The chunks of a group with `rows` rows.
    fn group_chunks(&self, rows: u64) -> Vec<ChunkLayout> {
        if rows == self.group_rows {
            return self.full_chunks.clone();
        }
        self.columns.iter().map(|column| column.chunk(rows)).collect()
    }

    /// Number of chunks in the file.
    fn chunks(&self) -> u64 {
        let groups = self.shape.samples.div_ceil(self.group_rows);
        groups.saturating_mul(self.columns.len() as u64)
    }

    fn groups(&self) -> impl Iterator<Item = SpreadGroup> {
        let full_rows = self.group_rows;
        let chunk_bytes = self.full_chunks.iter().map(|chunk| chunk.bytes);
        let full_bytes = chunk_bytes.fold(0, u64::saturating_add);
        (0..self.shape.samples.div_ceil(full_rows)).map(move |number| {
            let first = number * full_rows;
            let start = (MAGIC.len() as u64).saturating_add(number.saturating_mul(full_bytes));
            SpreadGroup { first, rows: full_rows.min(self.shape.samples - first), start }
        })
    }

    /// The footer, `FileMetaData`.
    fn footer(&self) -> Vec<u8> {
        let mut writer = ThriftWriter::default();
        writer.begin();
        writer.i32(1, VERSION);
        let lists = self.columns.iter().filter(|column| column.is_list()).count();
        writer.list(2, STRUCT, (1 + self.columns.len() + 2 * lists) as u64);
        writer.begin();
        writer.i32(3, REQUIRED);
        writer.text(4, "schema");
        writer.i32(5, self.columns.len() as i64);
        writer.end();
        self.columns.iter().for_each(|column| column.write_schema(&mut writer));
        writer.i64(3, self.shape.samples);
        writer.list(4, STRUCT, self.groups().count() as u64);
        for group in self.groups() {
            self.write_group(&mut writer, &group);
        }
        writer.list(5, STRUCT, 3);
        let dims: Vec<String> = self.shape.dims.as_slice().iter().map(u64::to_string).collect();
        let element = self.shape.element.name();
        for (key, value) in
            [(DIMS_KEY, &*dims.join(",")), (ELEMENT_KEY, element), (ROWS_KEY, ROWS_SPREAD)]
        {
            writer.begin();
            writer.text(1, key);
            writer.text(2, value);
            writer.end();
        }
        writer.text(6, CREATED_BY);
        writer.end();
        writer.bytes
    }

    fn write_group(&self, writer: &mut ThriftWriter, group: &SpreadGroup) {
        writer.begin();
        writer.list(1, STRUCT, self.columns.len() as u64);
        let mut start = group.start;
        for (column, chunk) in self.columns.iter().zip(self.group_chunks(group.rows)) {
            column.write_chunk(writer, group.rows, start, &chunk);
            start = start.saturating_add(chunk.bytes);
        }
        writer.i64(2, start - group.start);
        writer.i64(3, group.rows);
        writer.end();
    }
}

/// A column and its pages.
struct SpreadColumn<'s> {
    column: &'s TableColumn,
    physical: i64,
    row_values: u64,
    row_bytes: u64,
    page_rows: u64,
}

impl<'s> SpreadColumn<'s> {
    fn new(column: &'s TableColumn) -> Self {
        let physical = match column.column_type {
            ColumnType::Float32 | ColumnType::List => FLOAT,
            ColumnType::Float64 => DOUBLE,
            ColumnType::Uint64 | ColumnType::Int64 => INT64,
            ColumnType::Float16 | ColumnType::String | ColumnType::Binary => FIXED_LEN_BYTE_ARRAY,
            _ => INT32,
        };
        let row_bytes = column.row_bytes();
        let page_rows = (PAGE_BYTES / row_bytes.max(1)).clamp(1, PAGE_ROWS_MAX);
        SpreadColumn { column, physical, row_values: column.row_values(), row_bytes, page_rows }
    }

    fn is_list(&self) -> bool {
        self.row_values > 1
    }

    fn has_dictionary(&self) -> bool {
        self.physical == INT32 && self.column.value_bytes() == 1
    }

    /// Number of rows in each page of a chunk.
    fn pages(&self, rows: u64) -> impl Iterator<Item = u64> {
        let page_rows = self.page_rows;
        (0..rows.div_ceil(page_rows)).map(move |page| page_rows.min(rows - page * page_rows))
    }

    fn chunk(&self, rows: u64) -> ChunkLayout {
        let dictionary_bytes = self.dictionary_page().len() as u64;
        let full_pages = rows / self.page_rows;
        let full_bytes = full_pages.saturating_mul(self.page_bytes(self.page_rows));
        let rest_rows = rows % self.page_rows;
        let rest_bytes = if rest_rows > 0 { self.page_bytes(rest_rows) } else { 0 };
        let bytes = full_bytes.saturating_add(rest_bytes).saturating_add(dictionary_bytes);
        ChunkLayout { bytes, dictionary_bytes }
    }

    /// Length of a page, including its header.
    fn page_bytes(&self, rows: u64) -> u64 {
        self.body_bytes(rows).saturating_add(self.page_header(rows).len() as u64)
    }

    fn body_bytes(&self, rows: u64) -> u64 {
        let values = rows.saturating_mul(self.row_bytes);
        values.saturating_add(self.page_head(rows).len() as u64 + self.padding(rows))
    }

    fn page_header(&self, rows: u64) -> Vec<u8> {
        let bytes = saturating_i32(self.body_bytes(rows));
        let mut writer = ThriftWriter::default();
        writer.begin();
        writer.i32(1, DATA_PAGE);
        writer.i32(2, bytes);
        writer.i32(3, bytes);
        writer.begin_field(5);
        writer.i32(1, saturating_i32(rows.saturating_mul(self.row_values)));
        writer.i32(2, if self.has_dictionary() { RLE_DICTIONARY } else { PLAIN });
        writer.i32(3, RLE);
        writer.i32(4, RLE);
        writer.end();
        writer.end();
        writer.bytes
    }

    /// What precedes the values of a page: the levels of a list, and the number and width of indexes of the dictionary.
    fn page_head(&self, rows: u64) -> Vec<u8> {
        let values = rows.saturating_mul(self.row_values);
        let mut head = Vec::new();
        if self.is_list() {
            // The first value of a row has repetition level 0, the others have 1. All have definition level 1.
            let mut row_levels = vec![1 << 1, 0];
            push_varint(&mut row_levels, (self.row_values - 1) << 1);
            row_levels.push(1);
            let level_bytes = row_levels.len() as u64 * rows;
            head.extend_from_slice(&(level_bytes as u32).to_le_bytes());
            (0..rows).for_each(|_| head.extend_from_slice(&row_levels));
            let mut definitions = Vec::new();
            push_varint(&mut definitions, values << 1);
            definitions.push(1);
            head.extend_from_slice(&(definitions.len() as u32).to_le_bytes());
            head.extend_from_slice(&definitions);
        }
        if self.has_dictionary() {
            head.push(u8::BITS as u8);
            push_varint(&mut head, values.div_ceil(8) << 1 | 1);
        }
        head
    }

    /// Bytes after the values: indexes of a dictionary are stored in groups of eight.
    fn padding(&self, rows: u64) -> u64 {
        let values = rows.saturating_mul(self.row_values);
        if self.has_dictionary() { values.wrapping_neg() % 8 } else { 0 }
    }

    /// The page with the dictionary; empty if there is none.
    fn dictionary_page(&self) -> Vec<u8> {
        if !self.has_dictionary() {
            return Vec::new();
        }
        let mut writer = ThriftWriter::default();
        writer.begin();
        writer.i32(1, DICTIONARY_PAGE);
        writer.i32(2, DICTIONARY_BYTES);
        writer.i32(3, DICTIONARY_BYTES);
        writer.begin_field(7);
        writer.i32(1, DICTIONARY_ENTRIES);
        writer.i32(2, PLAIN);
        writer.end();
        writer.end();
        let is_signed = self.column.column_type == ColumnType::Int8;
        for index in 0..=u8::MAX {
            let value = if is_signed { i32::from(index as i8) } else { i32::from(index) };
            writer.bytes.extend_from_slice(&value.to_le_bytes());
        }
        writer.bytes
    }

    fn write_schema(&self, writer: &mut ThriftWriter) {
        if !self.is_list() {
            return self.write_leaf(writer, &self.column.name);
        }
        writer.begin();
        writer.i32(3, REQUIRED);
        writer.text(4, &self.column.name);
        writer.i32(5, 1);
        writer.i32(6, LIST);
        writer.end();
        writer.begin();
        writer.i32(3, REPEATED);
        writer.text(4, "list");
        writer.i32(5, 1);
        writer.end();
        self.write_leaf(writer, "element");
    }

    fn write_leaf(&self, writer: &mut ThriftWriter, name: &str) {
        writer.begin();
        writer.i32(1, self.physical);
        if self.physical == FIXED_LEN_BYTE_ARRAY {
            writer.i32(2, saturating_i32(self.column.value_bytes()));
        }
        writer.i32(3, REQUIRED);
        writer.text(4, name);
        let converted = match self.column.column_type {
            ColumnType::Int8 => Some(INT_8),
            ColumnType::Uint8 | ColumnType::Bool => Some(UINT_8),
            ColumnType::Uint32 => Some(UINT_32),
            ColumnType::Uint64 => Some(UINT_64),
            _ => None,
        };
        if let Some(code) = converted {
            writer.i32(6, code);
        }
        if self.column.column_type == ColumnType::Float16 {
            writer.begin_field(10);
            writer.begin_field(FLOAT16_FIELD);
            writer.end();
            writer.end();
        }
        writer.end();
    }

    fn write_chunk(&self, writer: &mut ThriftWriter, rows: u64, start: u64, chunk: &ChunkLayout) {
        writer.begin();
        // `file_offset` of a copy of the metadata: there is none.
        writer.i64(2, 0);
        writer.begin_field(3);
        writer.i32(1, self.physical);
        let encodings: &[i64] =
            if self.has_dictionary() { &[PLAIN, RLE, RLE_DICTIONARY] } else { &[PLAIN, RLE] };
        writer.list(2, I32, encodings.len() as u64);
        encodings.iter().for_each(|&code| writer.zigzag(code));
        let path: &[&str] = if self.is_list() { &["list", "element"] } else { &[] };
        writer.list(3, BINARY, 1 + path.len() as u64);
        writer.binary(&self.column.name);
        path.iter().for_each(|name| writer.binary(name));
        writer.i32(4, 0);
        writer.i64(5, rows.saturating_mul(self.row_values));
        writer.i64(6, chunk.bytes);
        writer.i64(7, chunk.bytes);
        writer.i64(9, start.saturating_add(chunk.dictionary_bytes));
        if chunk.dictionary_bytes > 0 {
            writer.i64(11, start);
        }
        writer.end();
        writer.end();
    }
}

fn push_varint(bytes: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    while rest >= 128 {
        bytes.push(rest as u8 | 128);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}
