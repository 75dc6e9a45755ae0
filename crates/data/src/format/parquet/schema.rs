//! Reads the schema of a footer: the columns and the outermost fields that contain them.

use super::super::FileMember;
use super::thrift::{ThriftError, ThriftValue};
use super::{BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY};
use std::fmt::Write;
use std::ops::Range;

/// Upper limit on the nesting of column groups.
const DEPTH_MAX: usize = 16;
/// Upper limit on the fields that an error names.
const FIELDS_SHOWN_MAX: usize = 8;
/// Upper limit on the columns of a file, because they are kept in memory.
const COLUMNS_MAX: usize = 1 << 16;
/// Upper limit on the length of a name that is kept.
const NAME_BYTES_MAX: usize = 256;
/// Names of the fields with the content and the path of a file in a group of Hugging Face's features.
const FILE_CONTENT: &str = "bytes";
const FILE_PATH: &str = "path";
/// Repetition types.
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// The schema of a file.
#[derive(Default)]
pub(super) struct Schema {
    /// The columns, in the order of their chunks in a row group.
    pub(super) columns: Vec<Column>,
    fields: Vec<OutermostField>,
    /// Names of all fields.
    names: String,
    element: SchemaElement,
    /// Groups that contain the next element, from the root on.
    open_groups: [SchemaElement; DEPTH_MAX],
    depth: usize,
}

/// A column: a field without fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Number of its outermost field.
    field: usize,
    pub(super) is_read: bool,
    /// How its values are found, if it contains bytes or text and is in no list.
    pub(super) values: Option<SampleColumn>,
    /// Number of lists that contain it, one in the other.
    pub(super) lists: u32,
    /// Definition level of values that are not null.
    pub(super) level: u32,
    /// Length of its chunks.
    pub(super) bytes: u64,
    /// Number of its values in the current row group that are null.
    pub(super) nulls: u64,
    file_part: Option<FilePart>,
}

/// What a column of a group may be of files, such as Hugging Face's images and sounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilePart {
    Content,
    Path,
}

impl Column {
    /// Whether one of two neighbours has paths of files of which the other has no contents. Files that are missing have no paths.
    fn are_elsewhere(first: &Column, second: &Column) -> bool {
        let (content, path) = match (first.file_part, second.file_part) {
            (Some(FilePart::Content), Some(FilePart::Path)) => (first, second),
            (Some(FilePart::Path), Some(FilePart::Content)) => (second, first),
            _ => return false,
        };
        first.field == second.field && path.nulls < content.nulls
    }

    /// Whether it contains bytes without another meaning, and is in no list.
    pub(super) fn is_binary(&self) -> bool {
        self.values.is_some_and(|values| !values.is_text)
    }
}

/// How the values of a column are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleColumn {
    /// Length of each value; `None` if lengths vary.
    pub(super) value_bytes: Option<u64>,
    /// Definition level of values that are not null.
    pub(super) level: u32,
    /// Whether values are text or numbers, so that they cannot be files.
    pub(super) is_text: bool,
}

/// A field of the root: a column, or a group of columns.
struct OutermostField {
    /// Range in the names.
    name: Range<usize>,
    is_read: bool,
    /// Whether it has paths of files that are not in the table.
    is_elsewhere: bool,
}

impl Schema {
    pub(super) fn clear(&mut self) {
        self.columns.clear();
        self.fields.clear();
        self.names.clear();
        self.element = SchemaElement::default();
        self.depth = 0;
    }

    /// Receives a value of the list of elements. Only the columns of fields called `selected` are read, or all if there are none.
    pub(super) fn receive(
        &mut self,
        path: &[i16],
        value: ThriftValue<'_>,
        selected: &[String],
    ) -> Result<(), ThriftError> {
        let element = &mut self.element;
        match (path, value) {
            ([1], ThriftValue::Int(code)) => element.physical = Some(code),
            ([2], ThriftValue::Int(bytes)) => element.length = bytes,
            ([3], ThriftValue::Int(code)) => element.repetition = code,
            ([4], ThriftValue::Binary(name)) if element.name_start.is_none() => {
                element.name_start = Some(self.names.len());
                self.names
                    .push_str(&String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]));
            }
            ([5], _) => element.children = value.unsigned()?,
            ([6 | 10, ..], _) => element.is_annotated = true,
            ([], ThriftValue::End) => self.end_element(selected)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| &self.names[field.name.clone()] == name)
    }

    /// The names of the first few outermost fields.
    pub(super) fn names(&self) -> String {
        let mut text = String::new();
        for field in self.fields.iter().take(FIELDS_SHOWN_MAX) {
            let comma = if text.is_empty() { "" } else { ", " };
            let name = self.names[field.name.clone()].escape_debug();
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}`{name}`");
        }
        match self.fields.len().saturating_sub(FIELDS_SHOWN_MAX) {
            0 if text.is_empty() => text.push_str("nothing"),
            0 => {}
            more => _ = write!(text, " and {more} more"),
        }
        text
    }

    /// The outermost fields.
    pub(super) fn members(&self) -> Vec<FileMember> {
        let member = |field: &OutermostField| FileMember {
            name: self.names[field.name.clone()].to_string(),
            stored_bytes: 0,
            is_read: field.is_read,
            is_elsewhere: field.is_elsewhere,
        };
        let mut members: Vec<FileMember> = self.fields.iter().map(member).collect();
        for column in &self.columns {
            let member = &mut members[column.field];
            member.stored_bytes = member.stored_bytes.saturating_add(column.bytes);
        }
        members
    }

    /// Name of an outermost field that is read and has paths of files that are not in the table.
    pub(super) fn elsewhere(&self) -> Option<&str> {
        let field = self.fields.iter().find(|field| field.is_read && field.is_elsewhere)?;
        Some(&self.names[field.name.clone()])
    }

    /// Ends a row group, whose values were counted.
    pub(super) fn end_row_group(&mut self) {
        for [first, second] in self.columns.array_windows() {
            self.fields[first.field].is_elsewhere |= Column::are_elsewhere(first, second);
        }
        self.columns.iter_mut().for_each(|column| column.nulls = 0);
    }

    /// Bytes of the columns that `counts` accepts.
    pub(super) fn column_bytes(&self, counts: fn(&Column) -> bool) -> u64 {
        let columns = self.columns.iter().filter(|column| counts(column));
        columns.fold(0, |sum, column| sum.saturating_add(column.bytes))
    }

    fn end_element(&mut self, selected: &[String]) -> Result<(), ThriftError> {
        let mut element = std::mem::take(&mut self.element);
        let parent = self.open_groups[..self.depth].last();
        if let Some(parent) = parent {
            // The repetition of the root has no meaning, so levels begin below it.
            element.lists = parent.lists + u32::from(element.repetition == REPEATED);
            element.level =
                parent.level + u32::from([OPTIONAL, REPEATED].contains(&element.repetition));
            let name = element.name_start.unwrap_or(self.names.len())..self.names.len();
            if self.depth == 1 {
                let text = &self.names[name.clone()];
                let is_read = selected.is_empty() || selected.iter().any(|chosen| chosen == text);
                self.fields.push(OutermostField { name, is_read, is_elsewhere: false });
            } else {
                element.file_part = match &self.names[name.clone()] {
                    FILE_CONTENT => Some(FilePart::Content),
                    FILE_PATH => Some(FilePart::Path),
                    _ => None,
                };
                self.names.truncate(name.start);
            }
        }
        if element.children > 0 {
            *self.open_groups.get_mut(self.depth).ok_or(ThriftError::Broken)? = element;
            self.depth += 1;
            return Ok(());
        }
        if parent.is_some()
            && let Some(field) = self.fields.len().checked_sub(1)
        {
            if self.columns.len() == COLUMNS_MAX {
                return Err(ThriftError::Refused(format!("more than {COLUMNS_MAX} columns")));
            }
            self.columns.push(element.column(field, self.fields[field].is_read));
        }
        // The element is complete, and so are the groups whose last element it was.
        while let Some(last) = self.depth.checked_sub(1) {
            self.open_groups[last].children -= 1;
            if self.open_groups[last].children > 0 {
                break;
            }
            self.depth = last;
        }
        Ok(())
    }
}

/// `SchemaElement`
#[derive(Clone, Copy, Default)]
struct SchemaElement {
    physical: Option<i64>,
    length: i64,
    repetition: i64,
    /// Start of its name in the names.
    name_start: Option<usize>,
    /// Number of fields in this group that have not been parsed yet.
    children: u64,
    /// Whether the bytes have another meaning, such as text or a decimal number.
    is_annotated: bool,
    file_part: Option<FilePart>,
    lists: u32,
    level: u32,
}

impl SchemaElement {
    fn column(&self, field: usize, is_read: bool) -> Column {
        let value_bytes = match self.physical {
            Some(BYTE_ARRAY) => Some(None),
            // Annotated, it is a number.
            Some(FIXED_LEN_BYTE_ARRAY) if !self.is_annotated => {
                u64::try_from(self.length).ok().filter(|&len| len > 0).map(Some)
            }
            _ => None,
        };
        let values = value_bytes.filter(|_| self.lists == 0).map(|value_bytes| SampleColumn {
            value_bytes,
            level: self.level,
            is_text: self.is_annotated,
        });
        Column {
            field,
            is_read,
            values,
            lists: self.lists,
            level: self.level,
            bytes: 0,
            nulls: 0,
            file_part: self.file_part,
        }
    }
}
