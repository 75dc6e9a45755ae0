//! Tests beyond the contract suite: sizes, pixels and ends of files.

use super::super::tests::{
    MemorySink, decoding_error, encode_default, options, read, read_with, shape,
};
use super::super::*;
use feedrate_spec::shape::Element;

fn jpeg() -> &'static Format {
    find("jpeg").unwrap()
}

/// Verification compares bytes, so they must be equal on every machine and in every release with the same format version.
#[test]
fn bytes_are_stable() {
    let grey = encode_default(jpeg(), &shape(&[40, 41], Element::Uint8, 1), 1000);
    let rgb = encode_default(jpeg(), &shape(&[40, 41, 3], Element::Uint8, 1), 1000);
    assert_eq!(
        [crc32fast::hash(&grey[0]), crc32fast::hash(&rgb[0])],
        [3_171_540_184, 4_276_294_790]
    );
}

#[test]
fn images_are_uncorrelated_noise() {
    for dims in [&[400, 400][..], &[400, 400, 3]] {
        let shape = shape(dims, Element::Uint8, 1);
        let pixels = |file: u64| {
            let mut sink = MemorySink { parts: vec![vec![]], space: vec![0; 4096] };
            let mut content = Content::new(7);
            content.select_file(file);
            (jpeg().encode)(&shape, &Encoding::default(), &mut content, &mut sink).unwrap();
            read(jpeg(), &sink.parts, 0, Some(&shape)).unwrap()
        };
        let (a, b) = (pixels(0), pixels(1));
        let mean =
            |values: &dyn Fn(usize) -> f64| (0..a.len()).map(values).sum::<f64>() / a.len() as f64;
        let mean_of_a = mean(&|i| f64::from(a[i]));
        let mean_of_b = mean(&|i| f64::from(b[i]));
        let [variance, covariance] = [&a, &b].map(|other| {
            mean(&|i| (f64::from(a[i]) - mean_of_a) * (f64::from(other[i]) - mean_of_b))
        });
        // Uniform noise has a standard deviation of 73.9. Subsampled colours have less.
        let expected = if dims.len() == 2 { 74.2 } else { 53.4 };
        assert!((mean_of_a - 127.5).abs() < 1.0, "{dims:?}: {mean_of_a}");
        assert!((variance.sqrt() - expected).abs() < 2.0, "{dims:?}: {}", variance.sqrt());
        assert!((covariance / variance).abs() < 0.02, "{dims:?}: {covariance}");
    }
}

/// Zeros in the content are dark stripes of the image, at most as wide as a block.
#[test]
fn content_that_can_be_compressed_makes_smaller_files() {
    use feedrate_spec::shape::Redundancy;
    let shape = shape(&[400, 400, 3], Element::Uint8, 1);
    let bytes = |compressible_percent| {
        let redundancy = Redundancy { compressible_percent, duplicate_percent: 0 };
        let mut content = Content::with_redundancy(7, redundancy);
        let mut sink = MemorySink { parts: vec![vec![]], space: vec![0; 4096] };
        (jpeg().encode)(&shape, &Encoding::default(), &mut content, &mut sink).unwrap();
        sink.parts[0].len() as f64
    };
    let share = bytes(50) / bytes(0);
    assert!((0.9..0.96).contains(&share), "{share}");
}

#[test]
fn estimated_sizes_are_close() {
    for dims in [&[300, 301][..], &[64, 1000], &[300, 301, 3], &[64, 1000, 3]] {
        let shape = shape(dims, Element::Uint8, 1);
        let bytes = encode_default(jpeg(), &shape, 1000)[0].len() as f64;
        let estimated = jpeg().file_bytes(&shape, &Encoding::default()) as f64;
        assert!((bytes / estimated - 1.0).abs() < 0.02, "{dims:?}: {bytes} of {estimated}");
    }
}

#[test]
fn bytes_after_the_end_are_ignored_and_a_missing_end_is_an_error() {
    let shape = shape(&[40, 41, 3], Element::Uint8, 1);
    let mut parts = encode_default(jpeg(), &shape, 1000);
    let pixels = read(jpeg(), &parts, 0, Some(&shape)).unwrap();
    parts[0].extend(b"\xff\x00said later");
    assert!(read(jpeg(), &parts, 0, Some(&shape)) == Ok(pixels));
    let end = parts[0].len() - 14;
    assert_eq!(parts[0][end..end + 2], [0xff, 0xd9]);
    parts[0][end + 1] = 0;
    let error = read(jpeg(), &parts, 0, Some(&shape)).unwrap_err();
    assert_eq!(error.message, "the file ends before the end of the image");
}

/// A file up to its pixels: the headers of a frame and a scan.
fn frame(kind: u8, depth: u8, side: [u8; 2], colours: u8) -> Vec<Vec<u8>> {
    let head = [0xff, 0xd8, 0xff, kind, 0, 8 + 3 * colours, depth];
    let components: Vec<u8> = (1..=colours).flat_map(|id| [id, 0x11, 0]).collect();
    let selectors: Vec<u8> = (1..=colours).flat_map(|id| [id, 0]).collect();
    let scan = [0xff, 0xda, 0, 6 + 2 * colours, colours];
    let frame = [&head[..], &side, &side, &[colours], &components].concat();
    vec![[&frame[..], &scan, &selectors, &[0, 63, 0], &[0; 60]].concat()]
}

#[test]
fn errors_name_the_cause() {
    let cases = [
        (frame(0xc0, 8, [0, 9], 2), "`2` colours"),
        (frame(0xc1, 12, [0, 9], 1), "12 bits"),
        (frame(0xc9, 8, [0, 9], 1), "not a complete jpeg"),
        (frame(0xc2, 8, [0, 0], 1), "not a complete jpeg"),
        (frame(0xc2, 8, [255, 255], 3), "cannot hold more than"),
        (frame(0xc0, 8, [0, 9], 1), "the file ends before the end of the image"),
        (frame(0xda, 8, [0, 9], 1), "not a complete jpeg"),
        (frame(0x00, 8, [0, 9], 1), "not a complete jpeg"),
        (vec![vec![0xff; 5000]], "not a complete jpeg"),
        (vec![[&[0xff, 0xd8][..], &[0xff; 5000]].concat()], "not a complete jpeg"),
        (vec![vec![]], "the file is empty"),
    ];
    for (parts, expected) in cases {
        let error = decoding_error(jpeg(), &parts);
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
}

/// Foreign files are measured by their reads, so one that is no picture is no failure.
#[test]
fn foreign_files_that_cannot_be_decoded_are_passed_through() {
    let whole = encode_default(jpeg(), &shape(&[40, 41, 3], Element::Uint8, 1), 1000).remove(0);
    let files = [
        Vec::new(),
        vec![7; 3],
        vec![0xff; 20_000],
        whole[..whole.len() - 40].to_vec(),
        [&whole[..20], &[7; 9000]].concat(),
    ];
    for file in files {
        let mut cursor = (jpeg().cursor)(&options(4096));
        let payload = read_with(&mut *cursor, 4096, std::slice::from_ref(&file), 0, None).unwrap();
        assert_eq!((payload, cursor.undecoded_type()), (file.clone(), Some("jpeg")));
        assert_eq!((cursor.payload_bytes(), cursor.file_shape()), (Some(file.len() as u64), None));
        // The next file is decoded.
        let payload = read_with(&mut *cursor, 4096, std::slice::from_ref(&whole), 0, None).unwrap();
        assert_eq!((payload.len(), cursor.undecoded_type()), (40 * 41 * 3, None));
    }
    let other_sample = read(jpeg(), &[vec![7; 9000]], 1, None);
    assert!(other_sample.is_err());
}
