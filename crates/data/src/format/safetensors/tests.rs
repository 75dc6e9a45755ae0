//! Headers of others, and headers that lie.

use super::super::tests::{encoded, options, read, read_with, shape};
use super::super::{Need, find};
use super::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn read_sample(file: Vec<u8>, sample: u64) -> Result<Vec<u8>, String> {
    read(find("safetensors").unwrap(), &[file], sample, None).map_err(|error| error.to_string())
}

#[test]
fn the_header_is_as_long_as_promised() {
    for samples in [1, 2, 9, 10, 11, 99, 100, 101, 1000, 1001] {
        for dims in [&[][..], &[0], &[1], &[7, 13], &[1000, 1000], &[u32::MAX.into(); 8]] {
            let shape = shape(dims, Element::Float16, samples);
            let mut text = Vec::new();
            let written = header::write(&shape, &mut String::new(), &mut |piece| {
                text.extend_from_slice(piece);
                Ok::<(), ()>(())
            });
            assert_eq!(written, Ok(()));
            assert_eq!(text.len() as u64, header::bytes(&shape), "{samples} of {dims:?}");
            assert!(header::matches(&text, &shape, &mut String::new()));
        }
    }
}

#[test]
fn tensors_are_taken_as_they_lie() {
    let header = r#"{"__metadata__":{"made":"by hand"},"z":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
        "b":{"dtype":"BF16","shape":[2],"data_offsets":[3,7]},"a":{"dtype":"I8","shape":[],"data_offsets":[2,3]},
        "none":{"dtype":"F32","shape":[0,4],"data_offsets":[2,2]}}  "#;
    let bytes = file(header, b"zzabbbb");
    for (sample, expected) in
        [b"zz".to_vec(), vec![], b"a".to_vec(), b"bbbb".to_vec()].iter().enumerate()
    {
        assert_eq!(read_sample(bytes.clone(), sample as u64).as_ref(), Ok(expected));
    }
    let error = read_sample(bytes, 4).unwrap_err();
    assert!(error.contains("holds 4 tensors, so there is no sample 4"), "{error}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let tensor =
        |offsets: &str| format!(r#"{{"a":{{"dtype":"U8","shape":[4],"data_offsets":{offsets}}}}}"#);
    let two = |first: &str, second: &str| {
        let entry =
            |offsets: &str| format!(r#"{{"dtype":"U8","shape":[4],"data_offsets":{offsets}}}"#);
        format!(r#"{{"a":{},"b":{}}}"#, entry(first), entry(second))
    };
    let error = |header: &str| read_sample(file(header, b"12345678"), 0).unwrap_err();
    let mut long = (HEADER_BYTES_MAX + 1).to_le_bytes().to_vec();
    long.resize((HEADER_BYTES_MAX + 100) as usize, b' ');
    insta::assert_snapshot!(
        [
            read_sample(Vec::new(), 0).unwrap_err(),
            read_sample(vec![b'x'; 5000], 0).unwrap_err(),
            read_sample(long, 0).unwrap_err(),
            error(""),
            error("[]"),
            error(&"[".repeat(10_000)),
            error(r#"{"a":{"dtype":"U8"}}"#),
            error(&tensor("[0,4]")),
            error(&tensor("[0,18446744073709551615]")),
            error(&tensor("[4,8]")),
            error(&tensor("[8,4]")),
            error(&tensor("[0,5]")),
            error(&two("[0,4]", "[2,6]")),
            error(r#"{"a":{"dtype":"U64","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#),
        ]
        .join("\n"), @r#"
    at byte 0: the file ends, but 8 more bytes were expected
    at byte 0: a header of 8680820740569200760 bytes in a file of 5000
    at byte 0: a header of 16777217 bytes, more than 16777216
    at byte 8: the header is not one of safetensors: EOF while parsing a value at line 1 column 0
    at byte 8: the header is not one of safetensors: invalid type: sequence, expected struct HashMetadata at line 1 column 0
    at byte 8: the header is not one of safetensors: invalid type: sequence, expected struct HashMetadata at line 1 column 0
    at byte 8: the header is not one of safetensors: missing field `shape` at line 1 column 20
    at byte 8: the header describes 4 bytes, but 8 follow it
    at byte 8: the header is not one of safetensors: invalid shape, data type, or offset for tensor
    at byte 8: the header is not one of safetensors: invalid offset for tensor `a`
    at byte 8: the header is not one of safetensors: invalid offset for tensor `a`
    at byte 8: the header is not one of safetensors: invalid shape, data type, or offset for tensor
    at byte 8: the header is not one of safetensors: invalid offset for tensor `b`
    at byte 8: the header is not one of safetensors: overflow computing buffer size from shape and/or element type
    "#);
    // Which of two at one place is named, is up to the library.
    let error = error(&two("[0,4]", "[0,4]"));
    assert!(error.contains("invalid offset for tensor"), "{error}");
}

#[test]
fn a_planned_file_must_have_the_names_of_the_plan() {
    let format = find("safetensors").unwrap();
    let plan = shape(&[4], Element::Uint8, 2);
    let mut parts = encoded(format, &plan, 1000);
    let at = parts[0].windows(8).position(|word| word == b"sample_1").unwrap();
    parts[0][at..at + 8].copy_from_slice(b"simple_1");
    let error = read(format, &parts, 0, Some(&plan)).unwrap_err();
    assert!(error.message.contains("but the plan says"), "{error}");
    assert_eq!(read(format, &parts, 0, None).unwrap().len(), 4);
}

#[test]
fn a_longer_file_is_refused() {
    let format = find("safetensors").unwrap();
    let plan = shape(&[4], Element::Uint8, 2);
    let mut parts = encoded(format, &plan, 1000);
    parts[0].push(0);
    assert!(read(format, &parts, 0, Some(&plan)).is_err());
    assert!(read(format, &parts, 0, None).is_err());
}

/// A header is read once for all samples of its file, and again for another file.
#[test]
fn the_header_is_kept() {
    let format = find("safetensors").unwrap();
    let plan = shape(&[4], Element::Uint8, 3);
    let parts = encoded(format, &plan, 1000);
    let mut cursor = (format.cursor)(&options(4096));
    for expected in [Some(&plan), None] {
        read_with(&mut *cursor, 4096, &parts, 0, expected).unwrap();
        cursor.begin(5, 2, expected);
        let need = cursor.need().unwrap();
        assert!(matches!(need, Need::Bytes { len: 4, .. }), "{need:?}");
    }
    cursor.begin(6, 2, None);
    assert_eq!(cursor.need().unwrap(), Need::Length { part: 0 });
}

#[test]
fn very_many_samples_are_unfit() {
    let reason = |samples| unfit(&shape(&[1], Element::Uint8, samples), &Encoding::default());
    assert_eq!(reason(100_000), None);
    assert_eq!(reason(1_000_000).unwrap().key, "dataset.num_samples_per_file");
    // The size is asked for all the same, and told at once.
    let file_bytes = find("safetensors").unwrap().entry.file_bytes;
    for samples in [1 << 40, u64::MAX] {
        assert!(reason(samples).is_some());
        assert!(file_bytes(&shape(&[1], Element::Uint8, samples), &Encoding::default()) >= samples);
    }
}
