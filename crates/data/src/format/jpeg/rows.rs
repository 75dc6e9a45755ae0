//! Rows of a picture as `jpeg-encoder` asks for them: two are in memory.

use super::super::whole_image::{PixelSource, sides};
use feedrate_spec::shape::FileShape;
use jpeg_encoder::{ImageBuffer, JpegColorType, rgb_to_ycbcr};
use std::cell::RefCell;

/// The picture as the encoder asks for it: rows from the first on, the last one again to fill blocks.
pub(super) struct PixelRows<'c> {
    width: u16,
    height: u16,
    colour: JpegColorType,
    current: RefCell<RowPair<'c>>,
}

/// Two rows, which share their colours.
struct RowPair<'c> {
    pixels: PixelSource<'c>,
    rows_made: u32,
    upper: Vec<u8>,
    lower: Vec<u8>,
}

impl<'c> PixelRows<'c> {
    pub(super) fn new(shape: &FileShape, pixels: PixelSource<'c>) -> Self {
        let [height, width] = sides(shape).map(|side| side as u16);
        let (colour, channels) = match shape.dims.as_slice().len() {
            2 => (JpegColorType::Luma, 1),
            _ => (JpegColorType::Ycbcr, 3),
        };
        let row = vec![0; usize::from(width) * channels];
        let pair = RowPair { pixels, rows_made: 0, upper: row.clone(), lower: row };
        PixelRows { width, height, colour, current: RefCell::new(pair) }
    }
}

impl RowPair<'_> {
    /// Go on to the pair of row `y`, and give that row.
    fn row(&mut self, y: u32, height: u32) -> &[u8] {
        if y == self.rows_made {
            self.pixels.next(&mut self.upper);
            if y + 1 < height {
                self.pixels.next(&mut self.lower);
            } else {
                self.lower.copy_from_slice(&self.upper);
            }
            self.rows_made += 2;
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

impl ImageBuffer for PixelRows<'_> {
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
