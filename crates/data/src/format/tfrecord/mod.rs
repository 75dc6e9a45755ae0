//! `tfrecord`: one record a sample, each a `tf.train.Example` in TFRecord framing, as DLIO generates it
//! (`tf_generator.py`); beside it the index that DALI wants. No cursor reads the index: records have equal length,
//! or are found one after another.

mod example;
mod records;
#[cfg(test)]
mod tests;

use super::ahead::AheadCursor;
use super::decimal::{digits, digits_of_multiples};
use super::packed::{self, Payload};
use super::{
    Content, CursorOptions, FileSink, Format, FormatError, Part, PayloadSink, SinkError, ahead,
    check_sample, cut_off, length_of, shape_of_bytes,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Encoding, FileShape};

static MEMBER: Member = Member {
    name: "tfrecord",
    summary: "Records of TensorFlow one after another, with an index for DALI beside them.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::ChecksContent,
        Ability::DecodedByLoader,
        Ability::HoldsFiles,
    ],
};

const DATA: usize = 0;
const INDEX: usize = 1;
/// The buffer of `tf.data.TFRecordDataset`, and DLIO's `reader.transfer_size`.
const PIECE_BYTES: u64 = 256 << 10;
/// A record's length and the checksum of that.
const FRAME_BYTES: usize = 12;
const CRC_BYTES: u64 = 4;
/// protobuf parses no longer message.
const MESSAGE_BYTES_MAX: u64 = i32::MAX as u64;
/// The feature that is the sample, and the one that says how long that is.
const IMAGE: &str = "image";
const SIZE: &str = "size";
/// Field 1, of a length that follows.
const FIRST: u8 = 0x0a;
/// Field 2 of an entry: the feature of that name.
const VALUE: u8 = 0x12;
/// Field 3 of a feature: its integers.
const INTEGERS: u8 = 0x1a;

pub(super) static FORMAT: Format = Format {
    begins: has_frame,
    parts: &[Part::DATA, Part { folder: "index", suffix: ".idx", optional: true }],
    ..Format::new(
        FormatEntry {
            piece_bytes: Some(PIECE_BYTES),
            unfit: |shape, _| unfit(shape),
            ..FormatEntry::new(&MEMBER, |shape, _| file_bytes(shape))
        },
        encode,
        |options| Box::new(AheadCursor::new(options.piece_bytes, records::Records::new(options))),
    )
};

fn encode(
    shape: &FileShape,
    _encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let (head, tail) = around_payload(shape.sample_bytes());
    let head_crc = crc32c::crc32c(&head[FRAME_BYTES..]);
    let record_bytes = record_bytes(shape);
    for sample in 0..shape.samples {
        sink.write(DATA, &head)?;
        let mut crc = head_crc;
        let payload = packed::write_sample(DATA, sample, shape, content, sink, &mut |bytes| {
            crc = crc32c::crc32c_append(crc, bytes);
        })?;
        sink.write(DATA, &tail)?;
        match payload {
            Payload::Whole => {
                let crc = masked(crc32c::crc32c_append(crc, &tail));
                sink.write(DATA, &crc.to_le_bytes())?;
            }
            Payload::Skipped => sink.reserve(DATA, CRC_BYTES as usize)?,
        }
        let line = format!("{} {record_bytes}\n", sample * record_bytes);
        sink.write(INDEX, line.as_bytes())?;
    }
    Ok(())
}

fn unfit(shape: &FileShape) -> Option<Unfit> {
    let message = message_bytes(shape);
    (message > MESSAGE_BYTES_MAX).then(|| Unfit {
        key: "dataset.record_length_bytes",
        message: format!(
            "a record of `{message}` bytes in a tfrecord, where protobuf stops at 2 GiB"
        ),
        hint: "make samples smaller, or take another format".into(),
    })
}

/// Whether it begins with a length and the checksum of that.
fn has_frame(head: &[u8]) -> bool {
    let crc =
        head.get(8..FRAME_BYTES).map(|crc| crc == masked(crc32c::crc32c(&head[..8])).to_le_bytes());
    crc == Some(true)
}

/// Length of both parts.
fn file_bytes(shape: &FileShape) -> u64 {
    let record = record_bytes(shape);
    let lines = (digits(record) + 2).saturating_mul(shape.samples);
    let offsets = digits_of_multiples(record, shape.samples);
    data_bytes(shape).saturating_add(lines).saturating_add(offsets)
}

fn data_bytes(shape: &FileShape) -> u64 {
    record_bytes(shape).saturating_mul(shape.samples)
}

/// Length of a message in its frame.
fn record_bytes(shape: &FileShape) -> u64 {
    message_bytes(shape).saturating_add(FRAME_BYTES as u64 + CRC_BYTES)
}

/// Length of an example. Does not allocate.
fn message_bytes(shape: &FileShape) -> u64 {
    let payload = shape.sample_bytes();
    let image = entry_bytes(IMAGE, payload);
    let size = entry_bytes(SIZE, varint_bytes(payload));
    field_bytes(field_bytes(image).saturating_add(field_bytes(size)))
}

/// Length of an entry of the map: its name, and a feature whose list has one field of `bytes`.
fn entry_bytes(name: &str, bytes: u64) -> u64 {
    let value = field_bytes(field_bytes(field_bytes(bytes)));
    field_bytes(name.len() as u64).saturating_add(value)
}

/// A field of `len` bytes with its tag and length.
fn field_bytes(len: u64) -> u64 {
    len.saturating_add(1 + varint_bytes(len))
}

fn varint_bytes(value: u64) -> u64 {
    u64::from((u64::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

/// The masked checksum of TFRecord, so that a checksum of data with checksums in it is a good one.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Bytes of a record before its payload, and those of the message that follow it.
fn around_payload(payload: u64) -> (Vec<u8>, Vec<u8>) {
    let mut size = Vec::new();
    push_varint(&mut size, payload);
    let tail = entry(SIZE, INTEGERS, size, 0);
    let image = entry(IMAGE, FIRST, Vec::new(), payload);
    let head = fields(&[FIRST], image, payload + tail.len() as u64);
    let length = (head.len() as u64 + payload + tail.len() as u64).to_le_bytes();
    let frame = [length.to_vec(), masked(crc32c::crc32c(&length)).to_le_bytes().to_vec(), head];
    (frame.concat(), tail)
}

/// An entry of the map of features: a list of the kind `kind` with `body` in it, which goes on for `more` bytes.
fn entry(name: &str, kind: u8, body: Vec<u8>, more: u64) -> Vec<u8> {
    let name = fields(&[FIRST], name.as_bytes().to_vec(), 0);
    let value = fields(&[FIRST, kind, VALUE], body, more);
    fields(&[FIRST], [name, value].concat(), more)
}

/// `body`, which goes on for `more` bytes, in fields of these tags, the first innermost.
fn fields(tags: &[u8], body: Vec<u8>, more: u64) -> Vec<u8> {
    tags.iter().fold(body, |body, &tag| {
        let mut field = vec![tag];
        push_varint(&mut field, body.len() as u64 + more);
        field.extend(body);
        field
    })
}

fn push_varint(message: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    while rest >= 0x80 {
        message.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    message.push(rest as u8);
}
