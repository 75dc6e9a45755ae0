//! `FileMetaData`, the footer: which column holds the samples, where its chunks lie, and what the file says of their
//! dimensions.

use super::thrift::{Kind, Reader, ThriftError};
use super::{
    BYTE_ARRAY, DIMS_KEY, Dims, ELEMENT_KEY, Element, FIXED_LEN_BYTE_ARRAY, FormatError, MAGIC,
};
use feedrate_spec::shape::DIMS_MAX;

/// Groups within groups of columns, at most.
const DEPTH_MAX: usize = 16;
const COLUMNS_SHOWN_MAX: usize = 8;
/// Physical types, in the order of `parquet.thrift`.
const TYPES: [&str; 8] =
    ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];
/// A repetition type.
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// Contents of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) samples: u64,
    pub(super) column: Column,
    /// Row groups in the order of their samples.
    pub(super) groups: Vec<Group>,
    /// Dimensions and element of each sample, where feedrate wrote the file.
    pub(super) described: Option<(Dims, Element)>,
}

/// The column that holds the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    /// Among the chunks of a row group.
    index: usize,
    /// Length of each value; `None` where each has its own.
    pub(super) value_bytes: Option<u64>,
    /// The definition level of a value that is there.
    pub(super) level: u32,
}

/// The column's chunk of one row group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) codec: i64,
}

impl Footer {
    /// Read a footer that lies at `start` of its file.
    pub(super) fn read(&mut self, bytes: &[u8], start: u64) -> Result<(), FormatError> {
        let at_start = |message: String| FormatError::new(start, message);
        self.groups.clear();
        self.column = column(bytes).map_err(|error| broken(error, start))?.ok_or_else(|| {
            at_start(format!("no column of bytes: the file holds {}", names(bytes)))
        })?;
        let mut parse = Parse { footer: self, end: start, dims: None, element: None, wrong: None };
        let parsed = parse.whole(&mut Reader::new(bytes));
        let Parse { wrong, dims, element, .. } = parse;
        if let Some(message) = wrong {
            return Err(at_start(message));
        }
        parsed.map_err(|error| broken(error, start))?;
        self.described = match (dims, element) {
            (None, None) => None,
            (dims, element) => Some(described(dims, element).ok_or_else(|| {
                at_start(format!("`{DIMS_KEY}` and `{ELEMENT_KEY}` describe no sample"))
            })?),
        };
        let rows = self.groups.last().map_or(0, |group| group.first + group.rows);
        if rows != self.samples {
            let samples = self.samples;
            return Err(at_start(format!("row groups of {rows} rows in a file of {samples}")));
        }
        Ok(())
    }

    /// The group that holds a sample of the file.
    pub(super) fn group_of(&self, sample: u64) -> Option<&Group> {
        let after = self.groups.partition_point(|group| group.first <= sample);
        // Of several that begin there, all but the last are empty.
        self.groups.get(after.checked_sub(1)?).filter(|group| sample - group.first < group.rows)
    }
}

fn broken(error: ThriftError, start: u64) -> FormatError {
    let how = match error {
        ThriftError::Ends => "it ends within a value",
        ThriftError::Broken => "it is not what Thrift writes",
    };
    FormatError::new(start, format!("broken parquet footer: {how}"))
}

fn described(dims: Option<&[u8]>, element: Option<&[u8]>) -> Option<(Dims, Element)> {
    let element = std::str::from_utf8(element?).ok()?;
    let element = Element::ALL.into_iter().find(|known| known.name() == element)?;
    let dims = std::str::from_utf8(dims?).ok()?;
    let (mut extents, mut count) = ([0; DIMS_MAX], 0);
    let extents_text = if dims.is_empty() { None } else { Some(dims.split(',')) };
    for extent in extents_text.into_iter().flatten() {
        *extents.get_mut(count)? = extent.parse().ok()?;
        count += 1;
    }
    Some((Dims::new(&extents[..count])?, element))
}

/// Reads what follows the schema.
struct Parse<'f, 'b> {
    footer: &'f mut Footer,
    /// End of the data in the file.
    end: u64,
    dims: Option<&'b [u8]>,
    element: Option<&'b [u8]>,
    /// Reason to refuse the file, other than broken bytes.
    wrong: Option<String>,
}

impl<'b> Parse<'_, 'b> {
    fn whole(&mut self, reader: &mut Reader<'b>) -> Result<(), ThriftError> {
        reader.fields(&mut |r, id, kind| match (id, kind) {
            (3, _) => unsigned(r.int(kind)?).map(|rows| self.footer.samples = rows),
            (4, Kind::List) => r.list(Kind::Struct, &mut |r| self.row_group(r)),
            (5, Kind::List) => r.list(Kind::Struct, &mut |r| self.key_value(r)),
            _ => r.skip(kind),
        })
    }

    fn key_value(&mut self, reader: &mut Reader<'b>) -> Result<(), ThriftError> {
        let (mut key, mut value): (&[u8], &[u8]) = (b"", b"");
        reader.fields(&mut |r, id, kind| match id {
            1 => r.binary(kind).map(|bytes| key = bytes),
            2 => r.binary(kind).map(|bytes| value = bytes),
            _ => r.skip(kind),
        })?;
        if key == DIMS_KEY.as_bytes() {
            self.dims = Some(value);
        } else if key == ELEMENT_KEY.as_bytes() {
            self.element = Some(value);
        }
        Ok(())
    }

    fn row_group(&mut self, reader: &mut Reader<'b>) -> Result<(), ThriftError> {
        let mut rows = 0;
        let mut chunk = None;
        reader.fields(&mut |r, id, kind| match (id, kind) {
            (1, Kind::List) => {
                let mut index = 0;
                r.list(Kind::Struct, &mut |r| {
                    let wanted = index == self.footer.column.index;
                    index += 1;
                    if !wanted {
                        return r.skip(Kind::Struct);
                    }
                    let read = Chunk::read(r)?;
                    chunk = Some(read);
                    Ok(())
                })
            }
            (3, _) => unsigned(r.int(kind)?).map(|count| rows = count),
            _ => r.skip(kind),
        })?;
        let first = self.footer.groups.last().map_or(0, |group| group.first + group.rows);
        match chunk.unwrap_or_default().group(first, rows, self.end) {
            // Nobody asks for a row of an empty one.
            Ok(_) if rows == 0 => {}
            Ok(group) => self.footer.groups.push(group),
            Err(why) => {
                let number = self.footer.groups.len();
                self.wrong = Some(format!("row group {number}: {why}"));
                return Err(ThriftError::Broken);
            }
        }
        Ok(())
    }
}

/// `ColumnChunk` with its `ColumnMetaData`.
#[derive(Default)]
struct Chunk {
    is_elsewhere: bool,
    codec: i64,
    values: i64,
    bytes: i64,
    data_start: Option<i64>,
    dictionary_start: Option<i64>,
}

impl Chunk {
    fn read(reader: &mut Reader) -> Result<Self, ThriftError> {
        let mut chunk = Chunk::default();
        reader.fields(&mut |r, id, kind| match id {
            1 => r.binary(kind).map(|path| chunk.is_elsewhere = !path.is_empty()),
            3 => r.inner(kind, &mut |r, id, kind| match id {
                4 => r.int(kind).map(|codec| chunk.codec = codec),
                5 => r.int(kind).map(|values| chunk.values = values),
                7 => r.int(kind).map(|bytes| chunk.bytes = bytes),
                9 => r.int(kind).map(|start| chunk.data_start = Some(start)),
                11 => r.int(kind).map(|start| chunk.dictionary_start = Some(start)),
                _ => r.skip(kind),
            }),
            _ => r.skip(kind),
        })?;
        Ok(chunk)
    }

    /// Checked against the length of the data.
    fn group(&self, first: u64, rows: u64, end: u64) -> Result<Group, String> {
        if rows == 0 {
            // It may say that it lies anywhere: pyarrow says at 0.
            return Ok(Group { first, ..Group::default() });
        }
        if self.is_elsewhere {
            return Err("its data lies in another file".to_string());
        }
        let data_start = self.data_start.ok_or("it says nothing of its data")?;
        // Some writers put 0 where there is no dictionary.
        let dictionary_start = self.dictionary_start.filter(|&start| start > 0);
        let start = dictionary_start.map_or(data_start, |start| start.min(data_start));
        let lies = u64::try_from(start).ok().zip(u64::try_from(self.bytes).ok());
        let fits = |&(start, bytes): &(u64, u64)| {
            let its_end = start.checked_add(bytes);
            start >= MAGIC.len() as u64 && its_end.is_some_and(|its_end| its_end <= end)
        };
        let (start, bytes) = lies.filter(fits).ok_or_else(|| {
            format!("{} bytes, said to begin at {start}, do not fit the file", self.bytes)
        })?;
        if u64::try_from(self.values) != Ok(rows) {
            return Err(format!("{} values in {rows} rows", self.values));
        }
        if first.checked_add(rows).is_none() {
            return Err(format!("{rows} rows are more than a file can have"));
        }
        Ok(Group { first, rows, start, bytes, codec: self.codec })
    }
}

fn unsigned(value: i64) -> Result<u64, ThriftError> {
    u64::try_from(value).map_err(|_| ThriftError::Broken)
}

/// A column of the schema.
struct Leaf<'b> {
    /// Name of the outermost field, as users know it.
    name: &'b [u8],
    physical: i64,
    length: i64,
    /// Bytes that mean something else: text, a decimal number.
    is_annotated: bool,
    is_repeated: bool,
    level: u32,
}

impl Leaf<'_> {
    fn column(&self, index: usize) -> Option<Column> {
        let value_bytes = match i32::try_from(self.physical).ok()? {
            BYTE_ARRAY => None,
            FIXED_LEN_BYTE_ARRAY => Some(u64::try_from(self.length).ok().filter(|&len| len > 0)?),
            _ => return None,
        };
        let fits = !self.is_annotated && !self.is_repeated;
        fits.then_some(Column { index, value_bytes, level: self.level })
    }

    fn in_words(&self) -> String {
        let name = String::from_utf8_lossy(&self.name[..self.name.len().min(64)]);
        let physical = usize::try_from(self.physical).ok().and_then(|code| TYPES.get(code));
        let what = match physical {
            _ if self.is_repeated => "a list",
            Some(&"BYTE_ARRAY") if self.is_annotated => "text",
            Some(name) => name,
            None => "of no known type",
        };
        format!("`{}` ({what})", name.escape_debug())
    }
}

/// The first column of bytes.
fn column(footer: &[u8]) -> Result<Option<Column>, ThriftError> {
    let (mut found, mut index) = (None, 0);
    leaves(footer, &mut |leaf| {
        found = found.or_else(|| leaf.column(index));
        index += 1;
    })?;
    Ok(found)
}

/// The first few columns, for an error.
fn names(footer: &[u8]) -> String {
    let (mut names, mut count) = (Vec::new(), 0);
    // Broken bytes were found before.
    let _ = leaves(footer, &mut |leaf| {
        count += 1;
        if names.len() < COLUMNS_SHOWN_MAX {
            names.push(leaf.in_words());
        }
    });
    match count - names.len() {
        0 if names.is_empty() => "nothing".to_string(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Hand each column of the schema to `leaf`.
fn leaves(footer: &[u8], leaf: &mut dyn FnMut(&Leaf)) -> Result<(), ThriftError> {
    let mut tree = Tree { open: [Branch::default(); DEPTH_MAX], depth: 0, name: b"" };
    Reader::new(footer).fields(&mut |r, id, kind| match (id, kind) {
        (2, Kind::List) => r.list(Kind::Struct, &mut |r| tree.element(r, leaf)),
        _ => r.skip(kind),
    })
}

/// A field that has fields.
#[derive(Clone, Copy, Default)]
struct Branch {
    children_left: u64,
    is_repeated: bool,
    level: u32,
}

/// The path from the root to the element that comes next.
struct Tree<'b> {
    open: [Branch; DEPTH_MAX],
    depth: usize,
    name: &'b [u8],
}

impl<'b> Tree<'b> {
    /// `SchemaElement`
    fn element(
        &mut self,
        reader: &mut Reader<'b>,
        leaf: &mut dyn FnMut(&Leaf),
    ) -> Result<(), ThriftError> {
        let (mut physical, mut length, mut repetition, mut children) = (-1, 0, 0, 0);
        let (mut name, mut is_annotated): (&[u8], bool) = (b"", false);
        reader.fields(&mut |r, id, kind| match id {
            1 => r.int(kind).map(|code| physical = code),
            2 => r.int(kind).map(|bytes| length = bytes),
            3 => r.int(kind).map(|code| repetition = code),
            4 => r.binary(kind).map(|bytes| name = bytes),
            5 => unsigned(r.int(kind)?).map(|count| children = count),
            6 | 10 => {
                is_annotated = true;
                r.skip(kind)
            }
            _ => r.skip(kind),
        })?;
        let above = self.depth.checked_sub(1).map(|last| self.open[last]);
        if self.depth == 1 {
            self.name = name;
        }
        let mut branch = above.unwrap_or_default();
        // The root's own repetition means nothing.
        if above.is_some() {
            branch.is_repeated |= repetition == REPEATED;
            branch.level += u32::from(repetition == OPTIONAL || repetition == REPEATED);
        }
        if children > 0 {
            branch.children_left = children;
            *self.open.get_mut(self.depth).ok_or(ThriftError::Broken)? = branch;
            self.depth += 1;
            return Ok(());
        }
        let Branch { is_repeated, level, .. } = branch;
        if above.is_some() {
            leaf(&Leaf { name: self.name, physical, length, is_annotated, is_repeated, level });
        }
        self.close();
        Ok(())
    }

    /// An element is whole, and so are those whose last it was.
    fn close(&mut self) {
        while let Some(branch) = self.depth.checked_sub(1).map(|last| &mut self.open[last]) {
            branch.children_left -= 1;
            if branch.children_left > 0 {
                break;
            }
            self.depth -= 1;
        }
    }
}
