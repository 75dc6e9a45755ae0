//! Reads the footer, `FileMetaData`: the column with the samples, the positions of its chunks, and the dimensions of the
//! samples, if the file contains them.

use super::thrift::{self, ThriftError, ThriftValue};
use super::unpack::Codec;
use super::{
    BYTE_ARRAY, DIMS_KEY, Dims, ELEMENT_KEY, Element, FIXED_LEN_BYTE_ARRAY, FormatError, MAGIC,
    enum_name,
};
use feedrate_spec::shape::DIMS_MAX;
use std::fmt::Write;

/// Upper limit on the nesting of column groups.
const DEPTH_MAX: usize = 16;
const COLUMNS_SHOWN_MAX: usize = 8;
/// Upper limit on the columns of a file, because their lengths are kept in memory.
const COLUMNS_MAX: usize = 1 << 16;
/// Physical types, in the order of `parquet.thrift`.
const TYPES: &str = "BOOLEAN INT32 INT64 INT96 FLOAT DOUBLE BYTE_ARRAY FIXED_LEN_BYTE_ARRAY";
/// Repetition types.
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// Contents of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) samples: u64,
    pub(super) column: SampleColumn,
    /// Row groups in the order of their samples.
    pub(super) groups: Vec<RowGroup>,
    /// Dimensions and element type of a sample, in files that feedrate wrote.
    pub(super) sample_type: Option<(Dims, Element)>,
    /// For errors: name and type of the samples' column, or of the first few columns if none can hold samples.
    names: String,
    /// Length of each column in the file; `None` for columns with one number per row, which are labels.
    column_bytes: Vec<Option<u64>>,
}

/// The column that holds the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleColumn {
    /// Number of the column in a row group.
    index: usize,
    /// Length of each value; `None` if lengths vary.
    pub(super) value_bytes: Option<u64>,
    /// Definition level of values that are not null.
    pub(super) level: u32,
}

/// A row group, with the chunk of the samples' column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowGroup {
    /// Number of the first sample.
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) codec: i64,
}

impl RowGroup {
    /// End of the chunk.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

impl Footer {
    /// Reads a footer that begins at `start` of its file. The samples are in the largest column, or in files of feedrate in
    /// the first column of bytes.
    pub(super) fn read(&mut self, bytes: &[u8], start: u64) -> Result<(), FormatError> {
        let mut parsed = self.parse(bytes, start, None);
        if parsed.is_ok()
            && self.sample_type.is_none()
            && let Some(largest) = self.largest_column()
            && largest != self.column.index
        {
            // The largest column is known only at the end of the footer, so it is parsed again to find the column's chunks.
            parsed = self.parse(bytes, start, Some(largest));
        }
        let message = match parsed.and_then(|()| self.check_codecs()) {
            Ok(()) => return Ok(()),
            Err(ThriftError::Ends) => "broken parquet footer: it ends within a value".to_string(),
            Err(ThriftError::Broken) => "broken parquet footer: it is not valid Thrift".to_string(),
            Err(ThriftError::Refused(message)) => message,
        };
        Err(FormatError::new(start, message))
    }

    fn parse(
        &mut self,
        bytes: &[u8],
        start: u64,
        selected_column: Option<usize>,
    ) -> Result<(), ThriftError> {
        let footer = std::mem::take(self);
        let mut parser =
            FooterParser { footer, selected_column, end: start, ..FooterParser::default() };
        parser.footer.groups.clear();
        parser.footer.names.clear();
        parser.footer.column_bytes.clear();
        let read = thrift::read(bytes, &mut |path, value| parser.receive(path, value));
        let finished = read.and_then(|_| parser.finish());
        *self = parser.footer;
        finished
    }

    fn check_codecs(&self) -> Result<(), ThriftError> {
        let error = self.groups.iter().find_map(|group| Codec::from_code(group.codec).err());
        let message = error.map(|error| format!("column {}: {error}", self.names));
        message.map_or(Ok(()), |message| Err(ThriftError::Refused(message)))
    }

    /// Number of the column with the most bytes in the file. Among equally long columns, the samples' column is preferred, then the
    /// first.
    fn largest_column(&self) -> Option<usize> {
        let most = self.column_bytes.iter().max()?;
        if self.column_bytes.get(self.column.index) == Some(most) {
            return Some(self.column.index);
        }
        self.column_bytes.iter().position(|bytes| bytes == most)
    }

    /// The group that contains a sample.
    pub(super) fn group_with(&self, sample: u64) -> Option<&RowGroup> {
        let after = self.groups.partition_point(|group| group.first <= sample);
        // Among several groups with the same first sample, only the last one is not empty.
        self.groups.get(after.checked_sub(1)?).filter(|group| sample - group.first < group.rows)
    }

    /// Number of rows in all groups so far.
    fn rows(&self) -> u64 {
        self.groups.last().map_or(0, |group| group.first + group.rows)
    }
}

/// A footer that is being parsed. The schema precedes the row groups, because its field has a lower number.
#[derive(Default)]
struct FooterParser<'b> {
    footer: Footer,
    /// Number of the column to use; `None` for the first one that can hold samples.
    selected_column: Option<usize>,
    /// End of the data in the file.
    end: u64,
    field: SchemaElement<'b>,
    /// Groups that contain the next field, from the root on.
    open_groups: [SchemaElement<'b>; DEPTH_MAX],
    depth: usize,
    /// Number of columns in the schema.
    columns: usize,
    column: Option<SampleColumn>,
    chunk: ColumnChunk,
    /// Number of the chunk in its row group.
    chunk_index: usize,
    /// The chunk of the samples' column in the row group.
    sample_chunk: ColumnChunk,
    group_rows: u64,
    key: &'b [u8],
    value: &'b [u8],
    dims: Option<&'b [u8]>,
    element: Option<&'b [u8]>,
}

impl<'b> FooterParser<'b> {
    fn receive(&mut self, path: &[i16], value: ThriftValue<'b>) -> Result<(), ThriftError> {
        let field = &mut self.field;
        let chunk = &mut self.chunk;
        match (path, value) {
            ([2, 1], ThriftValue::Int(code)) => field.physical = Some(code),
            ([2, 2], ThriftValue::Int(bytes)) => field.length = bytes,
            ([2, 3], ThriftValue::Int(code)) => field.repetition = code,
            ([2, 4], ThriftValue::Binary(name)) => field.name = name,
            ([2, 5], _) => field.children = value.unsigned()?,
            ([2, 6 | 10, ..], _) => field.is_annotated = true,
            ([2], ThriftValue::End) => self.end_schema_element()?,
            ([3], _) => self.footer.samples = value.unsigned()?,
            ([4, 1, 1], ThriftValue::Binary(path)) => chunk.is_elsewhere = !path.is_empty(),
            ([4, 1, 3, 4], ThriftValue::Int(codec)) => chunk.codec = codec,
            ([4, 1, 3, 5], ThriftValue::Int(values)) => chunk.values = values,
            ([4, 1, 3, 7], ThriftValue::Int(bytes)) => chunk.bytes = bytes,
            ([4, 1, 3, 9], ThriftValue::Int(start)) => chunk.data_start = Some(start),
            ([4, 1, 3, 11], ThriftValue::Int(start)) => chunk.dictionary_start = Some(start),
            ([4, 1], ThriftValue::End) => {
                let chunk = std::mem::take(chunk);
                if let Some(Some(sum)) = self.footer.column_bytes.get_mut(self.chunk_index) {
                    *sum = sum.saturating_add(u64::try_from(chunk.bytes).unwrap_or_default());
                }
                if self.column.is_some_and(|column| column.index == self.chunk_index) {
                    self.sample_chunk = chunk;
                }
                self.chunk_index += 1;
            }
            ([4, 3], _) => self.group_rows = value.unsigned()?,
            ([4], ThriftValue::End) => self.end_row_group()?,
            ([5, 1], ThriftValue::Binary(key)) => self.key = key,
            ([5, 2], ThriftValue::Binary(value)) => self.value = value,
            ([5], ThriftValue::End) => self.end_key_value(),
            _ => {}
        }
        Ok(())
    }

    fn end_schema_element(&mut self) -> Result<(), ThriftError> {
        let mut field = std::mem::take(&mut self.field);
        let parent = self.open_groups[..self.depth].last();
        if let Some(parent) = parent {
            // The repetition of the root has no meaning, so levels begin below it.
            field.is_repeated = parent.is_repeated || field.repetition == REPEATED;
            field.level =
                parent.level + u32::from([OPTIONAL, REPEATED].contains(&field.repetition));
            field.name = if self.depth == 1 { field.name } else { parent.name };
        }
        if field.children > 0 {
            *self.open_groups.get_mut(self.depth).ok_or(ThriftError::Broken)? = field;
            self.depth += 1;
            return Ok(());
        }
        if parent.is_some() {
            let is_eligible =
                self.selected_column.is_none_or(|selected_column| selected_column == self.columns);
            if is_eligible && self.column.is_none() {
                self.column = field.column(self.columns);
                let is_found = self.column.is_some();
                if is_found {
                    self.footer.names.clear();
                }
                if is_found || self.selected_column.is_some() || self.columns < COLUMNS_SHOWN_MAX {
                    field.write_name(&mut self.footer.names);
                }
            }
            if self.columns == COLUMNS_MAX {
                return Err(ThriftError::Refused(format!("more than {COLUMNS_MAX} columns")));
            }
            self.footer.column_bytes.push((!field.is_number()).then_some(0));
            self.columns += 1;
        }
        // The field is complete, and so are the groups whose last field it was.
        while let Some(last) = self.depth.checked_sub(1) {
            self.open_groups[last].children -= 1;
            if self.open_groups[last].children > 0 {
                break;
            }
            self.depth = last;
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<(), ThriftError> {
        let first = self.footer.rows();
        let rows = std::mem::take(&mut self.group_rows);
        let chunk = std::mem::take(&mut self.sample_chunk);
        self.chunk_index = 0;
        // Empty groups are skipped without a check: their positions may be invalid, for example 0 in files of pyarrow.
        if rows > 0 && self.column.is_some() {
            let group = chunk.row_group(first, rows, self.end).map_err(|reason| {
                ThriftError::Refused(format!("row group {}: {reason}", self.footer.groups.len()))
            })?;
            self.footer.groups.push(group);
        }
        Ok(())
    }

    fn end_key_value(&mut self) {
        let value = std::mem::take(&mut self.value);
        let key = std::mem::take(&mut self.key);
        if key == DIMS_KEY.as_bytes() {
            self.dims = Some(value);
        } else if key == ELEMENT_KEY.as_bytes() {
            self.element = Some(value);
        }
    }

    /// Checks the footer after all of it has been parsed.
    fn finish(&mut self) -> Result<(), ThriftError> {
        let FooterParser { footer, dims, element, .. } = self;
        let Some(column) = self.column else {
            if self.selected_column.is_some() {
                let message = format!(
                    "{}, the largest column, cannot be read: it is no column of bytes",
                    footer.names
                );
                return Err(ThriftError::Refused(message));
            }
            let names = if self.columns == 0 { "nothing" } else { &footer.names };
            let more = match self.columns.saturating_sub(COLUMNS_SHOWN_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!("no column of bytes: the file holds {names}{more}");
            return Err(ThriftError::Refused(message));
        };
        footer.column = column;
        footer.sample_type = parse_sample_type(*dims, *element);
        if footer.sample_type.is_none() && (dims.is_some() || element.is_some()) {
            let message = format!("`{DIMS_KEY}` and `{ELEMENT_KEY}` describe no sample");
            return Err(ThriftError::Refused(message));
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
    values: i64,
    bytes: i64,
    data_start: Option<i64>,
    dictionary_start: Option<i64>,
}

impl ColumnChunk {
    /// The row group of this chunk, after a check of its range against `end`, the end of the data.
    fn row_group(&self, first: u64, rows: u64, end: u64) -> Result<RowGroup, String> {
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
        if u64::try_from(self.values) != Ok(rows) {
            return Err(format!("{} values in {rows} rows", self.values));
        }
        if first.checked_add(rows).is_none() {
            return Err(format!("{rows} rows are more than a file can have"));
        }
        Ok(RowGroup { first, rows, start, bytes, codec: self.codec })
    }
}

/// `SchemaElement`
#[derive(Clone, Copy, Default)]
struct SchemaElement<'b> {
    physical: Option<i64>,
    length: i64,
    repetition: i64,
    /// Name of the outermost field below the root, which is the column name shown to users.
    name: &'b [u8],
    /// Number of fields in this group that have not been parsed yet.
    children: u64,
    /// Whether the bytes have another meaning, such as text or a decimal number.
    is_annotated: bool,
    /// Whether the field or a group that contains it is a list.
    is_repeated: bool,
    /// Definition level of values that are not null.
    level: u32,
}

impl SchemaElement<'_> {
    /// The field as a column of samples; `None` if it cannot hold samples.
    fn column(&self, index: usize) -> Option<SampleColumn> {
        let value_bytes = match self.physical? {
            BYTE_ARRAY => None,
            FIXED_LEN_BYTE_ARRAY => Some(u64::try_from(self.length).ok().filter(|&len| len > 0)?),
            _ => return None,
        };
        let fits = !self.is_annotated && !self.is_repeated;
        fits.then_some(SampleColumn { index, value_bytes, level: self.level })
    }

    /// Whether the field is one number per row.
    fn is_number(&self) -> bool {
        let is_bytes = matches!(self.physical, Some(BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY) | None);
        !is_bytes && !self.is_repeated
    }

    fn write_name(&self, names: &mut String) {
        let name = String::from_utf8_lossy(&self.name[..self.name.len().min(64)]);
        let kind = match self.physical {
            _ if self.is_repeated => "a list",
            Some(BYTE_ARRAY) if self.is_annotated => "text",
            code => code.and_then(|code| enum_name(TYPES, code)).unwrap_or("of no known type"),
        };
        let comma = if names.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(names, "{comma}`{}` ({kind})", name.escape_debug());
    }
}
