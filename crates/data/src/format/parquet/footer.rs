//! Reads the footer, `FileMetaData`: the columns, the positions of the chunks of each row group, and the dimensions of the samples,
//! if the file contains them.

use super::super::FileMember;
use super::schema::{Column, SampleColumn, Schema};
use super::thrift::{self, ThriftError, ThriftValue};
use super::unpack::Codec;
use super::{
    CREATED_BY, DIMS_KEY, Dims, ELEMENT_KEY, Element, FormatError, MAGIC, ROWS_KEY, ROWS_SPREAD,
    values,
};
use feedrate_spec::shape::DIMS_MAX;
use std::ops::Range;

/// Contents of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) samples: u64,
    /// Row groups in the order of their samples.
    pub(super) groups: Vec<RowGroup>,
    /// Dimensions and element type of a sample, in files that feedrate wrote.
    pub(super) sample_type: Option<(Dims, Element)>,
    /// Whether the samples of a row group follow each other across its columns, in files that feedrate wrote.
    pub(super) is_spread: bool,
    /// Number of the column with the samples; `None` if a sample is a share of its row group.
    value_column: Option<usize>,
    schema: Schema,
    /// Bytes of the columns that are read, and of all columns.
    pub(super) read_bytes: u64,
    pub(super) column_bytes: u64,
    /// Chunks of the columns that are read, group by group.
    chunks: Vec<Chunk>,
}

/// A row group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowGroup {
    /// Number of the first sample.
    pub(super) first: u64,
    pub(super) rows: u64,
    /// Range of its chunks in the footer.
    chunks: Range<usize>,
}

/// A column chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// `None` for an unknown codec.
    pub(super) codec: Option<Codec>,
    /// Number of the column.
    pub(super) column: u32,
    /// Codec or encoding that is not decoded, as a code of `parquet.thrift`.
    pub(super) odd_codec: Option<u8>,
    pub(super) odd_encoding: Option<u8>,
}

impl Chunk {
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Name of the codec or encoding, if the chunk cannot be decoded.
    pub(super) fn undecoded_type(&self) -> Option<&'static str> {
        let codec = self.odd_codec.map(|code| Codec::name(code.into()));
        codec.or_else(|| self.odd_encoding.map(|code| values::encoding_name(code.into())))
    }
}

impl Footer {
    /// Reads a footer that begins at `start` of its file. Only the columns called `selected` are read, or all if there are none.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        start: u64,
        selected: &[String],
    ) -> Result<(), FormatError> {
        let footer = std::mem::take(self);
        let mut parser = FooterParser { footer, selected, end: start, ..FooterParser::default() };
        parser.footer.groups.clear();
        parser.footer.chunks.clear();
        parser.footer.schema.clear();
        let read = thrift::read(bytes, &mut |path, value| parser.receive(path, value));
        let finished = read.and_then(|_| parser.finish());
        *self = parser.footer;
        finished.map_err(|error| {
            let message = match error {
                ThriftError::Ends => "broken parquet footer: it ends within a value".to_string(),
                ThriftError::Broken => "broken parquet footer: it is not valid Thrift".to_string(),
                ThriftError::Refused(message) => message,
            };
            FormatError::new(start, message)
        })
    }

    /// Number of the group that contains a sample.
    pub(super) fn group_with(&self, sample: u64) -> Option<usize> {
        let after = self.groups.partition_point(|group| group.first <= sample);
        // Among several groups with the same first sample, only the last one is not empty.
        let number = after.checked_sub(1)?;
        let group = self.groups.get(number)?;
        (sample - group.first < group.rows).then_some(number)
    }

    /// The chunks of a group that are read, in the order of the file.
    pub(super) fn chunks(&self, group: &RowGroup) -> &[Chunk] {
        &self.chunks[group.chunks.clone()]
    }

    /// The column with this number.
    pub(super) fn column(&self, number: u32) -> &Column {
        &self.schema.columns[number as usize]
    }

    /// The column with the samples and its number; `None` if a sample is a share of its row group.
    pub(super) fn value_column(&self) -> Option<(u32, SampleColumn)> {
        let number = self.value_column?;
        Some((number as u32, self.schema.columns[number].values?))
    }

    /// The outermost fields of the schema.
    pub(super) fn members(&self) -> Vec<FileMember> {
        self.schema.members()
    }

    /// See [`Schema::elsewhere`].
    pub(super) fn elsewhere(&self) -> Option<&str> {
        self.schema.elsewhere()
    }

    /// Number of rows in all groups so far.
    fn rows(&self) -> u64 {
        self.groups.last().map_or(0, |group| group.first + group.rows)
    }

    /// In files of feedrate, the first column of bytes. In other files, the longest column of bytes that has at least a tenth of
    /// the bytes that are read, or a column of text that has at least half of them.
    fn find_value_column(&self) -> Option<usize> {
        if self.is_spread {
            return None;
        }
        let columns =
            || self.schema.columns.iter().enumerate().filter(|(_, column)| column.is_read);
        if self.sample_type.is_some() {
            return columns().find(|(_, column)| column.is_binary()).map(|(number, _)| number);
        }
        let total = self.schema.column_bytes(|column| column.is_read);
        // Among equally long columns, the first is used.
        let longest = |is_binary: bool| {
            let candidates = columns().filter(move |(_, column)| {
                column.values.is_some() && column.is_binary() == is_binary
            });
            candidates.rev().max_by_key(|(_, column)| column.bytes)
        };
        let has_share = |column: &Column, parts: u64| total / parts <= column.bytes;
        let binary = longest(true).filter(|(_, column)| has_share(column, 10));
        let found = binary.or_else(|| longest(false).filter(|(_, column)| has_share(column, 2)));
        found.map(|(number, _)| number)
    }
}

/// A footer that is being parsed. The schema precedes the row groups, because its field has a lower number.
#[derive(Default)]
struct FooterParser<'b> {
    footer: Footer,
    selected: &'b [String],
    /// End of the data in the file.
    end: u64,
    chunk: ColumnChunk,
    /// Number of the chunk in its row group.
    chunk_index: usize,
    /// Number of the first chunk of the row group in the footer.
    chunks_start: usize,
    group_rows: u64,
    /// Reason why the row group is refused if it has rows.
    group_error: Option<String>,
    key: &'b [u8],
    value: &'b [u8],
    dims: Option<&'b [u8]>,
    element: Option<&'b [u8]>,
    /// Whether feedrate wrote the file.
    is_own: bool,
}

impl<'b> FooterParser<'b> {
    fn receive(&mut self, path: &[i16], value: ThriftValue<'b>) -> Result<(), ThriftError> {
        let chunk = &mut self.chunk;
        match (path, value) {
            ([2, rest @ ..], value) => self.footer.schema.receive(rest, value, self.selected)?,
            ([3], _) => self.footer.samples = value.unsigned()?,
            ([4, 1, 1], ThriftValue::Binary(path)) => chunk.is_elsewhere = !path.is_empty(),
            ([4, 1, 3, 2], ThriftValue::Int(code)) if !values::is_known_encoding(code) => {
                chunk.odd_encoding = Some(u8::try_from(code).unwrap_or(u8::MAX));
            }
            ([4, 1, 3, 4], ThriftValue::Int(codec)) => chunk.codec = codec,
            ([4, 1, 3, 12, 3], ThriftValue::Int(nulls)) => chunk.nulls = nulls,
            ([4, 1, 3, 7], ThriftValue::Int(bytes)) => chunk.bytes = bytes,
            ([4, 1, 3, 9], ThriftValue::Int(start)) => chunk.data_start = Some(start),
            ([4, 1, 3, 11], ThriftValue::Int(start)) => chunk.dictionary_start = Some(start),
            ([4, 1], ThriftValue::End) => self.end_chunk(),
            ([4, 3], _) => self.group_rows = value.unsigned()?,
            ([4], ThriftValue::End) => self.end_row_group()?,
            ([5, 1], ThriftValue::Binary(key)) => self.key = key,
            ([5, 2], ThriftValue::Binary(value)) => self.value = value,
            ([5], ThriftValue::End) => self.end_key_value(),
            ([6], ThriftValue::Binary(name)) => self.is_own = name == CREATED_BY.as_bytes(),
            _ => {}
        }
        Ok(())
    }

    fn end_chunk(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        let number = self.chunk_index;
        self.chunk_index += 1;
        let Some(column) = self.footer.schema.columns.get_mut(number) else { return };
        column.bytes = column.bytes.saturating_add(u64::try_from(chunk.bytes).unwrap_or_default());
        column.nulls = u64::try_from(chunk.nulls).unwrap_or_default();
        if !column.is_read {
            return;
        }
        match chunk.check(number as u32, self.end) {
            Ok(chunk) => self.footer.chunks.push(chunk),
            Err(reason) => self.group_error = Some(reason),
        }
    }

    fn end_row_group(&mut self) -> Result<(), ThriftError> {
        let first = self.footer.rows();
        let rows = std::mem::take(&mut self.group_rows);
        let error = self.group_error.take();
        self.chunk_index = 0;
        self.footer.schema.end_row_group();
        // Empty groups are skipped without a check: their positions may be invalid, for example 0 in files of pyarrow.
        if rows == 0 {
            self.footer.chunks.truncate(self.chunks_start);
            return Ok(());
        }
        let chunks = &mut self.footer.chunks[self.chunks_start..];
        chunks.sort_unstable_by_key(|chunk| (chunk.start, chunk.bytes));
        let overlaps = chunks.windows(2).any(|pair| pair[0].end() > pair[1].start);
        let error = if first.checked_add(rows).is_none() {
            Some(format!("{rows} rows are more than a file can have"))
        } else if overlaps {
            Some("its column chunks overlap".to_string())
        } else {
            error
        };
        let number = self.footer.groups.len();
        if let Some(reason) = error {
            return Err(ThriftError::Refused(format!("row group {number}: {reason}")));
        }
        let chunks = self.chunks_start..self.footer.chunks.len();
        self.chunks_start = chunks.end;
        self.footer.groups.push(RowGroup { first, rows, chunks });
        Ok(())
    }

    fn end_key_value(&mut self) {
        let value = std::mem::take(&mut self.value);
        let key = std::mem::take(&mut self.key);
        if key == DIMS_KEY.as_bytes() {
            self.dims = Some(value);
        } else if key == ELEMENT_KEY.as_bytes() {
            self.element = Some(value);
        } else if key == ROWS_KEY.as_bytes() {
            self.footer.is_spread = value == ROWS_SPREAD.as_bytes();
        }
    }

    /// Checks the footer after all of it has been parsed.
    fn finish(&mut self) -> Result<(), ThriftError> {
        let FooterParser { footer, dims, element, .. } = self;
        footer.sample_type = parse_sample_type(*dims, *element);
        if footer.is_spread && !self.is_own {
            // Another program copied the metadata, but the values are in its own pages.
            footer.is_spread = false;
            *dims = None;
            *element = None;
            footer.sample_type = None;
        }
        footer.is_spread &= footer.sample_type.is_some();
        if footer.sample_type.is_none() && (dims.is_some() || element.is_some()) {
            let message = format!("`{DIMS_KEY}` and `{ELEMENT_KEY}` describe no sample");
            return Err(ThriftError::Refused(message));
        }
        if let Some(name) = self.selected.iter().find(|name| !footer.schema.has_field(name)) {
            let message = format!("no column `{name}`: the file holds {}", footer.schema.names());
            return Err(ThriftError::Refused(message));
        }
        footer.value_column = footer.find_value_column();
        footer.read_bytes = footer.schema.column_bytes(|column| column.is_read);
        footer.column_bytes = footer.schema.column_bytes(|_| true);
        if footer.sample_type.is_some() && !footer.is_spread && footer.value_column.is_none() {
            let names = footer.schema.names();
            return Err(ThriftError::Refused(format!(
                "no column of bytes: the file holds {names}"
            )));
        }
        let rows = footer.rows();
        let samples = footer.samples;
        if rows != samples {
            let message = format!("row groups of {rows} rows in a file of {samples}");
            return Err(ThriftError::Refused(message));
        }
        Ok(())
    }
}

/// Dimensions and element type from the file's key-value metadata.
fn parse_sample_type(dims: Option<&[u8]>, element: Option<&[u8]>) -> Option<(Dims, Element)> {
    let element_name = std::str::from_utf8(element?).ok()?;
    let element = Element::ALL.into_iter().find(|known| known.name() == element_name)?;
    let dims_text = std::str::from_utf8(dims?).ok()?;
    let mut extents = [0; DIMS_MAX];
    let mut count = 0;
    // `split_terminator` gives no items for the empty text, which stands for no dimensions.
    for extent in dims_text.split_terminator(',') {
        *extents.get_mut(count)? = extent.parse().ok()?;
        count += 1;
    }
    Some((Dims::new(&extents[..count])?, element))
}

/// `ColumnChunk` with its `ColumnMetaData`.
#[derive(Default)]
struct ColumnChunk {
    is_elsewhere: bool,
    codec: i64,
    nulls: i64,
    bytes: i64,
    data_start: Option<i64>,
    dictionary_start: Option<i64>,
    odd_encoding: Option<u8>,
}

impl ColumnChunk {
    /// The chunk of this column, after a check of its range against `end`, the end of the data.
    fn check(&self, column: u32, end: u64) -> Result<Chunk, String> {
        if self.is_elsewhere {
            return Err("its data is in another file".to_string());
        }
        let data_start = self.data_start.ok_or("it does not contain the offset of its data")?;
        // Some writers store 0 if there is no dictionary.
        let dictionary_start = self.dictionary_start.filter(|&start| start > 0);
        let start = dictionary_start.map_or(data_start, |start| start.min(data_start));
        let range = u64::try_from(start).ok().zip(u64::try_from(self.bytes).ok());
        let valid_range = range.filter(|&(start, bytes)| {
            let chunk_end = start.checked_add(bytes);
            start >= MAGIC.len() as u64 && chunk_end.is_some_and(|chunk_end| chunk_end <= end)
        });
        let (start, bytes) = valid_range.ok_or_else(|| {
            format!("{} bytes, starting at {start}, do not fit the file", self.bytes)
        })?;
        let codec = Codec::from_code(self.codec);
        let odd_codec = codec.is_none().then(|| u8::try_from(self.codec).unwrap_or(u8::MAX));
        Ok(Chunk { start, bytes, codec, column, odd_codec, odd_encoding: self.odd_encoding })
    }
}
