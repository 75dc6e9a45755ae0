//! `tfrecord`: one record per sample, each a `tf.train.Example` in TFRecord framing, as DLIO generates it
//! (`tf_generator.py`), with an index file for DALI. The index is never read: records have equal length, or are found one
//! after another. Files of other programs may be compressed by gzip or zlib.

mod example;
mod records;
#[cfg(test)]
mod tests;

use super::ahead::ReadAheadCursor;
use super::decimal::{digit_count, digits_of_multiples};
use super::packed::{self, Payload};
use super::unpacked::Unpacked;
use super::{
    Content, CursorOptions, FileSink, Format, FormatError, Part, PayloadSink, SinkError, ahead,
    check_sample, decode_length, shape_of_bytes, truncated,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, UnsupportedSetting};
use feedrate_spec::plan::Library;
use feedrate_spec::shape::{Encoding, FileShape};

static MEMBER: Member = Member {
    name: "tfrecord",
    summary: "Records of TensorFlow one after another, with an index for DALI beside them.",
    abilities: &[
        Ability::Sidecars,
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
/// Length of a record's length field and its checksum.
const FRAME_BYTES: usize = 12;
const CRC_BYTES: u64 = 4;
/// Upper limit on the length of a message that protobuf can parse.
const MESSAGE_BYTES_MAX: u64 = i32::MAX as u64;
/// Name of the feature with the sample.
const IMAGE: &str = "image";
/// Name of the feature with the length of the sample.
const SIZE: &str = "size";
/// Tag of field 1 with a length prefix.
const FIRST: u8 = 0x0a;
/// Tag of field 2 with a length prefix: the value of a map entry.
const VALUE: u8 = 0x12;
/// Tag of field 3 with a length prefix: the list of integers in a feature.
const INTEGERS: u8 = 0x1a;

pub(super) static FORMAT: Format = Format {
    is_recognised: has_frame,
    unpacks_streams: true,
    parts: &[Part::DATA, Part { folder: "index", optional: true, ..Part::beside(".idx") }],
    ..Format::new(
        FormatEntry {
            piece_bytes: Some(PIECE_BYTES),
            library: Some(Library::TfData),
            unsupported_setting: |shape, _| find_unsupported_setting(shape),
            ..FormatEntry::new(&MEMBER, |shape, _| file_bytes(shape))
        },
        encode,
        |options| {
            let records = Unpacked::new(records::Records::new(options), has_frame);
            Box::new(ReadAheadCursor::new(options.piece_bytes, records))
        },
    )
};

fn encode(
    shape: &FileShape,
    _encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let (head, tail) = record_head_and_tail(shape.sample_bytes());
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
            Payload::Complete => {
                let crc = mask_crc(crc32c::crc32c_append(crc, &tail));
                sink.write(DATA, &crc.to_le_bytes())?;
            }
            Payload::Skipped => sink.reserve(DATA, CRC_BYTES as usize)?,
        }
        let line = format!("{} {record_bytes}\n", sample * record_bytes);
        sink.write(INDEX, line.as_bytes())?;
    }
    Ok(())
}

fn find_unsupported_setting(shape: &FileShape) -> Option<UnsupportedSetting> {
    let message = message_bytes(shape);
    (message > MESSAGE_BYTES_MAX).then(|| UnsupportedSetting {
        key: "dataset.record_length_bytes",
        message: format!(
            "a record of `{message}` bytes in a tfrecord, where protobuf stops at 2 GiB"
        ),
        hint: "use smaller samples, or another format".into(),
    })
}

/// Whether a file begins with a length and its checksum.
fn has_frame(head: &[u8]) -> bool {
    let crc = head
        .get(8..FRAME_BYTES)
        .map(|crc| crc == mask_crc(crc32c::crc32c(&head[..8])).to_le_bytes());
    crc == Some(true)
}

/// Total length of the data file and the index.
fn file_bytes(shape: &FileShape) -> u64 {
    let record = record_bytes(shape);
    let lines = (digit_count(record) + 2).saturating_mul(shape.samples);
    let offsets = digits_of_multiples(record, shape.samples);
    data_bytes(shape).saturating_add(lines).saturating_add(offsets)
}

fn data_bytes(shape: &FileShape) -> u64 {
    record_bytes(shape).saturating_mul(shape.samples)
}

/// Length of a record: a message with its frame.
fn record_bytes(shape: &FileShape) -> u64 {
    message_bytes(shape).saturating_add(FRAME_BYTES as u64 + CRC_BYTES)
}

/// Length of a message. Does not allocate.
fn message_bytes(shape: &FileShape) -> u64 {
    let payload = shape.sample_bytes();
    let image = entry_bytes(IMAGE, payload);
    let size = entry_bytes(SIZE, varint_bytes(payload));
    field_bytes(field_bytes(image).saturating_add(field_bytes(size)))
}

/// Length of a map entry: its name, and a feature whose list has one field of `bytes` bytes.
fn entry_bytes(name: &str, bytes: u64) -> u64 {
    let value = field_bytes(field_bytes(field_bytes(bytes)));
    field_bytes(name.len() as u64).saturating_add(value)
}

/// Length of a field with `len` bytes, including tag and length.
fn field_bytes(len: u64) -> u64 {
    len.saturating_add(1 + varint_bytes(len))
}

fn varint_bytes(value: u64) -> u64 {
    u64::from((u64::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

/// The masked checksum of TFRecord. Masking avoids weak checksums of data that contains checksums.
fn mask_crc(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The bytes of a record before its payload, and the bytes of the message after it.
fn record_head_and_tail(payload: u64) -> (Vec<u8>, Vec<u8>) {
    let mut size = Vec::new();
    push_varint(&mut size, payload);
    let tail = map_entry(SIZE, INTEGERS, size, 0);
    let image = map_entry(IMAGE, FIRST, Vec::new(), payload);
    let head = wrap_in_fields(&[FIRST], image, payload + tail.len() as u64);
    let length = (head.len() as u64 + payload + tail.len() as u64).to_le_bytes();
    let frame = [length.to_vec(), mask_crc(crc32c::crc32c(&length)).to_le_bytes().to_vec(), head];
    (frame.concat(), tail)
}

/// A map entry with a feature: a list of type `kind` that contains `body`, which continues for `more` bytes.
fn map_entry(name: &str, kind: u8, body: Vec<u8>, more: u64) -> Vec<u8> {
    let name_field = wrap_in_fields(&[FIRST], name.as_bytes().to_vec(), 0);
    let value_field = wrap_in_fields(&[FIRST, kind, VALUE], body, more);
    wrap_in_fields(&[FIRST], [name_field, value_field].concat(), more)
}

/// `body`, which continues for `more` bytes, wrapped in fields with these tags, the first one innermost.
fn wrap_in_fields(tags: &[u8], body: Vec<u8>, more: u64) -> Vec<u8> {
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
