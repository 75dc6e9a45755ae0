//! The header: JSON text with the type, the shape and the place of each tensor, padded with spaces to 8 bytes. Made
//! entry by entry without allocation, so that the header a plan wants can be compared with the one that is there.

use super::{Dims, Element, FileShape, FormatError, HEADER_BYTES_MAX, PREFIX_BYTES};
use feedrate_spec::shape::DIMS_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// An entry of one tensor is at least this long.
const ENTRY_BYTES_MIN: u64 = 50;
/// An entry has at most 8 extents, 2 offsets and a number of 20 digits each, and about 60 bytes of other text.
const ENTRY_BYTES_MAX: usize = 384;
const ALIGN_BYTES: u64 = 8;
/// What is no tensor.
const METADATA: &str = "__metadata__";

/// Hand on the header of a file of this shape in pieces.
pub(super) fn write<Error>(
    shape: &FileShape,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut line = Line::new();
    let mut written = 2;
    take(b"{")?;
    for sample in 0..shape.samples {
        line.entry(shape, sample);
        take(line.text())?;
        written += line.len as u64;
    }
    take(b"}")?;
    let padding = written.next_multiple_of(ALIGN_BYTES) - written;
    take(&b"        "[..padding as usize])
}

/// Bytes of the header of a file of this shape. Takes the same time for every number of samples: even of a file that
/// cannot be written the size is asked for.
pub(super) fn bytes(shape: &FileShape) -> u64 {
    let mut line = Line::new();
    line.entry(shape, 0);
    let (samples, size) = (shape.samples, shape.sample_bytes());
    // Entries differ by their offsets; every entry but the first begins with a comma.
    let fixed = line.len as u64 - digits(0) - digits(size);
    let starts = digits_of_multiples(size, samples);
    let ends = digits_of_multiples(size, samples.saturating_add(1)) - 1;
    let offsets = u64::try_from(starts + ends).unwrap_or(u64::MAX);
    let entries = samples.saturating_mul(fixed).saturating_add(offsets);
    let braces_and_commas = samples.saturating_sub(1).saturating_add(2);
    let bytes = entries.saturating_add(braces_and_commas);
    bytes.checked_next_multiple_of(ALIGN_BYTES).unwrap_or(u64::MAX)
}

/// Digits of 0, `size`, 2 `size`, … together, of `count` numbers of at most 20 digits.
fn digits_of_multiples(size: u64, count: u64) -> u128 {
    let (size, count) = (u128::from(size), u128::from(count));
    // Every number has one digit, and one more from each power of ten on.
    let more = (1..20).map(|power| match size {
        0 => 0,
        size => count.saturating_sub(10u128.pow(power).div_ceil(size)),
    });
    count + more.sum::<u128>()
}

/// Whether `header` is the one of a file of this shape.
pub(super) fn matches(header: &[u8], shape: &FileShape) -> bool {
    // A header of many more samples is not made to its end.
    if header.len() as u64 / ENTRY_BYTES_MIN < shape.samples {
        return false;
    }
    let mut rest = header;
    let compared = write::<()>(shape, &mut |text| {
        rest = rest.strip_prefix(text).ok_or(())?;
        Ok(())
    });
    compared == Ok(()) && rest.is_empty()
}

fn digits(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |digits| u64::from(digits) + 1)
}

/// One entry, in memory of its own.
struct Line {
    bytes: [u8; ENTRY_BYTES_MAX],
    len: usize,
}

impl Line {
    fn new() -> Self {
        Line { bytes: [0; ENTRY_BYTES_MAX], len: 0 }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The entry of a sample, with the comma before it.
    fn entry(&mut self, shape: &FileShape, sample: u64) {
        self.len = 0;
        let written = self.try_entry(shape, sample);
        debug_assert_eq!(written, Ok(()), "an entry fits its memory");
    }

    fn try_entry(&mut self, shape: &FileShape, sample: u64) -> fmt::Result {
        let comma = if sample == 0 { "" } else { "," };
        let width = digits(shape.samples.saturating_sub(1)) as usize;
        let dtype = dtype(shape.element);
        write!(self, "{comma}\"sample_{sample:0width$}\":{{\"dtype\":\"{dtype}\",\"shape\":[")?;
        for (axis, extent) in shape.dims.as_slice().iter().enumerate() {
            let comma = if axis == 0 { "" } else { "," };
            write!(self, "{comma}{extent}")?;
        }
        let start = shape.sample_bytes().saturating_mul(sample);
        let end = start.saturating_add(shape.sample_bytes());
        write!(self, "],\"data_offsets\":[{start},{end}]}}")
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

fn dtype(element: Element) -> &'static str {
    match element {
        Element::Uint8 => "U8",
        Element::Int8 => "I8",
        Element::Uint16 => "U16",
        Element::Int16 => "I16",
        Element::Uint32 => "U32",
        Element::Int32 => "I32",
        Element::Uint64 => "U64",
        Element::Int64 => "I64",
        Element::Float16 => "F16",
        Element::Float32 => "F32",
        Element::Float64 => "F64",
    }
}

/// A tensor of a header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    /// From the end of the header.
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) dims: Dims,
    pub(super) element: Element,
}

/// Read a header into `tensors`, in the order in which they lie; they must fill `data_bytes` exactly.
pub(super) fn read(
    header: &[u8],
    data_bytes: u64,
    tensors: &mut Vec<Tensor>,
) -> Result<(), FormatError> {
    tensors.clear();
    let mut reader = serde_json::Deserializer::from_slice(header);
    let parsed = reader.deserialize_map(Collect(tensors)).and_then(|()| reader.end());
    parsed.map_err(|error| {
        FormatError::new(PREFIX_BYTES, format!("the header is not one of safetensors: {error}"))
    })?;
    tensors.sort_unstable_by_key(|tensor| (tensor.start, tensor.bytes));
    let mut end = 0;
    for (i, tensor) in tensors.iter().enumerate() {
        if tensor.start != end {
            let start = tensor.start;
            let message = format!("tensor {i} begins at {start} of the data, not at {end}");
            return Err(FormatError::new(PREFIX_BYTES, message));
        }
        // Offsets were checked to be in order, so this is the end of a tensor.
        end += tensor.bytes;
    }
    if end != data_bytes {
        let message = format!("the header describes {end} bytes, but {data_bytes} follow it");
        return Err(FormatError::new(PREFIX_BYTES, message));
    }
    Ok(())
}

/// What an entry says.
#[derive(Deserialize)]
struct Entry<'t> {
    #[serde(borrow)]
    dtype: Cow<'t, str>,
    shape: Extents,
    data_offsets: (u64, u64),
}

impl Entry<'_> {
    fn tensor(&self) -> Result<Tensor, String> {
        let (start, end) = self.data_offsets;
        let bytes = end
            .checked_sub(start)
            .ok_or_else(|| format!("data offsets [{start}, {end}] are in the wrong order"))?;
        let raw = Tensor { start, bytes, dims: bytes_dims(bytes), element: Element::Uint8 };
        let Some(element) = Element::ALL.into_iter().find(|e| dtype(*e) == self.dtype) else {
            return Ok(raw);
        };
        if self.shape.elements.checked_mul(element.bytes()) != Some(bytes) {
            return Err(format!("a shape of another size than its {bytes} bytes"));
        }
        // More dimensions than a sample may have: bytes stand for elements.
        Ok(self.shape.dims.map_or(raw, |dims| Tensor { dims, element, ..raw }))
    }
}

fn bytes_dims(bytes: u64) -> Dims {
    Dims::new(&[bytes]).unwrap_or_else(|| unreachable!("one dimension fits"))
}

/// A shape of any length in bounded memory.
struct Extents {
    dims: Option<Dims>,
    elements: u64,
}

impl<'t> Deserialize<'t> for Extents {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ExtentsVisitor)
    }
}

struct ExtentsVisitor;

impl<'t> Visitor<'t> for ExtentsVisitor {
    type Value = Extents;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a shape")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<Extents, A::Error> {
        let (mut extents, mut count, mut elements) = ([0; DIMS_MAX], 0, 1u64);
        while let Some(extent) = list.next_element::<u64>()? {
            if let Some(place) = extents.get_mut(count) {
                *place = extent;
            }
            count += 1;
            elements = elements.saturating_mul(extent);
        }
        let dims = extents.get(..count).and_then(Dims::new);
        Ok(Extents { dims, elements })
    }
}

struct Collect<'v>(&'v mut Vec<Tensor>);

impl<'t> Visitor<'t> for Collect<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("tensors by name")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        use serde::de::Error as _;
        while let Some(name) = map.next_key::<Cow<str>>()? {
            if name == METADATA {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry = map.next_value::<Entry>()?;
            self.0.push(entry.tensor().map_err(A::Error::custom)?);
        }
        Ok(())
    }
}

/// The header's length, as the first bytes of a file say it.
pub(super) fn length(prefix: [u8; 8], file_bytes: u64) -> Result<u64, FormatError> {
    let length = u64::from_le_bytes(prefix);
    if length > file_bytes.saturating_sub(PREFIX_BYTES) {
        let message = format!("a header of {length} bytes in a file of {file_bytes}");
        return Err(FormatError::new(0, message));
    }
    if length > HEADER_BYTES_MAX {
        let message = format!("a header of {length} bytes, more than {HEADER_BYTES_MAX}");
        return Err(FormatError::new(0, message));
    }
    Ok(length)
}
