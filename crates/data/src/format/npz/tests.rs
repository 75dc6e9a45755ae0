//! Tests with archives that feedrate does not write, composed byte by byte.

use super::super::find;
use super::super::tests::{MemorySink, encode_with, options, read, read_with, shape};
use super::super::{Content, CursorOptions, Format};
use super::{Compression as Packing, npy_header};
use feedrate_spec::shape::{Element, Encoding, FileShape, Redundancy};
use flate2::{Compress, Compression, FlushCompress};

/// A member as Python's `zipfile` writes it to a seekable file.
struct Member {
    name: &'static str,
    method: u16,
    packed: Vec<u8>,
    bytes: u64,
    crc: u32,
}

fn array(len: usize) -> Vec<u8> {
    let mut bytes = npy_header::write(&shape(&[len as u64], Element::Uint8, 1));
    bytes.extend((0..len).map(|i| (i % 251) as u8));
    bytes
}

fn stored_member(name: &'static str, bytes: &[u8]) -> Member {
    Member {
        name,
        method: 0,
        packed: bytes.to_vec(),
        bytes: bytes.len() as u64,
        crc: crc32fast::hash(bytes),
    }
}

fn deflated_member(name: &'static str, bytes: &[u8]) -> Member {
    let mut packed = Vec::with_capacity(bytes.len() + 1000);
    let mut compress = Compress::new(Compression::default(), false);
    compress.compress_vec(bytes, &mut packed, FlushCompress::Finish).unwrap();
    Member { packed, method: 8, ..stored_member(name, bytes) }
}

/// An archive without zip64, with `comment` at its end.
fn archive(members: &[Member], comment: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for m in members {
        let offset = file.len() as u32;
        let mut fields = Vec::new();
        for value in [20, 0, m.method, 0, 33] {
            fields.extend(u16::to_le_bytes(value));
        }
        fields.extend(m.crc.to_le_bytes());
        fields.extend((m.packed.len() as u32).to_le_bytes());
        fields.extend((m.bytes as u32).to_le_bytes());
        fields.extend((m.name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&fields);
        file.extend(m.name.as_bytes());
        file.extend(&m.packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(m.name.as_bytes());
    }
    let start = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([(members.len() as u16).to_le_bytes(); 2].concat());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend((comment.len() as u16).to_le_bytes());
    file.extend(comment);
    file
}

fn read_npz(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let format = find("npz").unwrap();
    let small = read(format, std::slice::from_ref(&file), 0, None);
    let large = read_with(&mut *(format.cursor)(&options(1 << 20)), 1 << 20, &[file], 0, None);
    assert_eq!(small, large);
    small.map_err(|error| error.to_string())
}

fn check(members: &[Member], comment: &[u8], len: usize) {
    let expected: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    assert_eq!(read_npz(archive(members, comment)), Ok(expected));
}

#[test]
fn other_archives_are_read() {
    for len in [0, 1, 100, 4096, 100_000] {
        let bytes = array(len);
        check(&[stored_member("x.npy", &bytes)], b"", len);
        check(&[deflated_member("x.npy", &bytes)], b"", len);
        check(
            &[deflated_member("y.npy", &array(9)), stored_member("x.npy", &bytes)],
            b"a comment",
            len,
        );
    }
    let labels = stored_member("labels.npy", &array(9));
    check(&[labels, deflated_member("z.npy", &array(70_000))], &[b'-'; 0xffff], 70_000);
}

#[test]
fn many_members_need_a_longer_read() {
    let mut members: Vec<Member> =
        (0..2000).map(|_| stored_member("some_other_member.npy", b"")).collect();
    members.insert(1000, stored_member("x.npy", &array(5000)));
    check(&members, b"", 5000);
}

#[test]
fn the_largest_array_of_a_foreign_archive_is_read() {
    let others = [
        stored_member("label.npy", &array(8)),
        deflated_member("volume.npy", &array(900)),
        stored_member("a.npy", &array(9)),
    ];
    check(&others, b"", 900);
}

/// Other files of the folder may have all arrays.
#[test]
fn without_a_chosen_array_the_others_are_read() {
    let members = [stored_member("image.npy", &array(900)), stored_member("label.npy", &array(8))];
    let file = archive(&members, b"");
    for (chosen, is_undecoded) in
        [(&["image"][..], false), (&["image", "mask"], true), (&["data"], true)]
    {
        let members: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        let options = CursorOptions { members: members.as_slice().into(), ..options(4096) };
        let mut cursor = (find("npz").unwrap().cursor)(&options);
        let sample = read_with(&mut *cursor, 4096, std::slice::from_ref(&file), 0, None).unwrap();
        assert_eq!(sample.len(), 900, "{chosen:?}");
        assert_eq!(cursor.undecoded_type().is_some(), is_undecoded, "{chosen:?}");
    }
}

#[test]
fn an_encrypted_largest_array_is_not_skipped() {
    let members = [stored_member("volume.npy", &array(900)), stored_member("label.npy", &array(8))];
    let mut file = archive(&members, b"");
    let directory = file.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    file[directory + 8] |= 1;
    let error = read_npz(file).unwrap_err();
    assert!(error.contains("member `volume.npy` is encrypted"), "{error}");
}

#[test]
fn errors_name_the_cause() {
    let bytes = array(100);
    let error_after = |change: fn(&mut Member)| {
        let mut member = stored_member("x.npy", &array(100));
        change(&mut member);
        read_npz(archive(&[member], b"")).unwrap_err()
    };
    let members: Vec<Member> = (0..12).map(|_| stored_member("data.txt", &bytes)).collect();
    let mut broken = deflated_member("x.npy", &bytes);
    broken.packed[0] ^= 0x06;
    insta::assert_snapshot!([
        read_npz(Vec::new()).unwrap_err(),
        read_npz(vec![b'x'; 5000]).unwrap_err(),
        read_npz(vec![0; 100_000]).unwrap_err(),
        read_npz(archive(&[], b"")).unwrap_err(),
        read_npz(archive(&members, b"")).unwrap_err(),
        error_after(|m| m.crc ^= 1),
        error_after(|m| m.bytes += 1),
        error_after(|m| { m.packed.push(0); m.bytes += 1; }),
        error_after(|m| { m.packed.pop(); m.bytes -= 1; }),
        error_after(|m| { m.packed[0] = 0; }),
        read_npz(archive(&[broken], b"")).unwrap_err(),
    ].join("\n"), @r#"
    at byte 0: a file of 0 bytes is too short for an npz
    at byte 5000: no zip directory: the file is cut off, or is not an npz
    at byte 100000: no zip directory: the file is cut off, or is not an npz
    at byte 0: no member `x.npy`: the archive holds nothing
    at byte 3192: no member `x.npy`: the archive holds `data.txt`, `data.txt`, `data.txt`, `data.txt`, `data.txt`, `data.txt`, `data.txt`, `data.txt` and 4 more
    at byte 0: CRC-32 of `x.npy` is 36a7010f, the archive says 36a7010e
    at byte 0: member `x.npy` is stored, yet 229 bytes take up 228
    at byte 0: member `x.npy` holds 229 bytes, but its array is 228 long
    at byte 0: member `x.npy` holds 227 bytes, but its array is 228 long
    at byte 35: not an npy array: it does not start with `\x93NUMPY`
    at byte 35: broken deflate stream: deflate decompression error: invalid code lengths set
    "#);
}

/// A megabyte of zeros compresses to a kilobyte. Memory does not grow, and a wrong length is found.
#[test]
fn a_bomb_is_refused_when_it_exceeds_its_stated_length() {
    let mut bytes = array(100);
    bytes.extend(vec![0; 50_000_000]);
    let mut bomb = deflated_member("x.npy", &bytes);
    bomb.bytes = array(100).len() as u64;
    let error = read_npz(archive(&[bomb], b"")).unwrap_err();
    assert!(error.contains("goes on"), "{error}");
}

/// A member with more than 4 GiB, of which only the numbers are used.
#[test]
fn sizes_beyond_32_bits_are_exact() {
    let format = find("npz").unwrap();
    let payload = 5_000_000_000;
    let one = format.file_bytes(&shape(&[payload], Element::Uint8, 1), &Encoding::default());
    // As computed by numpy.savez for these shapes: 20 more bytes for x's sizes, 12 for y's offset, 76 at the end.
    assert_eq!(one, 1_049_074 - (1 << 20) + payload + 20 + 12 + 76);
    assert_eq!(
        format.file_bytes(&shape(&[1024, 1024], Element::Uint8, 1), &Encoding::default()),
        1_049_074
    );
}

fn zip_at_level(compression_level: u32) -> Encoding {
    Encoding { compression: Packing::Zip, compression_level, ..Encoding::default() }
}

/// An archive that compression can halve.
fn half_zeros(format: &Format, shape: &FileShape, encoding: &Encoding) -> Vec<u8> {
    let redundancy = Redundancy { compressible_percent: 50, duplicate_percent: 0 };
    let mut sink = MemorySink { parts: vec![Vec::new()], space: vec![0; 1 << 16] };
    (format.encode)(shape, encoding, &mut Content::with_redundancy(1, redundancy), &mut sink)
        .unwrap();
    sink.parts.remove(0)
}

#[test]
fn the_level_takes_effect() {
    let format = find("npz").unwrap();
    let shape = shape(&[1000, 1000], Element::Uint8, 1);
    let mut bytes = vec![];
    for level in 0..=9 {
        let file = half_zeros(format, &shape, &zip_at_level(level));
        bytes.push(file.len());
        assert!(read_npz(file).is_ok_and(|payload| payload.len() == 1_000_000), "level {level}");
    }
    assert!(bytes[0] > 1_000_000 && bytes[1..].iter().all(|&bytes| bytes < 515_000), "{bytes:?}");
    assert!(bytes[9] < bytes[4] && bytes[4] < bytes[1], "{bytes:?}");
}

/// The length equals the length of zlib's output, at every level.
#[test]
fn random_content_barely_grows() {
    let format = find("npz").unwrap();
    let shape = shape(&[1000, 1000], Element::Uint8, 1);
    for level in 0..=9 {
        let bytes = encode_with(format, &shape, &zip_at_level(level), 1 << 16)[0].len();
        assert!(bytes < 1_001_500, "level {level}: {bytes}");
    }
}
