//! Tests beyond the contract suite: the written stream, and files with excessive sizes.

use super::super::tests::{decoding_error, encode_default, read, shape};
use super::super::*;
use feedrate_spec::shape::Element;
use std::io::Read;

/// The chunks of a file: type and data.
fn chunks(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut found = Vec::new();
    let mut rest = &file[8..];
    while let Some((head, tail)) = rest.split_at_checked(8) {
        let len = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
        found.push((&head[4..], &tail[..len]));
        rest = &tail[len + 4..];
    }
    found
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_be_bytes();
    let crc = crc32fast::hash(&[&kind[..], data].concat()).to_be_bytes();
    [&len[..], kind, data, &crc].concat()
}

fn file(width: u32, height: u32, depth: u8, colour: u8, chunks: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, 0]];
    vec![[&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &head.concat()), &chunks.concat()].concat()]
}

#[test]
fn other_programs_can_inflate_the_stream() {
    let png = find("png").unwrap();
    for (dims, element) in [
        (&[1, 1][..], Element::Uint8),
        // Blocks end inside rows, at the ends of rows, and at the end of the image.
        (&[7, 32_766], Element::Uint8),
        (&[300, 1000, 3], Element::Uint8),
        (&[301, 999], Element::Uint16),
    ] {
        let shape = shape(dims, element, 1);
        let parts = encode_default(png, &shape, 1000);
        let chunks = chunks(&parts[0]);
        assert_eq!(chunks[0].0, b"IHDR");
        assert_eq!(chunks.last().unwrap(), &(&b"IEND"[..], &b""[..]));
        let stream: Vec<u8> = chunks
            .iter()
            .filter(|(kind, _)| kind == b"IDAT")
            .flat_map(|(_, data)| *data)
            .copied()
            .collect();
        assert!(chunks.iter().all(|(_, data)| data.len() <= 64 << 10));
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&stream[..]).read_to_end(&mut rows).unwrap();
        assert_eq!(rows.len() as u64, shape.sample_bytes() + dims[0]);
        let estimated = png.file_bytes(&shape, &Encoding::default()) as f64;
        let ratio = parts[0].len() as f64 / estimated;
        assert!((ratio - 1.0).abs() < 0.01 || parts[0].len() < 1000, "{dims:?}: {ratio}");
    }
}

/// Verification compares bytes, so they must be equal on every machine and in every release with the same format version.
#[test]
fn bytes_are_stable() {
    let png = find("png").unwrap();
    let grey = encode_default(png, &shape(&[40, 41], Element::Uint16, 1), 1000);
    let rgb = encode_default(png, &shape(&[40, 41, 3], Element::Uint8, 1), 1000);
    assert_eq!(
        [crc32fast::hash(&grey[0]), crc32fast::hash(&rgb[0])],
        [1_949_727_159, 3_497_564_214]
    );
}

#[test]
fn errors_name_the_cause() {
    let data = || chunk(b"IDAT", b"x\x9c\x63\0\0\0\x01\0\x01");
    let end = || chunk(b"IEND", b"");
    let cases = [
        (file(1 << 31, 1, 8, 0, &[data()]), "cannot hold more than"),
        (file(5, 0, 8, 0, &[data()]), "not a complete png: Invalid image dimensions"),
        (file(5, 5, 3, 0, &[data()]), "not a complete png"),
        (file(5, 5, 16, 3, &[data()]), "not a complete png"),
        (file(5, 5, 8, 7, &[data()]), "not a complete png"),
        (
            file((1 << 31) - 1, (1 << 31) - 1, 16, 6, &[data()]),
            "not a complete png: limits are exceeded",
        ),
        (file(1 << 20, 1 << 12, 8, 0, &[data(), vec![0; 200_000]]), "more than 1073741824 bytes"),
        (file(5, 5, 8, 3, &[data(), end()]), "not a complete png"),
        (file(5, 5, 8, 0, &[data(), end()]), "not a complete png"),
        (file(5, 5, 8, 0, &[end()]), "not a complete png"),
        (file(5, 5, 8, 0, &[chunk(b"tEXt", &[7; 9000])]), "not a complete png"),
        (file(5, 5, 8, 0, &[vec![0xff; 40]]), "not a complete png"),
        (vec![vec![]], "the file is empty"),
        (vec![b"\x89PNG\r\n\x1a\n".repeat(9)], "not a complete png"),
    ];
    for (parts, expected) in cases {
        let error = decoding_error(find("png").unwrap(), &parts);
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_longer_file_than_planned_is_refused() {
    let small = shape(&[4, 5], Element::Uint8, 1);
    let mut parts = encode_default(find("png").unwrap(), &small, 1000);
    parts[0].resize(100_000, 0);
    let error = read(find("png").unwrap(), &parts, 0, Some(&small)).unwrap_err();
    assert_eq!(
        error.message,
        "the file has 100000 bytes, but the expected image has at most 65576"
    );
}

#[test]
fn shapes_that_are_not_images_are_refused() {
    let cases = [
        ("png", shape(&[4, 5], Element::Uint8, 3), "dataset.num_samples_per_file"),
        ("jpeg", shape(&[4, 5, 4], Element::Uint8, 1), "dataset.record_dims"),
        ("png", shape(&[4, 5, 5], Element::Uint8, 1), "dataset.record_dims"),
        ("png", shape(&[400], Element::Uint8, 1), "dataset.record_dims"),
        ("jpeg", shape(&[1, 65_536], Element::Uint8, 1), "dataset.record_dims"),
        ("png", shape(&[1 << 31, 1], Element::Uint8, 1), "dataset.record_dims"),
    ];
    for (format, shape, key) in cases {
        let unfit = (find(format).unwrap().entry.unsupported_setting)(&shape, &Encoding::default())
            .unwrap();
        assert_eq!(unfit.key, key, "{unfit:?}");
    }
    for (format, shape) in [
        ("jpeg", shape(&[65_535, 65_535, 3], Element::Uint8, 1)),
        ("png", shape(&[(1 << 31) - 1, (1 << 31) - 1, 4], Element::Uint16, 1)),
    ] {
        let entry = find(format).unwrap().entry;
        assert_eq!((entry.unsupported_setting)(&shape, &Encoding::default()), None);
        assert!((entry.file_bytes)(&shape, &Encoding::default()) > shape.dims.elements() / 8);
    }
}
