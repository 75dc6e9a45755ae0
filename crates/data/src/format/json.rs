//! `json`: JSON lines. Each line is one sample, an array of numbers.
//!
//! Files written by `json.dumps(x.tolist())` or `pandas.to_json(orient="records", lines=True)` can be read too: nested
//! arrays are flattened, and objects are read as their values. `NaN`, `Infinity` and `null` are floats, as in Python.

use super::text::{self, LineMarks, NumberText, RowEnd, Syntax, Values};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, Member};

static MEMBER: Member = Member {
    name: "json",
    summary: "Numbers as JSON lines, one array per sample; lines are found by reading from the start of the file.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::Undescribed,
        Ability::Sequential,
    ],
};

const LINE: LineMarks = LineMarks { open: b"[", close: b"]\n" };

/// Upper limit on the nesting of arrays and objects.
const DEPTH_MAX: u32 = 16;

pub(super) static FORMAT: Format = Format {
    unpacks_streams: true,
    ..Format::new(
        text::entry(&MEMBER, |shape, encoding| text::file_bytes(LINE, shape, encoding)),
        |shape, encoding, content, sink| text::encode(LINE, shape, encoding, content, sink),
        text::cursor::<Tokens>,
    )
};

/// Tokens that may come next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum NextToken {
    #[default]
    Value,
    /// A value, or the end of an array that was just opened.
    First,
    /// A key.
    Key,
    /// A key, or the end of an object that was just opened.
    FirstKey,
    InKey,
    /// After a backslash.
    InKeyEscaped,
    Colon,
    /// A comma, or the end of the open array or object.
    After,
    /// The end of the line.
    LineEnd,
}

/// State of the parser in a line.
#[derive(Default)]
struct Tokens {
    next: NextToken,
    depth: u32,
    /// One bit per open array or object, the innermost in the lowest bit; set for objects.
    objects: u32,
    token: NumberText,
}

impl Syntax for Tokens {
    fn begin(&mut self) {
        self.next = NextToken::Value;
        self.depth = 0;
        self.objects = 0;
        self.token.clear();
    }

    fn read(&mut self, text: &[u8], values: &mut Values) -> Result<(usize, RowEnd), FormatError> {
        let mut offset = 0;
        loop {
            if values.is_full() {
                return Ok((offset, RowEnd::Full));
            }
            let Some(&byte) = text.get(offset) else { return Ok((offset, RowEnd::NeedsBytes)) };
            if self.begins_number(byte) {
                let rest = &text[offset..];
                let Some(end) = rest.iter().position(|&byte| ends_number(byte)) else {
                    self.token.push(rest)?;
                    return Ok((text.len(), RowEnd::NeedsBytes));
                };
                self.push_number(offset, &rest[..end], values)?;
                offset += end;
                continue;
            }
            let used = self
                .read_punctuation(&text[offset..])
                .map_err(|message| FormatError::new(offset as u64, message))?;
            offset += used;
            if self.next == NextToken::Value && self.depth == 0 && byte == b'\n' {
                return Ok((offset, RowEnd::LineEnd));
            }
        }
    }

    fn end(&mut self, _values: &mut Values) -> Result<(), FormatError> {
        match self.next {
            NextToken::LineEnd => {
                self.next = NextToken::Value;
                Ok(())
            }
            _ => Err(FormatError::new(0, "the file ends within a JSON value")),
        }
    }
}

impl Tokens {
    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn begins_number(&self, byte: u8) -> bool {
        let is_allowed = matches!(self.next, NextToken::Value | NextToken::First) && self.depth > 0;
        let is_punctuation = ends_number(byte) || matches!(byte, b'[' | b'{' | b'"' | b':');
        is_allowed && (!self.token.is_empty() || !is_punctuation)
    }

    fn push_number(
        &mut self,
        offset: usize,
        bytes: &[u8],
        values: &mut Values,
    ) -> Result<(), FormatError> {
        let field = self.token.finish(bytes)?;
        match field {
            b"null" => values.push_missing(offset, field)?,
            _ => values.push(offset, field)?,
        }
        self.token.clear();
        self.next = NextToken::After;
        Ok(())
    }

    /// Reads a token other than a number, and returns the number of bytes used.
    fn read_punctuation(&mut self, text: &[u8]) -> Result<usize, String> {
        let byte = text[0];
        self.next = match (self.next, byte) {
            (NextToken::InKey, _) => return Ok(self.read_key(text)),
            (NextToken::InKeyEscaped, _) if byte != b'\n' => NextToken::InKey,
            (next, b' ' | b'\t' | b'\r') => next,
            (NextToken::LineEnd, b'\n') => NextToken::Value,
            (_, b'\n') => return Err("the line ends within a JSON value".to_string()),
            (NextToken::Value | NextToken::First, b'[') => self.open(0)?,
            (NextToken::Value | NextToken::First, b'{') => self.open(1)?,
            (NextToken::First | NextToken::After, b']') if !self.is_in_object() => self.close(),
            (NextToken::FirstKey | NextToken::After, b'}') if self.is_in_object() => self.close(),
            (NextToken::After, b',') if self.is_in_object() => NextToken::Key,
            (NextToken::After, b',') => NextToken::Value,
            (NextToken::FirstKey | NextToken::Key, b'"') => NextToken::InKey,
            (NextToken::Colon, b':') => NextToken::Value,
            (NextToken::Value, _) if self.depth == 0 => {
                return Err(format!("expected an array, found `{}`", byte.escape_ascii()));
            }
            (NextToken::LineEnd, _) => {
                return Err(format!("`{}` follows the array of its line", byte.escape_ascii()));
            }
            (NextToken::Value | NextToken::First, b'"') => {
                return Err("a string instead of a number".to_string());
            }
            _ => return Err(format!("unexpected `{}`", byte.escape_ascii())),
        };
        Ok(1)
    }

    /// Reads a key up to its end or the end of the text, and returns the number of bytes used.
    fn read_key(&mut self, text: &[u8]) -> usize {
        let Some(end) = memchr::memchr3(b'"', b'\\', b'\n', text) else { return text.len() };
        match text[end] {
            b'"' => self.next = NextToken::Colon,
            b'\\' => self.next = NextToken::InKeyEscaped,
            _ => {
                // The newline is not used here, so that the next step reports it as unexpected.
                self.next = NextToken::Colon;
                return end;
            }
        }
        end + 1
    }

    fn open(&mut self, object: u32) -> Result<NextToken, String> {
        if self.depth == DEPTH_MAX {
            return Err(format!("arrays more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        self.objects = self.objects << 1 | object;
        Ok(if object == 1 { NextToken::FirstKey } else { NextToken::First })
    }

    fn close(&mut self) -> NextToken {
        self.depth -= 1;
        self.objects >>= 1;
        if self.depth == 0 { NextToken::LineEnd } else { NextToken::After }
    }
}

fn ends_number(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
}
