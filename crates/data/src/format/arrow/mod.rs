//! `arrow`: Arrow IPC files and streams, as Hugging Face's `datasets` caches them. Each row of a record batch is one sample.
//!
//! `datasets` maps a file into memory: opening touches the metadata of all messages, and a row touches its own bytes of each
//! column. So the messages of a file are read once per worker, and a row is read as its equal share of its batch's bytes.

mod message;

use super::ahead::WantedSample;
use super::located::{LocatedCursor, Locator, Lookup};
use super::payload_range::{PayloadRange, share_start};
use super::{FileMember, Format, FormatError, decode_length, shape_of_bytes};
use feedrate_spec::catalog::{Ability, FormatEntry, Member};
use message::{FileContent, Header, Message};
use std::collections::HashMap;

static MEMBER: Member = Member {
    name: "arrow",
    summary: "Arrow IPC files and streams, as Hugging Face caches datasets; each row is a sample, which is read and not decoded.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::EstimatedSize,
        Ability::ReadOnly,
    ],
};

/// Start of an IPC file, padded to 8 bytes. Messages follow as in a stream.
const FILE_MAGIC: &[u8] = b"ARROW1\0\0";
/// Start of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Length of a message's start and the length of its metadata.
const PREFIX_BYTES: u64 = 8;
/// Upper limit on the metadata of a message. Schemas contain the description of features.
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// Upper limit on the record batches of the files that are kept in memory (32 MiB).
const BATCHES_MAX: usize = 1 << 20;

pub(super) static FORMAT: Format = Format {
    is_recognised: |head| head.starts_with(FILE_MAGIC) || begins_stream(head),
    ..Format::read_only(FormatEntry::new(&MEMBER, |shape, _| shape.payload_bytes()), |options| {
        Box::new(LocatedCursor::<Batches>::new(options.piece_bytes))
    })
};

/// Whether a file begins with the message of a schema.
fn begins_stream(head: &[u8]) -> bool {
    let Some((prefix, rest)) = head.split_at_checked(PREFIX_BYTES as usize) else { return false };
    let Ok(Some(bytes)) = metadata_bytes(prefix, 0) else { return false };
    // A long schema ends after the head, but its root is near its start.
    let metadata = &rest[..rest.len().min(bytes as usize)];
    let message = Message::parse(metadata);
    message.is_some_and(|message| {
        matches!(message.header, Header::Schema(_)) && message.body_bytes == 0
    })
}

/// Length of the metadata after the prefix at `offset`; `None` at the end of the stream.
fn metadata_bytes(prefix: &[u8], offset: u64) -> Result<Option<u64>, FormatError> {
    let length = prefix.strip_prefix(&CONTINUATION).and_then(|rest| rest.first_chunk());
    let bytes = length.map(|length| i32::from_le_bytes(*length));
    match bytes.map(u64::try_from) {
        Some(Ok(0)) => Ok(None),
        Some(Ok(bytes)) if bytes <= METADATA_BYTES_MAX => Ok(Some(bytes)),
        _ => Err(FormatError::new(offset, "no message of Arrow IPC begins here")),
    }
}

/// A record batch with rows.
#[derive(Clone, Copy)]
struct Batch {
    first_row: u64,
    rows: u64,
    body_start: u64,
    body_bytes: u64,
}

impl Batch {
    /// The share of a row of the body.
    fn row_range(&self, row: u64) -> PayloadRange {
        let offset = |row| share_start(self.body_bytes, row, self.rows);
        let start = offset(row - self.first_row);
        let end = offset(row + 1 - self.first_row);
        PayloadRange::new(self.body_start + start, end - start)
    }
}

/// Finds rows in the record batches of files.
#[derive(Default)]
struct Batches {
    /// The files that were read completely, by their numbers.
    known: HashMap<u64, KnownFile>,
    /// Number of batches in `known`.
    known_batches: usize,
    walk: Walk,
}

struct KnownFile {
    batches: Box<[Batch]>,
    /// Columns whose files, or some of them, are stored elsewhere.
    elsewhere: Box<[String]>,
}

/// Position in the messages of a file.
#[derive(Default)]
struct Walk {
    length: Option<u64>,
    /// Offset of the next bytes to read.
    offset: u64,
    state: WalkState,
    batches: Vec<Batch>,
    rows: u64,
    files: Vec<FileContent>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WalkState {
    /// The first bytes of the file are next.
    #[default]
    Magic,
    Prefix,
    Metadata {
        bytes: u64,
    },
    End,
}

impl Walk {
    /// The range to read next; `None` at the end.
    fn next_range(&self, length: u64) -> Option<PayloadRange> {
        let bytes = match self.state {
            WalkState::Magic => PREFIX_BYTES,
            // A stream may end without a mark.
            WalkState::Prefix if self.offset == length => return None,
            WalkState::Prefix => PREFIX_BYTES,
            WalkState::Metadata { bytes } => bytes,
            WalkState::End => return None,
        };
        Some(PayloadRange::new(self.offset, bytes))
    }

    fn accept(&mut self, bytes: &[u8], length: u64) -> Result<(), FormatError> {
        let start = self.offset;
        match self.state {
            WalkState::Magic if bytes == FILE_MAGIC => {
                self.offset = PREFIX_BYTES;
                self.state = WalkState::Prefix;
            }
            WalkState::Magic | WalkState::Prefix => {
                self.offset = start + PREFIX_BYTES;
                let metadata = metadata_bytes(bytes, start)?;
                self.state = match metadata {
                    Some(bytes) => WalkState::Metadata { bytes },
                    None => WalkState::End,
                };
            }
            WalkState::Metadata { bytes: metadata_bytes } => {
                let body_start = start + metadata_bytes;
                let invalid = |message| FormatError::new(start, message);
                let message = Message::parse(bytes).ok_or_else(|| invalid("an invalid message"))?;
                let body_end = body_start.checked_add(message.body_bytes);
                let Some(body_end) = body_end.filter(|end| *end <= length) else {
                    return Err(invalid("a message whose body ends after the file"));
                };
                if let Header::Schema(schema) = message.header {
                    self.files = message::find_files(schema);
                }
                if let Header::RecordBatch { rows, nodes } = message.header {
                    if nodes.first_rows().is_some_and(|column_rows| column_rows != rows) {
                        return Err(invalid("a record batch whose first column has other rows"));
                    }
                    self.files.iter_mut().for_each(|content| content.count(nodes));
                    self.push(Batch {
                        first_row: self.rows,
                        rows,
                        body_start,
                        body_bytes: message.body_bytes,
                    })
                    .ok_or_else(|| invalid("too many record batches or rows"))?;
                }
                self.offset = body_end;
                self.state = WalkState::Prefix;
            }
            WalkState::End => {}
        }
        Ok(())
    }

    fn push(&mut self, batch: Batch) -> Option<()> {
        self.rows = self.rows.checked_add(batch.rows)?;
        if batch.rows > 0 {
            self.batches.push(batch);
        }
        (self.batches.len() <= BATCHES_MAX).then_some(())
    }
}

impl Batches {
    fn keep(&mut self, file: u64, Walk { batches, files, .. }: Walk) {
        if self.known_batches + batches.len() > BATCHES_MAX {
            self.known.clear();
            self.known_batches = 0;
        }
        self.known_batches += batches.len();
        let elsewhere = files.into_iter().filter(|content| content.is_elsewhere);
        let mut elsewhere: Vec<String> = elsewhere.map(|content| content.name).collect();
        elsewhere.dedup();
        let known = KnownFile { batches: batches.into(), elsewhere: elsewhere.into() };
        self.known.insert(file, known);
    }
}

impl Locator for Batches {
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError> {
        let Some(KnownFile { batches, .. }) = self.known.get(&wanted.file) else {
            let Some(length) = self.walk.length else { return Ok(Lookup::Length { part: 0 }) };
            if let Some(range) = self.walk.next_range(length) {
                return Ok(Lookup::Bytes { part: 0, range });
            }
            let walk = std::mem::take(&mut self.walk);
            self.keep(wanted.file, walk);
            return self.locate(wanted);
        };
        let rows = batches.last().map_or(0, |batch| batch.first_row + batch.rows);
        let number = batches.partition_point(|batch| batch.first_row <= wanted.sample);
        let batch = number.checked_sub(1).and_then(|number| batches.get(number));
        let Some(batch) = batch.filter(|_| wanted.sample < rows) else {
            return Err(FormatError::no_sample(0, rows, format!("{rows} rows"), wanted.sample));
        };
        let payload = batch.row_range(wanted.sample);
        let shape = shape_of_bytes(payload.bytes(), rows);
        super::compare_shapes(&shape, wanted.expected.as_ref())?;
        Ok(Lookup::Found { payload, shape: Some(shape) })
    }

    fn accept(&mut self, _wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError> {
        match self.walk.length {
            None => self.walk.length = Some(decode_length(bytes)),
            Some(length) => self.walk.accept(bytes, length)?,
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.walk = Walk::default();
    }

    fn members(&self, file: u64) -> Vec<FileMember> {
        let member = |name: &String| FileMember {
            name: name.clone(),
            stored_bytes: 0,
            is_read: true,
            is_elsewhere: true,
        };
        let known = self.known.get(&file);
        known.map_or_else(Vec::new, |known| known.elsewhere.iter().map(member).collect())
    }

    fn elsewhere(&self, file: u64) -> Option<&str> {
        self.known.get(&file)?.elsewhere.first().map(String::as_str)
    }
}
