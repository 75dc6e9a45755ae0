//! `FileMetaData`, the footer: which column holds the samples, where its chunks lie, and what the file says of their
//! dimensions.

use super::thrift::{self, Read, ThriftError};
use super::unpack::Codec;
use super::{
    BYTE_ARRAY, DIMS_KEY, Dims, ELEMENT_KEY, Element, FIXED_LEN_BYTE_ARRAY, FormatError, MAGIC,
    name_of,
};
use feedrate_spec::shape::DIMS_MAX;
use std::fmt::Write;

/// Groups within groups of columns, at most.
const DEPTH_MAX: usize = 16;
const COLUMNS_SHOWN_MAX: usize = 8;
/// Columns whose sizes are compared, at most: they are kept in memory.
const COLUMNS_MAX: usize = 1 << 16;
/// Physical types, in the order of `parquet.thrift`.
const TYPES: &str = "BOOLEAN INT32 INT64 INT96 FLOAT DOUBLE BYTE_ARRAY FIXED_LEN_BYTE_ARRAY";
/// A repetition type.
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// Contents of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) samples: u64,
    pub(super) column: SampleColumn,
    /// Row groups in the order of their samples.
    pub(super) groups: Vec<RowGroup>,
    /// Dimensions and element of each sample, where feedrate wrote the file.
    pub(super) described: Option<(Dims, Element)>,
    /// Name and type of the samples' column, or where there is none of the first few that are not it; for errors.
    names: String,
    /// Bytes of each column in the file; `None` for columns of one number a row, which are labels.
    column_bytes: Vec<Option<u64>>,
}

/// The column that holds the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleColumn {
    /// Among the chunks of a row group.
    index: usize,
    /// Length of each value; `None` where each has its own.
    pub(super) value_bytes: Option<u64>,
    /// The definition level of a value that is there.
    pub(super) level: u32,
}

/// The column's chunk of one row group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowGroup {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) codec: i64,
}

impl RowGroup {
    /// End of its chunk.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

impl Footer {
    /// Read a footer that begins at `start` of its file. The samples are the largest column; in files of feedrate, which say what
    /// samples are, the first that can be read.
    pub(super) fn read(&mut self, bytes: &[u8], start: u64) -> Result<(), FormatError> {
        let mut parsed = self.parse(bytes, start, None);
        if parsed.is_ok()
            && self.described.is_none()
            && let Some(largest) = self.largest_column()
            && largest != self.column.index
        {
            // Whose chunks are wanted is known at the end of the footer: it is read once more.
            parsed = self.parse(bytes, start, Some(largest));
        }
        let parsed = parsed.and_then(|()| self.check_codecs());
        let message = match parsed {
            Ok(()) => return Ok(()),
            Err(ThriftError::Ends) => "broken parquet footer: it ends within a value".to_string(),
            Err(ThriftError::Broken) => {
                "broken parquet footer: it is not what Thrift writes".to_string()
            }
            Err(ThriftError::Wrong(message)) => message,
        };
        Err(FormatError::new(start, message))
    }

    fn parse(
        &mut self,
        bytes: &[u8],
        start: u64,
        chosen: Option<usize>,
    ) -> Result<(), ThriftError> {
        let footer = std::mem::take(self);
        let mut parse = Parse { footer, chosen, end: start, ..Parse::default() };
        parse.footer.groups.clear();
        parse.footer.names.clear();
        parse.footer.column_bytes.clear();
        let parsed = thrift::read(bytes, &mut |path, value| parse.take(path, value));
        let parsed = parsed.and_then(|_| parse.finish());
        *self = parse.footer;
        parsed
    }

    fn check_codecs(&self) -> Result<(), ThriftError> {
        let error = self.groups.iter().find_map(|group| Codec::from_code(group.codec).err());
        let message = error.map(|error| format!("column {}: {error}", self.names));
        message.map_or(Ok(()), |message| Err(ThriftError::Wrong(message)))
    }

    /// The first of the columns that have the most bytes in the file. Of equal ones that which was found to hold samples.
    fn largest_column(&self) -> Option<usize> {
        let most = self.column_bytes.iter().max()?;
        if self.column_bytes.get(self.column.index) == Some(most) {
            return Some(self.column.index);
        }
        self.column_bytes.iter().position(|bytes| bytes == most)
    }

    /// The group that holds a sample of the file.
    pub(super) fn group_of(&self, sample: u64) -> Option<&RowGroup> {
        let after = self.groups.partition_point(|group| group.first <= sample);
        // Of several that begin there, all but the last are empty.
        self.groups.get(after.checked_sub(1)?).filter(|group| sample - group.first < group.rows)
    }

    /// Rows of all groups so far.
    fn rows(&self) -> u64 {
        self.groups.last().map_or(0, |group| group.first + group.rows)
    }
}

/// A footer as far as it has come. Writers put the schema before the row groups, as its field comes first.
#[derive(Default)]
struct Parse<'b> {
    footer: Footer,
    /// The column that must hold the samples; the first that can where there is none.
    chosen: Option<usize>,
    /// End of the data in the file.
    end: u64,
    field: SchemaElement<'b>,
    /// Fields that have fields, from the root to those that come next.
    open: [SchemaElement<'b>; DEPTH_MAX],
    depth: usize,
    /// Columns in the schema.
    columns: usize,
    column: Option<SampleColumn>,
    chunk: ColumnChunk,
    /// Number of the chunk in its row group.
    chunk_index: usize,
    /// The chunk of the samples in the row group.
    wanted: ColumnChunk,
    group_rows: u64,
    key: &'b [u8],
    value: &'b [u8],
    dims: Option<&'b [u8]>,
    element: Option<&'b [u8]>,
}

impl<'b> Parse<'b> {
    fn take(&mut self, path: &[i16], value: Read<'b>) -> Result<(), ThriftError> {
        let (field, chunk) = (&mut self.field, &mut self.chunk);
        match (path, value) {
            ([2, 1], Read::Int(code)) => field.physical = Some(code),
            ([2, 2], Read::Int(bytes)) => field.length = bytes,
            ([2, 3], Read::Int(code)) => field.repetition = code,
            ([2, 4], Read::Binary(name)) => field.name = name,
            ([2, 5], _) => field.children = value.unsigned()?,
            ([2, 6 | 10, ..], _) => field.is_annotated = true,
            ([2], Read::End) => self.schema_element()?,
            ([3], _) => self.footer.samples = value.unsigned()?,
            ([4, 1, 1], Read::Binary(path)) => chunk.is_elsewhere = !path.is_empty(),
            ([4, 1, 3, 4], Read::Int(codec)) => chunk.codec = codec,
            ([4, 1, 3, 5], Read::Int(values)) => chunk.values = values,
            ([4, 1, 3, 7], Read::Int(bytes)) => chunk.bytes = bytes,
            ([4, 1, 3, 9], Read::Int(start)) => chunk.data_start = Some(start),
            ([4, 1, 3, 11], Read::Int(start)) => chunk.dictionary_start = Some(start),
            ([4, 1], Read::End) => {
                let chunk = std::mem::take(chunk);
                if let Some(Some(sum)) = self.footer.column_bytes.get_mut(self.chunk_index) {
                    *sum = sum.saturating_add(u64::try_from(chunk.bytes).unwrap_or_default());
                }
                if self.column.is_some_and(|column| column.index == self.chunk_index) {
                    self.wanted = chunk;
                }
                self.chunk_index += 1;
            }
            ([4, 3], _) => self.group_rows = value.unsigned()?,
            ([4], Read::End) => self.row_group()?,
            ([5, 1], Read::Binary(key)) => self.key = key,
            ([5, 2], Read::Binary(value)) => self.value = value,
            ([5], Read::End) => self.key_value(),
            _ => {}
        }
        Ok(())
    }

    fn schema_element(&mut self) -> Result<(), ThriftError> {
        let mut field = std::mem::take(&mut self.field);
        let above = self.open[..self.depth].last();
        if let Some(above) = above {
            // The root's own repetition means nothing.
            field.is_repeated = above.is_repeated || field.repetition == REPEATED;
            field.level = above.level + u32::from([OPTIONAL, REPEATED].contains(&field.repetition));
            field.name = if self.depth == 1 { field.name } else { above.name };
        }
        if field.children > 0 {
            *self.open.get_mut(self.depth).ok_or(ThriftError::Broken)? = field;
            self.depth += 1;
            return Ok(());
        }
        if above.is_some() {
            let is_eligible = self.chosen.is_none_or(|chosen| chosen == self.columns);
            if is_eligible && self.column.is_none() {
                self.column = field.column(self.columns);
                let is_found = self.column.is_some();
                if is_found {
                    self.footer.names.clear();
                }
                if is_found || self.chosen.is_some() || self.columns < COLUMNS_SHOWN_MAX {
                    field.write_name(&mut self.footer.names);
                }
            }
            if self.columns == COLUMNS_MAX {
                return Err(ThriftError::Wrong(format!("more than {COLUMNS_MAX} columns")));
            }
            self.footer.column_bytes.push((!field.is_number()).then_some(0));
            self.columns += 1;
        }
        // It is whole, and so are those whose last it was.
        while let Some(last) = self.depth.checked_sub(1) {
            self.open[last].children -= 1;
            if self.open[last].children > 0 {
                break;
            }
            self.depth = last;
        }
        Ok(())
    }

    fn row_group(&mut self) -> Result<(), ThriftError> {
        let (first, rows) = (self.footer.rows(), std::mem::take(&mut self.group_rows));
        let chunk = std::mem::take(&mut self.wanted);
        self.chunk_index = 0;
        // Nobody asks for a row of an empty group; it may say that it lies anywhere: pyarrow says at 0.
        if rows > 0 && self.column.is_some() {
            let group = chunk.group(first, rows, self.end).map_err(|why| {
                ThriftError::Wrong(format!("row group {}: {why}", self.footer.groups.len()))
            })?;
            self.footer.groups.push(group);
        }
        Ok(())
    }

    fn key_value(&mut self) {
        let value = std::mem::take(&mut self.value);
        let key = std::mem::take(&mut self.key);
        if key == DIMS_KEY.as_bytes() {
            self.dims = Some(value);
        } else if key == ELEMENT_KEY.as_bytes() {
            self.element = Some(value);
        }
    }

    /// The whole footer has come.
    fn finish(&mut self) -> Result<(), ThriftError> {
        let Parse { footer, dims, element, .. } = self;
        let Some(column) = self.column else {
            if self.chosen.is_some() {
                let message = format!(
                    "{}, the largest column, cannot be read: it is no column of bytes",
                    footer.names
                );
                return Err(ThriftError::Wrong(message));
            }
            let names = if self.columns == 0 { "nothing" } else { &footer.names };
            let more = match self.columns.saturating_sub(COLUMNS_SHOWN_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!("no column of bytes: the file holds {names}{more}");
            return Err(ThriftError::Wrong(message));
        };
        footer.column = column;
        footer.described = described(*dims, *element);
        if footer.described.is_none() && (dims.is_some() || element.is_some()) {
            let message = format!("`{DIMS_KEY}` and `{ELEMENT_KEY}` describe no sample");
            return Err(ThriftError::Wrong(message));
        }
        let (rows, samples) = (footer.rows(), footer.samples);
        if rows != samples {
            let message = format!("row groups of {rows} rows in a file of {samples}");
            return Err(ThriftError::Wrong(message));
        }
        Ok(())
    }
}

fn described(dims: Option<&[u8]>, element: Option<&[u8]>) -> Option<(Dims, Element)> {
    let element = std::str::from_utf8(element?).ok()?;
    let element = Element::ALL.into_iter().find(|known| known.name() == element)?;
    let dims = std::str::from_utf8(dims?).ok()?;
    let (mut extents, mut count) = ([0; DIMS_MAX], 0);
    // No dimensions at all are one empty text.
    for extent in dims.split_terminator(',') {
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
    /// Checked against the length of the data.
    fn group(&self, first: u64, rows: u64, end: u64) -> Result<RowGroup, String> {
        if self.is_elsewhere {
            return Err("its data lies in another file".to_string());
        }
        let data_start = self.data_start.ok_or("it says nothing of its data")?;
        // Some writers put 0 where there is no dictionary.
        let dictionary_start = self.dictionary_start.filter(|&start| start > 0);
        let start = dictionary_start.map_or(data_start, |start| start.min(data_start));
        let lies = u64::try_from(start).ok().zip(u64::try_from(self.bytes).ok());
        let fitting = lies.filter(|&(start, bytes)| {
            let its_end = start.checked_add(bytes);
            start >= MAGIC.len() as u64 && its_end.is_some_and(|its_end| its_end <= end)
        });
        let (start, bytes) = fitting.ok_or_else(|| {
            format!("{} bytes, said to begin at {start}, do not fit the file", self.bytes)
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
    /// Below the root, that of the outermost field, as users know it.
    name: &'b [u8],
    /// Fields that are still to come.
    children: u64,
    /// Bytes that mean something else: text, a decimal number.
    is_annotated: bool,
    /// It or one above it is a list.
    is_repeated: bool,
    /// The definition level of a value that is there.
    level: u32,
}

impl SchemaElement<'_> {
    fn column(&self, index: usize) -> Option<SampleColumn> {
        let value_bytes = match self.physical? {
            BYTE_ARRAY => None,
            FIXED_LEN_BYTE_ARRAY => Some(u64::try_from(self.length).ok().filter(|&len| len > 0)?),
            _ => return None,
        };
        let fits = !self.is_annotated && !self.is_repeated;
        fits.then_some(SampleColumn { index, value_bytes, level: self.level })
    }

    /// Whether each row has one number.
    fn is_number(&self) -> bool {
        let is_bytes = matches!(self.physical, Some(BYTE_ARRAY | FIXED_LEN_BYTE_ARRAY) | None);
        !is_bytes && !self.is_repeated
    }

    fn write_name(&self, names: &mut String) {
        let name = String::from_utf8_lossy(&self.name[..self.name.len().min(64)]);
        let what = match self.physical {
            _ if self.is_repeated => "a list",
            Some(BYTE_ARRAY) if self.is_annotated => "text",
            code => code.and_then(|code| name_of(TYPES, code)).unwrap_or("of no known type"),
        };
        let comma = if names.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(names, "{comma}`{}` ({what})", name.escape_debug());
    }
}
