//! `png`: one image per file, with the default compression level of zlib and filters chosen row by row, as Pillow writes
//! it for DLIO.
//!
//! Files with palettes, other bit depths, alpha or interlacing can be read too. Pixels are expanded to values of
//! 8 or 16 bits.

#[cfg(test)]
mod tests;

use super::whole_image::{
    ImageFormat, ImageLimits, PixelSource, Pixels, SinkWriter, format, height_and_width,
};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Element, FileShape};
use png::{BitDepth, ColorType, Compression, DecodingError, EncodingError, Filter};
use std::io::{Cursor, Write};

pub(super) static FORMAT: Format = format::<Png>();

pub(super) struct Png;

static MEMBER: Member = Member {
    name: "png",
    summary: "One image per file, lossless; reading a sample reads and decodes the file.",
    abilities: &[
        Ability::EncodesSamples,
        Ability::ChecksContent,
        Ability::EstimatedSize,
        Ability::DecoderAllocates,
    ],
};

/// Length, type and checksum of a chunk.
const CHUNK_BYTES: u64 = 12;
/// Length of the signature and the header chunk.
const HEAD_BYTES: u64 = 33;
/// Length of the data in a chunk, as in files of Pillow.
const CHUNK_DATA_BYTES: usize = 64 << 10;
/// Deflate stores random data in blocks of this length, each with a header.
const STORED_BYTES: u64 = 32 << 10;
const STORED_HEAD_BYTES: u64 = 5;

impl ImageFormat for Png {
    const MEMBER: &'static Member = &MEMBER;

    const LIBRARY: Library = Library::PillowPng;

    type WriteError = EncodingError;

    const SIGNATURE: &'static [u8] = b"\x89PNG\r\n\x1a\n";

    const ELEMENTS: &'static [Element] = &[Element::Uint8, Element::Uint16];

    const LIMITS: ImageLimits = ImageLimits { channels: &[2, 3, 4], side_max: (1 << 31) - 1 };

    /// Deflate packs up to 258 bytes into 2 bits, which is a ratio of 1032. Each of these bytes can be 8 pixels of one bit,
    /// which are expanded to three colours and alpha.
    const PIXEL_BYTES_PER_BYTE_MAX: u64 = 1032 * 8 * 4;

    fn file_bytes(shape: &FileShape) -> u64 {
        let height = shape.dims.as_slice().first().copied().unwrap_or(1);
        let raw = shape.sample_bytes().saturating_add(height);
        let zlib =
            raw.saturating_add(raw.div_ceil(STORED_BYTES) * STORED_HEAD_BYTES).saturating_add(6);
        let chunks = zlib.div_ceil(CHUNK_DATA_BYTES as u64) + 1;
        HEAD_BYTES.saturating_add(zlib).saturating_add(chunks * CHUNK_BYTES)
    }

    /// Writes the image with two rows in memory.
    fn write(
        shape: &FileShape,
        mut pixels: PixelSource,
        writer: &mut SinkWriter,
    ) -> Result<(), EncodingError> {
        let [height, width] = height_and_width(shape).map(|side| side as u32);
        let is_wide = shape.element == Element::Uint16;
        let mut encoder = png::Encoder::new(writer, width, height);
        encoder.set_color(match shape.dims.as_slice().get(2) {
            None => ColorType::Grayscale,
            Some(2) => ColorType::GrayscaleAlpha,
            Some(3) => ColorType::Rgb,
            Some(_) => ColorType::Rgba,
        });
        encoder.set_depth(if is_wide { BitDepth::Sixteen } else { BitDepth::Eight });
        encoder.set_compression(Compression::Balanced);
        encoder.set_filter(Filter::Adaptive);
        let mut header = encoder.write_header()?;
        let mut stream = header.stream_writer_with_size(CHUNK_DATA_BYTES)?;
        let mut row = vec![0; (shape.sample_bytes() / u64::from(height)) as usize];
        for _ in 0..height {
            pixels.fill_next_row(&mut row);
            if is_wide {
                swap_pairs(&mut row);
            }
            stream.write_all(&row)?;
        }
        stream.finish()?;
        header.finish()
    }

    fn decode(file: &[u8], check_crc: bool, pixels: &mut Pixels) -> Result<(), FormatError> {
        let mut options = png::DecodeOptions::default();
        options.set_ignore_checksums(!check_crc);
        options.set_ignore_text_chunk(true);
        options.set_ignore_iccp_chunk(true);
        let mut decoder = png::Decoder::new_with_options(Cursor::new(file), options);
        // No limit is needed: the decoder's memory grows with its input, and memory for pixels is allocated only after
        // the image's size has been checked.
        decoder.set_limits(png::Limits { bytes: usize::MAX });
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = match decoder.read_info() {
            Ok(reader) => reader,
            Err(DecodingError::IoError(_)) if !pixels.is_complete => return Ok(()),
            Err(error) => return Err(invalid_png(error)),
        };
        let (width, height) = reader.info().size();
        let (colour, depth) = reader.output_color_type();
        let is_wide = depth == BitDepth::Sixteen;
        let element = if is_wide { Element::Uint16 } else { Element::Uint8 };
        let sides = [height.into(), width.into(), colour.samples() as u64];
        let Some(pixels) = pixels.claim(sides, element)? else { return Ok(()) };
        reader.next_frame(pixels).and_then(|_| reader.finish()).map_err(invalid_png)?;
        if is_wide {
            swap_pairs(pixels);
        }
        Ok(())
    }
}

fn invalid_png(error: DecodingError) -> FormatError {
    FormatError::new(0, format!("not a complete png: {error}"))
}

/// Swaps the bytes of 16-bit values: files are big-endian, payload is little-endian.
fn swap_pairs(bytes: &mut [u8]) {
    for pair in bytes.as_chunks_mut::<2>().0 {
        pair.swap(0, 1);
    }
}
