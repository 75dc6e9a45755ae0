//! Writes a picture by rows of blocks: up to 16 rows of pixels are in memory.

use super::super::{Content, FileSink, SinkError};
use feedrate_spec::shape::{Element, FileShape};
use jpeg_encoder::{ChromaSubsamplingMethod, Encoder, ImageBuffer, JpegColorType, rgb_to_ycbcr};
use std::cell::RefCell;
use std::io::{BufWriter, Error, Write};

/// Pillow's default.
const QUALITY: u8 = 75;
/// Bytes gathered before they go to the sink: codes come a few at a time.
const GATHERED_BYTES: usize = 64 << 10;

/// Bytes of headers and tables: (grey, RGB).
const HEAD_BYTES: (u64, u64) = (397, 623);
/// Of 64 grey samples of noise, and of 256 RGB ones with halved colours; measured.
const BLOCK_BYTES: (f64, f64) = (35.56, 152.9);

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
    let mut gathered = BufWriter::with_capacity(GATHERED_BYTES, SinkWriter { sink, error: None });
    let mut encoder = Encoder::new(&mut gathered, QUALITY);
    // As libjpeg halves colours.
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    let encoded = encoder.encode_image(Rows::new(shape, content));
    let encoded = encoded.and_then(|()| Ok(gathered.flush()?));
    // What is left after an error is not wanted.
    let (writer, _) = gathered.into_parts();
    match (writer.error, encoded) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => unreachable!("a shape that fits is encoded: {error}"),
    }
}

/// Keeps what the sink said, which the encoder does not.
struct SinkWriter<'s> {
    sink: &'s mut dyn FileSink,
    error: Option<SinkError>,
}

impl Write for SinkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.sink.write(0, bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.error = Some(error);
                Err(Error::other("the sink refused"))
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes rows of content as the encoder asks for them.
struct Rows<'c> {
    made: RefCell<Made<'c>>,
    width: u16,
    height: u16,
    colours: JpegColorType,
}

struct Made<'c> {
    content: &'c mut Content,
    row: Vec<u8>,
}

impl<'c> Rows<'c> {
    fn new(shape: &FileShape, content: &'c mut Content) -> Self {
        let side = |i: usize| shape.dims.as_slice().get(i).map_or(1, |&side| side as u16);
        let (colours, channels) = match shape.dims.as_slice() {
            [_, _] => (JpegColorType::Luma, 1),
            _ => (JpegColorType::Ycbcr, 3),
        };
        let row = vec![0; usize::from(side(1)) * channels];
        let made = RefCell::new(Made { content, row });
        Rows { made, width: side(1), height: side(0), colours }
    }
}

impl ImageBuffer for Rows<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        self.colours
    }

    fn width(&self) -> u16 {
        self.width
    }

    fn height(&self) -> u16 {
        self.height
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let Made { content, row } = &mut *self.made.borrow_mut();
        content.fill(0, u64::from(y) * row.len() as u64, Element::Uint8, row);
        let [luma, blue, red, _] = buffers;
        if row.len() == usize::from(self.width) {
            luma.extend_from_slice(row);
            return;
        }
        for &[r, g, b] in row.as_chunks::<3>().0 {
            let (y, cb, cr) = rgb_to_ycbcr(r, g, b);
            luma.push(y);
            blue.push(cb);
            red.push(cr);
        }
    }
}
