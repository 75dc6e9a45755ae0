//! Samples one after another, with their offsets and sizes in two files beside them, as DLIO generates them
//! (`indexed_binary_generator.py`): `<file>.off.idx` and `<file>.sz.idx`, little-endian u64 each.

use super::payload_range::PayloadRange;
use super::{
    Content, Cursor, CursorOptions, FileSink, FormatError, Need, Part, PayloadSink, SinkError,
    cut_off, packed, piece_len,
};
use feedrate_spec::shape::{Dims, Element, FileShape};

pub(super) static PARTS: [Part; 3] =
    [Part::DATA, Part::beside(".off.idx"), Part::beside(".sz.idx")];

const DATA: usize = 0;
const OFFSETS: usize = 1;
const SIZES: usize = 2;
/// Length of an entry of an index.
const ENTRY_BYTES: u64 = 8;
/// Both indexes of a file are kept up to this many bytes; of longer ones, entries are read one by one.
const KEPT_BYTES_MAX: u64 = 16 << 20;

pub(super) fn encode(
    shape: &FileShape,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let size = shape.sample_bytes();
    for sample in 0..shape.samples {
        packed::write_sample(DATA, sample, shape, content, sink, &mut |_| {})?;
        sink.write(OFFSETS, &(sample * size).to_le_bytes())?;
        sink.write(SIZES, &size.to_le_bytes())?;
    }
    Ok(())
}

pub(super) fn cursor(options: &CursorOptions) -> Box<dyn Cursor> {
    Box::new(IndexedCursor {
        piece_bytes: options.piece_bytes,
        expected: None,
        sample: 0,
        index: Index::default(),
        phase: Phase::Length,
        payload: PayloadRange::default(),
        asked: 0,
    })
}

pub(super) fn file_bytes(shape: &FileShape) -> u64 {
    let index_bytes = shape.samples.saturating_mul(2 * ENTRY_BYTES);
    shape.payload_bytes().saturating_add(index_bytes)
}

struct IndexedCursor {
    piece_bytes: usize,
    expected: Option<FileShape>,
    sample: u64,
    index: Index,
    phase: Phase,
    payload: PayloadRange,
    asked: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Ask for the length of the index of offsets.
    Length,
    /// The whole index in part `0` comes.
    Whole(usize),
    /// The sample's entry in an index too long to keep.
    Entry(usize),
    /// Ask for the length of the data, which must be as planned.
    DataLength,
    Data,
}

/// The indexes of one file.
#[derive(Default)]
struct Index {
    file: Option<u64>,
    samples: u64,
    /// Offsets, then sizes; as they lie in the files.
    kept: Vec<u8>,
    /// The data has the length that the plan says.
    data_fits: bool,
    entry: [u64; 2],
}

impl Index {
    fn fits(&self) -> bool {
        self.samples <= KEPT_BYTES_MAX / (2 * ENTRY_BYTES)
    }

    fn bytes(&self) -> u64 {
        self.samples * ENTRY_BYTES
    }

    /// Offset and size of a sample in a kept index.
    fn kept_entry(&self, sample: u64) -> Option<[u64; 2]> {
        Some([self.kept_number(sample)?, self.kept_number(self.samples + sample)?])
    }

    fn kept_number(&self, entry: u64) -> Option<u64> {
        let from = usize::try_from(entry * ENTRY_BYTES).ok()?;
        self.kept.get(from..)?.first_chunk().copied().map(u64::from_le_bytes)
    }
}

impl IndexedCursor {
    fn feed_length(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let length = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        if length % ENTRY_BYTES != 0 {
            return Err(FormatError::new(length, "the index of offsets ends within an entry"));
        }
        self.index.samples = length / ENTRY_BYTES;
        self.check_count()?;
        self.index.kept.clear();
        self.phase = if self.index.fits() { Phase::Whole(OFFSETS) } else { Phase::Entry(OFFSETS) };
        Ok(())
    }

    fn check_count(&self) -> Result<(), FormatError> {
        let samples = self.index.samples;
        if let Some(expected) = self.expected.filter(|expected| expected.samples != samples) {
            let message = format!(
                "the index holds {samples} samples, but the plan says {}",
                expected.samples
            );
            return Err(FormatError::new(0, message));
        }
        if self.sample >= samples {
            let message =
                format!("the index holds {samples} samples, so there is no sample {}", self.sample);
            return Err(FormatError::new(0, message));
        }
        Ok(())
    }

    fn feed_whole(&mut self, part: usize, bytes: &[u8]) -> Result<(), FormatError> {
        self.index.kept.extend_from_slice(bytes);
        let begun = if part == OFFSETS { 0 } else { self.index.bytes() };
        let come = self.index.kept.len() as u64 - begun;
        let missing = self.index.bytes() - come;
        if bytes.len() < self.asked {
            return Err(cut_off(come, missing));
        }
        match (missing, part) {
            (0, OFFSETS) => self.phase = Phase::Whole(SIZES),
            (0, _) if self.expected.is_some() => self.phase = Phase::DataLength,
            (0, _) => self.find_kept()?,
            _ => {}
        }
        Ok(())
    }

    fn feed_data_length(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        let length = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        match self.expected.map(|shape| shape.payload_bytes()) {
            Some(planned) if planned != length => {
                let message = format!("holds {length} bytes, but the plan says {planned}");
                Err(FormatError::new(length.min(planned), message))
            }
            _ => {
                self.index.data_fits = true;
                self.find_kept()
            }
        }
    }

    fn find_kept(&mut self) -> Result<(), FormatError> {
        let entry = self.index.kept_entry(self.sample);
        self.found(entry.ok_or_else(|| FormatError::new(0, "the index is too short"))?)
    }

    fn feed_entry(&mut self, part: usize, bytes: &[u8]) -> Result<(), FormatError> {
        let Some(value) = bytes.first_chunk().copied().map(u64::from_le_bytes) else {
            return Err(cut_off(
                self.sample * ENTRY_BYTES + bytes.len() as u64,
                ENTRY_BYTES - bytes.len() as u64,
            ));
        };
        self.index.entry[part - OFFSETS] = value;
        if part == SIZES {
            return self.found(self.index.entry);
        }
        self.phase = Phase::Entry(SIZES);
        Ok(())
    }

    /// The sample is `size` bytes at `start`.
    fn found(&mut self, [start, size]: [u64; 2]) -> Result<(), FormatError> {
        let entry_offset = self.sample * ENTRY_BYTES;
        if let Some(expected) = self.expected.map(|shape| shape.sample_bytes())
            && (size != expected || Some(start) != self.sample.checked_mul(expected))
        {
            let message = format!(
                "sample {} is {size} bytes at {start} by its index, but the plan says {expected} bytes each",
                self.sample
            );
            return Err(FormatError::new(entry_offset, message));
        }
        if start.checked_add(size).is_none_or(|end| end > u64::MAX / 2) {
            let message =
                format!("the index says {size} bytes at {start}, beyond what a file can have");
            return Err(FormatError::new(entry_offset, message));
        }
        self.payload = PayloadRange::new(start, size);
        self.phase = Phase::Data;
        Ok(())
    }
}

impl Cursor for IndexedCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        self.expected = expected.copied();
        self.sample = sample;
        self.phase = Phase::Length;
        if self.index.file != Some(file) {
            self.index.file = Some(file);
            self.index.samples = 0;
            self.index.kept.clear();
            self.index.data_fits = false;
        }
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        // The index of this file is known from a sample before.
        if self.phase == Phase::Length && self.index.samples > 0 {
            self.check_count()?;
            if !self.index.fits() {
                self.phase = Phase::Entry(OFFSETS);
            } else if self.index.kept.len() as u64 == 2 * self.index.bytes() {
                if self.expected.is_some() && !self.index.data_fits {
                    self.phase = Phase::DataLength;
                } else {
                    self.find_kept()?;
                }
            }
        }
        let (part, offset, left) = match self.phase {
            Phase::Length => return Ok(Need::Length { part: OFFSETS }),
            Phase::DataLength => return Ok(Need::Length { part: DATA }),
            Phase::Whole(part) => {
                let begun = if part == OFFSETS { 0 } else { self.index.bytes() };
                let come = self.index.kept.len() as u64 - begun;
                (part, come, self.index.bytes() - come)
            }
            Phase::Entry(part) => {
                self.asked = ENTRY_BYTES as usize;
                return Ok(Need::Bytes {
                    part,
                    offset: self.sample * ENTRY_BYTES,
                    len: self.asked,
                });
            }
            Phase::Data => return Ok(self.payload.need(DATA, self.piece_bytes)),
        };
        self.asked = piece_len(self.piece_bytes, offset, left);
        Ok(Need::Bytes { part, offset, len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            Phase::Length => self.feed_length(bytes),
            Phase::DataLength => self.feed_data_length(bytes),
            Phase::Whole(part) => self.feed_whole(part, bytes),
            Phase::Entry(part) => self.feed_entry(part, bytes),
            Phase::Data => self.payload.feed(bytes, sink),
        }
    }

    /// The index knows sizes only: bytes stand for elements.
    fn found(&self) -> Option<FileShape> {
        if self.phase != Phase::Data {
            return None;
        }
        let dims = Dims::new(&[self.payload.bytes()])?;
        Some(FileShape { dims, element: Element::Uint8, samples: self.index.samples })
    }
}
