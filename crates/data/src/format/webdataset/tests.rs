//! Tests of headers of other writers, of archives that arrive in pieces of any length, and of the requests for them.

use super::super::Need;
use super::super::tests::{encode_default, options, read_with, shape};
use super::block::{Header, MemberKind};
use super::*;
use feedrate_spec::shape::Element;
use std::io::Write;

#[test]
fn pieces_of_any_length_are_read() {
    let shape = shape(&[5, 60], Element::Uint16, 3);
    let parts = encode_default(&FORMAT, &shape, 1000);
    let mut content = Content::new(42);
    content.select_file(5);
    for piece_bytes in [1, 2, 3, 7, 100, 511, 512, 513, 640, 2047, 2560, 2561, 5000] {
        let mut cursor = (FORMAT.cursor)(&options(piece_bytes));
        for expected in [Some(&shape), None] {
            for sample in [0, 1, 2, 1, 1, 0, 2] {
                let payload =
                    read_with(&mut *cursor, piece_bytes, &parts, sample, expected).unwrap();
                assert_eq!(payload.len(), 600);
                assert_eq!(content.matches(sample, 0, shape.element, &payload), Ok(()));
            }
        }
    }
}

#[test]
fn samples_in_order_share_reads() {
    let shape = shape(&[100], Element::Uint8, 50);
    let parts = encode_default(&FORMAT, &shape, 1000);
    for expected in [Some(&shape), None] {
        let mut cursor = (FORMAT.cursor)(&options(16384));
        let mut ends = vec![0];
        for sample in 0..50 {
            cursor.begin(5, sample, expected);
            loop {
                let bytes = match cursor.need().unwrap() {
                    Need::Done => break,
                    Need::Buffered => &[],
                    Need::Again { offset, len, .. } => &parts[0][offset as usize..][..len],
                    Need::Length { .. } => &(parts[0].len() as u64).to_le_bytes()[..],
                    Need::Bytes { offset, len, .. } => {
                        assert_eq!(Some(&(offset as usize)), ends.last());
                        ends.push(offset as usize + len);
                        &parts[0][offset as usize..][..len]
                    }
                };
                cursor.feed(bytes, &mut super::super::Discard).unwrap();
            }
        }
        assert_eq!(ends.len() - 1, parts[0].len().div_ceil(16384));
    }
}

/// A compressed archive is read from its start to go back, so it must not be for each sample.
#[test]
fn compressed_archives_with_several_extensions_are_read_a_few_times() {
    let mut archive = Vec::new();
    let mut expected = Vec::new();
    for sample in 0..60usize {
        // The mask of a sample without an image does not make the other masks payloads.
        let image = vec![sample as u8; if sample == 30 { 0 } else { 2000 }];
        let mask = vec![7; 100];
        let extension = ["jpg", "png", "webp"][sample % 3];
        let members = [("mask", &mask), (extension, &image)];
        for (extension, content) in members.iter().filter(|member| !member.1.is_empty()) {
            let name = format!("{sample:04}.{extension}");
            archive.extend(block::header(&name, content.len() as u64));
            archive.extend(*content);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        expected.push(if image.is_empty() { mask } else { image });
    }
    archive.resize(archive.len() + 1024, 0);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&archive).unwrap();
    for (file, passes_max) in [(archive, 1.5), (encoder.finish().unwrap(), 3.0)] {
        let mut cursor = (FORMAT.cursor)(&options(4096));
        let mut requested = 0;
        for (sample, expected) in (0..).zip(&expected) {
            let mut payload = Vec::new();
            cursor.begin(5, sample, None);
            loop {
                let bytes = match cursor.need().unwrap() {
                    Need::Done => break,
                    Need::Buffered => &[],
                    Need::Again { offset, len, .. } => &file[offset as usize..][..len],
                    Need::Length { .. } => &(file.len() as u64).to_le_bytes()[..],
                    Need::Bytes { offset, len, .. } => {
                        requested += len;
                        &file[offset as usize..][..len]
                    }
                };
                cursor.feed(bytes, &mut payload).unwrap();
            }
            assert!(payload == *expected, "sample {sample}");
        }
        let passes = requested as f64 / file.len() as f64;
        assert!(passes < passes_max, "{passes} passes");
    }
}

#[test]
fn a_planned_archive_must_match_the_plan_and_its_file() {
    let shape = shape(&[4, 5], Element::Float32, 2);
    let parts = encode_default(&FORMAT, &shape, 1000);
    let error = |parts: &[Vec<u8>], sample| {
        let mut cursor = (FORMAT.cursor)(&options(4096));
        read_with(&mut *cursor, 4096, parts, sample, Some(&shape)).unwrap_err().message
    };
    for len in 0..parts[0].len() {
        let truncated = [parts[0][..len].to_vec()];
        assert!(error(&truncated, 1).contains("but the plan says 2 samples of 4×5 float32"));
    }
    let error_with_header = |key: &str, bytes| {
        let mut changed = parts.clone();
        changed[0][1024..1536].copy_from_slice(&block::header(key, bytes));
        error(&changed, 0)
    };
    let key = "sample000005_000000";
    assert_eq!(
        error_with_header("other.npy", 208),
        "holds `other.npy`, but the plan says `sample000005_000000.npy`"
    );
    assert_eq!(
        error_with_header(&format!("{key}.npy"), 209),
        format!("`{key}.npy` has 209 bytes, but the plan says 208")
    );
    assert_eq!(
        error_with_header(&format!("{key}.txt"), 600),
        format!("`{key}.txt` has 600 bytes, more than the plan says")
    );
    assert!(
        error_with_header(&format!("{key}.jpg"), 208)
            .contains("not an array, but the plan says 2 samples")
    );
    let mut ended = parts.clone();
    ended[0][2048..2560].fill(0);
    assert!(error(&ended, 1).contains("the archive ends, but the plan says"));
}

#[test]
fn headers_are_read_as_written() {
    for bytes in [0, 1, 0o777_7777_7777, 0o1000_0000_0000, u64::MAX] {
        let block = block::header("name.npy", bytes);
        assert_eq!(block::read(&block, 0).unwrap(), Some(Header { kind: MemberKind::File, bytes }));
        let mut path = Vec::new();
        block::push_path(&block, &mut path);
        assert_eq!(path, b"name.npy");
    }
}

#[test]
fn every_flipped_bit_of_a_header_is_detected() {
    let block = block::header("name.npy", 4711);
    for bit in 0..block.len() * 8 {
        let mut flipped = block;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let read = block::read(&flipped, 512);
        // The field of the checksum allows different spaces and digits for the same value.
        let in_checksum = (148..156).contains(&(bit / 8));
        let same = Some(Header { kind: MemberKind::File, bytes: 4711 });
        assert!(read.is_err() || in_checksum && read == Ok(same), "bit {bit}");
    }
}

#[test]
fn extended_headers_are_read() {
    let header = b"12 size=700\n23 path=folder/x y.bin\n15 comment=a=b\n\0\0".as_slice();
    let read = pax::read(header).unwrap();
    assert_eq!((read.path, read.bytes), (Some(b"folder/x y.bin".as_slice()), Some(700)));
    let broken: [&[u8]; 8] = [
        b"0 a=b\n",
        b"1 a=b\n",
        b"5 a=b\n",
        b"7 a=b\n",
        b"99 a=b\n",
        b"18446744073709551616 a=b\n",
        b"-6 a=b\n",
        b"12 size=7x0\n",
    ];
    for header in broken {
        assert_eq!(pax::read(header), None, "{}", String::from_utf8_lossy(header));
    }
}

#[test]
fn keys_of_large_datasets_are_unique() {
    let key = |file, sample| {
        let mut key = String::new();
        write_key(&mut key, file, sample);
        key
    };
    assert_eq!(key(0, 12), "sample000000_000012");
    assert_eq!(key(12_345_678, 1_000_000), "sample12345678_1000000");
    assert!(key(u64::MAX, u64::MAX).len() + ".npy".len() <= 100);
}
