//! Writes text files, with or without gzip compression.

use super::super::deflate::DeflateSink;
use super::number::{self, TEXT_BYTES_MAX};
use super::{Compression, Content, Element, Encoding, FileShape, FileSink, SinkError};

/// Bytes of payload generated at once: the size of a content block, and a multiple of the size of every element type.
const PAYLOAD_BYTES: usize = 4096;

/// Text before and after the numbers of a line.
#[derive(Clone, Copy)]
pub(in super::super) struct LineMarks {
    pub(in super::super) open: &'static [u8],
    pub(in super::super) close: &'static [u8],
}

/// Writes a file with one line per sample.
pub(in super::super) fn encode(
    line: LineMarks,
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    if encoding.compression == Compression::None {
        return write_lines(line, shape, content, sink);
    }
    let mut gzip = DeflateSink::new(encoding.compression_level, sink);
    gzip.begin_gzip()?;
    write_lines(line, shape, content, &mut gzip)?;
    gzip.finish_gzip()
}

fn write_lines(
    line: LineMarks,
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut payload = [0; PAYLOAD_BYTES];
    let elements = PAYLOAD_BYTES / shape.element.bytes() as usize;
    let mut text = Vec::with_capacity(elements * TEXT_BYTES_MAX);
    for sample in 0..shape.samples {
        text.extend_from_slice(line.open);
        let total = shape.sample_bytes();
        for offset in (0..total).step_by(PAYLOAD_BYTES) {
            let piece = &mut payload[..(total - offset).min(PAYLOAD_BYTES as u64) as usize];
            content.fill(sample, offset, shape.element, piece);
            number::write(shape.element, piece, &mut text);
            if offset + PAYLOAD_BYTES as u64 >= total {
                // Replaces the last comma with the end of the line.
                text.pop();
                text.extend_from_slice(line.close);
            }
            sink.write(0, &text)?;
            text.clear();
        }
    }
    Ok(())
}

/// Estimated length of a file, from the mean length of a number in generated content.
pub(in super::super) fn file_bytes(line: LineMarks, shape: &FileShape, encoding: &Encoding) -> u64 {
    // The last number of a line has no comma.
    let marks_bytes = (line.open.len() + line.close.len() - 1) as u128;
    let (plain_mean, compressed_mean) = mean_number_bytes(shape.element);
    let numbers = u128::from(shape.dims.elements()) * u128::from(shape.samples);
    let bytes = match (encoding.compression, encoding.compression_level) {
        (Compression::Gzip, 0) | (Compression::None, _) => {
            numbers * plain_mean / 1000 + marks_bytes * u128::from(shape.samples)
        }
        _ => numbers * compressed_mean / 1000 + 20,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Mean length of a number with its comma, in thousandths of a byte, without compression and at compression level 4.
/// Measured over a million numbers. Levels 1 to 9 differ by up to a tenth.
fn mean_number_bytes(element: Element) -> (u128, u128) {
    match element {
        Element::Uint8 => (3570, 1375),
        Element::Int8 => (3649, 1394),
        Element::Uint16 => (5831, 2690),
        Element::Int16 => (6161, 2755),
        Element::Uint32 => (10741, 5120),
        Element::Int32 => (10983, 5200),
        Element::Uint64 => (20398, 9780),
        Element::Int64 => (20380, 9810),
        Element::Float16 => (8778, 3010),
        Element::Float32 => (13964, 6020),
        Element::Float64 => (23531, 10925),
    }
}
