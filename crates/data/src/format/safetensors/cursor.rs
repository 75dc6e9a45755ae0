//! Reads tensors of one file after another: length, header, then the bytes of the sample. What the header said is kept
//! while samples of the same file follow.

use super::super::payload_range::PayloadRange;
use super::header::{self, Tensor};
use super::{
    Cursor, FileShape, FormatError, Need, PREFIX_BYTES, PayloadSink, check_sample, compare_shapes,
    cut_off, piece_len,
};

/// Made once per worker.
pub(super) struct SafetensorsCursor {
    piece_bytes: usize,
    expected: Option<FileShape>,
    sample: u64,
    /// The file whose header is known, and the shape that the plan gave it.
    known: Option<(u64, Option<FileShape>)>,
    file: u64,
    file_bytes: u64,
    header_bytes: u64,
    /// The length before it included.
    header: Vec<u8>,
    /// Tensors of a file without a plan.
    tensors: Vec<Tensor>,
    phase: Phase,
    found: Option<FileShape>,
    payload: PayloadRange,
    asked: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Length,
    Prefix,
    Header,
    /// The header is known: the sample is to be looked up.
    Known,
    Data,
}

impl SafetensorsCursor {
    pub(super) fn new(piece_bytes: usize) -> Self {
        SafetensorsCursor {
            piece_bytes,
            expected: None,
            sample: 0,
            known: None,
            file: 0,
            file_bytes: 0,
            header_bytes: 0,
            header: Vec::new(),
            tensors: Vec::new(),
            phase: Phase::Length,
            found: None,
            payload: PayloadRange::default(),
            asked: 0,
        }
    }

    /// End of the prefix, or of the header once its length is known.
    fn front_bytes(&self) -> u64 {
        PREFIX_BYTES + if self.phase == Phase::Header { self.header_bytes } else { 0 }
    }

    fn feed_front(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.header.extend_from_slice(bytes);
        let (come, front_bytes) = (self.header.len() as u64, self.front_bytes());
        if bytes.len() < self.asked {
            return Err(cut_off(come, front_bytes - come));
        }
        if come == front_bytes && self.phase == Phase::Prefix {
            let prefix = self.header.first_chunk().copied().unwrap_or_default();
            self.header_bytes = header::length(prefix, self.file_bytes)?;
            self.phase = Phase::Header;
        }
        if self.header.len() as u64 == self.front_bytes() && self.phase == Phase::Header {
            self.header_done()?;
        }
        Ok(())
    }

    fn header_done(&mut self) -> Result<(), FormatError> {
        let text = &self.header[PREFIX_BYTES as usize..];
        let data_bytes = self.file_bytes - self.header.len() as u64;
        match self.expected {
            Some(expected) if header::matches(text, &expected) => {
                if data_bytes < expected.payload_bytes() {
                    return Err(cut_off(self.file_bytes, expected.payload_bytes() - data_bytes));
                }
                if data_bytes > expected.payload_bytes() {
                    let message = format!(
                        "{data_bytes} bytes follow the header, but the plan says {}",
                        expected.payload_bytes()
                    );
                    return Err(FormatError::new(self.file_bytes, message));
                }
            }
            expected => {
                header::read(text, data_bytes, &mut self.tensors)?;
                if let Some(expected) = expected {
                    return Err(self.unlike(&expected));
                }
            }
        }
        self.known = Some((self.file, self.expected));
        self.phase = Phase::Known;
        self.look_up()
    }

    /// The first difference between the plan and a file that was read without it.
    fn unlike(&self, expected: &FileShape) -> FormatError {
        let differing = self.tensors.iter().map(|tensor| self.shape_of(tensor));
        let first = differing.map(|shape| compare_shapes(&shape, Some(expected)));
        first.into_iter().find_map(Result::err).unwrap_or_else(|| {
            let message = format!(
                "the header names or orders its {} tensors otherwise, but the plan says as feedrate does",
                self.tensors.len()
            );
            FormatError::new(PREFIX_BYTES, message)
        })
    }

    fn shape_of(&self, tensor: &Tensor) -> FileShape {
        let samples = self.tensors.len() as u64;
        FileShape { dims: tensor.dims, element: tensor.element, samples }
    }

    /// Find the sample in the file whose header is known.
    fn look_up(&mut self) -> Result<(), FormatError> {
        let data = PREFIX_BYTES + self.header_bytes;
        let found = match self.expected {
            Some(expected) => {
                check_sample(&expected, self.sample)?;
                let bytes = expected.sample_bytes();
                // The file is as long as the plan says, so this does not overflow.
                self.payload = PayloadRange::new(data + self.sample * bytes, bytes);
                expected
            }
            None => {
                let tensor = usize::try_from(self.sample).ok().and_then(|i| self.tensors.get(i));
                let Some(tensor) = tensor else {
                    let count = self.tensors.len();
                    let message =
                        format!("holds {count} tensors, so there is no sample {}", self.sample);
                    return Err(FormatError::new(PREFIX_BYTES, message));
                };
                self.payload = PayloadRange::new(data + tensor.start, tensor.bytes);
                self.shape_of(tensor)
            }
        };
        self.found = Some(found);
        self.phase = Phase::Data;
        Ok(())
    }
}

impl Cursor for SafetensorsCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.expected = expected.copied();
        self.sample = sample;
        self.file = file;
        self.found = None;
        if self.known == Some((file, self.expected)) {
            self.phase = Phase::Known;
        } else {
            self.known = None;
            self.phase = Phase::Length;
        }
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        if self.phase == Phase::Known {
            self.look_up()?;
        }
        let (offset, left) = match self.phase {
            Phase::Length | Phase::Known => return Ok(Need::Length { part: 0 }),
            Phase::Prefix | Phase::Header => {
                let come = self.header.len() as u64;
                (come, self.front_bytes() - come)
            }
            Phase::Data => return Ok(self.payload.need(0, self.piece_bytes)),
        };
        self.asked = piece_len(self.piece_bytes, offset, left);
        Ok(Need::Bytes { part: 0, offset, len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            Phase::Length | Phase::Known => {
                self.file_bytes = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
                self.header.clear();
                self.phase = Phase::Prefix;
                Ok(())
            }
            Phase::Prefix | Phase::Header => self.feed_front(bytes),
            Phase::Data => self.payload.feed(bytes, sink),
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.found
    }
}
