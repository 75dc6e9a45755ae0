//! `mds_packed`: shards of MosaicML Streaming that are compressed by Zstandard or gzip. The library decompresses a shard when its
//! first sample is read, so a shard is read once from its start, and its samples in order.

use super::ahead::{ByteCollector, Finder, ReadAheadCursor, ReadOrder, WantedSample};
use super::mds_shard::{ENTRY_BYTES, begins_shard, description_start, entries};
use super::unpacked::Unpacked;
use super::{
    CursorOptions, FileShape, Format, FormatError, PayloadSink, shape_of_bytes, truncated,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};

static MEMBER: Member = Member {
    name: "mds_packed",
    summary: "Compressed shards of MosaicML Streaming; samples are read and not decoded.",
    abilities: &[
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::ReadOnly,
        Ability::Sequential,
    ],
};

/// Length of a read. Large, because shards are read from their start.
const PIECE_BYTES: u64 = 1 << 20;
/// Upper limit on the samples of a shard, whose offsets are in memory (16 MiB). Shards have 64 MiB by default.
const SAMPLES_MAX: u64 = 1 << 22;

pub(super) static FORMAT: Format = Format {
    is_recognised: begins_shard,
    unpacks_streams: true,
    ..Format::read_only(
        FormatEntry {
            piece_bytes: Some(PIECE_BYTES),
            ..FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes())
        },
        cursor,
    )
};

fn cursor(options: &CursorOptions) -> Box<dyn super::Cursor> {
    let samples = Unpacked::new(PackedShard::default(), begins_shard);
    Box::new(ReadAheadCursor::new(options.piece_bytes, samples))
}

/// Finds samples in a decompressed shard.
#[derive(Default)]
struct PackedShard {
    wanted: WantedSample,
    phase: ShardPhase,
    /// Offset of the next byte.
    offset: u64,
    /// The number of samples, then their offsets and the end of the last one.
    head: ByteCollector,
    /// Number of samples, once known.
    samples: u64,
    /// Range of the requested sample.
    start: u64,
    end: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ShardPhase {
    #[default]
    Count,
    Offsets,
    Payload,
    Done,
    /// The requested sample does not exist, or has no valid range.
    Invalid,
}

impl PackedShard {
    /// Goes to the requested sample after its offsets have been read.
    fn locate(&mut self) -> Result<(), FormatError> {
        self.phase = ShardPhase::Invalid;
        let WantedSample { sample, .. } = self.wanted;
        if sample >= self.samples {
            let contents = format!("{} samples", self.samples);
            return Err(FormatError::no_sample(0, self.samples, contents, sample));
        }
        let entry = sample * ENTRY_BYTES;
        let mut range = entries(&self.head.bytes[entry as usize..]);
        let (start, end) = (range.next().unwrap_or(0), range.next().unwrap_or(0));
        if end < start || start < description_start(self.samples) {
            let message = format!("sample {sample} lies from {start} to {end}");
            return Err(FormatError::new(entry + ENTRY_BYTES, message));
        }
        self.wanted.check(&shape_of_bytes(end - start, self.samples))?;
        (self.start, self.offset, self.end) = (start, start, end);
        self.phase = if start == end { ShardPhase::Done } else { ShardPhase::Payload };
        Ok(())
    }

    fn read_head(&mut self) -> Result<(), FormatError> {
        if self.phase == ShardPhase::Offsets {
            return self.locate();
        }
        self.samples = entries(&self.head.bytes).next().unwrap_or(0);
        if self.samples > SAMPLES_MAX {
            let message = format!("a shard of `{}` samples, more than {SAMPLES_MAX}", self.samples);
            return Err(FormatError::new(0, message));
        }
        self.phase = ShardPhase::Offsets;
        self.head.begin(((self.samples + 1) * ENTRY_BYTES) as usize);
        Ok(())
    }
}

impl Finder for PackedShard {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        self.wanted = *wanted;
        let has_offsets = !matches!(self.phase, ShardPhase::Count | ShardPhase::Offsets);
        if order != ReadOrder::NewFile && has_offsets {
            // An error is returned again when bytes are taken.
            let _ = self.locate();
            return;
        }
        self.phase = ShardPhase::Count;
        self.offset = 0;
        self.head.begin(ENTRY_BYTES as usize);
    }

    fn set_length(&mut self, _bytes: u64) -> Result<(), FormatError> {
        Ok(())
    }

    fn offset(&self) -> Option<u64> {
        (self.phase != ShardPhase::Done).then_some(self.offset)
    }

    fn end(&self) -> u64 {
        match self.phase {
            ShardPhase::Count | ShardPhase::Offsets => {
                self.offset + self.head.missing_bytes() as u64
            }
            _ => self.end,
        }
    }

    fn record_bytes(&self) -> u64 {
        self.end - self.start
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.phase {
            ShardPhase::Count | ShardPhase::Offsets => {
                self.offset += self.head.take(bytes) as u64;
                if self.head.missing_bytes() == 0 { self.read_head() } else { Ok(()) }
            }
            ShardPhase::Payload => {
                let len = (self.end - self.offset).min(bytes.len() as u64);
                sink.payload(self.offset - self.start, &bytes[..len as usize])?;
                self.offset += len;
                if self.offset == self.end {
                    self.phase = ShardPhase::Done;
                }
                Ok(())
            }
            ShardPhase::Done => Ok(()),
            ShardPhase::Invalid => self.locate(),
        }
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        if self.phase == ShardPhase::Invalid {
            return self.locate();
        }
        Err(truncated(self.offset, self.end().saturating_sub(self.offset).max(1)))
    }

    fn file_shape(&self) -> Option<FileShape> {
        let is_located = matches!(self.phase, ShardPhase::Payload | ShardPhase::Done);
        is_located.then(|| shape_of_bytes(self.end - self.start, self.samples))
    }
}
