//! Writes a picture block by block, of noise: no pixel is made, and nothing but a row of blocks is in memory.

use super::super::whole_image::Drawn;
use super::super::{Content, FileSink, SinkError};
use super::codes::Bits;
use super::noise::{COLOUR, GREY, LUMA};
use super::tables::{FIRST, OTHERS, STEPS, Symbols, ZIGZAG};
use feedrate_spec::shape::{Element, FileShape};

/// Bytes of headers and tables: (grey, RGB).
const HEAD_BYTES: (u64, u64) = (330, 625);
/// Of 64 grey samples of noise, and of 256 RGB ones with halved colours; measured.
const UNIT_BYTES: (f64, f64) = (35.56, 152.9);

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
        [_, _] => (HEAD_BYTES.0, blocks(8) * UNIT_BYTES.0),
        _ => (HEAD_BYTES.1, blocks(16) * UNIT_BYTES.1),
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
    let mut bits = Bits::new(sink);
    if is_grey {
        grey(height.div_ceil(8), width.div_ceil(8), content, &mut bits)?;
    } else {
        colours(height.div_ceil(16), width.div_ceil(16), content, &mut bits)?;
    }
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

/// One component, in `rows` of `blocks` blocks.
fn grey(
    rows: usize,
    blocks: usize,
    content: &mut Content,
    bits: &mut Bits<'_>,
) -> Result<(), SinkError> {
    let mut row = vec![[0; 64]; blocks];
    let mut drawn = Drawn::new((rows * blocks * 64) as u64, Element::Uint8, content);
    let mut last = 0;
    for _ in 0..rows {
        drawn.next(row.as_flattened_mut());
        for content in &row {
            bits.block(&GREY, content, &mut last)?;
        }
    }
    Ok(())
}

/// Three components, in `rows` of `units` units: four blocks of luma, and one of each colour at half the size.
fn colours(
    rows: usize,
    units: usize,
    content: &mut Content,
    bits: &mut Bits<'_>,
) -> Result<(), SinkError> {
    let mut row = vec![[[0; 64]; 6]; units];
    let row_bytes = units * 6 * 64;
    let mut drawn = Drawn::new((rows * row_bytes) as u64, Element::Uint8, content);
    let mut last = [0; 3];
    for _ in 0..rows {
        drawn.next(row.as_flattened_mut().as_flattened_mut());
        for [luma @ .., blue, red] in &row {
            for content in luma {
                bits.block(&LUMA, content, &mut last[0])?;
            }
            bits.block(&COLOUR, blue, &mut last[1])?;
            bits.block(&COLOUR, red, &mut last[2])?;
        }
    }
    Ok(())
}
