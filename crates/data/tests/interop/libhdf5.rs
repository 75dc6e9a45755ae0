//! Compares feedrate's HDF5 reader with the HDF5 library, on files of feedrate and of h5py.

use super::{plan, python};
use feedrate_data::content::Content;
use feedrate_data::format::{self, Cursor, CursorOptions, FormatError, Need, PayloadSink};
use feedrate_data::generate::generate;
use feedrate_data::storage::{self, Storage, engine};
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Compression, Element, Encoding, FileShape};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct CollectingSink(Vec<u8>);

impl PayloadSink for CollectingSink {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        assert_eq!(offset, self.0.len() as u64);
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn cursor(is_payload_only: bool) -> Box<dyn Cursor> {
    let piece_bytes = 4096;
    let options = CursorOptions {
        piece_bytes,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only,
        decodes_members: false,
        members: [].into(),
        examines_members: false,
    };
    (format::find("hdf5").unwrap().cursor)(&options)
}

/// A sample of `path`, read through `storage`.
fn read(
    storage: &dyn Storage,
    path: &str,
    cursor: &mut dyn Cursor,
    sample: u64,
    shape: Option<&FileShape>,
) -> Result<Vec<u8>, FormatError> {
    let file = storage.open(path).unwrap();
    let mut sink = CollectingSink(Vec::new());
    cursor.begin(u64::MAX, sample, shape);
    let done = loop {
        match cursor.need() {
            Err(error) => break Err(error),
            Ok(Need::Done) => break Ok(()),
            Ok(Need::Length { .. }) => {
                let len = storage.len(&file).unwrap();
                if let Err(error) = cursor.feed(&len.to_le_bytes(), &mut sink) {
                    break Err(error);
                }
            }
            Ok(Need::Bytes { offset, len, .. } | Need::Again { offset, len, .. }) => {
                let mut bytes = vec![0; len];
                let read_bytes = storage.read_at(&file, offset, &mut bytes).unwrap();
                if let Err(error) = cursor.feed(&bytes[..read_bytes], &mut sink) {
                    break Err(error);
                }
            }
            Ok(Need::Buffered) => {
                if let Err(error) = cursor.feed(&[], &mut sink) {
                    break Err(error);
                }
            }
        }
    };
    storage.close(file);
    done.map(|()| sink.0)
}

fn open_with_library(folder: &Path) -> Box<dyn Storage> {
    let engine = engine::find("libhdf5").expect("built with the feature");
    storage::open_with_engine("file", folder, engine).unwrap()
}

fn check_generated(encoding: &Encoding, element: Element, samples: u64, dims: &[u64]) {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan("hdf5", encoding, element, (1, samples), dims);
    let layout = Layout::new(&plan);
    let storage = storage::open("file", folder.path()).unwrap();
    generate(&plan, &layout, &*storage, 1, &|_, _| {}, &AtomicBool::new(false)).unwrap();
    let mut path = String::new();
    layout.write_path(0, &mut path);
    let shape = layout.shape(0);
    let library = open_with_library(folder.path());
    let (mut file_cursor, mut payload_cursor) = (cursor(false), cursor(true));
    let mut content = Content::from_plan(&plan);
    for sample in 0..samples {
        let ours = read(&*storage, &path, &mut *file_cursor, sample, Some(&shape)).unwrap();
        let theirs = read(&*library, &path, &mut *payload_cursor, sample, Some(&shape)).unwrap();
        assert!(ours == theirs, "{encoding:?} {element:?} {dims:?} {sample}");
        assert_eq!(content.matches(sample, 0, element, &theirs), Ok(()));
    }
    let more = FileShape { samples: samples + 1, ..shape };
    let mut payload_cursor = cursor(true);
    assert!(read(&*library, &path, &mut *payload_cursor, 0, Some(&more)).is_err(), "{encoding:?}");
}

#[test]
fn the_library_reads_every_layout_of_feedrate() {
    let chunked = |chunk_dims: &[u64], max_shape: &[u64], datasets_per_record| Encoding {
        chunk_dims: chunk_dims.to_vec(),
        max_shape: max_shape.to_vec(),
        datasets_per_record,
        ..Encoding::default()
    };
    for element in Element::ALL {
        check_generated(&Encoding::default(), element, 3, &[61, 67]);
    }
    for (samples, dims, encoding) in [
        (5, &[40, 30][..], chunked(&[1, 40, 30], &[], 1)),
        (5, &[40, 30], chunked(&[2, 7, 11], &[], 1)),
        (5, &[40, 30], chunked(&[], &[0, 40, 30], 1)),
        (5, &[40, 30], chunked(&[2, 5, 15], &[0, 40, 0], 4)),
        (2, &[40, 30], chunked(&[], &[], 8)),
        (3, &[4, 1, 6, 5], chunked(&[2, 3, 1, 4, 2], &[], 1)),
        (300, &[20], chunked(&[1, 1], &[], 1)),
        (300, &[1, 3], chunked(&[4, 3], &[], 1)),
    ] {
        for compression in [Compression::None, Compression::Gzip] {
            let encoding = Encoding { compression, ..encoding.clone() };
            check_generated(&encoding, Element::Int16, samples, dims);
        }
    }
}

#[test]
fn feedrate_and_the_library_read_the_same_from_files_of_h5py() {
    let folder = tempfile::tempdir().unwrap();
    python("write_hdf5.py", folder.path());
    let list = std::fs::read_to_string(folder.path().join("cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&list).unwrap();
    let (file_storage, library) =
        (storage::open("file", folder.path()).unwrap(), open_with_library(folder.path()));
    let mut compared = 0;
    for case in cases.iter().filter(|case| case["refused"].is_null()) {
        let path = Path::new(case["path"].as_str().unwrap()).file_name().unwrap();
        let path = path.to_str().unwrap();
        // The library reverses these numbers; feedrate reads the stored bytes.
        if path.contains("big_endian") {
            continue;
        }
        let Ok(file) = library.open(path) else {
            // h5py contains a newer library than Debian, and this engine reads only numbers in datasets called `records_0` and so on,
            // without filters of other libraries.
            continue;
        };
        library.close(file);
        let picked = case["picked"].as_array().unwrap();
        for sample in picked.iter().take(3).map(|sample| sample.as_u64().unwrap()) {
            let mut cursor = cursor(false);
            let ours = read(&*file_storage, path, &mut *cursor, sample, None);
            let found = cursor.file_shape();
            let theirs =
                read(&*library, path, &mut *super::libhdf5::cursor(true), sample, found.as_ref());
            assert!(ours.is_ok() && ours == theirs, "{path} {sample}");
        }
        compared += 1;
    }
    assert!(compared > 200, "{compared} files");
}

#[test]
fn a_file_that_is_not_hdf5_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), [7; 5000]).unwrap();
    let error = open_with_library(folder.path()).open("a").unwrap_err();
    assert!(error.to_string().starts_with("cannot open "), "{error}");
}
