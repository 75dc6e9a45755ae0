//! Streams npy arrays: writes the payload of an array piece by piece, and extracts the payload of one sample from an array
//! that is read piece by piece. Shared by the formats that contain npy arrays.

use super::npy_header::{self, ArrayHeader, HeaderProgress};
use super::packed::{self, Payload};
use super::{
    Content, FileSink, FormatError, PayloadSink, SinkError, check_sample, compare_shapes,
    shape_of_bytes,
};
use crate::content::BLOCK_BYTES;
use feedrate_spec::shape::FileShape;

/// Size of the buffer in which samples are interleaved.
const INTERLEAVE_BYTES: u64 = 8 << 20;

/// Writes the payload of `shape` to part 0 of the file. `on_piece` is called with each generated piece.
pub(super) fn write_payload(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    on_piece: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    if shape.samples == 1 {
        packed::write_sample(0, 0, shape, content, sink, on_piece)
    } else {
        write_interleaved(shape, content, sink, on_piece)
    }
}

/// Writes several samples, interleaved by element: element `e` of sample `s` is element `e × samples + s` of the array.
fn write_interleaved(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    on_piece: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    let sample_bytes = shape.sample_bytes();
    let element_bytes = shape.element.bytes() as usize;
    let piece_bytes = piece_bytes(shape);
    // Number of samples that are interleaved at once.
    let columns = INTERLEAVE_BYTES / piece_bytes;
    let mut payload = Payload::Complete;
    let mut memory = vec![0; piece_bytes as usize];
    let mut rows = Vec::new();
    for offset in (0..sample_bytes).step_by(piece_bytes as usize) {
        let piece = &mut memory[..piece_bytes.min(sample_bytes - offset) as usize];
        if sink.skip(0, piece.len() as u64 * shape.samples) {
            payload = Payload::Skipped;
            continue;
        }
        for first in (0..shape.samples).step_by(columns as usize) {
            let samples = first..shape.samples.min(first + columns);
            let row_bytes = (samples.end - samples.start) as usize * element_bytes;
            rows.resize(row_bytes * (piece.len() / element_bytes), 0);
            for sample in samples {
                content.fill(sample, offset, shape.element, piece);
                let column = (sample - first) as usize * element_bytes;
                scatter(piece, element_bytes, &mut rows[column..], row_bytes);
            }
            on_piece(&rows);
            sink.write(0, &rows)?;
        }
    }
    Ok(payload)
}

/// Number of bytes of each sample that are generated together: a multiple of a content block, or less if the blocks of all samples
/// do not fit into the buffer.
fn piece_bytes(shape: &FileShape) -> u64 {
    let block = BLOCK_BYTES as u64;
    let element = shape.element.bytes();
    let max_bytes = (INTERLEAVE_BYTES / shape.samples.max(1)).min(16 * block);
    if max_bytes < block {
        (max_bytes / element * element).max(element)
    } else {
        max_bytes / block * block
    }
}

/// Copies element `i` of `piece` to byte `i × row_bytes` of `rows`.
fn scatter(piece: &[u8], element_bytes: usize, rows: &mut [u8], row_bytes: usize) {
    for (element, row) in piece.chunks_exact(element_bytes).zip(rows.chunks_mut(row_bytes)) {
        row[..element_bytes].copy_from_slice(element);
    }
}

/// Reads an array and passes on the payload of one sample.
pub(super) struct ArrayStream {
    wants_payload: bool,
    expected: Option<FileShape>,
    sample: u64,
    origin: u64,
    /// Length of the array with its header, if it is known without the header.
    limit: Option<u64>,
    is_pickled: bool,
    head: Vec<u8>,
    head_bytes: u64,
    shape: Option<FileShape>,
    total: u64,
    payload_offset: u64,
    sample_piece: Vec<u8>,
}

impl ArrayStream {
    pub(super) fn new(wants_payload: bool) -> Self {
        ArrayStream {
            wants_payload,
            expected: None,
            sample: 0,
            origin: 0,
            limit: None,
            is_pickled: false,
            head: Vec::with_capacity(256),
            head_bytes: 0,
            shape: None,
            total: 0,
            payload_offset: 0,
            sample_piece: Vec::new(),
        }
    }

    /// Starts reading an array to pass on its sample `sample`.
    pub(super) fn begin(&mut self, sample: u64, expected: Option<&FileShape>) {
        self.expected = expected.copied();
        self.sample = sample;
        self.origin = 0;
        self.limit = None;
        self.is_pickled = false;
        self.head.clear();
        self.shape = None;
        self.payload_offset = 0;
    }

    /// Sets the offset of the array in its file, which is used in errors.
    pub(super) fn set_origin(&mut self, offset: u64) {
        self.origin = offset;
    }

    /// Sets the length of the array with its header. A pickled array does not contain its length.
    pub(super) fn set_limit(&mut self, bytes: u64) {
        self.limit = Some(bytes);
    }

    /// Handles the end of the file: a pickled array of unknown length ends there.
    pub(super) fn end_pickled(&mut self) {
        if self.is_pickled && self.shape.is_none() {
            self.total = self.payload_offset;
            self.shape = Some(shape_of_bytes(self.total, 1));
        }
    }

    /// Whether the array is pickled, and is passed on without being unpickled.
    pub(super) fn is_pickled(&self) -> bool {
        self.is_pickled
    }

    /// Reads the next bytes of the array. Returns how many of them belong to the array: all, unless the array ends
    /// within them.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        let mut used = 0;
        let shape = loop {
            if let Some(shape) = self.shape {
                break shape;
            }
            if self.is_pickled {
                let rest = &bytes[used..];
                if !rest.is_empty() {
                    sink.payload(self.payload_offset, rest)?;
                    self.payload_offset += rest.len() as u64;
                }
                return Ok(bytes.len());
            }
            match npy_header::read(&self.head).map_err(|error| self.with_file_offset(error))? {
                HeaderProgress::Done(array) => {
                    self.accept_header(array).map_err(|error| self.with_file_offset(error))?
                }
                HeaderProgress::Needs(len) => {
                    let taken =
                        (len.min(npy_header::BYTES_MAX) - self.head.len()).min(bytes.len() - used);
                    if taken == 0 {
                        return Ok(used);
                    }
                    self.head.extend_from_slice(&bytes[used..used + taken]);
                    used += taken;
                }
            }
        };
        let len = (self.total - self.payload_offset).min((bytes.len() - used) as u64) as usize;
        if len > 0 {
            self.payload(&shape, &bytes[used..used + len], sink)?;
            self.payload_offset += len as u64;
        }
        Ok(used + len)
    }

    /// Whether the whole array has been read.
    pub(super) fn is_done(&self) -> bool {
        self.shape.is_some() && self.payload_offset == self.total
    }

    /// Length of the array with its header; `None` before the header has been read.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.shape.map(|_| self.head_bytes.saturating_add(self.total))
    }

    /// Offset of the next byte in the file.
    pub(super) fn position(&self) -> u64 {
        self.origin.saturating_add(self.head.len() as u64 + self.payload_offset)
    }

    /// Number of bytes that are still missing; a header of unknown length counts as one byte.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.shape.map_or(1, |_| self.total - self.payload_offset)
    }

    pub(super) fn shape(&self) -> Option<FileShape> {
        self.shape
    }

    fn accept_header(&mut self, array: ArrayHeader) -> Result<(), FormatError> {
        self.head_bytes = self.head.len() as u64;
        self.is_pickled = array.is_pickled;
        let mut shape = array.shape;
        if array.is_pickled {
            let Some(limit) = self.limit else {
                return check_sample(&shape_of_bytes(0, 1), self.sample);
            };
            shape = shape_of_bytes(limit.saturating_sub(self.head_bytes), 1);
        }
        compare_shapes(&shape, self.expected.as_ref())?;
        check_sample(&shape, self.sample)?;
        let total = shape.payload_bytes();
        if total > u64::MAX / 4 {
            return Err(FormatError::new(0, "the array is larger than a file can be"));
        }
        self.total = total;
        self.shape = Some(shape);
        Ok(())
    }

    /// The error with its offset in the file instead of in the array.
    fn with_file_offset(&self, error: FormatError) -> FormatError {
        FormatError { offset: error.offset.saturating_add(self.origin), ..error }
    }

    fn payload(
        &mut self,
        shape: &FileShape,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if shape.samples == 1 {
            return sink.payload(self.payload_offset, bytes);
        }
        if !self.wants_payload {
            return Ok(());
        }
        let element_bytes = shape.element.bytes();
        let first = self.extract_sample(element_bytes, shape.samples * element_bytes, bytes);
        if self.sample_piece.is_empty() { Ok(()) } else { sink.payload(first, &self.sample_piece) }
    }

    /// Collects the bytes of the sample in `bytes`, and returns the offset in the sample's payload at which they begin.
    fn extract_sample(&mut self, element_bytes: u64, row_bytes: u64, bytes: &[u8]) -> u64 {
        self.sample_piece.clear();
        let piece_start = self.payload_offset;
        let piece_end = self.payload_offset + bytes.len() as u64;
        let column = self.sample * element_bytes;
        let mut row_start = piece_start / row_bytes * row_bytes;
        let mut first = 0;
        while row_start + column < piece_end {
            let element_start = row_start + column;
            let start = element_start.max(piece_start);
            let end = (element_start + element_bytes).min(piece_end);
            if start < end {
                if self.sample_piece.is_empty() {
                    first = row_start / row_bytes * element_bytes + (start - element_start);
                }
                let piece = &bytes[(start - piece_start) as usize..(end - piece_start) as usize];
                self.sample_piece.extend_from_slice(piece);
            }
            row_start += row_bytes;
        }
        first
    }
}
