//! `png`: one picture a file, with zlib's default effort and filters chosen row by row, as Pillow writes it for DLIO.
//!
//! Reads what others write too: palettes, low depths, 16 bits, alpha, interlaced. All is unfolded to whole samples
//! of 8 or 16 bits.

mod chunks;
mod write;
#[cfg(test)]
mod tests;

use super::whole_image::{Fits, ImageCursor, Picture};
use super::{Format, FormatError};
use chunks::Chunks;
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Element, FileShape};
use std::io::Cursor as Reading;

static MEMBER: Member = Member {
    name: "png",
    summary: "One picture a file, without loss; a sample is read by reading and decoding the file.",
    abilities: &[Ability::ChecksContent, Ability::EstimatedSize, Ability::DecoderAllocates],
};

const FITS: Fits = Fits {
    elements: &[Element::Uint8, Element::Uint16],
    channels: &[3, 4],
    side_max: (1 << 31) - 1,
};

pub(super) static FORMAT: Format = Format {
    // 2: `png` encodes.
    version: 2,
    ..Format::new(
        FormatEntry {
            unfit: |shape, _| FITS.unfit(shape),
            ..FormatEntry::new(&MEMBER, |shape, _| write::file_bytes(shape))
        },
        |shape, _, content, sink| write::picture(shape, content, sink),
        |options| {
            let picture = PngPicture { check_crc: options.check_crc, chunks: Chunks::default() };
            Box::new(ImageCursor::new(picture, options))
        },
    )
};

struct PngPicture {
    check_crc: bool,
    chunks: Chunks,
}

/// Memory that the decoder may claim beside rows.
const DECODER_BYTES_MAX: usize = 64 << 20;

impl Picture for PngPicture {
    /// Deflate packs 258 bytes into 2 bits at best, and each can be 8 samples of one bit, unfolded to 3 colours and
    /// alpha.
    const PIXEL_BYTES_A_BYTE: u64 = 1032 * 8 * 4;

    fn begin(&mut self) {
        self.chunks = Chunks::default();
    }

    fn look(&mut self, head: &[u8]) -> Result<Option<FileShape>, FormatError> {
        self.chunks.look(head)
    }

    fn decode(&mut self, file: &[u8], pixels: &mut [u8]) -> Result<(), FormatError> {
        let mut reading = Reading::new(file);
        let decoded = decode(&mut reading, self.check_crc, pixels);
        let depth = decoded.map_err(|error| {
            FormatError::new(reading.position(), format!("no whole png: {error}"))
        })?;
        if depth == png::BitDepth::Sixteen {
            swap_pairs(pixels);
        }
        Ok(())
    }
}

fn decode(
    reading: &mut Reading<&[u8]>,
    check_crc: bool,
    pixels: &mut [u8],
) -> Result<png::BitDepth, png::DecodingError> {
    let mut options = png::DecodeOptions::default();
    options.set_ignore_checksums(!check_crc);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = png::Decoder::new_with_options(reading, options);
    decoder.set_limits(png::Limits { bytes: DECODER_BYTES_MAX + pixels.len() });
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    if reader.output_buffer_size() != Some(pixels.len()) {
        return Err(png::DecodingError::LimitsExceeded);
    }
    let frame = reader.next_frame(pixels)?;
    reader.finish()?;
    Ok(frame.bit_depth)
}

/// Turn big-endian pairs of the file into little-endian payload, or back.
fn swap_pairs(bytes: &mut [u8]) {
    for pair in bytes.as_chunks_mut::<2>().0 {
        pair.swap(0, 1);
    }
}
