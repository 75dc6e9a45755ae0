//! Reads and writes the header of an npy array, as numpy specifies it (`numpy/lib/format.py`, versions 1 to 3).
//!
//! Samples are along the last axis, as in DLIO: the shape is `(d1, …, dn, samples)`.
//!
//! Long because it parses the Python literal of every kind of dtype.

use super::decimal::digit_count;
use super::{FormatError, shape_of_bytes};
use feedrate_spec::shape::{DIMS_MAX, Dims, Element, FileShape};

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Kind of arrays that are read without being unpickled, because that would run their code.
pub(super) const PICKLED: &str = "pickled array";
/// The array's bytes start at a multiple of this length.
const ALIGN_BYTES: usize = 64;
/// numpy pads the header so that the first axis can grow to this number of digits.
const GROWTH_DIGITS: u64 = 21;
/// Upper limit on the header text that is read. The limit of numpy is 10 000.
const TEXT_BYTES_MAX: usize = 1 << 16;
/// Length of the magic bytes, version 1.0 and its length field.
const PREFIX_BYTES: usize = 10;
/// Length of the magic bytes, the version and the longest length field.
const PREFIX_BYTES_MAX: usize = 12;

/// The header, version 1.0, of an array of this shape.
pub(super) fn write(shape: &FileShape) -> Vec<u8> {
    let extents: Vec<String> = axes(shape).map(|axis| axis.to_string()).collect();
    let axes = if extents.len() == 1 { format!("{},", extents[0]) } else { extents.join(", ") };
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

/// Length of an array with its header. Does not allocate.
pub(super) fn array_bytes(shape: &FileShape) -> u64 {
    (header_bytes(shape) as u64).saturating_add(shape.payload_bytes())
}

/// Length of the header. numpy adds room for the first axis to grow, then pads to the next multiple of [`ALIGN_BYTES`]. If the
/// length already is a multiple, it pads by a whole [`ALIGN_BYTES`].
fn header_bytes(shape: &FileShape) -> usize {
    let count = axes(shape).count();
    let commas = if count == 1 { 1 } else { 2 * (count - 1) };
    let axes_bytes = axes(shape).map(digit_count).sum::<u64>() as usize + commas;
    let growth = GROWTH_DIGITS.saturating_sub(axes(shape).next().map_or(1, digit_count)) as usize;
    let fixed = "{'descr': '', 'fortran_order': False, 'shape': (), }\n".len();
    let text = fixed + shape.element.npy_descr().len() + axes_bytes + growth;
    (PREFIX_BYTES + text) / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES
}

fn axes(shape: &FileShape) -> impl Iterator<Item = u64> {
    shape.dims.as_slice().iter().copied().chain([shape.samples])
}

/// Progress of reading a header.
pub(super) enum HeaderProgress {
    /// At least this number of bytes is needed.
    Needs(usize),
    /// The header is complete.
    Done(ArrayHeader),
}

/// Content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayHeader {
    /// Shape of the array. Its bytes are those in the file: numbers may be big-endian, and an array in Fortran order has its axes in
    /// the order of the header. Elements that are not plain numbers are sequences of bytes.
    pub(super) shape: FileShape,
    /// Whether samples are not along the last axis, so that the array can only be read as one sample.
    pub(super) is_single: bool,
    /// Whether the array is pickled, so that its length is unknown.
    pub(super) is_pickled: bool,
}

/// Reads a header from the first bytes of an array.
pub(super) fn read(bytes: &[u8]) -> Result<HeaderProgress, FormatError> {
    let Some(start) = bytes.get(..8) else {
        return Ok(HeaderProgress::Needs(8));
    };
    if &start[..6] != MAGIC {
        return Err(FormatError::new(0, "not an npy array: it does not start with `\\x93NUMPY`"));
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => {
            return Err(FormatError::new(6, format!("unsupported npy version `{version}`")));
        }
    };
    let text_start = 8 + length_bytes;
    let Some(length_field) = bytes.get(8..text_start) else {
        return Ok(HeaderProgress::Needs(text_start));
    };
    let length =
        length_field.iter().rev().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    if length > TEXT_BYTES_MAX {
        let message = format!("npy header of {length} bytes, more than {TEXT_BYTES_MAX}");
        return Err(FormatError::new(8, message));
    }
    match bytes.get(text_start..text_start + length) {
        None => Ok(HeaderProgress::Needs(text_start + length)),
        Some(text) => {
            let start = text_start as u64;
            Dictionary { text, token_start: 0, token_end: 0, start }
                .read()
                .map(HeaderProgress::Done)
        }
    }
}

/// Upper limit on the length of a header.
pub(super) const BYTES_MAX: usize = PREFIX_BYTES_MAX + TEXT_BYTES_MAX;

/// Reads the Python dictionary in a header.
struct Dictionary<'t> {
    text: &'t [u8],
    /// Start and end of the last token.
    token_start: usize,
    token_end: usize,
    /// Offset of the text in the array.
    start: u64,
}

/// The header of an array with these elements and axes.
fn array_header(item: ItemType, is_fortran: bool, axes: &Axes) -> ArrayHeader {
    let is_pickled = item.is_pickled;
    let split = axes.extents.get(..axes.count).and_then(<[u64]>::split_last);
    // An empty array is one sample, too.
    let can_split = |(samples, _): &(&u64, &[u64])| **samples > 0 && !is_fortran && !is_pickled;
    let in_samples = split.filter(can_split).and_then(|(&samples, dims)| {
        Some(FileShape { dims: Dims::new(dims)?, element: item.number?, samples })
    });
    if let Some(shape) = in_samples {
        return ArrayHeader { shape, is_single: false, is_pickled };
    }
    let mut extents = [0; DIMS_MAX + 2];
    extents[..=DIMS_MAX].copy_from_slice(&axes.extents);
    // Elements that are not plain numbers add an axis of bytes.
    let mut count = axes.count;
    if item.number.is_none()
        && let Some(extent) = extents.get_mut(count)
    {
        *extent = item.bytes;
        count += 1;
    }
    let dims = extents.get(..count).and_then(Dims::new);
    let plain = shape_of_bytes(axes.elements.saturating_mul(item.bytes), 1);
    let element = item.number.unwrap_or_default();
    let shape = dims.map_or(plain, |dims| FileShape { dims, element, samples: 1 });
    ArrayHeader { shape, is_single: true, is_pickled }
}

/// The type that a text such as `<f4` describes; `None` if it is unknown.
fn item_type(descr: &[u8]) -> Option<ItemType> {
    let order = [&b"<"[..], b">", b"=", b"|"].into_iter().find(|order| descr.starts_with(order));
    let rest = &descr[order.map_or(0, <[u8]>::len)..];
    let (&kind, size) = rest.split_first()?;
    // The unit of dates and durations follows their size.
    let digits = size.split(|byte| *byte == b'[').next()?;
    let size: Option<u64> = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    if kind == b'O' {
        return Some(ItemType { is_pickled: true, ..ItemType::default() });
    }
    let bytes = match (kind, size) {
        (b'?', None) => 1,
        (b'U', Some(characters)) => characters.checked_mul(4)?,
        (b'b' | b'i' | b'u' | b'f' | b'c' | b'S' | b'a' | b'V' | b'm' | b'M', Some(bytes)) => bytes,
        _ => return None,
    };
    let is_known = |element: &Element| element.npy_descr().as_bytes()[1..] == *rest;
    let number = match (kind, bytes) {
        (b'?' | b'b', 1) => Some(Element::Uint8),
        (b'm' | b'M', 8) => Some(Element::Int64),
        _ => Element::ALL.into_iter().find(is_known),
    };
    Some(ItemType { bytes, number, is_pickled: false })
}

/// Elements of an array.
#[derive(Clone, Copy, Default)]
struct ItemType {
    /// Length of an element; 0 if it is pickled.
    bytes: u64,
    /// The plain number of this length, in either byte order.
    number: Option<Element>,
    is_pickled: bool,
}

/// Axes of an array.
struct Axes {
    /// The first axes.
    extents: [u64; DIMS_MAX + 1],
    count: usize,
    /// Number of elements, saturating.
    elements: u64,
}

/// Upper limit on structures inside structures.
const NESTING_MAX: usize = 8;

impl<'t> Dictionary<'t> {
    fn read(&mut self) -> Result<ArrayHeader, FormatError> {
        let mut item = None;
        let mut is_fortran = None;
        let mut axes = None;
        self.expect(b'{')?;
        loop {
            let token = self.next_token();
            if token == b"}" {
                break;
            }
            let key = self.unquote(token)?;
            self.expect(b':')?;
            match key {
                b"descr" => item = Some(self.read_item(NESTING_MAX)?),
                b"fortran_order" => is_fortran = Some(self.read_fortran_order()?),
                b"shape" => axes = Some(self.read_axes()?),
                _ => return Err(self.error(self.token_end, "unknown key in the npy header")),
            }
            if !self.comma_or_end(b"}")? {
                break;
            }
        }
        let (Some(item), Some(is_fortran), Some(axes)) = (item, is_fortran, axes) else {
            let message = "npy header without `descr`, `fortran_order` and `shape`";
            return Err(self.error(self.token_start, message));
        };
        Ok(array_header(item, is_fortran, &axes))
    }

    /// Reads the type of an element, which is a text or a list of fields.
    fn read_item(&mut self, nesting_left: usize) -> Result<ItemType, FormatError> {
        let token = self.next_token();
        if token == b"[" {
            return self.read_fields(nesting_left);
        }
        let descr = self.unquote(token)?;
        item_type(descr).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&descr[..descr.len().min(32)]);
            self.error(self.token_end, format!("dtype `{shown}` is not known"))
        })
    }

    /// Reads the fields of a structure: `('name', 'type')` or `('name', 'type', (2, 3))`, and returns their common type.
    fn read_fields(&mut self, nesting_left: usize) -> Result<ItemType, FormatError> {
        let Some(nesting_left) = nesting_left.checked_sub(1) else {
            let message = format!("dtype of more than {NESTING_MAX} nested structures");
            return Err(self.error(self.token_start, message));
        };
        let mut structure = ItemType::default();
        loop {
            match self.next_token() {
                b"]" => break,
                b"(" => {}
                _ => return Err(self.error(self.token_start, "`(` was expected in the npy header")),
            }
            // A name can be a pair of a title and a name.
            match self.next_token() {
                b"(" => {
                    for end in [b',', b')'] {
                        let text = self.next_token();
                        self.unquote(text)?;
                        self.expect(end)?;
                    }
                }
                text => {
                    self.unquote(text)?;
                }
            }
            self.expect(b',')?;
            let mut field = self.read_item(nesting_left)?;
            if self.comma_or_end(b")")? {
                field.bytes = field.bytes.saturating_mul(self.read_axes()?.elements);
                self.expect(b')')?;
            }
            structure.bytes = structure.bytes.saturating_add(field.bytes);
            structure.is_pickled |= field.is_pickled;
            if !self.comma_or_end(b"]")? {
                break;
            }
        }
        Ok(structure)
    }

    fn read_fortran_order(&mut self) -> Result<bool, FormatError> {
        match self.next_token() {
            b"False" => Ok(false),
            b"True" => Ok(true),
            _ => Err(self.error(self.token_start, "`fortran_order` is neither True nor False")),
        }
    }

    fn read_axes(&mut self) -> Result<Axes, FormatError> {
        self.expect(b'(')?;
        let mut axes = Axes { extents: [0; DIMS_MAX + 1], count: 0, elements: 1 };
        loop {
            let token = self.next_token();
            if token == b")" {
                break;
            }
            // Python 2 wrote an `L` after long numbers.
            let digits = token.strip_suffix(b"L").unwrap_or(token);
            let is_number = digits.iter().all(u8::is_ascii_digit);
            let axis = std::str::from_utf8(digits).ok().filter(|_| is_number);
            let axis: u64 = axis.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                self.error(self.token_start, "the shape contains something other than a number")
            })?;
            if let Some(extent) = axes.extents.get_mut(axes.count) {
                *extent = axis;
            }
            axes.elements = axes.elements.saturating_mul(axis);
            axes.count += 1;
            if !self.comma_or_end(b")")? {
                break;
            }
        }
        Ok(axes)
    }

    /// Reads a comma or `end`, and returns whether it was a comma.
    fn comma_or_end(&mut self, end: &[u8]) -> Result<bool, FormatError> {
        match self.next_token() {
            b"," => Ok(true),
            token if token == end => Ok(false),
            _ => Err(self.error(self.token_start, "`,` was expected in the npy header")),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), FormatError> {
        if self.next_token() == [byte] {
            return Ok(());
        }
        let message = format!("`{}` was expected in the npy header", byte as char);
        Err(self.error(self.token_start, message))
    }

    /// The text of a quoted string.
    fn unquote(&self, token: &'t [u8]) -> Result<&'t [u8], FormatError> {
        match token {
            [quote @ (b'\'' | b'"'), text @ .., last] if quote == last => Ok(text),
            [b'\'' | b'"', ..] => Err(self.error(self.token_start, "a string without end")),
            _ => Err(self.error(self.token_start, "a string was expected")),
        }
    }

    /// The next token: a quoted string, a punctuation mark or a word; empty at the end.
    fn next_token(&mut self) -> &'t [u8] {
        let rest = self.text[self.token_end..].trim_ascii_start();
        let len = match rest.first() {
            Some(quote @ (b'\'' | b'"')) => {
                rest[1..].iter().position(|byte| byte == quote).map_or(rest.len(), |end| end + 2)
            }
            Some(byte) if MARKS.contains(byte) => 1,
            _ => rest
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || MARKS.contains(byte))
                .unwrap_or(rest.len()),
        };
        self.token_start = self.text.len() - rest.len();
        self.token_end = self.token_start + len;
        &rest[..len]
    }

    fn error(&self, offset: usize, message: impl Into<String>) -> FormatError {
        FormatError::new(self.start + offset as u64, message)
    }
}

const MARKS: &[u8] = b"{}()[],:";

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64], element: Element, samples: u64) -> FileShape {
        FileShape { dims: Dims::new(dims).unwrap(), element, samples }
    }

    fn header_with_text(text: &str) -> Vec<u8> {
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend_from_slice(&(text.len() as u16).to_le_bytes());
        header.extend_from_slice(text.as_bytes());
        header
    }

    fn read_text(text: &str) -> Result<FileShape, String> {
        match read(&header_with_text(text)) {
            Ok(HeaderProgress::Done(array)) => Ok(array.shape),
            Ok(HeaderProgress::Needs(_)) => Err("needs more".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn written_headers_can_be_read() {
        for element in Element::ALL {
            for dims in [&[][..], &[0], &[1024, 1024], &[1, 2, 3, 4, 5, 6, 7, u64::MAX]] {
                let shape = shape(dims, element, 3);
                let header = write(&shape);
                assert_eq!(header.len() % 64, 0);
                assert_eq!(
                    array_bytes(&shape),
                    shape.payload_bytes().saturating_add(header.len() as u64)
                );
                assert!(
                    matches!(read(&header), Ok(HeaderProgress::Done(read)) if read.shape == shape)
                );
                for len in 0..header.len() {
                    assert!(
                        matches!(read(&header[..len]), Ok(HeaderProgress::Needs(n)) if n > len)
                    );
                }
            }
        }
    }

    #[test]
    fn headers_of_other_writers_can_be_read() {
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
    fn errors_name_the_cause() {
        let with = |descr: &str, order: &str, axes: &str| {
            let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {axes}, }}");
            read_text(&text).unwrap_err()
        };
        insta::assert_snapshot!([
            with("'<q5'", "False", "(1,)"),
            with("[('a', '<f4'), 3]", "False", "(1,)"),
            with(&format!("{}'<f4'{}", "[('a', ".repeat(20), ")]".repeat(20)), "False", "(1,)"),
            with("'<f4'", "None", "(2, 2)"),
            with("'<f4'", "False", "(-1, 2)"),
            with("'<f4'", "False", "(+1, 2)"),
            with("'<f4'", "False", "(99999999999999999999, 2)"),
            with("'<f4", "False", "(1, 2)"),
            read_text("{'descr': '<f4'}").unwrap_err(),
            read_text("{'a': 1}").unwrap_err(),
            read_text("").unwrap_err(),
        ].join("\n"), @r"
        at byte 25: dtype `<q5` is not known
        at byte 35: `(` was expected in the npy header
        at byte 76: dtype of more than 8 nested structures
        at byte 44: `fortran_order` is neither True nor False
        at byte 61: the shape contains something other than a number
        at byte 61: the shape contains something other than a number
        at byte 61: the shape contains something other than a number
        at byte 27: dtype `<f4, ` is not known
        at byte 25: npy header without `descr`, `fortran_order` and `shape`
        at byte 15: unknown key in the npy header
        at byte 10: `{` was expected in the npy header
        ");
    }

    #[test]
    fn arrays_of_all_types_and_orders_have_their_length() {
        let read = |descr: &str, order: &str, axes: &str| {
            let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {axes}, }}");
            match read(&header_with_text(&text)) {
                Ok(HeaderProgress::Done(array)) => array,
                _ => panic!("{text}"),
            }
        };
        let single = |dims: &[u64], element| (shape(dims, element, 1), true);
        let bytes = |dims: &[u64]| single(dims, Element::Uint8);
        for (descr, order, axes, expected) in [
            ("'>f4'", "False", "(4, 2)", (shape(&[4], Element::Float32, 2), false)),
            ("'|b1'", "False", "(4, 2)", (shape(&[4], Element::Uint8, 2), false)),
            ("'<M8[ns]'", "False", "(4, 2)", (shape(&[4], Element::Int64, 2), false)),
            ("'<f4'", "True", "(4, 2)", single(&[4, 2], Element::Float32)),
            ("'<f4'", "False", "()", single(&[], Element::Float32)),
            ("'<f4'", "False", "(0, 2)", (shape(&[0], Element::Float32, 2), false)),
            ("'<f4'", "False", "(2, 0)", single(&[2, 0], Element::Float32)),
            ("'<c8'", "False", "(4, 2)", bytes(&[4, 2, 8])),
            ("'<U5'", "False", "(3,)", bytes(&[3, 20])),
            ("'|S5'", "False", "(3,)", bytes(&[3, 5])),
            ("'<f16'", "False", "(3,)", bytes(&[3, 16])),
            (
                "[('a', '<f4'), (('b', 'c'), '|u1', (2, 3)), ('d', [('e', '>i8')])]",
                "False",
                "(3,)",
                bytes(&[3, 18]),
            ),
            ("'<f4'", "False", "(1, 2, 1, 1, 1, 1, 1, 1, 1, 3)", bytes(&[24])),
            ("'<c8'", "False", "(1, 2, 1, 1, 1, 1, 1, 3)", bytes(&[48])),
        ] {
            let found = read(descr, order, axes);
            assert_eq!((found.shape, found.is_single), expected, "{descr} {axes}");
            assert!(!found.is_pickled);
        }
        assert!(read("'|O'", "False", "(1,)").is_pickled);
        assert!(read("[('a', 'O')]", "False", "(1,)").is_pickled);
    }
}
