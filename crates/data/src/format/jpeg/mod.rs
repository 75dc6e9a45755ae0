//! `jpeg`: one lossy image per file, encoded like the files that Pillow writes for DLIO: baseline, quality 75, standard
//! tables, 4:2:0 chroma subsampling.
//!
//! Progressive files and all kinds of subsampling can be read too. Pixels are grey or RGB; CMYK files are converted to
//! RGB.

mod file_bytes;
mod rows;
#[cfg(test)]
mod tests;

use super::whole_image::{
    ImageFormat, ImageLimits, PixelSource, Pixels, SinkWriter, format, height_and_width,
};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, Member};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Element, FileShape};
use file_bytes::FileBytes;
use jpeg_encoder::{Encoder, EncodingError};
use rows::PixelRows;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::errors::DecodeErrors;

pub(super) static FORMAT: Format = format::<Jpeg>();

pub(super) struct Jpeg;

static MEMBER: Member = Member {
    name: "jpeg",
    summary: "One image per file, lossy; reading a sample reads and decodes the file.",
    abilities: &[
        Ability::EncodesSamples,
        Ability::Lossy,
        Ability::EstimatedSize,
        Ability::DecoderAllocates,
    ],
};

const SIDE_MAX: u64 = 65_535;
/// Pillow's default.
const QUALITY: u8 = 75;
/// Length of headers and tables.
const GREY_HEAD_BYTES: u64 = 399;
const RGB_HEAD_BYTES: u64 = 625;
/// Measured encoded lengths of noise: 8 × 8 grey pixels, and 16 × 16 RGB pixels with 4:2:0 subsampling.
const GREY_BLOCK_BYTES: f64 = 35.56;
const RGB_UNIT_BYTES: f64 = 152.9;
/// The end-of-image marker.
const EOI: u8 = 0xd9;

impl ImageFormat for Jpeg {
    const MEMBER: &'static Member = &MEMBER;

    const LIBRARY: Library = Library::PillowJpeg;

    type WriteError = EncodingError;

    const SIGNATURE: &'static [u8] = b"\xff\xd8\xff";

    const ELEMENTS: &'static [Element] = &[Element::Uint8];

    const LIMITS: ImageLimits = ImageLimits { channels: &[3], side_max: SIDE_MAX };

    /// Each block of 64 values takes at least one bit for its mean. If colours have a sixteenth of the resolution, 1024
    /// pixels of three colours take 18 bits, which is 1366 bytes per byte.
    const PIXEL_BYTES_PER_BYTE_MAX: u64 = 1536;

    fn file_bytes(shape: &FileShape) -> u64 {
        let (head, noise) = match shape.dims.as_slice() {
            [_, _] => (GREY_HEAD_BYTES, blocks(shape, 8) * GREY_BLOCK_BYTES),
            _ => (RGB_HEAD_BYTES, blocks(shape, 16) * RGB_UNIT_BYTES),
        };
        head.saturating_add(noise as u64)
    }

    fn write(
        shape: &FileShape,
        pixels: PixelSource,
        writer: &mut SinkWriter,
    ) -> Result<(), EncodingError> {
        Encoder::new(writer, QUALITY).encode_image(PixelRows::new(shape, pixels))
    }

    fn decode(file: &[u8], _check_crc: bool, pixels: &mut Pixels) -> Result<(), FormatError> {
        let options = DecoderOptions::new_fast()
            .set_strict_mode(true)
            .set_max_width(SIDE_MAX as usize)
            .set_max_height(SIDE_MAX as usize)
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(FileBytes::new(file), options);
        match decoder.decode_headers() {
            Ok(()) => {}
            // Truncated headers cause many different errors, so only a wrong signature is reported before the end.
            Err(error)
                if pixels.is_complete || matches!(error, DecodeErrors::IllegalMagicBytes(_)) =>
            {
                return Err(invalid_jpeg(error));
            }
            Err(_) => return Ok(()),
        }
        let info = decoder.info().ok_or_else(|| invalid_jpeg("it has no header"))?;
        match info.components {
            1 => decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma)),
            // CMYK is converted to RGB, as data loaders do by `convert("RGB")`.
            3 | 4 => {}
            colours => return Err(FormatError::new(0, format!("`{colours}` colours"))),
        }
        let sides = [info.height.into(), info.width.into(), info.components.min(3).into()];
        let Some(pixels) = pixels.claim(sides, Element::Uint8)? else { return Ok(()) };
        if !has_end(file) {
            let end = file.len() as u64;
            return Err(FormatError::new(end, "the file ends before the end of the image"));
        }
        decoder.decode_into(pixels).map_err(invalid_jpeg)
    }
}

fn invalid_jpeg(reason: impl std::fmt::Display) -> FormatError {
    FormatError::new(0, format!("not a complete jpeg: {reason}"))
}

/// Number of squares with sides of `block_side` pixels that cover the image.
fn blocks(shape: &FileShape, block_side: u64) -> f64 {
    height_and_width(shape).map(|side| side.div_ceil(block_side) as f64).iter().product()
}

/// Whether the file contains an end-of-image marker, possibly followed by other bytes. Checked because decoders accept
/// truncated files.
fn has_end(file: &[u8]) -> bool {
    if file.ends_with(&[0xff, EOI]) {
        return true;
    }
    // Starts after the start-of-image marker.
    let mut position = 2;
    while let Some(&[first, kind, high, low]) =
        file.get(position..).and_then(|rest| rest.first_chunk::<4>())
    {
        match (first, kind) {
            (0xff, EOI) => return true,
            // In coded pixels 0xff is followed by 0 or a restart marker.
            (0xff, 0 | 0x01 | 0xd0..=0xd7) => position += 2,
            (0xff, 0xff) => position += 1,
            (0xff, _) => position += 2 + usize::from(u16::from_be_bytes([high, low])),
            _ => match file[position..].iter().position(|&byte| byte == 0xff) {
                Some(distance) => position += distance,
                None => return false,
            },
        }
    }
    false
}
