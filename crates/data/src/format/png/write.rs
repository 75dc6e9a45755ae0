//! Writes a picture row by row: three rows are in memory.
//!
//! Rows take the filters in turn that Pillow chooses among for noise, so that whoever decodes them has as much to do.

use super::super::whole_image::Drawn;
use super::super::{Content, FileSink, SinkError};
use super::chunks::{CHUNK_BYTES, HEAD_BYTES, Head, SIGNATURE};
use super::deflate::{self, Noise, write_chunk};
use feedrate_spec::shape::{Element, FileShape};

/// None, Sub, Up, Paeth, by the standard's numbers. Pillow leaves out Average.
const FILTERS: [u8; 4] = [0, 1, 2, 4];

/// About the bytes of a file: how many bytes are 255 depends on the content.
pub(super) fn file_bytes(head: &Head) -> u64 {
    let height = u64::from(head.height);
    let pixel_bytes = (u64::from(head.width) * height).saturating_mul(head.pixel_bytes() as u64);
    let literals = pixel_bytes.saturating_add(height);
    let chunks = deflate::estimated_bytes(literals, pixel_bytes / 256);
    HEAD_BYTES.saturating_add(chunks).saturating_add(CHUNK_BYTES)
}

/// Write the file.
pub(super) fn picture(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let head = Head::of(shape);
    sink.write(0, &SIGNATURE)?;
    write_chunk(b"IHDR", &head.to_bytes(), sink)?;
    let pixel_bytes = head.pixel_bytes();
    let row_bytes = head.width as usize * pixel_bytes;
    let mut above = vec![0; row_bytes];
    let mut row = vec![0; row_bytes];
    let mut line = vec![0; row_bytes + 1];
    let mut noise = Noise::new(line.len() as u64 * u64::from(head.height), sink);
    let mut rows = Drawn::new(shape.sample_bytes(), shape.element, content);
    for y in 0..head.height {
        rows.next(&mut row);
        if shape.element == Element::Uint16 {
            super::swap_pairs(&mut row);
        }
        filter(FILTERS[y as usize % FILTERS.len()], pixel_bytes, &above, &row, &mut line);
        noise.write(&line)?;
        std::mem::swap(&mut above, &mut row);
    }
    let sink = noise.finish()?;
    write_chunk(b"IEND", &[], sink)
}

fn filter(kind: u8, pixel_bytes: usize, above: &[u8], row: &[u8], line: &mut [u8]) {
    let Some((first, line)) = line.split_first_mut() else { return };
    *first = kind;
    let left = row;
    match kind {
        1 => {
            line[..pixel_bytes].copy_from_slice(&row[..pixel_bytes]);
            let pairs = row[pixel_bytes..].iter().zip(left);
            line[pixel_bytes..]
                .iter_mut()
                .zip(pairs)
                .for_each(|(out, (x, a))| *out = x.wrapping_sub(*a));
        }
        2 => {
            let pairs = row.iter().zip(above);
            line.iter_mut().zip(pairs).for_each(|(out, (x, b))| *out = x.wrapping_sub(*b));
        }
        4 => {
            // Nothing lies to the left: Paeth's guess is what lies above.
            for i in 0..pixel_bytes {
                line[i] = row[i].wrapping_sub(above[i]);
            }
            let around = left.iter().zip(&above[pixel_bytes..]).zip(above);
            let pixels = row[pixel_bytes..].iter().zip(around);
            for (out, (x, ((a, b), c))) in line[pixel_bytes..].iter_mut().zip(pixels) {
                *out = x.wrapping_sub(paeth(*a, *b, *c));
            }
        }
        _ => line.copy_from_slice(row),
    }
}

/// Alan Paeth's guess: of left, above and above left, what is nearest to left + above - above left.
fn paeth(a: u8, b: u8, c: u8) -> u8 {
    let (p, q) = (i16::from(b) - i16::from(c), i16::from(a) - i16::from(c));
    let (near_a, near_b, near_c) = (p.abs(), q.abs(), (p + q).abs());
    if near_a <= near_b && near_a <= near_c {
        a
    } else if near_b <= near_c {
        b
    } else {
        c
    }
}
