//! Writes a picture row by row with `jpeg-encoder`: a row of blocks is in memory.

use super::super::whole_image::{Drawn, SinkWriter};
use super::super::{Content, FileSink, SinkError};
use feedrate_spec::shape::FileShape;
use jpeg_encoder::{Encoder, EncodingError, ImageBuffer, JfifWrite, JpegColorType, rgb_to_ycbcr};
use std::cell::RefCell;
use std::io;

/// Pillow's default.
const QUALITY: u8 = 75;
/// Headers and tables.
const GREY_HEAD_BYTES: u64 = 399;
const RGB_HEAD_BYTES: u64 = 625;
/// 64 grey samples of noise, and 256 RGB ones with halved colours; measured.
const GREY_BLOCK_BYTES: f64 = 35.56;
const RGB_UNIT_BYTES: f64 = 171.6;

/// About the bytes of a file: they depend on the content.
pub(super) fn file_bytes(shape: &FileShape) -> u64 {
    let blocks = |side: u64| {
        let count = |i: usize| shape.dims.as_slice().get(i).map_or(0, |n| n.div_ceil(side));
        count(0) as f64 * count(1) as f64
    };
    let (head, noise) = match shape.dims.as_slice() {
        [_, _] => (GREY_HEAD_BYTES, blocks(8) * GREY_BLOCK_BYTES),
        _ => (RGB_HEAD_BYTES, blocks(16) * RGB_UNIT_BYTES),
    };
    head.saturating_add(noise as u64)
}

/// Write the file.
pub(super) fn picture(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut writer = SinkWriter::new(sink);
    let encoded = Encoder::new(Jfif(&mut writer), QUALITY).encode_image(Rows::new(shape, content));
    writer.finish(encoded)
}

struct Jfif<'w, 's>(&'w mut SinkWriter<'s>);

impl JfifWrite for Jfif<'_, '_> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), EncodingError> {
        io::Write::write_all(self.0, bytes).map_err(EncodingError::IoError)
    }
}

/// The picture as the encoder asks for it: rows from the first on, the last one again to fill blocks.
struct Rows<'c> {
    width: u16,
    height: u16,
    colour: JpegColorType,
    current: RefCell<Row<'c>>,
}

struct Row<'c> {
    drawn: Drawn<'c>,
    rows_drawn: u32,
    pixels: Vec<u8>,
}

impl<'c> Rows<'c> {
    fn new(shape: &FileShape, content: &'c mut Content) -> Self {
        let side = |i: usize| shape.dims.as_slice().get(i).map_or(1, |&side| side as u16);
        let (colour, channels) = match shape.dims.as_slice().len() {
            2 => (JpegColorType::Luma, 1),
            _ => (JpegColorType::Ycbcr, 3),
        };
        let pixels = vec![0; usize::from(side(1)) * channels];
        let drawn = Drawn::new(shape.sample_bytes(), shape.element, content);
        let current = RefCell::new(Row { drawn, rows_drawn: 0, pixels });
        Rows { width: side(1), height: side(0), colour, current }
    }
}

impl ImageBuffer for Rows<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        self.colour
    }

    fn width(&self) -> u16 {
        self.width
    }

    fn height(&self) -> u16 {
        self.height
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let Row { drawn, rows_drawn, pixels } = &mut *self.current.borrow_mut();
        if u32::from(y) == *rows_drawn {
            drawn.next(pixels);
            *rows_drawn += 1;
        }
        if self.colour == JpegColorType::Luma {
            buffers[0].extend_from_slice(pixels);
            return;
        }
        for [r, g, b] in pixels.as_chunks::<3>().0 {
            let (luma, blue, red) = rgb_to_ycbcr(*r, *g, *b);
            buffers[0].push(luma);
            buffers[1].push(blue);
            buffers[2].push(red);
        }
    }
}
