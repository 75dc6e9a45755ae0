//! `megatron`: tokens in `<name>.bin` with the index `<name>.idx`, as Megatron-LM's `IndexedDataset` reads them. The index is
//! the data file here. A sample is a sequence of the index.
//!
//! Layout of the index (`megatron/core/datasets/indexed_dataset.py`): a magic text, a version, the code of the element type,
//! the numbers of sequences and documents; then the length of each sequence, its offset, and the first sequence of each
//! document.

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::payload_range::PayloadRange;
use super::{Format, FormatError, Part, decode_length, shape_of_bytes};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use feedrate_spec::shape::{Dims, Element, FileShape};
use std::ops::Range;

static MEMBER: Member = Member {
    name: "megatron",
    summary: "Token files of Megatron-LM, `.bin` with `.idx`; each sequence of the index is a sample.",
    abilities: &[
        Ability::Sidecars,
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::ReadOnly,
    ],
};

const MAGIC: &[u8] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;
const INDEX: usize = 0;
const TOKENS: usize = 1;
/// Length of the index before the sequences' lengths.
const HEADER_BYTES: u64 = 34;
const LENGTH_BYTES: u64 = 4;
const OFFSET_BYTES: u64 = 8;
/// Upper limit on the sequences of an index that is kept in memory (12 MiB). Entries of longer indexes are read one by one.
const KEPT_SEQUENCES_MAX: u64 = 1 << 20;

pub(super) static FORMAT: Format = Format {
    parts: &[Part::DATA, Part::instead(".bin")],
    is_recognised: |head| head.starts_with(MAGIC),
    ..Format::read_only(
        FormatEntry {
            extension: "idx",
            ..FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes())
        },
        |options| Box::new(LocatedCursor::<Sequences>::new(options.piece_bytes)),
    )
};

/// Elements by their code in the index, each with its length in bytes.
fn element_of_code(code: u8) -> Option<(Element, u64)> {
    Some(match code {
        1 => (Element::Uint8, 1),
        2 => (Element::Int8, 1),
        3 => (Element::Int16, 2),
        4 => (Element::Int32, 4),
        5 => (Element::Int64, 8),
        6 => (Element::Float64, 8),
        7 => (Element::Float32, 4),
        8 => (Element::Uint16, 2),
        _ => return None,
    })
}

/// The index of one file.
#[derive(Default)]
struct Sequences {
    index_bytes: Option<u64>,
    header: Option<Header>,
    /// Sequences whose entries are kept: all, or only the last one requested.
    kept: Range<u64>,
    /// Lengths and offsets of these sequences, as stored.
    entries: [Vec<u8>; 2],
    /// Number of elements of `entries` that have been read.
    loaded: usize,
}

#[derive(Clone, Copy)]
struct Header {
    element: Element,
    element_bytes: u64,
    sequences: u64,
}

impl Header {
    fn parse(bytes: &[u8], index_bytes: u64) -> Result<Self, FormatError> {
        let invalid = |message: &str| FormatError::new(0, message);
        let rest =
            bytes.strip_prefix(MAGIC).ok_or_else(|| invalid("not an index of Megatron-LM"))?;
        if decode_length(rest) != VERSION {
            return Err(invalid("an index of another version than 1"));
        }
        let code = rest.get(8).copied().unwrap_or_default();
        let (element, element_bytes) =
            element_of_code(code).ok_or_else(|| invalid("an unknown element type"))?;
        let sequences = decode_length(rest.get(9..).unwrap_or_default());
        let table_bytes = sequences.checked_mul(LENGTH_BYTES + OFFSET_BYTES);
        let end = table_bytes.and_then(|bytes| bytes.checked_add(HEADER_BYTES));
        if end.is_none_or(|end| index_bytes < end) {
            let message = format!("{sequences} sequences in an index of {index_bytes} bytes");
            return Err(FormatError::new(0, message));
        }
        Ok(Header { element, element_bytes, sequences })
    }

    /// Start of the table `table`: lengths, then offsets.
    fn table_start(&self, table: usize) -> u64 {
        HEADER_BYTES + if table == 0 { 0 } else { self.sequences * LENGTH_BYTES }
    }
}

const ENTRY_BYTES: [u64; 2] = [LENGTH_BYTES, OFFSET_BYTES];

impl Sequences {
    fn found(&self, header: &Header, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let entry = (wanted.sample - self.kept.start) as usize;
        let length = self.entries[0].get(entry * LENGTH_BYTES as usize..);
        let length = length.and_then(|bytes| bytes.first_chunk().copied());
        let offset = self.entries[1].get(entry * OFFSET_BYTES as usize..).map(decode_length);
        let start = header.table_start(0) + wanted.sample * LENGTH_BYTES;
        let tokens = length.and_then(|bytes| u64::try_from(i32::from_le_bytes(bytes)).ok());
        let bytes = tokens.map(|tokens| tokens * header.element_bytes);
        let end = offset.zip(bytes).and_then(|(offset, bytes)| offset.checked_add(bytes));
        let (Some(tokens), Some(bytes), Some(offset), Some(_)) =
            (tokens, bytes, offset, end.filter(|end| *end <= u64::MAX / 2))
        else {
            let message = format!("sequence {} has no valid length or offset", wanted.sample);
            return Err(FormatError::new(start, message));
        };
        let dims = Dims::new(&[tokens]).filter(|_| 0 < tokens);
        let shape = dims.map_or(shape_of_bytes(bytes, header.sequences), |dims| FileShape {
            dims,
            element: header.element,
            samples: header.sequences,
        });
        wanted.check(&shape)?;
        Ok(Lookup::Found { payload: PayloadRange::new(offset, bytes), shape: Some(shape) })
    }
}

impl Locator for Sequences {
    const PAYLOAD_PART: usize = TOKENS;

    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        if self.index_bytes.is_none() {
            return Ok(Lookup::Length { part: INDEX });
        }
        let Some(header) = self.header else {
            return Ok(Lookup::Bytes { part: INDEX, range: PayloadRange::new(0, HEADER_BYTES) });
        };
        let Header { sequences, .. } = header;
        if wanted.sample >= sequences {
            let contents = format!("{sequences} sequences");
            return Err(FormatError::no_sample(0, sequences, contents, wanted.sample));
        }
        let is_short = sequences <= KEPT_SEQUENCES_MAX;
        let kept = if is_short { 0..sequences } else { wanted.sample..wanted.sample + 1 };
        if self.kept != kept {
            self.kept = kept;
            self.loaded = 0;
        }
        let Some(entry_bytes) = ENTRY_BYTES.get(self.loaded) else {
            return self.found(&header, wanted);
        };
        let start = header.table_start(self.loaded) + self.kept.start * entry_bytes;
        let entries = self.kept.end - self.kept.start;
        let range = PayloadRange::new(start, entries * entry_bytes);
        Ok(Lookup::Bytes { part: INDEX, range })
    }

    fn accept(&mut self, _wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        let Some(index_bytes) = self.index_bytes else {
            self.index_bytes = Some(decode_length(bytes));
            return Ok(());
        };
        if self.header.is_none() {
            self.header = Some(Header::parse(bytes, index_bytes)?);
        } else if let Some(entries) = self.entries.get_mut(self.loaded) {
            std::mem::swap(entries, bytes);
            self.loaded += 1;
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.index_bytes = None;
        self.header = None;
        self.kept = 0..0;
        self.loaded = 0;
    }
}
