//! Writes a picture row by row with `jpeg-encoder`: a row of blocks is in memory.

use super::super::whole_image::{Drawn, SinkWriter, sides};
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
const RGB_UNIT_BYTES: f64 = 152.9;

/// About the bytes of a file: they depend on the content.
pub(super) fn file_bytes(shape: &FileShape) -> u64 {
    let (head, noise) = match shape.dims.as_slice() {
        [_, _] => (GREY_HEAD_BYTES, blocks(shape, 8) * GREY_BLOCK_BYTES),
        _ => (RGB_HEAD_BYTES, blocks(shape, 16) * RGB_UNIT_BYTES),
    };
    head.saturating_add(noise as u64)
}

/// Squares of `block_side` pixels that cover the picture.
fn blocks(shape: &FileShape, block_side: u64) -> f64 {
    sides(shape).map(|side| side.div_ceil(block_side) as f64).iter().product()
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
    current: RefCell<Pair<'c>>,
}

/// Two rows, which share their colours.
struct Pair<'c> {
    drawn: Drawn<'c>,
    rows_drawn: u32,
    upper: Vec<u8>,
    lower: Vec<u8>,
}

impl<'c> Rows<'c> {
    fn new(shape: &FileShape, content: &'c mut Content) -> Self {
        let [height, width] = sides(shape).map(|side| side as u16);
        let (colour, channels) = match shape.dims.as_slice().len() {
            2 => (JpegColorType::Luma, 1),
            _ => (JpegColorType::Ycbcr, 3),
        };
        let row = vec![0; usize::from(width) * channels];
        let drawn = Drawn::new(shape.sample_bytes(), shape.element, content);
        let pair = Pair { drawn, rows_drawn: 0, upper: row.clone(), lower: row };
        Rows { width, height, colour, current: RefCell::new(pair) }
    }
}

impl Pair<'_> {
    /// Go on to the pair of row `y`, and give that row.
    fn row(&mut self, y: u32, height: u32) -> &[u8] {
        if y == self.rows_drawn {
            self.drawn.next(&mut self.upper);
            if y + 1 < height {
                self.drawn.next(&mut self.lower);
            } else {
                self.lower.copy_from_slice(&self.upper);
            }
            self.rows_drawn += 2;
        }
        if y.is_multiple_of(2) { &self.upper } else { &self.lower }
    }

    /// The mean of the four pixels around column `x`: of halved colours the encoder takes one of four, and libjpeg their mean.
    fn mean(&self, x: usize) -> [u8; 3] {
        let (upper, lower) = (self.upper.as_chunks().0, self.lower.as_chunks().0);
        let (left, right) = (x / 2 * 2, (x / 2 * 2 + 1).min(upper.len() - 1));
        let four: [[u8; 3]; 4] = [upper[left], upper[right], lower[left], lower[right]];
        std::array::from_fn(|i| {
            let sum: u16 = four.iter().map(|pixel| u16::from(pixel[i])).sum();
            ((sum + 2) / 4) as u8
        })
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
        let mut pair = self.current.borrow_mut();
        let row = pair.row(y.into(), self.height.into());
        if self.colour == JpegColorType::Luma {
            buffers[0].extend_from_slice(row);
            return;
        }
        buffers[0].extend(row.as_chunks().0.iter().map(|[r, g, b]| rgb_to_ycbcr(*r, *g, *b).0));
        for x in 0..usize::from(self.width) {
            let [r, g, b] = pair.mean(x);
            let (_, blue, red) = rgb_to_ycbcr(r, g, b);
            buffers[1].push(blue);
            buffers[2].push(red);
        }
    }
}
