//! `tfrecord`: one record a sample, each a `tf.train.Example` in TFRecord framing, as DLIO generates it
//! (`tf_generator.py`); beside it the index that DALI wants. No cursor reads the index: records have equal length,
//! or are found one after another.

mod example;
mod records;
#[cfg(test)]
mod tests;

use super::ahead::AheadCursor;
use super::packed::{self, Payload};
use super::{
    Content, CursorOptions, FileSink, Format, FormatError, Part, PayloadSink, SinkError, ahead,
    check_sample, cut_off, in_words,
};
use feedrate_spec::catalog::{Ability, FormatEntry, Member, Unfit};
use feedrate_spec::shape::{Dims, Element, Encoding, FileShape};

static MEMBER: Member = Member {
    name: "tfrecord",
    summary: "Records of TensorFlow one after another, with an index for DALI beside them.",
    abilities: &[
        Ability::RandomAccess,
        Ability::KeepsOpen,
        Ability::ChecksContent,
        Ability::DecodedByLoader,
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
    let lengths = Lengths::new(shape);
    let (head, tail) = (lengths.head(), lengths.tail());
    let head_crc = crc32c::crc32c(&head[FRAME_BYTES..]);
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
        let line = format!("{} {}\n", sample * lengths.record, lengths.record);
        sink.write(INDEX, line.as_bytes())?;
    }
    Ok(())
}

fn unfit(shape: &FileShape) -> Option<Unfit> {
    let message = Lengths::new(shape).message;
    (message > MESSAGE_BYTES_MAX).then(|| Unfit {
        key: "dataset.record_length_bytes",
        message: format!(
            "a record of `{message}` bytes in a tfrecord, where protobuf stops at 2 GiB"
        ),
        hint: "make samples smaller, or take another format".into(),
    })
}

/// Length of both parts.
fn file_bytes(shape: &FileShape) -> u64 {
    let record = Lengths::new(shape).record;
    let lines = (digits(record) + 2).saturating_mul(shape.samples);
    data_bytes(shape).saturating_add(lines).saturating_add(offset_digits(shape.samples, record))
}

fn data_bytes(shape: &FileShape) -> u64 {
    Lengths::new(shape).record.saturating_mul(shape.samples)
}

fn digits(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |digits| u64::from(digits) + 1)
}

/// Digits of the offsets of all records: one each, and one more for each power of ten reached.
fn offset_digits(records: u64, record_bytes: u64) -> u64 {
    let powers = (1..20).map(|power| 10u64.pow(power));
    let reached = powers.map(|power| records.saturating_sub(power.div_ceil(record_bytes)));
    reached.fold(records, u64::saturating_add)
}

/// The masked checksum of TFRecord, so that a checksum of data with checksums in it is a good one.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Lengths of the nested pieces of a record.
struct Lengths {
    payload: u64,
    image_list: u64,
    image_feature: u64,
    image_entry: u64,
    size_packed: u64,
    size_list: u64,
    size_feature: u64,
    size_entry: u64,
    features: u64,
    message: u64,
    record: u64,
}

impl Lengths {
    fn new(shape: &FileShape) -> Self {
        let payload = shape.sample_bytes();
        let image_list = field_bytes(payload);
        let image_feature = field_bytes(image_list);
        let image_entry =
            field_bytes(IMAGE.len() as u64).saturating_add(field_bytes(image_feature));
        let size_packed = varint_bytes(payload);
        let size_list = field_bytes(size_packed);
        let size_feature = field_bytes(size_list);
        let size_entry = field_bytes(SIZE.len() as u64) + field_bytes(size_feature);
        let features = field_bytes(image_entry).saturating_add(field_bytes(size_entry));
        let message = field_bytes(features);
        let record = message.saturating_add(FRAME_BYTES as u64 + CRC_BYTES);
        Lengths {
            payload,
            image_list,
            image_feature,
            image_entry,
            size_packed,
            size_list,
            size_feature,
            size_entry,
            features,
            message,
            record,
        }
    }

    /// Bytes of the record before the payload.
    fn head(&self) -> Vec<u8> {
        let length = self.message.to_le_bytes();
        let mut head = length.to_vec();
        head.extend(masked(crc32c::crc32c(&length)).to_le_bytes());
        push_field(&mut head, FIRST, self.features);
        push_field(&mut head, FIRST, self.image_entry);
        push_field(&mut head, FIRST, IMAGE.len() as u64);
        head.extend(IMAGE.as_bytes());
        push_field(&mut head, VALUE, self.image_feature);
        push_field(&mut head, FIRST, self.image_list);
        push_field(&mut head, FIRST, self.payload);
        head
    }

    /// Bytes that follow the payload in the message.
    fn tail(&self) -> Vec<u8> {
        let mut tail = Vec::new();
        push_field(&mut tail, FIRST, self.size_entry);
        push_field(&mut tail, FIRST, SIZE.len() as u64);
        tail.extend(SIZE.as_bytes());
        push_field(&mut tail, VALUE, self.size_feature);
        push_field(&mut tail, INTEGERS, self.size_list);
        push_field(&mut tail, FIRST, self.size_packed);
        push_varint(&mut tail, self.payload);
        tail
    }
}

/// A tag and the length of what follows.
fn push_field(message: &mut Vec<u8>, tag: u8, len: u64) {
    message.push(tag);
    push_varint(message, len);
}

fn push_varint(message: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    while rest >= 0x80 {
        message.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    message.push(rest as u8);
}

fn varint_bytes(value: u64) -> u64 {
    u64::from((u64::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

/// A field of `len` bytes with its tag and length.
fn field_bytes(len: u64) -> u64 {
    len.saturating_add(1 + varint_bytes(len))
}
