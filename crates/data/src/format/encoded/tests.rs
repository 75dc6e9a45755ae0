//! Tests of members that arrive in pieces of any length, and of members that cannot be decoded.

use super::super::tests::{encode_default, options, read, read_with, shape};
use super::super::{Format, find};
use super::*;
use feedrate_spec::shape::Element;

/// An archive with one member per sample.
fn archive(members: &[(&str, &[u8])]) -> [Vec<u8>; 1] {
    let mut archive = tar::Builder::new(Vec::new());
    for (number, (extension, data)) in members.iter().enumerate() {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, format!("{number}.{extension}"), *data).unwrap();
    }
    [archive.into_inner().unwrap()]
}

fn webdataset() -> &'static Format {
    find("webdataset").unwrap()
}

#[test]
fn members_in_pieces_of_any_length_are_decoded_like_files() {
    let files = [("jpeg", &[61, 67, 3][..]), ("png", &[40, 30]), ("npy", &[5, 7])];
    let files = files.map(|file| {
        let format = find(file.0).unwrap();
        let mut parts = encode_default(format, &shape(file.1, Element::Uint8, 1), 1000);
        let payload = read(format, &parts, 0, None).unwrap();
        (parts.remove(0), payload)
    });
    // The signature of a member takes precedence over its name.
    let members = [("jpg", &*files[0].0), ("x.JPG", &files[1].0), ("bin", &files[2].0)];
    let parts = archive(&members);
    for piece_bytes in [1, 15, 16, 17, 511, 512, 513, 5000, 1 << 20] {
        let mut cursor = webdataset().reader(&options(piece_bytes));
        for sample in [0, 1, 2, 2, 0, 1] {
            let (file, expected) = &files[sample];
            let payload = read_with(&mut *cursor, piece_bytes, &parts, sample as u64, None);
            assert!(payload.unwrap() == *expected, "{sample} in pieces of {piece_bytes}");
            assert_eq!(cursor.payload_bytes(), Some(file.len() as u64));
            assert_eq!(cursor.undecoded_type(), None);
        }
    }
    let raw = CursorOptions { decodes_members: false, ..options(4096) };
    let payload = read_with(&mut *webdataset().reader(&raw), 4096, &parts, 0, None).unwrap();
    assert!(payload == files[0].0);
}

#[test]
fn undecodable_members_are_passed_through_and_reported() {
    let jpeg =
        &encode_default(find("jpeg").unwrap(), &shape(&[61, 67], Element::Uint8, 1), 1000)[0];
    let cases: [(&str, &[u8], Option<&str>); 8] = [
        ("jpg", &jpeg[..jpeg.len() / 2], Some("jpeg")),
        ("png", b"\x89PNG\r\n\x1a\n and no more", Some("png")),
        ("npy2", b"\x93NUMPY\x01\0\x76\0{'descr'", Some("npy")),
        ("jpg", b"short", Some("jpeg")),
        ("jpg", b"RIFF\0\0\0\0WEBPVP8 and more", Some("webp")),
        ("mp4", b"\0\0\0\x20ftypisom and more", Some("mp4")),
        ("pyd", b"as numpy's pickle begins", Some("pickle")),
        ("bin", &[7; 300], None),
    ];
    let parts = archive(&cases.map(|case| (case.0, case.1)));
    for piece_bytes in [1, 100, 4096] {
        let mut cursor = webdataset().reader(&options(piece_bytes));
        for (sample, case) in cases.iter().enumerate() {
            let payload = read_with(&mut *cursor, piece_bytes, &parts, sample as u64, None);
            assert!(payload.unwrap() == case.1, "{sample}");
            assert_eq!(cursor.undecoded_type(), case.2, "{sample}");
        }
    }
}

#[test]
fn planned_samples_are_not_decoded() {
    // An array with the signature of an image.
    let mut data = vec![0xff, 0xd8, 0xff];
    data.resize(300, 0);
    let npy = find("npy").unwrap();
    let mut file = encode_default(npy, &shape(&[300], Element::Uint8, 1), 1000).remove(0);
    let head_bytes = file.len() - 300;
    file[head_bytes..].copy_from_slice(&data);
    let mut cursor = webdataset().reader(&options(4096));
    let payload = read_with(&mut *cursor, 4096, &archive(&[("npy", &file)]), 0, None).unwrap();
    assert_eq!((payload, cursor.undecoded_type()), (data, None));
}

#[test]
fn each_type_is_recognised_by_its_signature() {
    for member_type in MEMBER_TYPES.iter().filter(|member_type| !member_type.signature.is_empty()) {
        let mut head = [0; HEAD_BYTES];
        for part in member_type.signature {
            head[part.0..part.0 + part.1.len()].copy_from_slice(part.1);
        }
        let found =
            MEMBER_TYPES.iter().find(|other| other.has_signature(&head)).map(|other| other.name);
        assert_eq!(found, Some(member_type.name));
    }
}
