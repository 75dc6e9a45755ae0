//! Contract tests of engines, run on every row of the table.

use super::*;
use crate::storage::{Storage, open_with_engine};
use feedrate_spec::catalog::Ability;
use std::io::Write as _;

/// Calls `check` with each engine, on a folder with the file `a` of 100,000 bytes and the empty file `b`.
fn for_each_engine(check: impl Fn(&dyn Storage, &[u8])) {
    let bytes: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(folder.path().join("a")).unwrap();
    file.write_all(&bytes).unwrap();
    std::fs::File::create(folder.path().join("b")).unwrap();
    let byte_engines = ENGINES.iter().filter(|engine| !engine.member().has(Ability::ServesSamples));
    for engine in byte_engines {
        let storage = open_with_engine("file", folder.path(), *engine).unwrap();
        check(&*storage, &bytes);
    }
}

#[test]
fn every_engine_reads_every_range() {
    for_each_engine(|storage, bytes| {
        let file = storage.open("a").unwrap();
        assert_eq!(storage.len(&file).unwrap(), 100_000);
        let mut memory = vec![0u8; 120_000 + 4096];
        let aligned = memory.as_ptr().align_offset(4096);
        for misalignment in [0, 1, 100] {
            for (offset, len) in [
                (0, 100_000),
                (0, 4096),
                (0, 102_400),
                (4096, 8192),
                (1, 1),
                (4095, 2),
                (98_304, 4096),
                (12_345, 77_777),
                (99_999, 4096),
                (100_000, 10),
                (1 << 40, 4096),
            ] {
                let buffer = &mut memory[aligned + misalignment..aligned + misalignment + len];
                buffer.fill(0xff);
                let start = usize::try_from(offset).unwrap().min(100_000);
                let expected = &bytes[start..100_000.min(start.saturating_add(len))];
                let read = storage.read_at(&file, offset, buffer).unwrap();
                assert_eq!(read, expected.len(), "{len} at {offset}");
                assert!(&buffer[..read] == expected, "{len} at {offset}");
            }
        }
        storage.close(file);
    });
}

#[test]
fn an_empty_file_has_nothing_to_read() {
    for_each_engine(|storage, _| {
        let file = storage.open("b").unwrap();
        assert_eq!(storage.len(&file).unwrap(), 0);
        assert_eq!(storage.read_at(&file, 0, &mut [0; 4096]).unwrap(), 0);
        storage.close(file);
    });
}

#[test]
fn closed_files_free_their_descriptors() {
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    for_each_engine(|storage, _| {
        let file = storage.open("a").unwrap();
        storage.close(file);
        let before = open_files();
        for _ in 0..100 {
            let file = storage.open("a").unwrap();
            storage.close(file);
        }
        // Other tests of this process open files too, but fewer.
        assert!(open_files() < before + 90);
    });
}
