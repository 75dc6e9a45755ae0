//! The bytes of one npy array on their way: made for a sink piece by piece, or read piece by piece into the
//! payload of one sample. Shared by the formats that hold npy arrays.

use super::npy_header::{self, HeaderProgress};
use super::packed::{self, Payload};
use super::{Content, FileSink, FormatError, PayloadSink, SinkError, check_sample, compare_shapes};
use crate::content::BLOCK_BYTES;
use feedrate_spec::shape::FileShape;

/// Memory in which samples are laid side by side.
const ROWS_BYTES: u64 = 8 << 20;

/// Write the payload of `shape` to part 0; `seen` gets each piece that was made.
pub(super) fn write_payload(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    if shape.samples == 1 {
        packed::write_sample(0, 0, shape, content, sink, seen)
    } else {
        write_interleaved(shape, content, sink, seen)
    }
}

/// Element `e` of sample `s` is element `e × samples + s` of the array.
fn write_interleaved(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    let (total, element) = (shape.sample_bytes(), shape.element.bytes());
    let run_bytes = run_bytes(shape);
    // More samples than fit in memory side by side: then a run is one element.
    let columns = ROWS_BYTES / run_bytes;
    let mut payload = Payload::Whole;
    let (mut run, mut rows) = (vec![0; run_bytes as usize], Vec::new());
    for at in (0..total).step_by(run_bytes as usize) {
        let run = &mut run[..run_bytes.min(total - at) as usize];
        if sink.skip(0, run.len() as u64 * shape.samples) {
            payload = Payload::Skipped;
            continue;
        }
        for first in (0..shape.samples).step_by(columns as usize) {
            let samples = first..shape.samples.min(first + columns);
            let row = (samples.end - samples.start) as usize * element as usize;
            rows.resize(row * (run.len() / element as usize), 0);
            for sample in samples {
                content.fill(sample, at, shape.element, run);
                let column = (sample - first) as usize * element as usize;
                scatter(run, element as usize, &mut rows[column..], row);
            }
            seen(&rows);
            sink.write(0, &rows)?;
        }
    }
    Ok(payload)
}

/// Bytes of each sample that are made together: whole blocks of content, unless samples are very many.
fn run_bytes(shape: &FileShape) -> u64 {
    let (block, element) = (BLOCK_BYTES as u64, shape.element.bytes());
    let fit = (ROWS_BYTES / shape.samples.max(1)).min(16 * block);
    if fit < block { (fit / element * element).max(element) } else { fit / block * block }
}

/// Element `i` of `run` goes to byte `i × row` of `rows`.
fn scatter(run: &[u8], element: usize, rows: &mut [u8], row: usize) {
    for (from, to) in run.chunks_exact(element).zip(rows.chunks_mut(row)) {
        to[..element].copy_from_slice(from);
    }
}

/// Reads an array and hands on the payload of one sample.
pub(super) struct ArrayStream {
    wants_payload: bool,
    expected: Option<FileShape>,
    sample: u64,
    origin: u64,
    head: Vec<u8>,
    head_bytes: u64,
    shape: Option<FileShape>,
    total: u64,
    at: u64,
    gathered: Vec<u8>,
}

impl ArrayStream {
    pub(super) fn new(wants_payload: bool) -> Self {
        ArrayStream {
            wants_payload,
            expected: None,
            sample: 0,
            origin: 0,
            head: Vec::with_capacity(256),
            head_bytes: 0,
            shape: None,
            total: 0,
            at: 0,
            gathered: Vec::new(),
        }
    }

    /// Start on an array.
    pub(super) fn begin(&mut self, sample: u64, expected: Option<&FileShape>) {
        self.expected = expected.copied();
        self.sample = sample;
        self.origin = 0;
        self.head.clear();
        self.shape = None;
        self.at = 0;
    }

    /// Offset of the array in its file, for errors.
    pub(super) fn set_origin(&mut self, offset: u64) {
        self.origin = offset;
    }

    /// Take the next bytes of the array. How many of them belonged to it: fewer than all only at its end.
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
            match npy_header::read(&self.head).map_err(|error| self.placed(error))? {
                HeaderProgress::Done(shape) => {
                    self.header_done(shape).map_err(|error| self.placed(error))?
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
        let len = (self.total - self.at).min((bytes.len() - used) as u64) as usize;
        if len > 0 {
            self.payload(&shape, &bytes[used..used + len], sink)?;
            self.at += len as u64;
        }
        Ok(used + len)
    }

    /// The whole array has come.
    pub(super) fn is_done(&self) -> bool {
        self.shape.is_some() && self.at == self.total
    }

    /// Bytes of the array with its header, once the header has come.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.shape.map(|_| self.head_bytes.saturating_add(self.total))
    }

    /// Offset of the next byte in the file.
    pub(super) fn position(&self) -> u64 {
        self.origin.saturating_add(self.head.len() as u64 + self.at)
    }

    /// Bytes of the array still to come; a header of unknown length counts as one byte.
    pub(super) fn missing(&self) -> u64 {
        self.shape.map_or(1, |_| self.total - self.at)
    }

    pub(super) fn shape(&self) -> Option<FileShape> {
        self.shape
    }

    fn header_done(&mut self, shape: FileShape) -> Result<(), FormatError> {
        compare_shapes(&shape, self.expected.as_ref())?;
        check_sample(&shape, self.sample)?;
        let total = shape.payload_bytes();
        if total > u64::MAX / 4 {
            return Err(FormatError::new(0, "array of more bytes than a file can have"));
        }
        self.head_bytes = self.head.len() as u64;
        self.total = total;
        self.shape = Some(shape);
        Ok(())
    }

    fn placed(&self, error: FormatError) -> FormatError {
        FormatError { offset: error.offset.saturating_add(self.origin), ..error }
    }

    fn payload(
        &mut self,
        shape: &FileShape,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if shape.samples == 1 {
            return sink.payload(self.at, bytes);
        }
        if !self.wants_payload {
            return Ok(());
        }
        let element = shape.element.bytes();
        let first = self.gather(element, shape.samples * element, bytes);
        if self.gathered.is_empty() { Ok(()) } else { sink.payload(first, &self.gathered) }
    }

    /// Copy what belongs to the sample; where in the sample's payload that begins.
    fn gather(&mut self, element: u64, row: u64, bytes: &[u8]) -> u64 {
        self.gathered.clear();
        let (from, to) = (self.at, self.at + bytes.len() as u64);
        let column = self.sample * element;
        let mut row_start = from / row * row;
        let mut first = 0;
        while row_start + column < to {
            let start = row_start + column;
            let (start, end) = (start.max(from), (start + element).min(to));
            if start < end {
                if self.gathered.is_empty() {
                    first = row_start / row * element + (start - row_start - column);
                }
                self.gathered
                    .extend_from_slice(&bytes[(start - from) as usize..(end - from) as usize]);
            }
            row_start += row;
        }
        first
    }
}
