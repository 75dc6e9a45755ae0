//! Supplies the rows of an image to `jpeg-encoder`, with two rows in memory.

use super::super::whole_image::{PixelSource, height_and_width};
use feedrate_spec::shape::FileShape;
use jpeg_encoder::{ImageBuffer, JpegColorType, rgb_to_ycbcr};
use std::cell::RefCell;

/// The image as an input of the encoder. The encoder requests rows in order, and the last one repeatedly to fill blocks.
pub(super) struct PixelRows<'c> {
    width: u16,
    height: u16,
    colour: JpegColorType,
    current: RefCell<RowPair<'c>>,
}

/// Two rows, which share colour values.
struct RowPair<'c> {
    pixels: PixelSource<'c>,
    rows_generated: u32,
    upper: Vec<u8>,
    lower: Vec<u8>,
}

impl<'c> PixelRows<'c> {
    pub(super) fn new(shape: &FileShape, pixels: PixelSource<'c>) -> Self {
        let [height, width] = height_and_width(shape).map(|side| side as u16);
        let (colour, channels) = match shape.dims.as_slice().len() {
            2 => (JpegColorType::Luma, 1),
            _ => (JpegColorType::Ycbcr, 3),
        };
        let row = vec![0; usize::from(width) * channels];
        let pair = RowPair { pixels, rows_generated: 0, upper: row.clone(), lower: row };
        PixelRows { width, height, colour, current: RefCell::new(pair) }
    }
}

impl RowPair<'_> {
    /// Row `y`. Generates the pair that contains the row, if it is the next one.
    fn row(&mut self, y: u32, height: u32) -> &[u8] {
        if y == self.rows_generated {
            self.pixels.fill_next_row(&mut self.upper);
            if y + 1 < height {
                self.pixels.fill_next_row(&mut self.lower);
            } else {
                self.lower.copy_from_slice(&self.upper);
            }
            self.rows_generated += 2;
        }
        if y.is_multiple_of(2) { &self.upper } else { &self.lower }
    }

    /// Mean of the four pixels that share a colour value with column `x`. The encoder would use one of the four values,
    /// while libjpeg uses their mean.
    fn mean_colour(&self, x: usize) -> [u8; 3] {
        let upper = self.upper.as_chunks().0;
        let lower = self.lower.as_chunks().0;
        let left = x / 2 * 2;
        let right = (left + 1).min(upper.len() - 1);
        let pixels: [[u8; 3]; 4] = [upper[left], upper[right], lower[left], lower[right]];
        std::array::from_fn(|i| {
            let sum: u16 = pixels.iter().map(|pixel| u16::from(pixel[i])).sum();
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
            let [r, g, b] = pair.mean_colour(x);
            let (_, blue, red) = rgb_to_ycbcr(r, g, b);
            buffers[1].push(blue);
            buffers[2].push(red);
        }
    }
}
