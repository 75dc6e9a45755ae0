//! Payload stored sample after sample. The writing functions are shared by the formats whose samples do not interleave.
//! The cursor reads files that contain only payload: files of `raw`, and files that a format's own library reads.

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::payload_range::PayloadRange;
use super::{
    Content, Cursor, CursorOptions, FileSink, FormatError, SinkError, check_sample, decode_length,
};
use feedrate_spec::shape::FileShape;

/// Number of bytes generated between two calls of [`FileSink::skip`].
const STRIDE_BYTES: u64 = 1 << 20;

/// Whether a sink received all payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// The sink received every byte.
    Complete,
    /// The sink skipped some bytes.
    Skipped,
}

/// Writes all samples of `shape` one after another.
pub(super) fn write_samples(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    for sample in 0..shape.samples {
        write_sample(0, sample, shape, content, sink, &mut |_| {})?;
    }
    Ok(())
}

/// Writes sample `sample` of `shape` to part `part`. `on_piece` is called with each generated piece.
pub(super) fn write_sample(
    part: usize,
    sample: u64,
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    on_piece: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    write_generated(part, shape.sample_bytes(), sink, &mut |offset, piece| {
        content.fill(sample, offset, shape.element, piece);
        on_piece(piece);
    })
}

/// Writes `bytes` bytes to part `part`. `generate` is called with an offset and the memory to fill with the bytes from
/// there on.
pub(super) fn write_generated(
    part: usize,
    bytes: u64,
    sink: &mut dyn FileSink,
    generate: &mut dyn FnMut(u64, &mut [u8]),
) -> Result<Payload, SinkError> {
    let mut payload = Payload::Complete;
    let mut offset = 0;
    while offset < bytes {
        let stride_end = bytes.min(offset.saturating_add(STRIDE_BYTES));
        if sink.skip(part, stride_end - offset) {
            payload = Payload::Skipped;
            offset = stride_end;
        }
        while offset < stride_end {
            let space = sink.space(part);
            let len = (space.len() as u64).min(stride_end - offset) as usize;
            generate(offset, &mut space[..len]);
            sink.advance(part, len)?;
            offset += len as u64;
        }
    }
    Ok(payload)
}

/// A cursor for files that contain only payload. The plan gives the length of a sample. Without a plan a file is one
/// sample.
pub(super) fn cursor(options: &CursorOptions) -> Box<dyn Cursor> {
    Box::new(LocatedCursor::<Packed>::new(options.piece_bytes))
}

#[derive(Default)]
struct Packed {
    file_bytes: Option<u64>,
}

impl Locator for Packed {
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let Some(file_bytes) = self.file_bytes else { return Ok(Lookup::Length { part: 0 }) };
        let Some(shape) = &wanted.expected else {
            return match wanted.sample {
                0 => Ok(Lookup::Found { payload: PayloadRange::new(0, file_bytes), shape: None }),
                _ => Err(FormatError::new(0, "does not say where its samples begin")),
            };
        };
        let planned = shape.payload_bytes();
        if planned != file_bytes {
            let message = format!("holds {file_bytes} bytes, but the plan says {planned}");
            return Err(FormatError::new(file_bytes, message));
        }
        check_sample(shape, wanted.sample)?;
        let bytes = shape.sample_bytes();
        let payload = PayloadRange::new(wanted.sample.saturating_mul(bytes), bytes);
        Ok(Lookup::Found { payload, shape: None })
    }

    fn accept(&mut self, _wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        self.file_bytes = Some(decode_length(bytes));
        Ok(())
    }

    fn reset(&mut self) {
        self.file_bytes = None;
    }
}
