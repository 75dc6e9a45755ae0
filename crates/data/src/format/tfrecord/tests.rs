//! Tests of records that arrive in pieces of any length, and of the requests for them.

use super::super::tests::{encode_default, options, read_with, shape};
use super::super::{Cursor, Discard, Need};
use super::*;
use feedrate_spec::shape::Element;

fn frame(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(mask_crc(crc32c::crc32c(&length)).to_le_bytes());
    record.extend(message);
    record.extend(mask_crc(crc32c::crc32c(message)).to_le_bytes());
    record
}

/// Reads of (offset, bytes) that samples need, and the number of requests for bytes that were read before.
fn reads(
    cursor: &mut dyn Cursor,
    file: &[u8],
    samples: impl IntoIterator<Item = u64>,
    expected: Option<&FileShape>,
) -> (Vec<(u64, usize)>, u64) {
    let (reads, repeated) = reads_with_ends(cursor, file, samples, expected);
    (reads.into_iter().map(|read| (read.offset, read.len)).collect(), repeated)
}

#[derive(Debug)]
struct Read {
    offset: u64,
    len: usize,
    /// End of the bytes that are expected to be requested next.
    end: u64,
}

/// As [`reads`], with the expected ends.
fn reads_with_ends(
    cursor: &mut dyn Cursor,
    file: &[u8],
    samples: impl IntoIterator<Item = u64>,
    expected: Option<&FileShape>,
) -> (Vec<Read>, u64) {
    let (mut reads, mut repeated) = (Vec::new(), 0);
    for sample in samples {
        cursor.begin(0, sample, expected);
        loop {
            let bytes = match cursor.need().unwrap() {
                Need::Done => break,
                Need::Length { .. } => &(file.len() as u64).to_le_bytes()[..],
                Need::Buffered => &[],
                Need::Again { offset, len, .. } => {
                    repeated += 1;
                    &file[offset as usize..][..len]
                }
                Need::Bytes { offset, len, end, .. } => {
                    reads.push(Read { offset, len, end });
                    &file[offset as usize..][..len]
                }
            };
            cursor.feed(bytes, &mut Discard).unwrap();
        }
    }
    (reads, repeated)
}

#[test]
fn pieces_of_any_length_are_read() {
    let shape = shape(&[37], Element::Uint16, 4);
    let parts = encode_default(&FORMAT, &shape, 1000);
    let record = parts[0].len() / 4;
    let mut content = Content::new(42);
    content.select_file(5);
    for piece_bytes in 1..2 * record {
        let mut cursor = (FORMAT.cursor)(&options(piece_bytes));
        for expected in [Some(&shape), None] {
            for sample in [0, 1, 3, 2, 2, 0, 3] {
                let payload =
                    read_with(&mut *cursor, piece_bytes, &parts, sample, expected).unwrap();
                assert_eq!(payload.len(), 74);
                assert_eq!(content.matches(sample, 0, shape.element, &payload), Ok(()));
            }
        }
    }
}

#[test]
fn only_a_pass_over_the_file_is_expected_to_continue_to_its_end() {
    let shape = shape(&[1000], Element::Uint8, 100);
    let file = &encode_default(&FORMAT, &shape, 1000)[0];
    let length = file.len() as u64;
    for expected in [Some(&shape), None] {
        let mut cursor = (FORMAT.cursor)(&options(16384));
        let (pass, _) = reads_with_ends(&mut *cursor, file, 0..100, expected);
        assert!(pass.len() > 2 && pass[1..].iter().all(|read| read.end == length), "{pass:?}");
        let (others, _) = reads_with_ends(&mut *cursor, file, [0, 50, 51, 70, 0, 60], expected);
        assert!(others.iter().all(|read| read.end < length), "{others:?}");
    }
}

#[test]
fn small_records_in_order_share_reads() {
    let shape = shape(&[1000], Element::Uint8, 100);
    let file = &encode_default(&FORMAT, &shape, 1000)[0];
    for expected in [Some(&shape), None] {
        let mut cursor = (FORMAT.cursor)(&options(16384));
        let (pass, repeated) = reads(&mut *cursor, file, 0..100, expected);
        let whole = (0..file.len()).step_by(16384);
        let whole: Vec<(u64, usize)> =
            whole.map(|offset| (offset as u64, (file.len() - offset).min(16384))).collect();
        assert_eq!(pass, whole);
        assert!(repeated > 90);
        // A second pass reads the bytes again.
        assert_eq!(reads(&mut *cursor, file, 0..100, expected).0, whole);
    }
}

#[test]
fn a_sample_out_of_order_is_read_separately() {
    let shape = shape(&[1000], Element::Uint8, 100);
    let file = &encode_default(&FORMAT, &shape, 1000)[0];
    let record = record_bytes(&shape);
    let mut cursor = (FORMAT.cursor)(&options(1 << 20));
    let (pass, _) = reads(&mut *cursor, file, [50, 20, 70], Some(&shape));
    let bytes = record as usize;
    assert_eq!(pass, [(50 * record, bytes), (20 * record, bytes), (70 * record, bytes)]);
}

#[test]
fn large_records_are_read_once_or_skipped_by_their_frames() {
    let shape = shape(&[100_000], Element::Uint8, 5);
    let file = &encode_default(&FORMAT, &shape, 1000)[0];
    let record = record_bytes(&shape) as usize;
    let mut cursor = (FORMAT.cursor)(&options(65536));
    let (pass, _) = reads(&mut *cursor, file, 0..5, Some(&shape));
    assert_eq!(pass.iter().map(|read| read.1).sum::<usize>(), file.len());
    let (pass, _) = reads(&mut *cursor, file, [4], None);
    let frames: Vec<(u64, usize)> =
        (1..4).map(|number| ((number * record) as u64, FRAME_BYTES)).collect();
    assert_eq!(pass[0], (0, 65536));
    assert_eq!(pass[1..4], frames);
}

#[test]
fn checksums_of_data_are_verified_if_configured() {
    let shape = shape(&[100], Element::Uint8, 1);
    let mut parts = encode_default(&FORMAT, &shape, 1000);
    parts[0][60] ^= 1;
    for check_crc in [true, false] {
        let options = CursorOptions { check_crc, ..options(4096) };
        let mut cursor = (FORMAT.cursor)(&options);
        let payload = read_with(&mut *cursor, 4096, &parts, 0, Some(&shape));
        assert_eq!(payload.is_err(), check_crc);
    }
    parts[0][9] ^= 1;
    let options = CursorOptions { check_crc: false, ..options(4096) };
    let error = read_with(&mut *(FORMAT.cursor)(&options), 4096, &parts, 0, None).unwrap_err();
    assert!(error.message.contains("checksum of its length"), "{error}");
}

#[test]
fn records_must_match_the_plan() {
    let planned = shape(&[5000], Element::Uint8, 2);
    // A record with the planned length, but with another feature instead of one of bytes.
    let bytes = 5000 + record_head_and_tail(5000).1.len();
    for (name, list, expected) in [
        ("image", FIRST, "a sample of 5016 bytes, but the plan says 5000"),
        ("imagf", FIRST, "a record without `image`"),
        ("image", INTEGERS, "without a feature of bytes; its features: `image`"),
    ] {
        let message = wrap_in_fields(&[FIRST], map_entry(name, list, vec![1; bytes], 0), 0);
        let record = frame(&message);
        assert_eq!(record.len() as u64, record_bytes(&planned));
        let parts = [record.repeat(2), Vec::new()];
        let mut cursor = (FORMAT.cursor)(&options(4096));
        let error = read_with(&mut *cursor, 4096, &parts, 1, Some(&planned)).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn records_that_are_not_examples_are_read_whole() {
    let tensor = [&b"\x08\x01\x22\xb0\x09"[..], &[7; 1200]].concat();
    let example = |name: &str, value: &[u8]| {
        wrap_in_fields(&[FIRST], map_entry(name, FIRST, value.to_vec(), 0), 0)
    };
    let image = example("image", b"bytes");
    let webp = b"RIFF\0\0\0\0WEBPVP8 and more";
    let long_name = example(&"n".repeat(2000), b"bytes");
    let cases = [
        (&tensor[..], Some("unknown record")),
        (b"\xff\xd8\xff and no picture", Some("jpeg")),
        (&image, None),
        (webp, Some("webp")),
        (b"", None),
        (b"words", Some("unknown record")),
        (&long_name, Some("unknown record")),
        (&[0x80; 20], Some("unknown record")),
    ];
    let file: Vec<u8> = cases.iter().flat_map(|(message, _)| frame(message)).collect();
    for piece_bytes in [1, 100, 4096] {
        let mut cursor = FORMAT.reader(&options(piece_bytes));
        for sample in [0, 1, 2, 3, 4, 5, 6, 7, 7, 2, 0, 6] {
            let parts = [file.clone()];
            let payload = read_with(&mut *cursor, piece_bytes, &parts, sample, None).unwrap();
            let (message, kind) = cases[sample as usize];
            let expected = if message == image { b"bytes" } else { message };
            assert_eq!((&payload[..], cursor.undecoded_type()), (expected, kind), "{sample}");
        }
    }
    let (pass, _) = reads(&mut *FORMAT.reader(&options(4096)), &file, 0..8, None);
    assert_eq!(pass, [(0, file.len())]);
}

#[test]
fn only_the_first_of_large_records_that_are_not_examples_is_read_twice() {
    // A tensor can be an example until its end, but no text begins like one.
    let tensor = [&b"\x22\xa0\x8d\x06"[..], &[7; 100_000]].concat();
    for message in [&tensor[..], &[b'w'; 100_000]] {
        let file = frame(message).repeat(5);
        let (pass, _) = reads(&mut *FORMAT.reader(&options(4096)), &file, 0..5, None);
        let bytes = pass.iter().map(|read| read.1).sum::<usize>();
        assert!(bytes <= file.len() * 5 / 4, "{bytes} of {}", file.len());
    }
}

#[test]
fn sizes_beyond_any_device_saturate() {
    assert_eq!(file_bytes(&shape(&[u64::MAX, 9], Element::Float64, u64::MAX)), u64::MAX);
}

#[test]
fn records_that_protobuf_cannot_parse_are_not_written() {
    let unfit = |bytes| {
        find_unsupported_setting(&shape(&[bytes], Element::Uint8, 1)).map(|unfit| unfit.message)
    };
    assert_eq!(unfit((1 << 31) - 100), None);
    let message = "a record of `2147483704` bytes in a tfrecord, where protobuf stops at 2 GiB";
    assert_eq!(unfit(1 << 31).as_deref(), Some(message));
}
