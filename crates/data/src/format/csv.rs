//! `csv`: a row a sample, its numbers in columns, as `pandas.to_csv(index=False, header=False)` writes it and DLIO
//! generates it (`csv_generator.py`); but each row has content of its own, and compressed files are recognised by
//! their bytes, as they have no suffix.
//!
//! Reads what others write too: quoted numbers, spaces, CRLF, blank lines, missing numbers as NaN; and the rows of
//! DLIO 2.0.0, which wrote their index before them and the columns' above.

use super::text::{self, LineMarks, NumberText, RowEnd, Syntax, Values};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "csv",
    summary: "Numbers as text, a row a sample; rows are found by reading from the start of the file.",
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
        // As pandas counts columns; the first, of indices, has no name.
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
                self.token.keep(rest)?;
                return Ok((text.len(), RowEnd::GoesOn));
            };
            self.field(at, &rest[..end], values)?;
            at += end + 1;
            if rest[end] == b'\n' {
                return Ok((at, RowEnd::Over));
            }
        }
    }

    fn end(&mut self, values: &mut Values) -> Result<(), FormatError> {
        self.field(0, &[], values)
    }
}

impl Fields {
    /// The field that ends in `bytes`.
    fn field(&mut self, at: usize, bytes: &[u8], values: &mut Values) -> Result<(), FormatError> {
        let field = self.token.whole(bytes)?.trim_ascii();
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
