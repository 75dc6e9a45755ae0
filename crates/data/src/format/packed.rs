//! One sample's payload in one piece, made for a sink. Shared by the formats whose samples do not interleave.

use super::{Content, FileSink, SinkError};
use feedrate_spec::shape::FileShape;

/// Payload made between two questions to the sink.
const STRIDE_BYTES: u64 = 1 << 20;

/// Whether a sink took all payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// Every byte was made.
    Whole,
    /// The sink skipped some.
    Skipped,
}

/// Write sample `sample` of `shape` to part `part`; `seen` gets each piece that was made.
pub(super) fn write_sample(
    part: usize,
    sample: u64,
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    let total = shape.sample_bytes();
    let mut payload = Payload::Whole;
    let mut at = 0;
    while at < total {
        let stride_end = total.min(at.saturating_add(STRIDE_BYTES));
        if sink.skip(part, stride_end - at) {
            payload = Payload::Skipped;
            at = stride_end;
        }
        while at < stride_end {
            let space = sink.space(part);
            let len = (space.len() as u64).min(stride_end - at) as usize;
            let piece = &mut space[..len];
            content.fill(sample, at, shape.element, piece);
            seen(piece);
            sink.advance(part, len)?;
            at += len as u64;
        }
    }
    Ok(payload)
}
