//! Writes a picture row by row with the encoder of `png`: two rows are in memory.

use super::super::whole_image::{Drawn, SinkWriter, sides};
use super::super::{Content, FileSink, SinkError};
use super::chunks::{CHUNK_BYTES, HEAD_BYTES};
use feedrate_spec::shape::{Element, FileShape};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};
use std::io::Write;

/// Data in a chunk, as Pillow writes it.
const CHUNK_DATA_BYTES: usize = 64 << 10;
/// Deflate finds nothing in noise: blocks of so many bytes are stored with a header each.
const STORED_BYTES: u64 = 32 << 10;
const STORED_HEAD_BYTES: u64 = 5;

/// About the bytes of a file: how well noise is packed depends on the content.
pub(super) fn file_bytes(shape: &FileShape) -> u64 {
    let height = shape.dims.as_slice().first().copied().unwrap_or(1);
    let raw = shape.sample_bytes().saturating_add(height);
    let zlib = raw.saturating_add(raw.div_ceil(STORED_BYTES) * STORED_HEAD_BYTES).saturating_add(6);
    let chunks = zlib.div_ceil(CHUNK_DATA_BYTES as u64) + 1;
    HEAD_BYTES.saturating_add(zlib).saturating_add(chunks * CHUNK_BYTES)
}

/// Write the file.
pub(super) fn picture(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut writer = SinkWriter::new(sink);
    let encoded = encode(shape, content, &mut writer);
    writer.finish(encoded)
}

fn encode(
    shape: &FileShape,
    content: &mut Content,
    writer: &mut SinkWriter<'_>,
) -> Result<(), EncodingError> {
    let dims = shape.dims.as_slice();
    let [height, width] = sides(shape).map(|side| side as u32);
    let colour = match dims.get(2) {
        None => ColorType::Grayscale,
        Some(3) => ColorType::Rgb,
        Some(_) => ColorType::Rgba,
    };
    let is_wide = shape.element == Element::Uint16;
    let mut encoder = Encoder::new(writer, width, height);
    encoder.set_color(colour);
    encoder.set_depth(if is_wide { BitDepth::Sixteen } else { BitDepth::Eight });
    encoder.set_compression(Compression::Balanced);
    encoder.set_filter(Filter::Adaptive);
    let mut header = encoder.write_header()?;
    let mut pixels = header.stream_writer_with_size(CHUNK_DATA_BYTES)?;
    let mut row = vec![0; (shape.sample_bytes() / u64::from(height)) as usize];
    let mut drawn = Drawn::new(shape.sample_bytes(), shape.element, content);
    for _ in 0..height {
        drawn.next(&mut row);
        if is_wide {
            super::swap_pairs(&mut row);
        }
        pixels.write_all(&row)?;
    }
    pixels.finish()?;
    header.finish()
}
