//! The header: JSON text with the type, the shape and the place of each tensor, padded with spaces to 8 bytes. Made
//! entry by entry, so that the header a plan wants can be compared with the one that is there.

use super::super::decimal::{digits, digits_of_multiples};
use super::{
    Dims, Element, FileShape, FormatError, HEADER_BYTES_MAX, PREFIX_BYTES, shape_of_bytes,
};
use safetensors::tensor::{Metadata, TensorInfo};
use std::fmt::Write as _;

/// An entry of one tensor is at least this long.
const ENTRY_BYTES_MIN: u64 = 50;
const ALIGN_BYTES: u64 = 8;
/// An error's text that is shown.
const SHOWN_CHARS_MAX: usize = 160;

/// Hand on the header of a file of this shape in pieces, which are made in `line`.
pub(super) fn write<Error>(
    shape: &FileShape,
    line: &mut String,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut written = 2;
    take(b"{")?;
    for sample in 0..shape.samples {
        write_entry(shape, sample, line);
        take(line.as_bytes())?;
        written += line.len() as u64;
    }
    take(b"}")?;
    let padding = written.next_multiple_of(ALIGN_BYTES) - written;
    take(&b"        "[..padding as usize])
}

/// Bytes of the header of a file of this shape. Takes the same time for every number of samples: even of a file that
/// cannot be written the size is asked for.
pub(super) fn bytes(shape: &FileShape) -> u64 {
    let mut line = String::new();
    write_entry(shape, 0, &mut line);
    let (samples, size) = (shape.samples, shape.sample_bytes());
    // Entries differ by their offsets; every entry but the first begins with a comma.
    let fixed = line.len() as u64 - digits(0) - digits(size);
    let starts = digits_of_multiples(size, samples);
    let ends = digits_of_multiples(size, samples.saturating_add(1)) - 1;
    let offsets = starts.saturating_add(ends);
    let entries = samples.saturating_mul(fixed).saturating_add(offsets);
    let braces_and_commas = samples.saturating_sub(1).saturating_add(2);
    let bytes = entries.saturating_add(braces_and_commas);
    bytes.checked_next_multiple_of(ALIGN_BYTES).unwrap_or(u64::MAX)
}

/// Whether `header` is the one of a file of this shape, which is made in `line`.
pub(super) fn matches(header: &[u8], shape: &FileShape, line: &mut String) -> bool {
    // A header of many more samples is not made to its end.
    if header.len() as u64 / ENTRY_BYTES_MIN < shape.samples {
        return false;
    }
    let mut rest = header;
    let compared = write::<()>(shape, line, &mut |text| {
        rest = rest.strip_prefix(text).ok_or(())?;
        Ok(())
    });
    compared == Ok(()) && rest.is_empty()
}

/// Make the entry of a sample, with the comma before it.
fn write_entry(shape: &FileShape, sample: u64, line: &mut String) {
    line.clear();
    let comma = if sample == 0 { "" } else { "," };
    let width = digits(shape.samples.saturating_sub(1)) as usize;
    let dtype = dtype(shape.element);
    // Writing to a string does not fail.
    let _ = write!(line, "{comma}\"sample_{sample:0width$}\":{{\"dtype\":\"{dtype}\",\"shape\":[");
    for (axis, extent) in shape.dims.as_slice().iter().enumerate() {
        let comma = if axis == 0 { "" } else { "," };
        let _ = write!(line, "{comma}{extent}");
    }
    let start = shape.sample_bytes().saturating_mul(sample);
    let end = start.saturating_add(shape.sample_bytes());
    let _ = write!(line, "],\"data_offsets\":[{start},{end}]}}");
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
pub(super) struct HeaderTensor {
    /// Offset from the end of the header.
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) dims: Dims,
    pub(super) element: Element,
}

/// Read a header into `tensors`, in the order in which they lie; they must fill `data_bytes` exactly.
pub(super) fn read(
    header: &[u8],
    data_bytes: u64,
    tensors: &mut Vec<HeaderTensor>,
) -> Result<(), FormatError> {
    let metadata: Metadata = serde_json::from_slice(header).map_err(|error| {
        // It may hold a name as long as the header.
        let shown: String = error.to_string().chars().take(SHOWN_CHARS_MAX).collect();
        let message = format!("the header is not one of safetensors: {}", shown.escape_debug());
        FormatError::new(PREFIX_BYTES, message)
    })?;
    tensors.clear();
    tensors.extend(metadata.tensors().into_values().map(HeaderTensor::from));
    tensors.sort_unstable_by_key(|tensor| (tensor.start, tensor.bytes));
    let end = metadata.data_len() as u64;
    if end != data_bytes {
        let message = format!("the header describes {end} bytes, but {data_bytes} follow it");
        return Err(FormatError::new(PREFIX_BYTES, message));
    }
    Ok(())
}

impl From<&TensorInfo> for HeaderTensor {
    fn from(info: &TensorInfo) -> Self {
        // The library has checked that they are in order.
        let (start, end) = info.data_offsets;
        let (start, bytes) = (start as u64, (end - start) as u64);
        let name = info.dtype.to_string();
        let element = Element::ALL.into_iter().find(|element| dtype(*element) == name);
        let extents: Vec<u64> = info.shape.iter().map(|&extent| extent as u64).collect();
        // Of other elements, and of more dimensions than a sample may have, bytes stand for elements.
        match (element, Dims::new(&extents)) {
            (Some(element), Some(dims)) => HeaderTensor { start, bytes, dims, element },
            _ => {
                let FileShape { dims, element, .. } = shape_of_bytes(bytes, 1);
                HeaderTensor { start, bytes, dims, element }
            }
        }
    }
}

/// The header's length, which the first bytes of a file say.
pub(super) fn length(length: u64, file_bytes: u64) -> Result<u64, FormatError> {
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
