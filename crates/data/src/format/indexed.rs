//! Samples one after another, with their offsets and sizes in two index files `<file>.off.idx` and `<file>.sz.idx`, as
//! DLIO generates them (`indexed_binary_generator.py`). Entries are little-endian u64.

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::payload_range::PayloadRange;
use super::{
    Content, FileSink, Format, FormatError, Part, SinkError, decode_length, packed, shape_of_bytes,
};
use feedrate_spec::catalog::{FormatEntry, Member};
use feedrate_spec::shape::{Encoding, FileShape};
use std::ops::Range;

const DATA: usize = 0;
const OFFSETS: usize = 1;
const SIZES: usize = 2;
/// Length of an index entry.
const ENTRY_BYTES: u64 = 8;
/// Upper limit on the samples of an index that is kept in memory (16 MiB). Entries of longer indexes are read one by one.
const KEPT_SAMPLES_MAX: u64 = 1 << 20;

/// A format with this layout.
pub(super) const fn format(member: &'static Member) -> Format {
    let entry = FormatEntry::new(member, |shape, _| {
        let index_bytes = shape.samples.saturating_mul(2 * ENTRY_BYTES);
        shape.payload_bytes().saturating_add(index_bytes)
    });
    Format {
        parts: const { &[Part::DATA, Part::beside(".off.idx"), Part::beside(".sz.idx")] },
        ..Format::new(entry, encode, |options| {
            Box::new(LocatedCursor::<Index>::new(options.piece_bytes))
        })
    }
}

fn encode(
    shape: &FileShape,
    _encoding: &Encoding,
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

/// The indexes of one file.
#[derive(Default)]
struct Index {
    samples: Option<u64>,
    /// Samples whose entries are kept: all, or only the last one requested.
    kept: Range<u64>,
    /// Offsets and sizes of these samples, as stored in the files.
    entries: [Vec<u8>; 2],
    /// Number of elements of `entries` that have been read.
    loaded: usize,
    /// Whether the data file is known to have the planned length.
    has_planned_length: bool,
}

impl Index {
    fn entry(&self, index: usize, sample: u64) -> u64 {
        decode_length(&self.entries[index][((sample - self.kept.start) * ENTRY_BYTES) as usize..])
    }

    /// The range of a sample, after a check against the plan.
    fn sample_range(&self, wanted: &WantedSample) -> Result<PayloadRange, FormatError> {
        let sample = wanted.sample;
        let start = self.entry(0, sample);
        let size = self.entry(1, sample);
        let planned = wanted.expected.map(|shape| shape.sample_bytes());
        let message = match planned {
            Some(planned) if size != planned || Some(start) != sample.checked_mul(planned) => {
                format!(
                    "sample {sample} is {size} bytes at {start} by its index, but the plan says {planned} bytes each"
                )
            }
            _ if start.checked_add(size).is_none_or(|end| end > u64::MAX / 2) => {
                format!("the index says {size} bytes at {start}, beyond what a file can have")
            }
            _ => return Ok(PayloadRange::new(start, size)),
        };
        Err(FormatError::new(sample * ENTRY_BYTES, message))
    }
}

fn check_count(samples: u64, wanted: &WantedSample) -> Result<(), FormatError> {
    let message = match &wanted.expected {
        Some(expected) if expected.samples != samples => {
            format!("the index holds {samples} samples, but the plan says {}", expected.samples)
        }
        _ if wanted.sample >= samples => {
            format!("the index holds {samples} samples, so there is no sample {}", wanted.sample)
        }
        _ => return Ok(()),
    };
    Err(FormatError::new(0, message))
}

impl Locator for Index {
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let Some(samples) = self.samples else { return Ok(Lookup::Length { part: OFFSETS }) };
        check_count(samples, wanted)?;
        let is_short = samples <= KEPT_SAMPLES_MAX;
        let kept = if is_short { 0..samples } else { wanted.sample..wanted.sample + 1 };
        if self.kept != kept {
            self.kept = kept;
            self.loaded = 0;
        }
        if self.loaded < self.entries.len() {
            let entries = self.kept.end - self.kept.start;
            let range = PayloadRange::new(self.kept.start * ENTRY_BYTES, entries * ENTRY_BYTES);
            return Ok(Lookup::Bytes { part: OFFSETS + self.loaded, range });
        }
        if wanted.expected.is_some() && !self.has_planned_length {
            return Ok(Lookup::Length { part: DATA });
        }
        let payload = self.sample_range(wanted)?;
        // The index contains sizes but no types.
        let shape = Some(shape_of_bytes(payload.bytes(), samples));
        Ok(Lookup::Found { payload, shape })
    }

    fn accept(&mut self, wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        let length = decode_length(bytes);
        if self.samples.is_none() {
            if !length.is_multiple_of(ENTRY_BYTES) {
                return Err(FormatError::new(length, "the index of offsets ends within an entry"));
            }
            self.samples = Some(length / ENTRY_BYTES);
        } else if let Some(entries) = self.entries.get_mut(self.loaded) {
            std::mem::swap(entries, bytes);
            self.loaded += 1;
        } else {
            let planned = wanted.expected.map_or(length, |shape| shape.payload_bytes());
            if planned != length {
                let message = format!("holds {length} bytes, but the plan says {planned}");
                return Err(FormatError::new(length.min(planned), message));
            }
            self.has_planned_length = true;
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.samples = None;
        self.kept = 0..0;
        self.has_planned_length = false;
    }
}
