//! `mds`: shards of MosaicML Streaming. A shard begins with its number of samples and their offsets, so `index.json` is not
//! needed. As in `MDSReader`, a sample takes a read of its two offsets and a read of its bytes. The number of samples is read
//! from each shard when it is opened.

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::mds_shard::{ENTRY_BYTES, begins_shard, description_start, entries};
use super::payload_range::PayloadRange;
use super::{Format, FormatError, shape_of_bytes};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};

static MEMBER: Member = Member {
    name: "mds",
    summary: "Uncompressed shards of MosaicML Streaming; samples are read and not decoded.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::ReadOnly,
    ],
};

pub(super) static FORMAT: Format = Format {
    is_recognised: begins_shard,
    ..Format::read_only(FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes()), |options| {
        Box::new(LocatedCursor::<Shard>::new(options.piece_bytes))
    })
};

/// The entries of one shard.
#[derive(Default)]
struct Shard {
    samples: Option<u64>,
    /// Bytes of the sample requested last.
    range: Option<SampleRange>,
}

/// Offsets of a sample.
#[derive(Clone, Copy)]
struct SampleRange {
    sample: u64,
    start: u64,
    end: u64,
}

impl Locator for Shard {
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let Some(samples) = self.samples else {
            return Ok(Lookup::Bytes { part: 0, range: PayloadRange::new(0, ENTRY_BYTES) });
        };
        if wanted.sample >= samples {
            let contents = format!("{samples} samples");
            return Err(FormatError::no_sample(0, samples, contents, wanted.sample));
        }
        let entry = (wanted.sample + 1) * ENTRY_BYTES;
        let range = self.range.filter(|range| range.sample == wanted.sample);
        let Some(SampleRange { start, end, .. }) = range else {
            return Ok(Lookup::Bytes { part: 0, range: PayloadRange::new(entry, 2 * ENTRY_BYTES) });
        };
        if end < start || start < description_start(samples) {
            let message = format!("sample {} lies from {start} to {end}", wanted.sample);
            return Err(FormatError::new(entry, message));
        }
        let shape = shape_of_bytes(end - start, samples);
        wanted.check(&shape)?;
        Ok(Lookup::Found { payload: PayloadRange::new(start, end - start), shape: Some(shape) })
    }

    fn accept(&mut self, wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut numbers = entries(bytes);
        if self.samples.is_none() {
            self.samples = numbers.next();
        } else if let (Some(start), Some(end)) = (numbers.next(), numbers.next()) {
            self.range = Some(SampleRange { sample: wanted.sample, start, end });
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.samples = None;
        self.range = None;
    }
}
