//! Writes a picture by rows of blocks: up to 16 rows of pixels are in memory. Its bytes are libjpeg's.

use super::super::whole_image::Rows;
use super::super::{Content, FileSink, SinkError};
use super::blocks::{Divider, block};
use super::codes::{Bits, Codes};
use super::tables::{FIRST, OTHERS, STEPS, Symbols, ZIGZAG};
use feedrate_spec::shape::FileShape;

/// Bytes of headers and tables: (grey, RGB).
const HEAD_BYTES: (u64, u64) = (330, 625);
/// Of 64 grey samples of noise, and of 256 RGB ones with halved colours; measured.
const BLOCK_BYTES: (f64, f64) = (35.56, 152.9);

static DIVIDERS: [Divider; 2] = [Divider::new(0), Divider::new(1)];
static FIRST_CODES: [Codes; 2] = [Codes::new(&FIRST[0]), Codes::new(&FIRST[1])];
static OTHER_CODES: [Codes; 2] = [Codes::new(&OTHERS[0]), Codes::new(&OTHERS[1])];

/// The start of a picture, and a header of JFIF 1.1 that says no more than that pixels are square.
const START: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0";
const END: [u8; 2] = [0xff, 0xd9];

/// About the bytes of a file: they depend on the content.
pub(super) fn file_bytes(shape: &FileShape) -> u64 {
    let blocks = |side: u64| {
        let count = |i: usize| shape.dims.as_slice().get(i).map_or(0, |n| n.div_ceil(side));
        count(0) as f64 * count(1) as f64
    };
    let (head, noise) = match shape.dims.as_slice() {
        [_, _] => (HEAD_BYTES.0, blocks(8) * BLOCK_BYTES.0),
        _ => (HEAD_BYTES.1, blocks(16) * BLOCK_BYTES.1),
    };
    head.saturating_add(noise as u64)
}

/// Write the file.
pub(super) fn picture(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let side = |i: usize| shape.dims.as_slice().get(i).map_or(1, |&side| side as usize);
    let (height, width) = (side(0), side(1));
    let is_grey = shape.dims.as_slice().len() == 2;
    sink.write(0, START)?;
    write_tables(height as u16, width as u16, is_grey, sink)?;
    let rows = Rows::new(shape, content);
    let bits = Bits::new(sink);
    let bits = if is_grey {
        grey(height, width, rows, bits)?
    } else {
        Colours::new(height, width).write(rows, bits)?
    };
    bits.finish()?.write(0, &END)
}

/// What lies between the start and the coded pixels.
fn write_tables(
    height: u16,
    width: u16,
    is_grey: bool,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let tables = if is_grey { 1 } else { 2 };
    for (i, steps) in STEPS[..tables].iter().enumerate() {
        let steps = ZIGZAG.map(|from| steps[usize::from(from)]);
        segment(0xdb, &[&[i as u8], &steps], sink)?;
    }
    let [[high, low], [w_high, w_low]] = [height.to_be_bytes(), width.to_be_bytes()];
    // Number of a component, samples across and down a unit, table of steps.
    let components = [[1, if is_grey { 0x11 } else { 0x22 }, 0], [2, 0x11, 1], [3, 0x11, 1]];
    let count = if is_grey { 1 } else { 3 };
    let frame = [8, high, low, w_high, w_low, count];
    segment(0xc0, &[&frame, components[..count.into()].as_flattened()], sink)?;
    for i in 0..tables {
        for (class, Symbols { counts, symbols }) in [(0, &FIRST[i]), (0x10, &OTHERS[i])] {
            segment(0xc4, &[&[class | i as u8], counts, symbols], sink)?;
        }
    }
    // Each component's tables of codes; and all coefficients in full.
    let scan = [[1, 0], [2, 0x11], [3, 0x11]];
    segment(0xda, &[&[count], scan[..count.into()].as_flattened(), &[0, 63, 0]], sink)
}

fn segment(kind: u8, data: &[&[u8]], sink: &mut dyn FileSink) -> Result<(), SinkError> {
    let len = 2 + data.iter().map(|data| data.len()).sum::<usize>() as u16;
    let [high, low] = len.to_be_bytes();
    sink.write(0, &[0xff, kind, high, low])?;
    data.iter().try_for_each(|data| sink.write(0, data))
}

/// One component: block by block.
fn grey<'s>(
    height: usize,
    width: usize,
    mut rows: Rows<'_>,
    mut bits: Bits<'s>,
) -> Result<Bits<'s>, SinkError> {
    let stride = width.next_multiple_of(8);
    let mut strip = vec![0; 8 * stride];
    let mut last = 0;
    let mut row = vec![0; width];
    for _ in 0..height.div_ceil(8) {
        for line in strip.chunks_exact_mut(stride) {
            rows.next(&mut row);
            line[..width].copy_from_slice(&row);
            line[width..].fill(row[width - 1]);
        }
        for x in (0..stride).step_by(8) {
            let block = block(&strip, x, stride, &DIVIDERS[0]);
            bits.block(&block, &mut last, &FIRST_CODES[0], &OTHER_CODES[0])?;
        }
    }
    Ok(bits)
}

/// Three components: units of four blocks of luma, and one of each colour at half the size.
struct Colours {
    height: usize,
    width: usize,
    /// Of a row of luma, in whole units.
    stride: usize,
    luma: Vec<u8>,
    /// Two rows of each colour, as pixels have them.
    full: [Vec<u8>; 2],
    half: [Vec<u8>; 2],
    last: [i16; 3],
}

impl Colours {
    fn new(height: usize, width: usize) -> Self {
        let stride = width.next_multiple_of(16);
        let memory = |len: usize| vec![0; len];
        Colours {
            height,
            width,
            stride,
            luma: memory(16 * stride),
            full: [memory(2 * stride), memory(2 * stride)],
            half: [memory(4 * stride), memory(4 * stride)],
            last: [0; 3],
        }
    }

    fn write<'s>(mut self, mut rows: Rows<'_>, mut bits: Bits<'s>) -> Result<Bits<'s>, SinkError> {
        let mut row = vec![0; 3 * self.width];
        for top in (0..self.height).step_by(16) {
            let height = (self.height - top).min(16);
            self.fill(height, &mut rows, &mut row);
            for x in (0..self.stride).step_by(16) {
                self.unit(x, height, &mut bits)?;
            }
        }
        Ok(bits)
    }

    /// The next `height` rows. Below them the last one repeats, of each component.
    fn fill(&mut self, height: usize, rows: &mut Rows<'_>, row: &mut [u8]) {
        let half = self.stride / 2;
        let pairs = height.div_ceil(2);
        for y in 0..pairs {
            for i in 0..2 {
                rows.next(row);
                self.convert(2 * y + i, i, row);
            }
            for (full, halved) in self.full.iter().zip(&mut self.half) {
                halve(full.split_at(self.stride), &mut halved[y * half..][..half]);
            }
        }
        repeat(&mut self.luma, self.stride, 2 * pairs);
        self.half.iter_mut().for_each(|colour| repeat(colour, half, pairs));
    }

    /// From RGB to rows of luma and of colours, each filled up with its last sample.
    fn convert(&mut self, luma_row: usize, row_of_two: usize, row: &[u8]) {
        let luma = &mut self.luma[luma_row * self.stride..][..self.stride];
        let [blue, red] = &mut self.full;
        let blue = &mut blue[row_of_two * self.stride..][..self.stride];
        let red = &mut red[row_of_two * self.stride..][..self.stride];
        let pixels = row.as_chunks::<3>().0.iter().zip(luma.iter_mut());
        for (([r, g, b], luma), (blue, red)) in pixels.zip(blue.iter_mut().zip(red.iter_mut())) {
            let [r, g, b] = [*r, *g, *b].map(i32::from);
            *luma = ((19_595 * r + 38_470 * g + 7471 * b + (1 << 15)) >> 16) as u8;
            // 128, and a half less the least: 0.5 is rounded down, so that 255.5 is none.
            let middle = (128 << 16) + (1 << 15) - 1;
            *blue = ((-11_059 * r - 21_709 * g + (b << 15) + middle) >> 16) as u8;
            *red = (((r << 15) - 27_439 * g - 5329 * b + middle) >> 16) as u8;
        }
        for component in [luma, blue, red] {
            let last = component[self.width - 1];
            component[self.width..].fill(last);
        }
    }

    /// The blocks of 16 × 16 pixels, of which `height` rows are there.
    fn unit(&mut self, x: usize, height: usize, bits: &mut Bits<'_>) -> Result<(), SinkError> {
        for (y, x) in [(0, x), (0, x + 8), (8, x), (8, x + 8)] {
            if y < height && x < self.width {
                let block = block(&self.luma, y * self.stride + x, self.stride, &DIVIDERS[0]);
                bits.block(&block, &mut self.last[0], &FIRST_CODES[0], &OTHER_CODES[0])?;
            } else {
                bits.no_block(&FIRST_CODES[0], &OTHER_CODES[0])?;
            }
        }
        for (half, last) in self.half.iter().zip(&mut self.last[1..]) {
            let block = block(half, x / 2, self.stride / 2, &DIVIDERS[1]);
            bits.block(&block, last, &FIRST_CODES[1], &OTHER_CODES[1])?;
        }
        Ok(())
    }
}

/// Fill `rows` of `stride` bytes from row `y` on with the one above.
fn repeat(rows: &mut [u8], stride: usize, y: usize) {
    let (above, below) = rows.split_at_mut(y * stride);
    let last = &above[above.len() - stride..];
    below.chunks_exact_mut(stride).for_each(|row| row.copy_from_slice(last));
}

/// The mean of four samples each; halves are rounded down and up in turn.
fn halve((upper, lower): (&[u8], &[u8]), half: &mut [u8]) {
    let pairs = upper.as_chunks::<4>().0.iter().zip(lower.as_chunks::<4>().0);
    for (out, (upper, lower)) in half.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
        let [a, b, c, d] = upper.map(u16::from);
        let [e, f, g, h] = lower.map(u16::from);
        *out = [((a + b + e + f + 1) >> 2) as u8, ((c + d + g + h + 2) >> 2) as u8];
    }
}
