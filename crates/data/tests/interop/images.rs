//! Pillow: `png`, `jpeg`.

use super::{check_written, python, read, read_written, write_dataset};
use feedrate_data::format::{self, CursorOptions};
use feedrate_spec::shape::{Element, Encoding};
use serde_json::Value;

#[test]
fn pillow_reads_files_of_feedrate() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for (format, element) in
        [("png", Element::Uint8), ("png", Element::Uint16), ("jpeg", Element::Uint8)]
    {
        for dims in [
            &[1, 1][..],
            &[61, 67],
            &[700, 701],
            // One block, or two of four blocks, of the last unit are beyond the image.
            &[110, 120, 3],
            &[120, 110, 3],
            &[8, 8, 3],
            &[17, 15, 3],
            &[1, 2, 3],
            &[3, 70_000],
            &[31, 37, 3],
            &[256, 256, 3],
            &[33, 31, 4],
        ] {
            if format == "jpeg" && (dims.get(2) == Some(&4) || dims[1] > 65_535) {
                continue;
            }
            let name = format!("{format}/{}/{dims:?}", element.name());
            let case_folder = folder.path().join(name);
            cases.extend(write_dataset(
                &case_folder,
                format,
                &Encoding::default(),
                element,
                1,
                dims,
            ));
        }
    }
    for case in &cases {
        write_decoded_pixels(case);
    }
    check_written("check_images.py", folder.path(), cases);
}

/// Writes the decoded pixels beside the file, because pixels of a lossy file differ from the content.
fn write_decoded_pixels(case: &Value) {
    let path = case["path"].as_str().unwrap();
    let format = format::find(case["format"].as_str().unwrap()).unwrap();
    let options = CursorOptions {
        piece_bytes: 64 << 10,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only: false,
        decodes_members: false,
        members: [].into(),
        examines_members: false,
    };
    let parts = [std::fs::read(path).unwrap()];
    let payload = read(&mut *(format.cursor)(&options), &parts, 0, None).unwrap();
    std::fs::write(format!("{path}.decoded"), payload).unwrap();
}

#[test]
fn feedrate_reads_files_of_pillow() {
    read_written("write_images.py", 180);
}

/// Whether each byte differs by at most a case's `tolerance`, and in the last row and column by `edge_tolerance`.
pub(super) fn are_close(case: &Value, a: &[u8], b: &[u8]) -> bool {
    let Some(tolerance) = case["tolerance"].as_u64() else { return false };
    let edge_tolerance = case["edge_tolerance"].as_u64().unwrap();
    let side = |i: usize| case["dims"][i].as_u64().map(|side| side as usize);
    let (height, width, channels) = (side(0).unwrap(), side(1).unwrap(), side(2).unwrap_or(1));
    let is_close = |i: usize| {
        let pixel = i / channels;
        let at_edge = pixel / width == height - 1 || pixel % width == width - 1;
        let limit = if at_edge { edge_tolerance } else { tolerance };
        u64::from(a[i].abs_diff(b[i])) <= limit
    };
    a.len() == b.len() && (0..a.len()).all(is_close)
}

/// Truncates and changes files with features that feedrate does not write.
#[test]
fn broken_images_do_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    python("write_images.py", folder.path());
    let list = std::fs::read_to_string(folder.path().join("cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&list).unwrap();
    let mut tested = 0;
    for case in &cases {
        let path = case["path"].as_str().unwrap();
        if !path.contains("tiny_") {
            continue;
        }
        let format = format::find(case["format"].as_str().unwrap()).unwrap();
        let options = CursorOptions {
            piece_bytes: 4096,
            library: None,
            check_crc: false,
            wants_payload: true,
            is_payload_only: false,
            decodes_members: false,
            members: [].into(),
            examines_members: false,
        };
        let mut cursor = (format.cursor)(&options);
        let file = std::fs::read(path).unwrap();
        for len in 0..file.len() {
            let result = read(&mut *cursor, &[file[..len].to_vec()], 0, None);
            assert!(result.is_err(), "{path} at {len}");
        }
        for position in 0..file.len() {
            let change = [1, 0x80, 0xff, 0x10][position % 4];
            let mut changed = file.clone();
            changed[position] ^= change;
            let payload = read(&mut *cursor, &[changed], 0, None);
            if let (Ok(payload), Some(found)) = (payload, cursor.file_shape()) {
                assert_eq!(payload.len() as u64, found.sample_bytes(), "{path} at {position}");
            }
        }
        tested += 1;
    }
    assert_eq!(tested, 9);
}
