//! Tests that the measured path does not allocate: a cursor and a file storage that have read some samples before.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use feedrate_data::format::{self, CursorOptions, Discard, FORMATS, Format, Need};
use feedrate_data::generate::generate;
use feedrate_data::storage::{self, Storage};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::shape::{Compression, Element, Encoding, Redundancy};
use std::alloc::{GlobalAlloc, System};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct CountingAllocator;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

fn plan(format: &Format, samples: u64, compression: Compression) -> DatasetPlan {
    DatasetPlan {
        format: format.member().name.to_string(),
        extension: format.entry.extension.to_string(),
        files_train: 4,
        files_eval: 0,
        named_train: None,
        named_eval: None,
        samples_per_file: samples,
        file_samples: Vec::new(),
        stored_sample_bytes: None,
        subfolders_train: 0,
        subfolders_eval: 0,
        prefix: "img".into(),
        record_bytes: 100_000.0,
        record_stdev_bytes: 0.0,
        record_dims: vec![],
        element: Element::Float32,
        encoding: Encoding { compression, ..Encoding::default() },
        content_seed: 10,
        redundancy: Redundancy::default(),
        members: vec![],
    }
}

/// Reads the first and the last sample of each file, opening and closing the parts.
fn read_all(format: &Format, storage: &dyn Storage, layout: &Layout, memory: &mut Memory) {
    for file in 0..layout.files() {
        let shape = layout.shape(file);
        for sample in [0, shape.samples - 1] {
            memory.cursor.begin(file, sample, Some(&shape));
            loop {
                let need = memory.cursor.need().unwrap();
                let part = match need {
                    Need::Done => break,
                    Need::Buffered => {
                        memory.cursor.feed(&[], &mut Discard).unwrap();
                        continue;
                    }
                    Need::Length { part } | Need::Bytes { part, .. } | Need::Again { part, .. } => {
                        part
                    }
                };
                layout.write_path(file, &mut memory.data_path);
                format.parts[part].write_path(&memory.data_path, &mut memory.path);
                let handle = storage.open(&memory.path).unwrap();
                if let Need::Bytes { offset, len, .. } | Need::Again { offset, len, .. } = need {
                    let read_bytes =
                        storage.read_at(&handle, offset, &mut memory.piece[..len]).unwrap();
                    memory.cursor.feed(&memory.piece[..read_bytes], &mut Discard).unwrap();
                } else {
                    let length = storage.len(&handle).unwrap();
                    memory.cursor.feed(&length.to_le_bytes(), &mut Discard).unwrap();
                }
                storage.close(handle);
            }
        }
    }
}

struct Memory {
    cursor: Box<dyn feedrate_data::format::Cursor>,
    data_path: String,
    path: String,
    piece: Vec<u8>,
}

#[test]
fn a_warm_cursor_does_not_allocate() {
    let exempt = [Ability::NoFiles, Ability::ReadOnly, Ability::DecoderAllocates];
    let is_checked =
        |format: &&&Format| !exempt.iter().any(|&ability| format.member().has(ability));
    for format in FORMATS.iter().filter(is_checked) {
        for compression in [&[Compression::None], format.entry.compressions].concat() {
            for (samples, piece_bytes) in [(1, 16 << 10), (1, 1 << 20), (3, 16 << 10), (3, 1 << 20)]
            {
                check(format, &plan(format, samples, compression), piece_bytes);
            }
        }
    }
    check_members();
}

fn check(format: &Format, plan: &DatasetPlan, piece_bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let storage = storage::open("file", folder.path()).unwrap();
    let layout = Layout::new(plan);
    if (format.entry.unsupported_setting)(&layout.shape(0), &plan.encoding).is_some() {
        return;
    }
    generate(plan, &layout, &*storage, 1, &|_, _| {}, &AtomicBool::new(false)).unwrap();
    let options = CursorOptions {
        piece_bytes,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only: false,
        decodes_members: false,
        members: [].into(),
        examines_members: false,
    };
    let cursor = (format.cursor)(&options);
    let data_path = String::with_capacity(256);
    let path = String::with_capacity(256);
    let mut memory = Memory { cursor, data_path, path, piece: vec![0; piece_bytes] };
    read_all(format, &*storage, &layout, &mut memory);
    let before = ALLOCATIONS.load(Relaxed);
    read_all(format, &*storage, &layout, &mut memory);
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    let compression = plan.encoding.compression.name();
    let samples = plan.samples_per_file;
    assert_eq!(allocations, 0, "{}, {compression}, {samples} samples", format.member().name);
}

/// Checks decoded members of archives, except images, whose decoders allocate.
fn check_members() {
    let text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (50, 100)}\n";
    let mut array = [&b"\x93NUMPY\x01\0"[..], &[text.len() as u8, 0], text].concat();
    array.resize(array.len() + 20_000, 7);
    let mut archive = tar::Builder::new(Vec::new());
    for (number, data) in [&array[..], b"RIFF\0\0\0\0WEBP and more"].into_iter().enumerate() {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, format!("{number}.bin"), data).unwrap();
    }
    let archive = archive.into_inner().unwrap();
    let options = CursorOptions {
        piece_bytes: 4096,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only: false,
        decodes_members: true,
        members: [].into(),
        examines_members: false,
    };
    let mut cursor = format::find("webdataset").unwrap().reader(&options);
    let mut allocations = 0;
    for _ in 0..2 {
        let before = ALLOCATIONS.load(Relaxed);
        for (sample, kind) in [(0, None), (1, Some("webp"))] {
            cursor.begin(0, sample, None);
            loop {
                let length = (archive.len() as u64).to_le_bytes();
                let bytes = match cursor.need().unwrap() {
                    Need::Done => break,
                    Need::Buffered => &[],
                    Need::Length { .. } => &length[..],
                    Need::Bytes { offset, len, .. } | Need::Again { offset, len, .. } => {
                        &archive[offset as usize..][..len.min(archive.len() - offset as usize)]
                    }
                };
                cursor.feed(bytes, &mut Discard).unwrap();
            }
            assert_eq!(cursor.undecoded_type(), kind);
        }
        allocations = ALLOCATIONS.load(Relaxed) - before;
    }
    assert_eq!(allocations, 0);
}
