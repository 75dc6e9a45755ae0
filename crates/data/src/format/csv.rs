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
    abilities: &[Ability::KeepsOpen, Ability::EstimatedSize, Ability::Undescribed],
};

const LINE: LineMarks = LineMarks { open: b"", close: b"\n" };

pub(super) static FORMAT: Format = Format::new(
    text::entry(&MEMBER, |shape, encoding| text::file_bytes(LINE, shape, encoding)),
    |shape, encoding, content, sink| text::encode(LINE, shape, encoding, content, sink),
    text::cursor::<Fields>,
);

/// Position in a row.
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
        let mut at = 0;
        loop {
            if values.is_full() {
                return Ok((at, RowEnd::Full));
            }
            let rest = &text[at..];
            let Some(end) = memchr::memchr2(b',', b'\n', rest) else {
                self.token.push(rest)?;
                return Ok((text.len(), RowEnd::NeedsBytes));
            };
            self.field(at, &rest[..end], values)?;
            at += end + 1;
            if rest[end] == b'\n' {
                return Ok((at, RowEnd::LineEnd));
            }
        }
    }

    fn end(&mut self, values: &mut Values) -> Result<(), FormatError> {
        self.field(0, &[], values)
    }
}

impl Fields {
    /// Takes the field that ends with `bytes`.
    fn field(&mut self, at: usize, bytes: &[u8], values: &mut Values) -> Result<(), FormatError> {
        let field = self.token.finish(bytes)?.trim_ascii();
        let bare = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
        let bare = bare.unwrap_or(field).trim_ascii();
        match bare {
            [] => values.push_missing(at, field)?,
            _ => values.push(at, bare)?,
        }
        self.token.clear();
        Ok(())
    }
}
