//! `csv`: one row of numbers per sample, as `pandas.to_csv(index=False, header=False)` writes it and DLIO generates it
//! (`csv_generator.py`). Unlike in DLIO, each row has different content. Compressed files have no suffix and are
//! recognised by their first bytes.
//!
//! Files of other programs can be read too, with quoted numbers, spaces, CRLF, blank lines and missing numbers (as NaN).
//! DLIO 2.0.0 wrote an index before each row and the column numbers above the rows; such files can also be read.

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
        // The column numbers that pandas writes. The first column, the index, has no name.
        text.strip_prefix(b",0,1").is_some_and(|rest| matches!(rest.first(), Some(b',' | b'\n')))
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
