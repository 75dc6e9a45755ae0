//! `csv`: one row of numbers per sample, as `pandas.to_csv(index=False, header=False)` writes it and DLIO generates it
//! (`csv_generator.py`). Unlike in DLIO, each row has different content. Compressed files have no suffix and are
//! recognised by their first bytes.
//!
//! Files of other programs can be read too, with quoted numbers, spaces, CRLF, blank lines and missing numbers (as NaN).
//! DLIO 2.0.0 wrote an index before each row and the column numbers above the rows; such files can also be read, as can files
//! without the index.

use super::text::{self, LineMarks, NumberText, RowEnd, Syntax, Values};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "csv",
    summary: "Numbers as text, one row per sample; rows are found by reading from the start of the file.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::Undescribed,
        Ability::Sequential,
    ],
};

const LINE: LineMarks = LineMarks { open: b"", close: b"\n" };

pub(super) static FORMAT: Format = Format {
    unpacks_streams: true,
    ..Format::new(
        text::entry(&MEMBER, |shape, encoding| text::file_bytes(LINE, shape, encoding)),
        |shape, encoding, content, sink| text::encode(LINE, shape, encoding, content, sink),
        text::cursor::<Fields>,
    )
};

/// Least number of columns whose numbers are taken for names in files without an index. The numbers of fewer columns can be a row.
const UNINDEXED_COLUMNS_MIN: usize = 3;

/// State of the parser in a row.
#[derive(Default)]
struct Fields {
    token: NumberText,
}

impl Syntax for Fields {
    fn begin(&mut self) {
        self.token.clear();
    }

    fn has_heading(text: &[u8]) -> bool {
        // The column numbers that pandas writes. The first column has no name if it is the index. The last name may be incomplete.
        let end = memchr::memchr(b'\n', text);
        let line = text[..end.unwrap_or(text.len())].trim_ascii_end();
        let (names, columns_min) = match line.strip_prefix(b",") {
            Some(names) => (names, 1),
            None => (line, UNINDEXED_COLUMNS_MIN),
        };
        let names = names.split(|byte| *byte == b',');
        let columns = names.clone().count() - usize::from(end.is_none());
        let is_number =
            |(i, name): (usize, &[u8])| itoa::Buffer::new().format(i).as_bytes() == name;
        columns_min <= columns && names.take(columns).enumerate().all(is_number)
    }

    fn read(&mut self, text: &[u8], values: &mut Values) -> Result<(usize, RowEnd), FormatError> {
        let mut offset = 0;
        loop {
            if values.is_full() {
                return Ok((offset, RowEnd::Full));
            }
            let rest = &text[offset..];
            let Some(end) = memchr::memchr2(b',', b'\n', rest) else {
                self.token.push(rest)?;
                return Ok((text.len(), RowEnd::NeedsBytes));
            };
            self.push_field(offset, &rest[..end], values)?;
            offset += end + 1;
            if rest[end] == b'\n' {
                return Ok((offset, RowEnd::LineEnd));
            }
        }
    }

    fn end(&mut self, values: &mut Values) -> Result<(), FormatError> {
        self.push_field(0, &[], values)
    }
}

impl Fields {
    /// Adds the value of the field that ends with `bytes`.
    fn push_field(
        &mut self,
        offset: usize,
        bytes: &[u8],
        values: &mut Values,
    ) -> Result<(), FormatError> {
        let field = self.token.finish(bytes)?.trim_ascii();
        let unquoted = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
        let unquoted = unquoted.unwrap_or(field).trim_ascii();
        match unquoted {
            [] => values.push_missing(offset, field)?,
            _ => values.push(offset, unquoted)?,
        }
        self.token.clear();
        Ok(())
    }
}
