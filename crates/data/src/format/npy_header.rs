//! The header of an npy array, written as numpy writes it and read as numpy specifies it
//! (`numpy/lib/format.py`, versions 1 to 3).
//!
//! Samples are the last axis, as DLIO lays them out: shape `(d1, …, dn, samples)`.

use super::FormatError;
use super::decimal::digits;
use feedrate_spec::shape::{DIMS_MAX, Dims, Element, FileShape};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The array's bytes start at a multiple of this.
const ALIGN_BYTES: usize = 64;
/// numpy leaves room for the first axis to grow to this many digits.
const GROWTH_DIGITS: u64 = 21;
/// The longest header that is read; numpy itself stops at 10 000.
const TEXT_BYTES_MAX: usize = 1 << 16;
/// Magic, version 1.0 and its length field.
const PREFIX_BYTES: usize = 10;
/// The same with the longest length field.
const PREFIX_BYTES_MAX: usize = 12;

/// The header of an array of this shape, version 1.0.
pub(super) fn write(shape: &FileShape) -> Vec<u8> {
    let axes: Vec<String> = axes(shape).map(|axis| axis.to_string()).collect();
    let axes = if axes.len() == 1 { format!("{},", axes[0]) } else { axes.join(", ") };
    let descr = shape.element.npy_descr();
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    let bytes = header_bytes(shape);
    let mut header = Vec::with_capacity(bytes);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    // At most 9 axes of 20 digits: far below 65 536.
    header.extend_from_slice(&((bytes - PREFIX_BYTES) as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(bytes - 1, b' ');
    header.push(b'\n');
    header
}

/// Bytes of the whole array with its header. Does not allocate.
pub(super) fn array_bytes(shape: &FileShape) -> u64 {
    (header_bytes(shape) as u64).saturating_add(shape.payload_bytes())
}

/// numpy leaves room for the first axis to grow, then pads; by a whole line where nothing needs padding.
fn header_bytes(shape: &FileShape) -> usize {
    let count = axes(shape).count();
    let commas = if count == 1 { 1 } else { 2 * (count - 1) };
    let axes_bytes = axes(shape).map(digits).sum::<u64>() as usize + commas;
    let growth = GROWTH_DIGITS.saturating_sub(axes(shape).next().map_or(1, digits)) as usize;
    let fixed = "{'descr': '', 'fortran_order': False, 'shape': (), }\n".len();
    let text = fixed + shape.element.npy_descr().len() + axes_bytes + growth;
    (PREFIX_BYTES + text) / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES
}

fn axes(shape: &FileShape) -> impl Iterator<Item = u64> {
    shape.dims.as_slice().iter().copied().chain([shape.samples])
}

/// A header of which more and more is known.
pub(super) enum Progress {
    /// The header must be this long before more can be said.
    Needs(usize),
    /// Read: the shape.
    Done(FileShape),
}

/// Read a header from the first bytes of an array, which may be too few.
pub(super) fn read(bytes: &[u8]) -> Result<Progress, FormatError> {
    let Some(start) = bytes.get(..8) else {
        return Ok(Progress::Needs(8));
    };
    if &start[..6] != MAGIC {
        return Err(FormatError::new(0, "not an npy array: it does not start with `\\x93NUMPY`"));
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => {
            return Err(FormatError::new(6, format!("npy version `{version}` is not known")));
        }
    };
    let text_start = 8 + length_bytes;
    let Some(length) = bytes.get(8..text_start) else {
        return Ok(Progress::Needs(text_start));
    };
    let length = length.iter().rev().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    if length > TEXT_BYTES_MAX {
        let message = format!("npy header of {length} bytes, more than {TEXT_BYTES_MAX}");
        return Err(FormatError::new(8, message));
    }
    match bytes.get(text_start..text_start + length) {
        None => Ok(Progress::Needs(text_start + length)),
        Some(text) => {
            let mut parser = Parser { text, at: 0, start: text_start as u64 };
            parser.header().map(Progress::Done)
        }
    }
}

/// Memory that the longest header needs.
pub(super) const BYTES_MAX: usize = PREFIX_BYTES_MAX + TEXT_BYTES_MAX;

/// Parser of the Python dictionary in a header.
struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    start: u64,
}

#[derive(Default)]
struct Fields {
    element: Option<Element>,
    c_order: Option<()>,
    axes: Option<([u64; DIMS_MAX + 1], usize)>,
}

impl<'t> Parser<'t> {
    fn header(&mut self) -> Result<FileShape, FormatError> {
        self.expect(b'{')?;
        let mut fields = Fields::default();
        while self.peek() != Some(b'}') {
            self.field(&mut fields)?;
            if self.peek() != Some(b'}') {
                self.expect(b',')?;
            }
        }
        let Fields { element: Some(element), c_order: Some(()), axes: Some((axes, count)) } =
            fields
        else {
            return Err(self.error("npy header without `descr`, `fortran_order` and `shape`"));
        };
        let Some((&samples, dims)) = axes[..count].split_last() else {
            return Err(self.error("array of shape `()`, which has no axis of samples"));
        };
        let dims = Dims::new(dims).ok_or_else(|| self.error("too many axes"))?;
        Ok(FileShape { dims, element, samples })
    }

    fn field(&mut self, fields: &mut Fields) -> Result<(), FormatError> {
        let key = self.string()?;
        self.expect(b':')?;
        match key {
            b"descr" => fields.element = Some(self.element()?),
            b"fortran_order" => fields.c_order = Some(self.c_order()?),
            b"shape" => fields.axes = Some(self.axes()?),
            _ => return Err(self.error("unknown key in the npy header")),
        }
        Ok(())
    }

    fn element(&mut self) -> Result<Element, FormatError> {
        if self.peek() == Some(b'[') {
            return Err(self.error("structured dtype, which cannot be read as samples"));
        }
        let descr = self.string()?;
        let known = Element::ALL.into_iter().find(|element| {
            let known = element.npy_descr().as_bytes();
            let same_order =
                descr.first() == known.first() || matches!(descr.first(), Some(b'<' | b'='));
            same_order && descr.get(1..) == known.get(1..)
        });
        known.ok_or_else(|| {
            let shown = String::from_utf8_lossy(&descr[..descr.len().min(32)]);
            self.error(match descr {
                [_, b'O', ..] | [b'O', ..] => {
                    format!("dtype `{shown}` holds Python objects: they are refused, as they run code when read")
                }
                [b'>', ..] => format!("dtype `{shown}` is big-endian, which is not supported"),
                _ => format!("dtype `{shown}` is not one of the supported element types"),
            })
        })
    }

    fn c_order(&mut self) -> Result<(), FormatError> {
        self.skip_space();
        if self.word(b"False") {
            return Ok(());
        }
        let message = if self.word(b"True") {
            "array in Fortran order, which is not supported: save it with `numpy.ascontiguousarray`"
        } else {
            "`fortran_order` is neither True nor False"
        };
        Err(self.error(message))
    }

    fn axes(&mut self) -> Result<([u64; DIMS_MAX + 1], usize), FormatError> {
        self.expect(b'(')?;
        let mut axes = [0; DIMS_MAX + 1];
        let mut count = 0;
        while self.peek() != Some(b')') {
            let axis = self.number()?;
            let Some(place) = axes.get_mut(count) else {
                return Err(self.error(format!("array of more than {} axes", DIMS_MAX + 1)));
            };
            *place = axis;
            count += 1;
            if self.peek() != Some(b')') {
                self.expect(b',')?;
            }
        }
        self.at += 1;
        Ok((axes, count))
    }

    /// Digits, with the `L` that Python 2 wrote behind them.
    fn number(&mut self) -> Result<u64, FormatError> {
        self.skip_space();
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.text[self.at..self.at + digits];
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.error("the shape holds what is not a number"))?;
        self.at += digits;
        self.word(b"L");
        Ok(number)
    }

    fn string(&mut self) -> Result<&'t [u8], FormatError> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.error("a string was expected"));
        };
        let (text, from) = (self.text, self.at + 1);
        let Some(len) = text[from..].iter().position(|&byte| byte == quote) else {
            return Err(self.error("a string without end"));
        };
        self.at = from + len + 1;
        Ok(&text[from..from + len])
    }

    fn word(&mut self, word: &[u8]) -> bool {
        let there = self.text[self.at..].starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), FormatError> {
        if self.peek() != Some(byte) {
            return Err(self.error(format!("`{}` was expected in the npy header", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn error(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.start + self.at as u64, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64], element: Element, samples: u64) -> FileShape {
        FileShape { dims: Dims::new(dims).unwrap(), element, samples }
    }

    fn header_of(text: &str) -> Vec<u8> {
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend_from_slice(&(text.len() as u16).to_le_bytes());
        header.extend_from_slice(text.as_bytes());
        header
    }

    fn read_text(text: &str) -> Result<FileShape, String> {
        match read(&header_of(text)) {
            Ok(Progress::Done(shape)) => Ok(shape),
            Ok(Progress::Needs(_)) => Err("needs more".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for element in Element::ALL {
            for dims in [&[][..], &[0], &[1024, 1024], &[1, 2, 3, 4, 5, 6, 7, u64::MAX]] {
                let shape = shape(dims, element, 3);
                let header = write(&shape);
                assert_eq!(header.len() % 64, 0);
                assert_eq!(
                    array_bytes(&shape),
                    shape.payload_bytes().saturating_add(header.len() as u64)
                );
                assert!(matches!(read(&header), Ok(Progress::Done(read)) if read == shape));
                for len in 0..header.len() {
                    assert!(matches!(read(&header[..len]), Ok(Progress::Needs(n)) if n > len));
                }
            }
        }
    }

    #[test]
    fn other_writers_headers_are_read() {
        let expected = Ok(shape(&[4, 5], Element::Float32, 2));
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5, 2), }   \n",
            "{\"shape\":(4,5,2),\"descr\":\"=f4\",\"fortran_order\":False}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 5L, 2L,)}",
        ] {
            assert_eq!(read_text(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let with = |descr: &str, order: &str, axes: &str| {
            let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {axes}, }}");
            read_text(&text).unwrap_err()
        };
        insta::assert_snapshot!([
            with("'|O'", "False", "(1,)"),
            with("'>f4'", "False", "(1,)"),
            with("'<U5'", "False", "(1,)"),
            with("[('a', '<f4')]", "False", "(1,)"),
            with("'<f4'", "True", "(2, 2)"),
            with("'<f4'", "None", "(2, 2)"),
            with("'<f4'", "False", "()"),
            with("'<f4'", "False", "(-1, 2)"),
            with("'<f4'", "False", "(1,1,1,1,1,1,1,1,1,1)"),
            with("'<f4'", "False", "(99999999999999999999, 2)"),
            with("'<f4", "False", "(1, 2)"),
            read_text("{'descr': '<f4'}").unwrap_err(),
            read_text("{'a': 1}").unwrap_err(),
            read_text("").unwrap_err(),
        ].join("\n"), @r#"
        at byte 24: dtype `|O` holds Python objects: they are refused, as they run code when read
        at byte 25: dtype `>f4` is big-endian, which is not supported
        at byte 25: dtype `<U5` is not one of the supported element types
        at byte 20: structured dtype, which cannot be read as samples
        at byte 48: array in Fortran order, which is not supported: save it with `numpy.ascontiguousarray`
        at byte 44: `fortran_order` is neither True nor False
        at byte 64: array of shape `()`, which has no axis of samples
        at byte 61: the shape holds what is not a number
        at byte 80: array of more than 9 axes
        at byte 61: the shape holds what is not a number
        at byte 27: dtype `<f4, ` is not one of the supported element types
        at byte 25: npy header without `descr`, `fortran_order` and `shape`
        at byte 15: unknown key in the npy header
        at byte 10: `{` was expected in the npy header
        "#);
    }
}
