//! Tests of invalid rows, of pieces of any length, and of the position that is kept between samples.

use super::super::Need;
use super::super::tests::{encode_with, options, read_with, shape};
use super::super::{Format, find};
use super::*;
use feedrate_spec::shape::Element;
use proptest::prelude::*;
use std::io::Write;

fn format(name: &str) -> &'static Format {
    find(name).unwrap()
}

fn read(
    name: &str,
    text: &[u8],
    sample: u64,
    plan: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    let mut cursor = (format(name).cursor)(&options(4096));
    read_with(&mut *cursor, 4096, &[text.to_vec()], sample, plan)
}

/// Reads the only row of a text, with a plan for the expected number of values.
fn check(name: &str, element: Element, text: &str, expected: Result<&[u8], &str>) {
    let numbers = expected.map_or(2, |bytes| bytes.len() as u64 / element.bytes());
    let plan = shape(&[numbers], element, 1);
    let payload = read(name, text.as_bytes(), 0, Some(&plan)).map_err(|error| error.to_string());
    let payload = payload.as_ref().map(Vec::as_slice).map_err(String::as_str);
    match (payload, expected) {
        (Err(payload), Err(expected)) => assert!(payload.contains(expected), "{text:?}: {payload}"),
        _ => assert_eq!(payload, expected, "{text:?}"),
    }
}

#[test]
fn csv_rows_are_read_or_refused() {
    for (text, expected) in [
        ("1,2\n", Ok(&[1, 2][..])),
        ("\r\n\n 1 ,\t2 \r\n\r\n \n", Ok(&[1, 2])),
        ("\"1\",\" 2\"\r\n", Ok(&[1, 2])),
        ("001,255\n", Ok(&[1, 255])),
        ("1,2", Err("at byte 3: the file ends within row 0")),
        ("1,2\n3,4\n", Err("at byte 4: more rows follow, but the plan says 1 sample of 2 uint8")),
        ("1\n", Err("at byte 2: row 0 has 1 numbers, but the plan says 1 sample of 2 uint8")),
        ("1,2,3\n", Err("at byte 4: row 0: the row continues after 2 numbers, but the plan says")),
        ("1,256\n", Err("at byte 2: row 0: `256` is not a valid uint8")),
        ("1,-1\n", Err("`-1` is not a valid uint8")),
        ("1,\n", Err("`` is not a valid uint8")),
        ("1,1e1\n", Err("`1e1` is not a valid uint8")),
        ("1,\"2\n", Err("`\\\"2` is not a valid uint8")),
        ("1,99999999999999999999999999\n", Err("is not a valid uint8")),
        ("a,b\n", Err("at byte 0: row 0: `a` is not a valid uint8")),
        ("1,\u{1b}[31m\n", Err("`\\u{1b}[31m` is not a valid uint8")),
        ("", Err("holds 0 rows, so there is no sample 0")),
        ("\n\n", Err("holds 0 rows, so there is no sample 0")),
    ] {
        check("csv", Element::Uint8, text, expected);
    }
}

#[test]
fn json_rows_are_read_or_refused() {
    for (text, expected) in [
        ("[1,2]\n", Ok(&[1, 2][..])),
        ("\n [ 1 , 2 ] \r\n\n", Ok(&[1, 2])),
        ("[[1],[[2]]]\n", Ok(&[1, 2])),
        ("[[],[1,2],[]]\n", Ok(&[1, 2])),
        ("{\"a\":1,\"b\\\"}\":{\"c\":[2]}}\n", Ok(&[1, 2])),
        ("[1,2]", Err("at byte 5: the file ends within row 0")),
        ("[1,2\n", Err("at byte 4: row 0: the line ends within a JSON value")),
        ("[1,2,]\n", Err("unexpected `]`")),
        ("[,1,2]\n", Err("unexpected `,`")),
        ("[1 2]\n", Err("unexpected `2`")),
        ("[1,2}\n", Err("unexpected `}`")),
        ("{\"a\":1]\n", Err("unexpected `]`")),
        ("{1:2}\n", Err("unexpected `1`")),
        ("{\"a\n\":1}\n", Err("the line ends within")),
        ("{\"a\\\n\":1}\n", Err("the line ends within")),
        ("[1,2] [3,4]\n", Err("at byte 6: row 0: `[` follows the array of its line")),
        ("[1,\"2\"]\n", Err("a string instead of a number")),
        ("[1,null]\n", Err("`null` is not a valid uint8")),
        ("[1]\n", Err("row 0 has 1 numbers")),
        ("7\n", Err("at byte 0: row 0: expected an array, found `7`")),
    ] {
        check("json", Element::Uint8, text, expected);
    }
}

#[test]
fn nesting_and_numbers_have_a_limit() {
    let deep = format!("{}1{}\n", "[".repeat(16), "]".repeat(16));
    check("json", Element::Uint8, &deep, Ok(&[1]));
    check(
        "json",
        Element::Uint8,
        &"[".repeat(100_000),
        Err("at byte 16: row 0: arrays more than 16"),
    );
    let long = format!("1,{}", "1".repeat(100_000));
    check("csv", Element::Uint8, &long, Err("a number of more than 512 characters"));
    let long = format!("[1,{}", "1".repeat(100_000));
    check("json", Element::Uint8, &long, Err("a number of more than 512 characters"));
    let key = format!("{{\"{}\":1}}\n", "k".repeat(100_000));
    check("json", Element::Uint8, &key, Ok(&[1]));
    let float = format!("1.{}\n", "0".repeat(500));
    check("csv", Element::Float32, &float, Ok(&1f32.to_le_bytes()));
}

#[test]
fn numbers_at_the_limits_of_their_type_are_read() {
    for (element, text, expected) in [
        (Element::Int8, "-128", Some((-128i8).to_le_bytes().to_vec())),
        (Element::Int8, "-129", None),
        (Element::Int8, "128", None),
        (Element::Int64, "-9223372036854775808", Some(i64::MIN.to_le_bytes().to_vec())),
        (Element::Int64, "9223372036854775808", None),
        (Element::Uint64, "18446744073709551615", Some(u64::MAX.to_le_bytes().to_vec())),
        (Element::Uint64, "18446744073709551616", None),
        (Element::Uint64, "999999999999999999999999", None),
        (Element::Uint32, "4294967296", None),
        (Element::Float64, "-0.0", Some((-0f64).to_le_bytes().to_vec())),
        (Element::Float64, "5e-324", Some(5e-324f64.to_le_bytes().to_vec())),
        (Element::Float32, "-inf", Some(f32::NEG_INFINITY.to_le_bytes().to_vec())),
        (Element::Float16, "65504", Some(0x7bffu16.to_le_bytes().to_vec())),
    ] {
        // Once after other numbers, which are parsed in blocks, and once alone.
        for others in [0, 200] {
            let plan = shape(&[others + 1], element, 1);
            let line = format!("{}{text}\n", "7,".repeat(others as usize));
            let payload = read("csv", line.as_bytes(), 0, Some(&plan));
            let last = payload
                .ok()
                .map(|bytes| bytes[others as usize * element.bytes() as usize..].to_vec());
            assert_eq!(last, expected, "{text} after {others}");
        }
    }
}

#[test]
fn a_foreign_file_is_float64() {
    let floats =
        |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
    assert_eq!(read("csv", b"1,2.5\n3\n", 0, None).unwrap(), floats(&[1.0, 2.5]));
    assert_eq!(read("csv", b"1,2.5\n3", 1, None).unwrap(), floats(&[3.0]));
    assert_eq!(read("json", b"[1,2.5]\n[3]", 1, None).unwrap(), floats(&[3.0]));
    let gap = read("csv", b"1,,2\n", 0, None).unwrap();
    assert!(f64::from_le_bytes(gap[8..16].try_into().unwrap()).is_nan());
    let error = read("csv", b"1\n2\n", 2, None).unwrap_err();
    assert_eq!(error.message, "holds 2 rows, so there is no sample 2");
}

/// The byte order mark is what Excel's "CSV UTF-8" begins with.
#[test]
fn column_numbers_and_byte_order_marks_are_no_samples() {
    for (name, text, expected) in [
        ("csv", "0,1,2\n0.5,1,2\n", 1),
        ("csv", "0,1,2,3,4,5,6,7,8,9,10\r\n0,1,2,3,4,5,6,7,8,9,10\r\n", 1),
        ("csv", ",0\n0,7\n", 1),
        ("csv", ",0,1\r\n0,7,8\r\n", 1),
        ("csv", "0,1\n2,3\n", 2),
        ("csv", "0\n1\n", 2),
        ("csv", "0,1,3\n2,3,4\n", 2),
        ("csv", ",1\n2,3\n", 2),
        ("csv", "\u{feff}0.5,1\n2,3\n", 2),
        ("csv", "\u{feff}0,1,2\n2,3,4\n", 1),
        ("csv", "\u{feff}\n", 0),
        ("json", "\u{feff}[1,2]\n[3,4]\n", 2),
    ] {
        for sample in 0..expected {
            read(name, text.as_bytes(), sample, None).unwrap();
        }
        let error = read(name, text.as_bytes(), expected, None).unwrap_err();
        assert_eq!(error.samples, Some(expected), "{text:?}: {error}");
    }
}

#[test]
fn later_rows_that_are_not_of_numbers_are_read_undecoded() {
    let long = format!("1,2\n{}NA\n5,6\n", "7,".repeat(9000));
    let cases = [
        ("csv", "1,2\n3,NA\n5,6\n", 1),
        ("csv", "1,2\n3,4\n5,words", 2),
        ("csv", &long, 1),
        ("json", "[1,2]\n[3,\"4\"]\n[5,6]\n", 1),
        ("json", "[1,2]\n{\"a\\\n[5,6]\n", 1),
        ("json", "[1,2]\n[3,4]\n[5,", 2),
    ];
    for (name, text, undecoded) in cases {
        for piece_bytes in [2, 9, 4096] {
            let mut cursor = (format(name).cursor)(&options(piece_bytes));
            for sample in [0, 1, 2, 1, 0, 2] {
                let parts = [text.as_bytes().to_vec()];
                let row = read_with(&mut *cursor, piece_bytes, &parts, sample, None).unwrap();
                let is_undecoded = cursor.undecoded_type().is_some();
                assert_eq!(is_undecoded, sample == undecoded, "row {sample} of {text:?}");
                assert!(is_undecoded || row.len() == 16, "row {sample} of {text:?}");
            }
            let parts = [text.as_bytes().to_vec()];
            let error = read_with(&mut *cursor, piece_bytes, &parts, 3, None).unwrap_err();
            assert_eq!(error.samples, Some(3), "{text:?}: {error}");
        }
    }
    for (name, text) in [("csv", "NA,2\n3,4\n"), ("json", "[null,\"2\"]\n[3,4]\n")] {
        let error = read(name, text.as_bytes(), 0, None).unwrap_err();
        assert!(error.message.starts_with("row 0: "), "{error}");
    }
}

/// Offsets and lengths read of a file for `samples`.
fn reads(compression: Compression, samples: &[u64]) -> (u64, Vec<(u64, u64)>) {
    let shape = shape(&[1000], Element::Uint8, 20);
    let encoding = Encoding { compression, ..Encoding::default() };
    let parts = encode_with(format("csv"), &shape, &encoding, 1 << 20);
    let mut cursor = (format("csv").cursor)(&options(4096));
    let mut requested = Vec::new();
    for &sample in samples {
        cursor.begin(0, sample, Some(&shape));
        loop {
            match cursor.need().unwrap() {
                Need::Done => break,
                Need::Again { offset, len, .. } => {
                    let bytes = &parts[0][offset as usize..][..len];
                    cursor.feed(bytes, &mut super::super::Discard).unwrap();
                }
                Need::Buffered => cursor.feed(&[], &mut super::super::Discard).unwrap(),
                Need::Length { .. } => {
                    let length = parts[0].len() as u64;
                    cursor.feed(&length.to_le_bytes(), &mut super::super::Discard).unwrap();
                }
                Need::Bytes { offset, len, .. } => {
                    requested.push((offset, len as u64));
                    let bytes = &parts[0][offset as usize..][..len];
                    cursor.feed(bytes, &mut super::super::Discard).unwrap();
                }
            }
        }
    }
    (parts[0].len() as u64, requested)
}

#[test]
fn samples_in_order_read_each_byte_once() {
    for compression in [Compression::None, Compression::Gzip] {
        for step in [1, 3] {
            let samples: Vec<u64> = (0..20).step_by(step).collect();
            let (length, requested) = reads(compression, &samples);
            let mut position = 0;
            for (offset, len) in requested {
                assert_eq!(offset, position);
                position += len;
            }
            assert!(step == 3 || position == length);
        }
    }
}

#[test]
fn a_step_backward_starts_at_the_beginning() {
    let (_, requested) = reads(Compression::None, &[5, 4]);
    assert_eq!(requested.iter().filter(|&&(offset, _)| offset == 0).count(), 2);
}

fn gzip_file() -> (FileShape, Vec<u8>) {
    let shape = shape(&[4, 5], Element::Float32, 3);
    let encoding = Encoding { compression: Compression::Gzip, ..Encoding::default() };
    (shape, encode_with(format("csv"), &shape, &encoding, 1000).remove(0))
}

#[test]
fn a_gzip_file_truncated_anywhere_is_an_error() {
    let (shape, file) = gzip_file();
    read("csv", &file, 2, Some(&shape)).unwrap();
    for len in 0..file.len() {
        assert!(read("csv", &file[..len], 2, Some(&shape)).is_err(), "cut at {len}");
    }
}

#[test]
fn all_members_of_a_gzip_file_are_read() {
    let member = |name: &str, text: &[u8]| {
        let builder = flate2::GzBuilder::new().filename(name).extra([7; 300]);
        let mut packer = builder.write(Vec::new(), flate2::Compression::default());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    };
    let members = [member("a", b"1,2\n3,"), member("", b""), member("b", b"4\n5,6\n")];
    let mut file = members.concat();
    let plan = shape(&[2], Element::Uint8, 3);
    for piece_bytes in [2, 7, 100, 4096] {
        let mut cursor = (format("csv").cursor)(&options(piece_bytes));
        for sample in [0, 1, 2, 0, 2] {
            let parts = [file.clone()];
            let row = read_with(&mut *cursor, piece_bytes, &parts, sample, Some(&plan));
            let first = 2 * sample as u8 + 1;
            assert_eq!(row.unwrap(), [first, first + 1], "{sample} in pieces of {piece_bytes}");
        }
    }
    file.extend_from_slice(&[0; 20]);
    let error = read("csv", &file, 2, Some(&plan)).unwrap_err();
    assert!(error.message.starts_with("broken gzip: invalid gzip header"), "{error}");
}

#[test]
fn every_flipped_bit_in_gzip_is_detected() {
    let (shape, file) = gzip_file();
    let whole = read("csv", &file, 2, Some(&shape));
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let payload = read("csv", &flipped, 2, Some(&shape));
        assert!(payload.is_err() || payload == whole, "bit {bit}");
        let _ = read("csv", &flipped, 2, None);
    }
}

/// A megabyte of newlines or brackets compressed to a kilobyte: time and memory are limited by the text.
#[test]
fn a_gzip_bomb_is_read_in_a_window() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![b'\n'; 8 << 20]).unwrap();
    let error = read("csv", &bomb.finish().unwrap(), 0, None).unwrap_err();
    assert_eq!(error.to_string(), "at byte 8388608: holds 0 rows, so there is no sample 0");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_in_any_order_do_not_make_a_cursor_panic(
        words in proptest::collection::vec(0usize..16, 0..400), sample in 0u64..3,
    ) {
        const WORDS: [&str; 16] = [
            "[", "]", "{", "}", ",", ":", "\"", "\\", "\n", "\r\n", " ", "1", "-2.5e3", "null", "7,7,7,7,", "[1,2]\n",
        ];
        let text: String = words.iter().map(|&word| WORDS[word]).collect();
        for name in ["csv", "json"] {
            let _ = read(name, text.as_bytes(), sample, None);
            let _ = read(name, text.as_bytes(), sample, Some(&shape(&[2], Element::Float32, 3)));
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same_payload(pieces in 1usize..200, numbers in 1u64..300, samples in 1u64..4) {
        for element in [Element::Uint8, Element::Int64, Element::Float32] {
            let shape = shape(&[numbers], element, samples);
            for name in ["csv", "json"] {
                let parts = encode_with(format(name), &shape, &Encoding::default(), 1000);
                let mut large_pieces = (format(name).cursor)(&options(1 << 20));
                let mut small_pieces = (format(name).cursor)(&options(pieces));
                for sample in 0..samples {
                    let large = read_with(&mut *large_pieces, 1 << 20, &parts, sample, Some(&shape));
                    let small = read_with(&mut *small_pieces, pieces, &parts, sample, Some(&shape));
                    prop_assert_eq!(large.unwrap(), small.unwrap());
                }
            }
        }
    }
}
