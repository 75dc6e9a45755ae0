//! `jpeg`: one picture a file with loss, as Pillow writes it for DLIO: baseline, quality 75, standard tables, colours of
//! half the size.
//!
//! Reads progressive files and every subsampling too. Pixels are grey or RGB.

mod write;
mod markers;
#[cfg(test)]
mod tests;

use super::whole_image::{Fits, ImageCursor, Picture};
use super::{Format, FormatError};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Element, FileShape};
use markers::Markers;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

static MEMBER: Member = Member {
    name: "jpeg",
    summary: "One picture a file, with loss; a sample is read by reading and decoding the file.",
    abilities: &[Ability::Lossy, Ability::EstimatedSize, Ability::DecoderAllocates],
};

const SIDE_MAX: u64 = 65_535;

const FITS: Fits = Fits { elements: &[Element::Uint8], channels: &[3], side_max: SIDE_MAX };

pub(super) static FORMAT: Format = Format {
    // 2: `jpeg-encoder` encodes.
    version: 2,
    ..Format::new(
        FormatEntry {
            unfit: |shape, _| FITS.unfit(shape),
            ..FormatEntry::new(&MEMBER, |shape, _| write::file_bytes(shape))
        },
        |shape, _, content, sink| write::picture(shape, content, sink),
        |options| Box::new(ImageCursor::new(JpegPicture::default(), options)),
    )
};

#[derive(Default)]
struct JpegPicture {
    markers: Markers,
    is_grey: bool,
}

impl Picture for JpegPicture {
    /// Each block of 64 samples takes a bit at least for its mean. Where colours have a sixteenth of the samples,
    /// three colours of 1024 pixels take 18 bits: 1366 bytes a byte.
    const PIXEL_BYTES_A_BYTE: u64 = 1536;

    fn begin(&mut self) {
        self.markers = Markers::default();
    }

    fn look(&mut self, head: &[u8]) -> Result<Option<FileShape>, FormatError> {
        let found = self.markers.look(head)?;
        self.is_grey = found.is_some_and(|shape| shape.dims.as_slice().len() == 2);
        Ok(found)
    }

    fn decode(&mut self, file: &[u8], pixels: &mut [u8]) -> Result<(), FormatError> {
        self.markers.check_end(file)?;
        let colours = if self.is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
        let options = DecoderOptions::new_fast()
            .set_strict_mode(true)
            .set_max_width(SIDE_MAX as usize)
            .set_max_height(SIDE_MAX as usize)
            .jpeg_set_out_colorspace(colours);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder.decode_headers().map_err(refused)?;
        if decoder.output_buffer_size() != Some(pixels.len()) {
            return Err(refused("a second header says another size"));
        }
        decoder.decode_into(pixels).map_err(refused)
    }
}

fn refused(why: impl std::fmt::Display) -> FormatError {
    FormatError::new(0, format!("no whole jpeg: {why}"))
}
